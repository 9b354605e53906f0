"""Checks the environment variables that begin with BASCULE_ when the package is imported."""

import os
import sys
from pathlib import Path

from bascule import _errors

_VARIABLES = (
    "BASCULE_CACHE_DIR",
    "BASCULE_CACHE_LIMIT",
    "BASCULE_CUDA_ARRAY_INTERFACE_SYNC",
    "BASCULE_DEVICE",
    "BASCULE_EMULATED_ARCH",
    "BASCULE_EMULATED_BUSY",
    "BASCULE_EMULATED_CHECKS",
    "BASCULE_EMULATED_CONCURRENT_MANAGED",
    "BASCULE_EMULATED_DEVICES",
    "BASCULE_EMULATED_DRIVER",
    "BASCULE_EMULATED_EXECUTE",
    "BASCULE_EMULATED_FREES_WAIT",
    "BASCULE_EMULATED_ISA",
    "BASCULE_EMULATED_LAZY_LOADING",
    "BASCULE_EMULATED_MEMORY",
    "BASCULE_EMULATED_MEMORY_POOLS",
    "BASCULE_EMULATED_PAGEABLE",
    "BASCULE_EMULATED_REPORTS",
    "BASCULE_EMULATED_SCHEDULE",
    "BASCULE_EMULATED_STALE_STREAMS",
    "BASCULE_EMULATED_TIMEOUT",
    "BASCULE_EMULATED_WORKERS",
    "BASCULE_FULL_TRACEBACK",
    "BASCULE_KEEP_SOURCES",
    "BASCULE_LOG",
    "BASCULE_NVTX",
    "BASCULE_STREAM_OF",
)


def check() -> None:
    """Check the variables that the package reads at import, and warn of names that are probably misspelt."""
    try:
        _check_values()
    except _errors.ArgumentError as error:
        if Path(sys.argv[0]).name == "bascule" or sys.orig_argv[-len(sys.argv) - 1 :][:2] == ["-m", "bascule"]:
            raise SystemExit(f"error: {error}") from None  # the command line has no handler for errors yet
        raise
    for name in os.environ:
        if name.startswith("BASCULE_") and name not in _VARIABLES:
            import difflib

            for meant in difflib.get_close_matches(name, _VARIABLES, n=1, cutoff=0.88):  # programs may have their own
                _errors.warn(f"the environment variable {name} has no effect. Did you mean {meant}?", UserWarning)


def _check_values() -> None:
    if (value := os.environ.get("BASCULE_FULL_TRACEBACK", "")) not in ("", "0", "1"):
        raise _errors.ArgumentValueError(
            f"BASCULE_FULL_TRACEBACK is {value!r}: set it to 1 (tracebacks show Bascule's frames) or 0 (they do not), "
            "or unset it."
        )
    if level := os.environ.get("BASCULE_LOG"):
        _configure_log(level)
    if ranges := os.environ.get("BASCULE_NVTX"):
        from bascule import _trace

        _trace.start_ranges_of_process(ranges)


def _configure_log(level: str) -> None:
    """Print what was compiled and why to standard error, through Python's `logging`: this level and above.

    Programs that configure `logging` themselves do not need BASCULE_LOG: they use the loggers "bascule.cache" and
    "bascule.jit".
    """
    import logging

    if level == "off":
        return
    if level not in ("info", "debug"):
        raise _errors.ArgumentValueError(
            f"BASCULE_LOG is {level!r}: set it to info (what was compiled, and why), debug (hits in memory and calls "
            "of NVRTC too) or off, or unset it."
        )
    logger = logging.getLogger("bascule")
    logger.setLevel(level.upper())
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    # If the program has configured handlers of its own, they print the messages and this one does not.
    handler.addFilter(lambda record: not logging.getLogger().handlers)
    logger.addHandler(handler)
