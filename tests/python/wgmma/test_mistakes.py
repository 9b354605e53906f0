"""Mistakes in kernels with wgmma show: outstanding results are poison, and misuse is a fault with its line."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

from .programs import compiled, gathered, multiply

KERNEL = """
extern "C" __global__ void product(const char* a, const char* b, float* out) {
    __shared__ __align__(1024) char sa[64 * 128], sb[16 * 128];
    for (int i = threadIdx.x; i < 64 * 8; i += blockDim.x)
        *(uint4*)(sa + swizzled(i / 8, i % 8)) = ((const uint4*)a)[i];
    for (int i = threadIdx.x; i < 16 * 8; i += blockDim.x)
        *(uint4*)(sb + swizzled(i / 8, i % 8)) = ((const uint4*)b)[i];
    PROXY
    __syncthreads();
    float d[8] = {};
    FENCE
    for (int k = 0; k < 4; ++k)
        multiply(d, descriptor(shared(sa) + k * 32, 16, 1024), descriptor(shared(sb) + k * 32, 16, 1024), 1);
    COMMIT
    WAIT
    for (int i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = d[i];
}
"""


def product(fence="fence();", commit="commit();", wait="wait<0>();", proxy="proxy();", threads=128, debug=False):
    """Returns the kernel's result and the exact product."""
    text = KERNEL.replace("FENCE", fence).replace("COMMIT", commit).replace("WAIT", wait).replace("PROXY", proxy)
    text = multiply("multiply", "m64n16k16", "f32.f16.f16", ", 1, 1, 0, 0") + text
    kernel = compiled(text, debug=debug)["product"]
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (rows, 64)).astype("f2") for rows in (64, 16))
    out = bascule.to_device(np.zeros((128, 8), "f4"))
    kernel[1, threads](*(bascule.to_device(x.view("i1")) for x in (a, b)), out)
    return gathered(out.copy_to_host()), a.astype("f4") @ b.astype("f4").T


def test_a_correct_kernel_computes_the_product():
    got, exact = product()
    assert np.array_equal(got, exact)


def test_a_kernel_compiled_for_debugging_computes_the_product():
    got, exact = product(debug=True)
    assert np.array_equal(got, exact)


@pytest.mark.parametrize("mistake", [{"wait": ""}, {"commit": ""}, {"wait": "wait<1>();"}])
def test_a_result_without_its_wait_is_poison(unchecked, mistake):
    assert np.isnan(product(**mistake)[0]).all()


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ({"fence": ""}, "has executed no wgmma.fence"),
        ({"proxy": ""}, "wgmma.mma_async reads byte .* written by an ordinary store .* without a fence.proxy.async"),
        ({"threads": 64}, "needs the four warps of a warpgroup, threads 0 to 127, and the block has 64 threads"),
    ],
)
def test_misuse_is_a_fault(emulated, mistake, words):
    with pytest.raises(bascule.CudaError, match=words):
        product(**mistake)
