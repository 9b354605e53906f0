"""Shared by several shims."""

from __future__ import annotations

import ctypes
import sys
import types
from pathlib import Path
from typing import Any

import bascule


def module(name: str, **members: Any) -> types.ModuleType:
    """Makes a module that `import name` finds; with `__path__` it is a package."""
    made = types.ModuleType(name)
    vars(made).update(members)
    sys.modules[name] = made
    return made


def driver_version() -> int:
    """Returns 13000 for CUDA 13.0."""
    emulator = Path(bascule.__file__).with_name("libbascule_emulator.so")
    version = ctypes.c_int()
    ctypes.CDLL(str(emulator)).cuDriverGetVersion(ctypes.byref(version))
    return version.value
