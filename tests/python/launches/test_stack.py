"""The stack of recursive kernels: its size, and the error if it is too small."""

from __future__ import annotations

import numpy as np
import pytest
from child_process import printed_by

import bascule

PROGRAM = """
import sys
import numpy as np
import bascule

kernel = bascule.compile('''
__device__ __noinline__ unsigned deep(unsigned n, unsigned* p) {
    unsigned a[8];
    for (int i = 0; i < 8; ++i) a[i] = n * i + p[0];
    unsigned sum = n ? deep(n - 1, p) : 0;
    for (int i = 0; i < 8; ++i) sum += a[(i + sum) % 8];
    return sum;
}
__global__ void begin(unsigned* p, unsigned n) { p[1] = deep(n, p); }
''').begin
depth, stack = map(int, sys.argv[1:])
if stack:
    bascule.current_device().stack_bytes = stack
p = bascule.to_device(np.ones(2, "u4"))
try:
    kernel[1, 1](p, depth)
    print(p.copy_to_host()[1])
except bascule.CudaError as error:
    print(error)
"""


def run(depth: int, stack: int = 0) -> str:
    return printed_by("-c", PROGRAM, depth, stack)


def deep(n: int) -> int:
    total = deep(n - 1) if n else 0
    values = [n * i + 1 for i in range(8)]
    for i in range(8):
        total = (total + values[(i + total) % 8]) % 2**32
    return total


def test_a_stack_that_is_too_small_is_named_with_what_makes_it_larger():
    said = run(5000)
    assert "'begin'" in said
    assert "stack_bytes" in said


def test_with_more_of_it_the_kernel_runs():
    assert run(500, 1 << 18) == f"{deep(500)}\n"


def test_it_is_told_and_set():
    device = bascule.current_device()
    before = device.stack_bytes
    assert before >= 1024
    device.stack_bytes = np.int64(8192)
    assert device.stack_bytes >= 8192
    device.stack_bytes = before
    assert device.stack_bytes == before


@pytest.mark.parametrize("wrong", [True, 1.5, "1k", None])
def test_only_numbers_of_bytes_are_taken(wrong):
    with pytest.raises(TypeError, match="`stack_bytes` must be a number of bytes, got"):
        bascule.current_device().stack_bytes = wrong


@pytest.mark.parametrize("wrong", [-1, 2**64])
def test_no_other_numbers_are_taken(wrong):
    with pytest.raises(ValueError, match=f"`stack_bytes` must be a number of bytes, got {wrong}"):
        bascule.current_device().stack_bytes = wrong
