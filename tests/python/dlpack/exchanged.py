"""Shared by the tests of the exchange table: kernels, tensors of exchange_native.c, and counters of its calls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import bascule
from dlpack.capsules import native

exchange_native = native()

TEXT = """
__global__ void copy(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x]; }
__global__ void sum_rows(bascule::array_view<const float, 2> in, float* out) {
    float sum = 0;
    for (int j = 0; j < in.extent(1); ++j) sum += in(threadIdx.x, j);
    out[threadIdx.x] = sum;
}
template <class T> __global__ void twice(const T* in, T* out) { out[threadIdx.x] = in[threadIdx.x] + in[threadIdx.x]; }
"""
HOST = np.arange(8, dtype="f4")


class Owner:
    """An object that a weak reference can watch."""


def address(array: bascule.DeviceArray) -> int:
    return array.__cuda_array_interface__["data"][0]


def tensor(array: bascule.DeviceArray, kind: type = exchange_native.Tensor, **options: object):
    """Returns the array as a tensor of another library, whose type has an exchange table."""
    return kind(address(array), array.shape, owner=array, **options)


def counted(action: Callable[[], object]) -> dict[str, int]:
    """Returns how often the action called each function of exchange_native's table."""
    before = exchange_native.count()
    action()
    return {name: value - before[name] for name, value in exchange_native.count().items()}


def out() -> bascule.DeviceArray:
    return bascule.to_device(np.full(8, np.nan, "f4"))
