"""Cooperative groups of several warps, which synchronize in shared memory that CUDA reserves in every block."""

import numpy as np
import pytest

import bascule

TILES = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

template <int SIZE> __device__ void sums(const int* x, int* sum, int* votes) {
    __shared__ cg::block_tile_memory<512> scratch;
    __shared__ int own[512];
    extern __shared__ int given[];
    auto tile = cg::tiled_partition<SIZE>(cg::this_thread_block(scratch));
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    own[threadIdx.x] = given[threadIdx.x] = x[i];
    tile.sync();
    const int other = threadIdx.x ^ (SIZE - 1);  // of another warp of the tile
    sum[i] = cg::reduce(tile, own[other] + given[other], cg::plus<int>());
    votes[i] = tile.any(x[i] > 900) + 2 * tile.all(x[i] > 5);
}
__global__ void sums64(const int* x, int* sum, int* votes) { sums<64>(x, sum, votes); }
__global__ void sums128(const int* x, int* sum, int* votes) { sums<128>(x, sum, votes); }
__global__ void sums256(const int* x, int* sum, int* votes) { sums<256>(x, sum, votes); }
__global__ void sums512(const int* x, int* sum, int* votes) { sums<512>(x, sum, votes); }
"""


@pytest.mark.parametrize(("size", "blocks"), [(64, 2), (128, 1), (256, 1), (512, 1)])
def test_tiles_of_several_warps_reduce_and_vote(size, blocks, rng):
    values = rng.integers(0, 1000, blocks * 512).astype("i4")
    x, total, votes = bascule.to_device(values), bascule.zeros(values.size, "i4"), bascule.zeros(values.size, "i4")
    kernel = bascule.compile(TILES, options={"std": "c++17"})[f"sums{size}"]
    kernel[blocks, 512, None, 512 * 4](x, total, votes)
    tiles = values.reshape(-1, size)
    np.testing.assert_array_equal(total.copy_to_host(), np.repeat(2 * tiles.sum(1), size))
    expected = (tiles > 900).any(1) + 2 * (tiles > 5).all(1)
    np.testing.assert_array_equal(votes.copy_to_host(), np.repeat(expected, size))


def test_reserved_memory_counts_neither_as_the_kernels_own_nor_against_its_limit():
    text = """
    __global__ void sizes(unsigned* out) {
        __shared__ int all[48 * 256];
        asm("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(out[0]));
        asm("mov.u32 %0, %%total_smem_size;" : "=r"(out[1]));
        all[threadIdx.x] = 7;
        out[2] = all[0];
        out[3] = __cvta_generic_to_shared(all);
    }"""
    kernel = bascule.compile(text).sizes
    out = bascule.zeros(4, "u4")
    kernel[1, 1](out)
    offset, total, value, first = out.copy_to_host().tolist()
    assert (total, value) == (48 * 1024, 7)
    # The reserved memory is after the kernel's own on compute capability 8, and before it, from 0 on, on 9.
    assert not first <= offset < first + total
