"""The block size that `forall` chooses: what fits on a multiprocessor, for kernels with different needs."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

# Each kernel stores the block size that it was launched with.
FEW = """
__global__ void few(float* x, int n, int* block) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
    if (i == 0) *block = blockDim.x;
}
"""
# Some 200 values are live at once: all are read before the first is combined.
MANY = """
__global__ void many(float* x, int n, int* block) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v[200];
    #pragma unroll
    for (int k = 0; k < 200; ++k) v[k] = x[k];
    __syncwarp();
    float sum = 0;
    #pragma unroll
    for (int k = 0; k < 200; ++k) sum += v[k] * v[(k * 7 + 3) % 200];
    x[i] = sum;
    if (i == 0) *block = blockDim.x;
}
"""
# Shared memory alone never makes the best block smaller: among the blocks with the most threads the largest is taken,
# and fewer blocks need less shared memory. Together with 40 registers the result differs from that of each alone.
SHARED = """
__global__ void shared(float* x, int n, int* block) {
    __shared__ float room[10240];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = threadIdx.x; k < 10240; k += blockDim.x) room[k] = k;
    float v[36];
    #pragma unroll
    for (int k = 0; k < 36; ++k) v[k] = x[k];
    __syncthreads();
    float sum = 0;
    #pragma unroll
    for (int k = 0; k < 36; ++k) sum += v[k] * v[(k * 7 + 3) % 36];
    if (i < n) x[i] = sum + room[(threadIdx.x * 17) % 10240];
    if (i == 0) *block = blockDim.x;
}
"""
BOUNDED = FEW.replace("void few", "void __launch_bounds__(96) bounded")
TEXTS = {"few": FEW, "many": MANY, "shared": SHARED, "bounded": BOUNDED}


def best_block(registers, shared_bytes, largest):
    """The largest block with the most resident threads on a multiprocessor of compute capability 8.0.

    The rules of NVIDIA's occupancy calculator: 64 K registers in four files, given to warps by 256; 164 KB of shared
    memory, in units of 128 bytes and 1 KB more for each block; 2048 threads, 32 blocks.
    """
    best = (0, 0)
    for block in {*range(32, largest + 1, 32), largest}:
        warps = -(-block // 32)
        blocks = min(
            32,
            64 // warps,
            16384 // (-(-registers * 32 // 256) * 256) * 4 // warps,
            164 * 1024 // (-(-(shared_bytes + 1024) // 128) * 128),
        )
        best = max(best, (blocks * block, block))
    return best[1]


def launched_block(kernel, n=5000, **options):
    x, block = bascule.to_device(np.zeros(n, "f4")), bascule.to_device(np.zeros(1, "i4"))
    kernel.forall(n, **options)(x, n, block)
    return int(block.copy_to_host()[0])


@pytest.fixture(scope="module")
def kernels():
    return {name: bascule.compile(text)[name] for name, text in TEXTS.items()}


@pytest.mark.parametrize("name", TEXTS)
def test_the_block_is_the_one_that_fills_a_multiprocessor(name, kernels, emulated):
    attributes = kernels[name].attributes
    expected = best_block(attributes.registers, attributes.static_shared_bytes, attributes.max_threads_per_block)
    assert launched_block(kernels[name]) == expected


def test_kernels_of_different_needs_get_different_blocks(kernels):
    blocks = {name: launched_block(kernel) for name, kernel in kernels.items()}
    for name, block in blocks.items():
        sizes = range(32, kernels[name].attributes.max_threads_per_block + 1, 32)
        assert kernels[name].occupancy(block).ratio == max(kernels[name].occupancy(size).ratio for size in sizes)
    assert kernels["many"].attributes.registers > 64  # of 64 K: a block of 1024 threads does not fit
    assert blocks["bounded"] <= 96 < blocks["many"] < blocks["few"]


def test_registers_and_shared_memory_together_make_another_block_than_either(kernels, emulated):
    blocks = [launched_block(kernels[name]) for name in ("few", "many", "shared")]
    assert len(set(blocks)) == 3, blocks


def test_the_needs_are_those_that_the_texts_have(kernels, emulated):
    assert kernels["few"].attributes.registers <= 16
    assert 200 <= kernels["many"].attributes.registers <= 255
    assert kernels["shared"].attributes.static_shared_bytes == 40960
    assert kernels["bounded"].attributes.max_threads_per_block == 96


def test_dynamic_shared_memory_is_counted(kernels, emulated):
    few = kernels["few"]
    for shared_bytes in (0, 20_000, 60_000, 100_000):
        expected = best_block(few.attributes.registers, shared_bytes, 1024)
        assert launched_block(few, shared_bytes=shared_bytes) == expected


def test_little_work_gets_a_small_block(kernels):
    assert launched_block(kernels["few"], 1) == 32
    assert launched_block(kernels["few"], 33) == 64
