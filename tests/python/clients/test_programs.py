"""Whole programs of other libraries under `bascule emulate`: faults and races of kernels that Bascule did not launch.

numba-cuda-mlir shares names with numba-cuda, and is therefore not imported into the tests' own process.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from child_process import run_python

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

MLIR = """
import numpy as np
from numba_cuda_mlir import cuda

@cuda.jit(device=True)
def square(x):
    return x * x

@cuda.jit
def sum_of_squares(x, total):
    part = cuda.shared.array(128, np.float64)
    thread = cuda.threadIdx.x
    i = cuda.grid(1)
    part[thread] = square(x[i]) if i < x.size else 0.0
    cuda.syncthreads()
    step = 64
    while step > 0:
        if thread < step:
            part[thread] += part[thread + step]
        cuda.syncthreads()
        step //= 2
    if thread == 0:
        cuda.atomic.add(total, 0, part[0])

@cuda.jit
def transpose(x, y):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[j, i] = x[i, j]

random = np.random.default_rng(20261124)
x = random.normal(size=1000)
stream = cuda.stream()
total = cuda.to_device(np.zeros(1), stream=stream)
sum_of_squares[8, 128, stream](cuda.to_device(x, stream=stream), total)
host = total.copy_to_host(stream=stream)
stream.synchronize()
np.testing.assert_allclose(host, [(x * x).sum()], rtol=1e-12)

matrix = random.normal(size=(33, 17)).astype(np.float32)
transposed = cuda.device_array((17, 33), np.float32)
transpose[(3, 2), (16, 16)](cuda.to_device(matrix), transposed)
np.testing.assert_array_equal(transposed.copy_to_host(), matrix.T)

import bascule

twice = bascule.compile("__global__ void twice(float* p) { p[threadIdx.x] *= 2; }").twice
twice[1, 17 * 33](transposed)
np.testing.assert_array_equal(transposed.copy_to_host(), 2 * matrix.T)
print("all equal")
"""


def emulate(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["-m", "bascule", "emulate", *options, "--", sys.executable, "-c", textwrap.dedent(program)]
    return run_python(*command, BASCULE_EMULATED_SCHEDULE="threads", PYTHONWARNINGS="ignore")


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


def test_launches_of_numba_cuda_mlir_compute_what_numpy_does():
    done = emulate(MLIR)
    assert done.stdout == "all equal\n", done.stdout + done.stderr
