"""The checks `arrays`, `restrict`, `grid` and `division`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import bascule

from .findings import compiled, found_by, line_in, line_of, require_one

pytestmark = pytest.mark.usefixtures("emulated")


class Planted(NamedTuple):
    wrong: str
    right: str
    words: str
    shared: int = 0


PLANTED = {
    "past a shared array": Planted(
        """
        __shared__ int s[32];
        __shared__ int u[32];
        s[t] = p[t]; u[t] = 2 * p[t];
        __syncthreads();
        p[t] = s[t + n] + u[31 - t];  // here""",
        """
        __shared__ int s[32];
        __shared__ int u[32];
        s[t] = p[t]; u[t] = 2 * p[t];
        __syncthreads();
        p[t] = s[(t + n) % 32] + u[31 - t];""",
        "read 4 bytes right past the shared array 's' (128 bytes)",
    ),
    "before a shared array": Planted(
        """
        __shared__ int s[32];
        __shared__ int u[32];
        s[t] = p[t]; u[t] = 2 * p[t];
        __syncthreads();
        p[t] = s[t] + u[t - n];  // here""",
        """
        __shared__ int s[32];
        __shared__ int u[32];
        s[t] = p[t]; u[t] = 2 * p[t];
        __syncthreads();
        p[t] = s[t] + u[t - n + 1];""",
        "read 4 bytes 4 bytes before the shared array 'u' (128 bytes)",
    ),
    "before dynamic shared memory": Planted(
        """
        extern __shared__ int d[];
        __shared__ int s[32];
        s[t] = p[t];
        d[t] = s[31 - t];
        __syncthreads();
        d[t - n] = 3;  // here
        __syncthreads();
        p[t] = d[t] + s[t];""",
        """
        extern __shared__ int d[];
        __shared__ int s[32];
        s[t] = p[t];
        d[t] = s[31 - t];
        __syncthreads();
        d[t - n + 1] = 3;
        __syncthreads();
        p[t] = d[t] + s[t];""",
        "wrote 4 bytes 4 bytes before the dynamic shared array 'd' (128 bytes)",
        shared=128,
    ),
    "an atomic past a shared array": Planted(
        """
        __shared__ int s[32];
        __shared__ int u[33];
        s[t] = 0; u[t] = 0; u[32] = 0;
        __syncthreads();
        atomicAdd(&s[t + n], 1);  // here
        __syncthreads();
        p[t] = s[t] + u[t + 1];""",
        """
        __shared__ int s[32];
        __shared__ int u[33];
        s[t] = 0; u[t] = 0; u[32] = 0;
        __syncthreads();
        atomicAdd(&s[t], 1);
        __syncthreads();
        p[t] = s[t] + u[t + n];""",
        "accessed 4 bytes right past the shared array 's'",
    ),
}


def text_of(body: str) -> str:
    return f"__global__ void k(int* p, int n) {{\nint t = threadIdx.x;\n{body}\n}}"


def run(text: str, shared: int) -> list:
    x = bascule.to_device(np.arange(32, dtype="i4"))
    return found_by("arrays", compiled(text)["k"][1, 32, None, shared], x, 1)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found_once(name):
    text = text_of(PLANTED[name].wrong)
    require_one(run(text, PLANTED[name].shared), "arrays", text, PLANTED[name].words)


@pytest.mark.parametrize("name", PLANTED)
def test_the_corrected_kernel_is_clean(name):
    assert run(text_of(PLANTED[name].right), PLANTED[name].shared) == []


VIEWS = """
__global__ void forward(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];  // read
}
__global__ void backward(float* x) {
    for (int i = 10; i >= 0; --i) x[i] = 1;  // count down
}
__global__ void chosen(float* x, float* y, int n) {
    float* z = n ? x : y;
    z[threadIdx.x] = 1;
}
"""


def test_a_view_ends_before_its_allocation():
    x, y = bascule.to_device(np.zeros(40, "f4")), bascule.to_device(np.zeros(40, "f4"))
    forward = compiled(VIEWS)["forward"]
    assert found_by("arrays", forward[1, 32], x[10:20], y, 10) == []
    (finding,) = found_by("arrays", forward[1, 32], x[10:20], y, 11)
    assert line_in(finding) == line_of(VIEWS, "read")
    assert "read 4 bytes right past the array 'x' (argument 1, 40 bytes)" in finding["report"]
    assert finding["count"] == 1


def test_a_view_starts_behind_its_allocation():
    x = bascule.to_device(np.zeros(40, "f4"))
    (finding,) = found_by("arrays", compiled(VIEWS)["backward"][1, 1], x[:10])
    assert finding["line"] == line_of(VIEWS, "count down")
    assert "right past the array 'x' (argument 1, 40 bytes)" in finding["report"]


