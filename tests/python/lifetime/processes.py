"""Runs Python programs in separate processes, for tests that end a process or need a fresh one."""

from __future__ import annotations

import subprocess
import textwrap

from child_process import run_python

# The beginning of every program: a kernel, and an array to launch it on.
OPENING = """
import atexit, builtins, gc, os, sys, threading, time, warnings
# Python 3.12 on warns of every fork of a process with threads; a driver has threads of its own.
warnings.filterwarnings("ignore", "This process .*is multi-threaded", DeprecationWarning)
import numpy as np
import bascule

SOURCE = '''
__global__ void increment(float* p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += 1;
}'''

def array(n=256, stream=None):
    return bascule.to_device(np.zeros(n, "f4"), stream=stream)
"""
USE = """
module = bascule.compile(SOURCE)
kernel = module.increment
"""


def run(program: str, before_the_import: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the opening and the program. BASCULE_DEVICE and the schedule come from the tests' own environment."""
    return run_python("-c", before_the_import + OPENING + textwrap.dedent(program), **environment)


def ends_well(program: str, before_the_import: str = "", says: str = "", **environment: str) -> None:
    """Runs the program as `run` does; it must exit with status 0 and print exactly `says`."""
    ended = run(program, before_the_import, **environment)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, says, "")
