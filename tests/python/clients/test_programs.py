"""Whole programs of numba-cuda by `bascule emulate`: faults and races of kernels that Bascule has not launched."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.usefixtures("other_libraries")

FAULT = """
import numpy as np
from numba import cuda
import bascule

@cuda.jit
def past(x):
    x[cuda.grid(1) + 1000] = 1

array = cuda.to_device(np.zeros(32, np.float32))
past[1, 32](array)
try:
    bascule.synchronize()
except bascule.CudaError as error:
    print(str(error).splitlines()[0])
bascule.emulated.reset()
print(bascule.ones(3, "f4").copy_to_host())
"""

RACE = """
import numpy as np
from numba import cuda

@cuda.jit
def fill(x, value):
    x[cuda.grid(1)] = value

array = cuda.device_array(32, np.float32)
fill[1, 32, cuda.stream()](array, 1)
fill[1, 32, cuda.stream()](array, 2)
cuda.synchronize()
"""


def emulate(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bascule", "emulate", *options, "--", sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "BASCULE_EMULATED_SCHEDULE": "threads", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_fault_of_their_kernel_is_reported_and_reset_through_bascule():
    done = emulate(FAULT)
    first, second = done.stdout.splitlines()
    assert "illegal address" in first
    assert "past" in first
    assert second == "[1. 1. 1.]"


def test_a_race_of_their_streams_is_told_at_the_end_of_a_program_without_bascule():
    done = emulate(RACE, "--check", "races")
    assert "stream race" in done.stderr, done.stdout + done.stderr
    assert done.stderr.count("fill") >= 2
