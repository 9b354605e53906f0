"""Bulk copies without tensor maps: to shared memory with an mbarrier, from it by groups, and between blocks."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from child_process import run_python

import bascule

pytestmark = pytest.mark.usefixtures("hopper")

KERNELS = """
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

// Twice what a tile holds: there and back by bulk copies.
__global__ void doubled(const int* in, int* out, bool waits) {
    __shared__ alignas(16) int tile[256];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ Barrier barrier;
    if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    Barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(tile, in + 256 * blockIdx.x, cuda::aligned_size_t<16>(sizeof tile), barrier);
        token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof tile);
    } else {
        token = barrier.arrive();
    }
    if (waits) barrier.wait(std::move(token));
    for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] *= 2;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + 256 * blockIdx.x, tile, sizeof tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
    }
}

// Rows go round the cluster, from block to block.
__global__ void handed_on(const int* in, int* out, int steps) {
    __shared__ alignas(16) int rows[2][64];
    __shared__ unsigned long long arrived[2];
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
    const int t = threadIdx.x;
    auto* barriers = reinterpret_cast<cuda::std::uint64_t*>(arrived);
    if (t == 0) {
        ptx::mbarrier_init(barriers, 1);
        ptx::mbarrier_init(barriers + 1, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    rows[0][t] = in[blockIdx.x * 64 + t];
    ptx::fence_proxy_async(ptx::space_shared);
    cluster.sync();
    for (int step = 0; step < steps; ++step) {
        const int from = step % 2, to = 1 - from;
        if (t == 0) {
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barriers + to,
                                           sizeof rows[0]);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, cluster.map_shared_rank(rows[to], next),
                               rows[from], sizeof rows[0], cluster.map_shared_rank(barriers + to, next));
        }
        while (!ptx::mbarrier_try_wait_parity(barriers + to, step / 2 % 2)) {
        }
        rows[to][t] += 1;
        ptx::fence_proxy_async(ptx::space_shared);
        cluster.sync();
    }
    out[blockIdx.x * 64 + t] = rows[steps % 2][t];
}

// One block reads a row of memory for all blocks of its cluster.
__global__ void multicast(const int* in, int* out) {
    __shared__ alignas(16) int row[64];
    __shared__ unsigned long long arrived;
    cg::cluster_group cluster = cg::this_cluster();
    auto* barrier = reinterpret_cast<cuda::std::uint64_t*>(&arrived);
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(barrier, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    cluster.sync();
    if (threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier, sizeof row);
        if (cluster.block_rank() == 0) {
            const unsigned short all = (1 << cluster.num_blocks()) - 1;
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                         "[%0], [%1], %2, [%3], %4;"
                         :: "r"((unsigned)__cvta_generic_to_shared(row)), "l"(in + blockIdx.x * 64), "r"(256),
                            "r"((unsigned)__cvta_generic_to_shared(barrier)), "h"(all) : "memory");
        }
    }
    while (!ptx::mbarrier_try_wait_parity(barrier, 0)) {
    }
    out[blockIdx.x * 64 + threadIdx.x] = row[63 - threadIdx.x];
    cluster.sync();
}
"""


@functools.cache
def kernels() -> bascule.Module:
    return bascule.compile(KERNELS)


@pytest.mark.parametrize("block", [1, 64, 256])
def test_a_tile_goes_there_and_back(rng, block):
    values = rng.integers(-1000, 1000, (3, 256), dtype="i4")
    out = bascule.to_device(np.zeros_like(values))
    kernels().doubled[3, block](bascule.to_device(values), out, True)
    np.testing.assert_array_equal(out.copy_to_host(), 2 * values)


def test_without_the_wait_nothing_is_there(rng, unchecked):
    values = rng.integers(-1000, 1000, (1, 256), dtype="i4")
    out = bascule.to_device(np.zeros_like(values))
    kernels().doubled[1, 64](bascule.to_device(values), out, False)
    np.testing.assert_array_equal(out.copy_to_host(), np.full((1, 256), -2))  # twice the poison, -1


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_rows_go_round_a_cluster(rng, size, steps):
    values = rng.integers(-1000, 1000, (8, 64), dtype="i4")
    out = bascule.to_device(np.zeros_like(values))
    kernels().handed_on.launch(8, 64, (bascule.to_device(values), out, steps), cluster=size)
    number = np.arange(8)
    came_from = number // size * size + (number % size - steps) % size
    np.testing.assert_array_equal(out.copy_to_host(), values[came_from] + steps)


ALONE = """
import sys
import numpy as np
import bascule

kernel = bascule.compile(sys.stdin.read()).handed_on
values = bascule.to_device(np.zeros((8, 64), "i4"))
out = bascule.to_device(np.zeros((8, 64), "i4"))
try:
    kernel.launch(8, 64, (values, out, 1), cluster=1)
    out.copy_to_host()
except bascule.CudaError as error:
    print(error.code, error)
"""


def test_blocks_that_are_no_cluster_cannot_copy_to_one():
    """715 is CUDA_ERROR_ILLEGAL_INSTRUCTION, which a GPU reports."""
    ended = run_python("-c", ALONE, input=KERNELS)
    assert ended.stdout.startswith("715 "), ended.stdout + ended.stderr
    assert "'handed_on'" in ended.stdout
    if bascule.current_device().emulated:
        assert "needs a launch in clusters of more than one block" in ended.stdout


@pytest.mark.parametrize("size", [2, 8])
def test_a_multicast_reaches_each_block(rng, size):
    values = rng.integers(-1000, 1000, (8, 64), dtype="i4")
    out = bascule.to_device(np.zeros_like(values))
    kernels().multicast.launch(8, 64, (bascule.to_device(values), out), cluster=size)
    np.testing.assert_array_equal(out.copy_to_host(), values[np.arange(8) // size * size, ::-1])
