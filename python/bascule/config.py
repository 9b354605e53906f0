"""Settings of this process. Set them before the first compile.

nvrtc_library : str or None
    The NVRTC library to load; None finds one in the installed wheels, then in a CUDA toolkit.
include_paths : list of str
    Directories of the CUDA headers (and CCCL); empty finds the ones that belong to that NVRTC.
cuda_array_interface_sync : bool
    Whether the streams that other libraries' arrays name are waited for, and wait in turn. False leaves the order to
    you: their streams are checked and then ignored, as the interface allows consumers to offer.
    BASCULE_CUDA_ARRAY_INTERFACE_SYNC=0 in the environment is the same from the start. May be set at any time.
default_stream : "legacy" or "per-thread"
    Which of its two default streams a device means where no stream is named. May be set at any time.
stream_of : "library" or "spec"
    Whether the libraries of arrays that name no stream (versions 0 to 2 of the interface) are asked for the one that
    they work on; `bascule.register_producer` tells which are known. "spec" asks nobody, and so does
    BASCULE_STREAM_OF=spec in the environment. May be set at any time.
accept_newer_interface : bool
    Whether a `__cuda_array_interface__` of a later version than 3 is read by the rules of version 3; otherwise it is an
    error. May be changed at any time.
check_memory : bool
    Whether the driver is asked about every array at every launch, so that freed memory and arrays that reach beyond
    their allocation are errors, as far as the driver can tell. Otherwise an answer about device memory is kept until
    Bascule itself frees there. May be changed at any time.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from bascule import _bascule, _producers

nvrtc_library: str | None = None
include_paths: list[str] = []
cuda_array_interface_sync: bool = _bascule._interface_sync()
default_stream: str = "legacy"
stream_of: str = _producers.stream_of_environment()
accept_newer_interface: bool = False
check_memory: bool = False


def _compile_differently(_value: Any) -> None:
    from bascule import _remembered

    _bascule._forget_toolkit()
    _remembered.forget()


# What setting each of them does, before it counts.
_EFFECTS: dict[str, Callable[[Any], None]] = {
    "nvrtc_library": _compile_differently,
    "include_paths": _compile_differently,
    "cuda_array_interface_sync": _bascule._set_interface_sync,
    "default_stream": _bascule._set_default_stream,
    "stream_of": _producers.set_stream_of,
    "accept_newer_interface": _bascule._accept_newer_interface,
    "check_memory": _bascule._check_memory,
}


class _Settings(types.ModuleType):
    """Checks names, so that a misspelt setting is no silent one, and makes each take effect at once."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):
            if name not in _EFFECTS:
                raise AttributeError(f"bascule.config has no setting {name!r}; there are: {', '.join(_EFFECTS)}")
            _EFFECTS[name](value)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Settings
