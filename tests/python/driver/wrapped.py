"""Runs programs whose libcuda.so.1 is wrapped_driver.c around the emulated device."""

from __future__ import annotations

import os
import tempfile
import textwrap
from pathlib import Path

import pytest
from child_process import printed_by

import bascule

from .place import OPENING

EMULATOR = Path(bascule.__file__).with_name("libbascule_emulator.so").resolve()
# The wrapped driver is in the build directory of the package under test, or packed with the tests.
BUILDS = [Path(bascule._bascule.__file__).resolve().parents[2], Path(__file__).resolve().parents[3] / "build" / "dev"]


def library() -> Path:
    found = (build / "tests/python/driver/wrapped_driver.so" for build in BUILDS)
    built = next((each for each in found if each.exists()), None)
    if built is None:
        pytest.fail("build the target wrapped_driver first: cmake --build build/dev --target wrapped_driver")
    return built


def prints_wrapped(program: str, *, timeout: float = 180, **changes: str) -> str:
    """Returns the output of OPENING and the program, in which `driver` is the wrapped one; it must exit with 0."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "libcuda.so.1").symlink_to(library())
        paths = [directory, str(EMULATOR.parent), os.environ.get("LD_LIBRARY_PATH", "")]
        changes |= {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths)), "WRAPPED_DRIVER": str(EMULATOR)}
        changes = {"BASCULE_EMULATED_ARCH": "80"} | changes  # programs name it if they need another one
        command = ["-X", "faulthandler", "-c", OPENING + textwrap.dedent(program)]
        return printed_by(*command, timeout=timeout, BASCULE_DEVICE="cuda", **changes)
