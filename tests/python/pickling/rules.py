"""Kernels of an importable module, as in a program of several files."""

from __future__ import annotations

import bascule

TEXT = """
template <class T>
__global__ void offset(T* p, T by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += by;
}
__global__ void twice(float* p) { p[threadIdx.x] *= 2; }
__global__ void twice(int* p) { p[threadIdx.x] *= 2; }
__global__ void negate(float* p) { p[threadIdx.x] = -p[threadIdx.x]; }
"""


@bascule.kernel(TEXT)
def offset(p, by, n):
    return n


def make_rule(factor):
    """A launch rule that cannot be pickled, because it has no importable name."""

    @bascule.kernel(TEXT, name="offset", options={"defines": {"FACTOR": factor}})
    def scaled(p, by, n):
        return n * factor

    return scaled
