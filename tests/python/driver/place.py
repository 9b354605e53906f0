"""Runs programs with the emulated device in place of the CUDA driver, so that Bascule takes it for a GPU's.

With BASCULE_TEST_DRIVER=real, as tests/gpu/run.sh sets it, this machine's own driver is used in every program that
needs no feature of the emulated device.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

from child_process import run_python

import bascule

OPENING = """
import atexit, ctypes, gc, os, sys, threading, time
import numpy as np
import bascule
driver = ctypes.CDLL("libcuda.so.1")  # releases the GIL; ctypes.PyDLL does not

def contexts():
    'The devices whose primary context is retained.'
    count, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
    driver.cuInit(0)
    driver.cuDeviceGetCount(ctypes.byref(count))
    found = []
    for device in range(count.value):
        driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
        if active.value:
            found.append(device)
    return found

class Foreign:
    'Memory of another library, float32.'
    def __init__(self, address, count=32, stream=None):
        self.__cuda_array_interface__ = {
            "version": 3, "shape": (count,), "typestr": "<f4", "data": (address, False), "stream": stream
        }

def refusal(call):
    'The message of the ArgumentError.'
    try:
        call()
    except bascule.ArgumentError as error:
        return str(error)
    return "taken"

USES = range(16)  # the devices on which the program does something

@atexit.register
def check_contexts():
    if set(contexts()) - set(USES):
        print("contexts of devices", contexts(), "and the program uses", USES, file=sys.stderr)
"""


# On a real driver, Bascule's count of its own calls replaces the emulated driver's count.
COUNTING = """
bascule._bascule._driver_calls("cuInit")
driver.bascule_emulated_call_count = lambda name: bascule._bascule._driver_calls(name.decode())
"""

# Features of the emulated device only: its own functions, its name, and a second device on every machine.
ONLY_EMULATED = re.compile(
    r"bascule_emulated_(?!call_count)|[Ee]mulated device|device\(1\)|[dD]evice 1\b"
    r"|(PrimaryCtxRetain|CtxCreate(_v2)?)\(.*\b1\)"
)
# Options that select behaviour that a real driver may show, too.
ANY_DRIVER = {"BASCULE_EMULATED_SCHEDULE", "BASCULE_EMULATED_CHECKS", "BASCULE_EMULATED_TIMEOUT"}


def runs_on_the_real_driver(
    program: str, uses: tuple[int, ...], changes: Mapping[str, str], only_emulated: str = ""
) -> bool:
    if only_emulated:
        return False
    if os.environ.get("BASCULE_TEST_DRIVER") != "real" or changes.get("BASCULE_DEVICE", "cuda") != "cuda":
        return False
    options = {name for name in changes if name.startswith(("BASCULE_EMULATED_", "WRAPPED_"))}
    one_device = changes.get("BASCULE_EMULATED_DEVICES") == "1"
    needed = options - ANY_DRIVER - ({"BASCULE_EMULATED_DEVICES"} if one_device else set())
    return not needed and not set(uses) - {0} and not ONLY_EMULATED.search(program)


def environment_of_the_driver(**changes: str) -> dict[str, str]:
    """The environment of a process that uses this machine's libcuda.so.1."""
    found = Path(bascule._bascule._driver_info()["path"]).parent
    paths = os.pathsep.join(filter(None, [str(found), os.environ.get("LD_LIBRARY_PATH", "")]))
    return {**os.environ, "LD_LIBRARY_PATH": paths, "BASCULE_DEVICE": "cuda", **changes}


def environment_of(directory: Path, **changes: str) -> dict[str, str]:
    """The environment of a process whose libcuda.so.1 is the emulated device, by a link in `directory`."""
    library = directory / "libcuda.so.1"
    if not library.is_symlink():
        library.symlink_to(Path(bascule.__file__).with_name("libbascule_emulator.so").resolve())
    paths = os.pathsep.join(filter(None, [str(directory), os.environ.get("LD_LIBRARY_PATH", "")]))
    return {**os.environ, "LD_LIBRARY_PATH": paths, "BASCULE_DEVICE": "cuda", **changes}


def run_on_driver(
    program: str, *, timeout: float = 180, uses: tuple[int, ...] = (0,), only_emulated: str = "", **changes: str
) -> subprocess.CompletedProcess[str]:
    """Runs OPENING and the program in a separate process, with two emulated devices or on the real driver.

    The process reports on stderr a context on a device that is not in `uses`. `only_emulated` is the reason why a
    real driver must not be used instead of the emulated one.
    """
    with tempfile.TemporaryDirectory() as directory:
        opening = OPENING
        if runs_on_the_real_driver(program, uses, changes, only_emulated):
            environment = environment_of_the_driver(**changes)
            opening += COUNTING if "call_count" in program else ""
        else:
            usual = {"BASCULE_EMULATED_DEVICES": "2", "BASCULE_EMULATED_ARCH": "80"}
            environment = environment_of(Path(directory), **usual | changes)
        command = ["-X", "faulthandler", "-c", f"{opening}USES = {uses}\n{textwrap.dedent(program)}"]
        return run_python(*command, timeout=timeout, **environment)


def prints(
    program: str, *, timeout: float = 180, uses: tuple[int, ...] = (0,), only_emulated: str = "", **changes: str
) -> str:
    """Returns the output of the program, which must exit with 0 and write nothing to stderr."""
    ended = run_on_driver(program, timeout=timeout, uses=uses, only_emulated=only_emulated, **changes)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout + ended.stderr
    return ended.stdout
