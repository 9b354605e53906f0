"""Settings of this process. Set them before the first compile.

nvrtc_library : str or None
    The NVRTC library to load; None finds one in the installed wheels, then in a CUDA toolkit.
include_paths : list of str
    Directories of the CUDA headers (and CCCL); empty finds the ones that belong to that NVRTC.
cuda_array_interface_sync : bool
    Whether the streams that other libraries' arrays name are waited for, and wait in turn. False leaves the order to
    you: their streams are checked and then ignored, as the interface allows consumers to offer.
    BASCULE_CUDA_ARRAY_INTERFACE_SYNC=0 in the environment is the same from the start. May be set at any time.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from bascule import _bascule

nvrtc_library: str | None = None
include_paths: list[str] = []
cuda_array_interface_sync: bool = _bascule._interface_sync()


class _Settings(types.ModuleType):
    """Checks names, so that a misspelt setting is no silent one, and makes the next compile look again."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):
            known = ("nvrtc_library", "include_paths", "cuda_array_interface_sync")
            if name not in known:
                raise AttributeError(f"bascule.config has no setting {name!r}; there are: {', '.join(known)}")
            if name == "cuda_array_interface_sync":
                _bascule._set_interface_sync(value)
            else:
                from bascule import _remembered

                _bascule._forget_toolkit()
                _remembered.forget()
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Settings
