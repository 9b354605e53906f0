"""Kernels with CCCL's views, compiled once, because its headers take most of a second."""

from __future__ import annotations

import pytest

import bascule

SPANS = r"""
#include <cuda/std/array>
#include <cuda/std/mdspan>
#include <cuda/std/span>
using cuda::std::dextents;
using cuda::std::mdspan;
using bascule::array_view;
template <class X> __device__ void copy(X x, array_view<double, 3> y) {
    const long long n = y.extent(1) * y.extent(2);
    for (long long at = threadIdx.x; at < y.size(); at += blockDim.x) {
        const int i = at / n, j = at % n / y.extent(2), k = at % y.extent(2);
        y(i, j, k) = 2 * x(i, j, k) + at;
    }
}
template <class Y> __device__ void number(Y y) {
    const long long n = y.extent(1) * y.extent(2);
    for (long long at = threadIdx.x; at < y.extent(0) * n; at += blockDim.x) {
        y(at / n, at % n / y.extent(2), at % y.extent(2)) = at;
    }
}
__global__ void right(mdspan<const float, dextents<int, 3>> x, array_view<double, 3> y) { copy(x, y); }
__global__ void left(mdspan<const float, dextents<long long, 3>, cuda::std::layout_left> x, array_view<double, 3> y) {
    copy(x, y);
}
__global__ void stride(mdspan<const float, dextents<int, 3>, cuda::std::layout_stride> x, array_view<double, 3> y) {
    copy(x, y);
}
__global__ void write_right(mdspan<float, dextents<int, 3>> y) { number(y); }
__global__ void write_left(mdspan<float, dextents<unsigned, 3>, cuda::std::layout_left> y) { number(y); }
__global__ void write_stride(mdspan<float, dextents<long long, 3>, cuda::std::layout_stride> y) { number(y); }
__global__ void span(cuda::std::span<const float> x, cuda::std::span<double> y) {
    for (int i = threadIdx.x; i < y.size(); i += blockDim.x) y[i] = 2 * x[i] + x.size();
}
"""


@pytest.fixture(scope="session")
def spans() -> bascule.Module:
    return bascule.compile(SPANS)
