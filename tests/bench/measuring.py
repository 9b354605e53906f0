"""What the benchmarks share: importing what C code they measure with, and taking everything compared in turn.

Ratios are taken within a round, in which everything compared runs once; what is told is the median over the rounds. A
noisy machine then disturbs both sides.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "dev" / "tests"


def native(*names: str) -> list[ModuleType]:
    """Modules written in C, from the build tree."""
    sys.path[:0] = [str(BUILD / "bench"), str(BUILD / "python" / "dlpack")]
    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as error:
        sys.exit(f"{error}\nBuild it first: cmake --build build/dev --target {' '.join(names)}")


def pin() -> None:
    """To one core: nothing moves to another between two things that are compared."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
