"""Makes other libraries load the emulated device as the CUDA driver, from the directory `_stand_ins` of the build."""

import ctypes
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from bascule import _bascule
from bascule._errors import LibraryError

__all__ = ["environment", "load"]

_DIRECTORY = Path(_bascule.__file__).with_name("_stand_ins")
_DRIVER = "libcuda.so.1"
# Empty libraries. A client that finds no nvJitLink functions lets the driver link its PTX and makes no machine code.
_LINKERS = ("libnvJitLink.so.12", "libnvJitLink.so.13")
# Modules that look for the driver or nvJitLink when they are imported, or remember that there was none.
_CLIENTS = ("cuda.core", "cupy", "numba.cuda", "numba_cuda", "pycuda.driver", "torch")


def environment(given: Mapping[str, str], schedule: str | None = None) -> dict[str, str]:
    """Return the environment of a process whose CUDA driver is the emulated device.

    schedule : a value of BASCULE_EMULATED_SCHEDULE; None keeps the value in `given`, or takes 'threads'.

    Raises LibraryError if the directory's path cannot be used in a search path.
    """
    if ":" in str(_DIRECTORY) or ";" in str(_DIRECTORY):
        raise LibraryError(
            f"the loader cannot search {_DIRECTORY}, because of the separator in its path. Install Bascule elsewhere."
        )
    return {
        **given,
        "LD_LIBRARY_PATH": ":".join(filter(None, [str(_DIRECTORY), given.get("LD_LIBRARY_PATH")])),
        # Clients look for nvJitLink in NVIDIA's packages first, unless a library of that name is already loaded.
        "LD_PRELOAD": ":".join(filter(None, [*_LINKERS, given.get("LD_PRELOAD")])),
        # Write reports to stderr, for programs that do not use Bascule.
        "BASCULE_EMULATED_REPORTS": given.get("BASCULE_EMULATED_REPORTS") or "1",
        # Threads, so that a kernel that waits for the host can end, as on a GPU.
        "BASCULE_EMULATED_SCHEDULE": schedule or given.get("BASCULE_EMULATED_SCHEDULE") or "threads",
    }


def load(schedule: str | None) -> None:
    """Load the libraries into this process, once. Raises LibraryError if it is too late for that."""
    loaded = _loaded(_DRIVER)
    if loaded is None:
        _refuse_clients()
        for name in _LINKERS:
            other = _loaded(name)
            if other is not None and hasattr(other, "nvJitLinkVersion"):
                raise LibraryError(
                    f"{name} is loaded already: its programs are for GPUs. Call bascule.emulated.install() before "
                    "other libraries are imported."
                )
    elif not hasattr(loaded, "bascule_emulated_abi"):
        raise LibraryError(
            f"the CUDA driver is loaded already, as {_DRIVER}. Call bascule.emulated.install() before other libraries "
            "are imported."
        )
    if _bascule._driver_is_loaded():
        if not _bascule._driver_info()["emulated"]:
            raise LibraryError(
                "Bascule runs kernels on a GPU in this process. Set BASCULE_DEVICE=emulated, or call "
                "bascule.emulated.install() before anything else."
            )
        if schedule is not None and schedule != os.environ.get("BASCULE_EMULATED_SCHEDULE", "eager"):
            raise LibraryError(
                f"the schedule cannot be {schedule!r}: the emulated device is in use already. Call "
                "bascule.emulated.install() before anything else."
            )
    elif schedule is not None or "BASCULE_EMULATED_SCHEDULE" not in os.environ:
        os.environ["BASCULE_EMULATED_SCHEDULE"] = schedule or "threads"
    for name in (*_LINKERS, _DRIVER):
        ctypes.CDLL(str(_DIRECTORY / name), mode=os.RTLD_NOW | os.RTLD_GLOBAL)


def _loaded(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        return None


def _refuse_clients() -> None:
    imported = [name for name in _CLIENTS if name in sys.modules]
    if imported:
        raise LibraryError(
            f"{imported[0]} is imported already, and may have looked for the CUDA driver. Call "
            "bascule.emulated.install() before other libraries are imported, or run the program by: "
            "python -m bascule emulate -- python ..."
        )
