"""Emits NVTX ranges for a profiler, such as Nsight Systems, through the package nvtx."""

import importlib
import threading

from bascule import _bascule, _errors

_lock = threading.Lock()
_wanted = 0  # number of users: the environment variable and traces


def begin_ranges() -> None:
    """Emit a range for each call from now on, such as "bascule: launch scale".

    Raises ImportError, with the pip command, if the package nvtx is missing.
    """
    global _wanted
    try:
        nvtx = importlib.import_module(
            "nvtx"
        )  # it has no types; an import statement would be an error of mypy for users
    except ImportError:
        raise ImportError(
            'ranges for a profiler need the package nvtx: pip install "bascule[nvtx]"', name="nvtx"
        ) from None
    with _lock:
        if _wanted == 0:
            _bascule._emit_ranges(nvtx.push_range, nvtx.pop_range)
        _wanted += 1


def end_ranges() -> None:
    """Undo one call of `begin_ranges`."""
    global _wanted
    with _lock:
        _wanted -= 1
        if _wanted == 0:
            _bascule._stop_ranges()


def start_for_process(value: str) -> None:
    """Apply BASCULE_NVTX when the package is imported."""
    if value not in ("0", "1"):
        raise _errors.ArgumentValueError(
            f"BASCULE_NVTX is {value!r}: set it to 1 (calls are ranges for a profiler) or 0 (only those in "
            "bascule.trace are), or unset it."
        )
    if value == "1":
        begin_ranges()
