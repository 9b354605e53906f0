"""Settings of this process. Set them before the first compile.

nvrtc_library : str or None
    Path of the NVRTC library to load; None takes the newest one of the wheels and toolkits that the driver accepts.
include_paths : list of str
    Directories of the CUDA headers and of CCCL; if empty, the headers that belong to that NVRTC are used.
cuda_array_interface_sync : bool
    Whether launches wait for the streams that other libraries' arrays name, and those streams for the launches. With
    False, streams are validated and then ignored, and you must synchronise. BASCULE_CUDA_ARRAY_INTERFACE_SYNC=0 in the
    environment sets it to False at import. May be changed at any time.
default_stream : "legacy" or "per-thread"
    The CUDA default stream that is used if no stream is named. May be changed at any time.
stream_of : "library" or "spec"
    "library": arrays that name no stream (versions 0 to 2 of the interface) are ordered with their library's stream;
    `bascule.register_producer` lists the known libraries. "spec": they are not ordered. BASCULE_STREAM_OF=spec in the
    environment sets it at import. May be changed at any time.
accept_newer_interface : bool
    Whether a `__cuda_array_interface__` newer than version 3 is read by the rules of version 3; otherwise it is an
    error. May be changed at any time.
check_memory : bool
    Whether every launch asks the driver about the memory of every array, so that freed memory and arrays larger than
    their allocation are errors, as far as the driver can tell. Otherwise what the driver said about an address is
    remembered until Bascule itself frees that memory. May be changed at any time.
"""

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

from bascule import _bascule, _producers, _remembered

nvrtc_library: str | None = None
include_paths: list[str] = []
cuda_array_interface_sync: bool = _producers.sync_of_environment()
default_stream: str = "legacy"
stream_of: str = _producers.stream_of_environment()
accept_newer_interface: bool = False
check_memory: bool = False


def _compile_differently(_value: Any) -> None:
    _bascule._forget_toolkit()
    _remembered.forget()


# Functions that are called with the new value before a setting changes.
_EFFECTS: dict[str, Callable[[Any], None]] = {
    "nvrtc_library": _compile_differently,
    "include_paths": _compile_differently,
    "cuda_array_interface_sync": _bascule._set_interface_sync,
    "default_stream": _bascule._set_default_stream,
    "stream_of": _producers.set_stream_of,
    "accept_newer_interface": _bascule._accept_newer_interface,
    "check_memory": _bascule._check_memory,
}


class _PickledByName(types.ModuleType):
    """A module that is pickled by name, so that cloudpickle can pickle functions that use it."""

    def __reduce__(self) -> tuple[Callable[[str], types.ModuleType], tuple[str]]:
        return importlib.import_module, (self.__name__,)


class _Settings(_PickledByName):
    """The module's class. Refuses unknown settings, and applies each change at once."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):
            if name not in _EFFECTS:
                raise AttributeError(f"bascule.config has no setting {name!r}; there are: {', '.join(_EFFECTS)}")
            _EFFECTS[name](value)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Settings
