"""The emulated device reports some wrong barriers and not others, as python/docs/emulated.md says."""

from __future__ import annotations

import numpy as np
import pytest
from child_process import run_python

import bascule

QUIET = r"""
__global__ void some_return(int* x) {
    if (threadIdx.x >= 40) return;
    __syncthreads();
    x[threadIdx.x] = 1;
}
__global__ void two_branches(int* x) {
    if (threadIdx.x % 2) { __syncthreads(); x[threadIdx.x] = 1; } else { __syncthreads(); x[threadIdx.x] = 2; }
}
"""

DEADLOCKS = {
    "another barrier": """
        if (threadIdx.x < 32) asm volatile("bar.sync 1;"); else asm volatile("bar.sync 2;");""",
    "another count": """
        if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); else __syncthreads();""",
    "lanes of the warp": """
        if (threadIdx.x % 32 < 16) __syncwarp(); else if (threadIdx.x < 32) __syncthreads();""",
}


def test_threads_that_returned_and_barriers_of_two_branches_are_not_reported(emulated):
    module = bascule.compile(QUIET)
    x = bascule.to_device(np.zeros(64, "i4"))
    module.some_return[1, 64](x)
    assert x.copy_to_host().tolist() == [1] * 40 + [0] * 24
    module.two_branches[1, 64](x)
    assert x.copy_to_host().tolist() == [2, 1] * 32


@pytest.mark.parametrize("name", DEADLOCKS)
def test_threads_that_wait_for_threads_that_wait_elsewhere_are_reported(emulated, name):
    program = f"""
import bascule
k = bascule.compile(r'''__global__ void k() {{ {DEADLOCKS[name]} }}''').k
try:
    k[1, 64]()
    bascule.synchronize()
except bascule.CudaError as error:
    print(error)
"""
    done = run_python("-c", program)
    assert "divergent barrier" in done.stdout, done.stdout + done.stderr