def test_pointers_without_extents_are_not_checked():
    x, y = bascule.to_device(np.zeros(40, "f4")), bascule.to_device(np.zeros(40, "f4"))
    address = x.__cuda_array_interface__["data"][0]
    assert found_by("arrays", compiled(VIEWS)["forward"][1, 32], bascule.raw_pointer(address), y, 30) == []
    assert found_by("arrays", compiled(VIEWS)["chosen"][1, 32], x[:32], y[:4], 1) == []


# --- restrict ----------------------------------------------------------------------------------------------

RESTRICT = """
__global__ void shift(const int* __restrict__ x, int* __restrict__ y, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] = x[i + 1] + 1;  // both
}
__global__ void loaded(int* x, int* y) {
    int i = threadIdx.x;
    y[i] = __ldg(x + i);  // other
    x[(i + 1) % 32] = 3;  // here
}
__global__ void plain(const int* x, int* y, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] = x[i + 1] + 1;
}
"""


def test_arrays_that_overlap_break_restrict():
    x, y = bascule.to_device(np.zeros(64, "i4")), bascule.to_device(np.zeros(64, "i4"))
    module = compiled(RESTRICT)
    (finding,) = found_by("restrict", module["shift"][1, 64], x, x, 40)
    assert (finding["line"], finding["other"]["line"]) == (line_of(RESTRICT, "both"),) * 2
    assert "reads through a const __restrict__ pointer" in finding["report"]
    assert found_by("restrict", module["shift"][1, 64], x, y, 40) == []
    assert found_by("restrict", module["shift"][1, 16], x[:17], x[17:], 16) == []
    assert found_by("restrict", module["plain"][1, 64], x, x, 40) == []
    require_one(found_by("restrict", module["loaded"][1, 32], x, y), "restrict", RESTRICT, "wrote memory")


# --- grid --------------------------------------------------------------------------------------------------

GRID = """
__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];  // here
}
__global__ void last(float* y, int n) { if (threadIdx.x < 4) y[n - 1 - threadIdx.x] = y[0] = 1; }
__global__ void total(float* y) { atomicAdd(y, 1.0f); }
"""


def test_a_grid_that_is_too_small():
    x, y = bascule.to_device(np.zeros(1500, "f4")), bascule.to_device(np.zeros(1500, "f4"))
    twice = compiled(GRID)["twice"]
    finding = require_one(
        found_by("grid", twice[4, 256], x, y, 1500), "grid", GRID, "touched only the first 1024 of 1500 elements"
    )
    assert "of the array 'y' (argument 2, 6000 bytes) with 4 blocks of 256 threads" in finding["report"]
    assert found_by("grid", twice[6, 256], x, y, 1500) == []
    assert found_by("grid", compiled(GRID)["last"][1, 32], y, 1500) == []
    assert found_by("grid", compiled(GRID)["total"][1, 32], y) == []


# --- division ----------------------------------------------------------------------------------------------

DIVISIONS = """
using i64 = long long; using u64 = unsigned long long;
#define T threadIdx.x
#define KERNEL(name, type, op) __global__ void name(type* x, const type* y) { x[T] = x[T] op y[T]; }
KERNEL(d32, int, /)
KERNEL(r32, int, %)
KERNEL(ru32, unsigned, %)
KERNEL(d64, i64, /)
KERNEL(r64, i64, %)
KERNEL(du64, u64, /)
KERNEL(ru64, u64, %)
KERNEL(d16, short, /)
"""


@pytest.mark.parametrize("name", ["d32", "r32", "ru32", "d64", "r64", "du64", "ru64", "d16"])
def test_a_division_by_zero_is_found_once(name):
    dtype = {"32": "i4", "u32": "u4", "64": "i8", "u64": "u8", "16": "i2"}[name[1:]]
    values = np.arange(32).astype(dtype)
    if dtype[1] == "8":
        values[16:] <<= 40  # NVRTC divides large and small numbers by different instructions
    divisors = np.arange(32).astype(dtype) % 4
    kernel = compiled(DIVISIONS)[name][1, 32]
    (finding,) = found_by("division", kernel, bascule.to_device(values), bascule.to_device(divisors))
    assert finding["count"] == 8
    assert DIVISIONS.split("\n")[finding["line"] - 1].startswith(f"KERNEL({name}")
    assert found_by("division", kernel, bascule.to_device(values), bascule.to_device(divisors + 1)) == []
