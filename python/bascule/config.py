"""Settings of this process. Set them before the first compile.

nvrtc_library : str or None
    The NVRTC library to load; None finds one in the installed wheels, then in a CUDA toolkit.
include_paths : list of str
    Directories of the CUDA headers (and CCCL); empty finds the ones that belong to that NVRTC.
"""

from __future__ import annotations

import sys
import types
from typing import Any

nvrtc_library: str | None = None
include_paths: list[str] = []


class _Settings(types.ModuleType):
    """Checks names, so that a misspelt setting is no silent one, and makes the next compile look again."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):
            known = ("nvrtc_library", "include_paths")
            if name not in known:
                raise AttributeError(f"bascule.config has no setting {name!r}; there are: {', '.join(known)}")
            from bascule import _bascule, _remembered

            _bascule._forget_toolkit()
            _remembered.forget()
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Settings
