"""The emulated device in the place of the CUDA driver, where other libraries find it: `_stand_ins/`, made by CMake."""

import ctypes
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from bascule import _bascule
from bascule._errors import LibraryError

__all__ = ["environment", "load"]

_DIRECTORY = Path(__file__).with_name("_stand_ins")
_DRIVER = "libcuda.so.1"
# Empty. A client that finds no function of nvJitLink has the driver link its PTX, and makes no machine code.
_LINKERS = ("libnvJitLink.so.12", "libnvJitLink.so.13")
# What looks for the driver or for nvJitLink when it is imported, or remembers that there was none.
_CLIENTS = ("cuda.core", "cupy", "numba.cuda", "numba_cuda", "pycuda.driver", "torch")


def environment(given: Mapping[str, str], schedule: str | None = None) -> dict[str, str]:
    """The variables of a process whose CUDA driver is the emulated device.

    schedule : as BASCULE_EMULATED_SCHEDULE; None keeps the one that is `given`, else takes 'threads'.

    Raises LibraryError where the directory of the libraries cannot be named in a search path.
    """
    if ":" in str(_DIRECTORY) or ";" in str(_DIRECTORY):
        raise LibraryError(
            f"the loader cannot search {_DIRECTORY}, because of the separator in its path. Install Bascule elsewhere."
        )
    return {
        **given,
        "LD_LIBRARY_PATH": ":".join(filter(None, [str(_DIRECTORY), given.get("LD_LIBRARY_PATH")])),
        # Clients look for nvJitLink beside their own packages first, unless it is loaded.
        "LD_PRELOAD": ":".join(filter(None, [*_LINKERS, given.get("LD_PRELOAD")])),
        # A kernel that waits for its host can end, as on a GPU.
        "BASCULE_EMULATED_REPORTS": given.get("BASCULE_EMULATED_REPORTS") or "1",
        "BASCULE_EMULATED_SCHEDULE": schedule or given.get("BASCULE_EMULATED_SCHEDULE") or "threads",
    }


def load(schedule: str | None) -> None:
    """Load the libraries into this process, once. Raises LibraryError where another library was faster."""
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
