"""Clusters: cluster_group, distributed shared memory, dimensions given by kernel or launch, and errors."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import bascule

pytestmark = pytest.mark.usefixtures("hopper")

KERNELS = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void neighbours(const int* in, int* out) {
    __shared__ int mine[64];
    cg::cluster_group cluster = cg::this_cluster();
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    mine[t] = in[i];
    cluster.sync();
    int* next = cluster.map_shared_rank(mine, (cluster.block_rank() + 1) % cluster.num_blocks());
    out[i] = next[blockDim.x - 1 - t];
    cluster.sync();
}

// A histogram whose bins are shared out to the blocks of the cluster.
__global__ void histogram(const unsigned* in, int n, int* bins, int bins_per_block) {
    extern __shared__ int own[];
    cg::cluster_group cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x) own[i] = 0;
    cluster.sync();
    int blocks = cluster.num_blocks(), all = blocks * bins_per_block;
    for (int i = cg::this_grid().thread_rank(); i < n; i += cg::this_grid().size()) {
        int bin = in[i] % all;
        atomicAdd(cluster.map_shared_rank(own, bin / bins_per_block) + bin % bins_per_block, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x)
        atomicAdd(bins + cluster.block_rank() * bins_per_block + i, own[i]);
}

__global__ void __cluster_dims__(2, 2) declared(int4* out) {
    cg::cluster_group cluster = cg::this_cluster();
    dim3 size = cluster.dim_blocks(), at = cluster.block_index();
    int block = blockIdx.y * gridDim.x + blockIdx.x;
    out[block] = make_int4(size.x * 10 + size.y, at.x * 10 + at.y, cluster.block_rank(), cluster.num_threads());
}

// A sum over the cluster: each block its part, the first one all parts.
__global__ void sums(const float* in, float* out) {
    __shared__ float part;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) part = 0;
    __syncthreads();
    atomicAdd(&part, in[blockIdx.x * blockDim.x + threadIdx.x]);
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait(std::move(token));
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        float sum = 0;
        for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank) sum += *cluster.map_shared_rank(&part, rank);
        out[blockIdx.x / cluster.num_blocks()] = sum;
    }
    cluster.sync();
}

__global__ void ranks(unsigned* out) {
    __shared__ int x;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned seen = 0;
    for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank)
        seen |= (cluster.query_shared_rank(cluster.map_shared_rank(&x, rank)) == rank) << rank;
    out[blockIdx.x] = seen | cluster.query_shared_rank(&x) << 16;
}

// Wrong: nothing keeps the neighbour from ending.
__global__ void left_alone(int* out) {
    __shared__ int mine;
    cg::cluster_group cluster = cg::this_cluster();
    mine = 1;
    cluster.sync();
    if (cluster.block_rank() != 0) return;
    for (int i = 0; i < 4; ++i) cluster.sync();
    out[0] = *cluster.map_shared_rank(&mine, 1);
}

// Wrong: half of the second block does not come.
__global__ void not_all() {
    cg::cluster_group cluster = cg::this_cluster();
    if (cluster.block_rank() == 0 || threadIdx.x < 32) cluster.sync();
    __syncthreads();
    if (cluster.block_rank() == 1 && threadIdx.x >= 32) cluster.sync();
}

// One block of each cluster writes what all of the grid wait for.
__global__ void whole_grid(const int* in, int* out) {
    __shared__ int mine;
    cg::cluster_group cluster = cg::this_cluster();
    cg::grid_group grid = cg::this_grid();
    if (threadIdx.x == 0) mine = in[blockIdx.x];
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        int sum = 0;
        for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank) sum += *cluster.map_shared_rank(&mine, rank);
        out[blockIdx.x] = sum;
    }
    grid.sync();
    if (grid.thread_rank() == 0) {
        int sum = 0;
        for (unsigned i = 0; i < gridDim.x; i += cluster.num_blocks()) sum += out[i];
        out[gridDim.x] = sum;
    }
}
"""


def address_of(array: bascule.DeviceArray) -> object:
    """Returns the array's address as a raw pointer, which a parameter that points to structs accepts."""
    return bascule.raw_pointer(array.__cuda_array_interface__["data"][0])


@functools.cache
def kernels() -> bascule.Module:
    return bascule.compile(KERNELS)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("block", [1, 33, 64])
def test_blocks_read_their_neighbours(rng, size, block):
    values = rng.integers(-(2**31), 2**31, (16, block), dtype="i4")
    out = bascule.to_device(np.zeros_like(values))
    kernels().neighbours.launch(16, block, (bascule.to_device(values), out), cluster=size)
    number = np.arange(16)
    following = number // size * size + (number % size + 1) % size
    np.testing.assert_array_equal(out.copy_to_host(), values[following, ::-1])


@pytest.mark.parametrize("size", [2, 4, 8])
def test_a_histogram_is_spread_over_a_cluster(rng, size):
    values = rng.integers(0, 2**32, 10_000, dtype="u4")
    bins = bascule.to_device(np.zeros(size * 100, "i4"))
    launch = bascule.LaunchConfig(2 * size, 128, shared_bytes=400, cluster=size)
    kernels().histogram[launch](bascule.to_device(values), len(values), bins, 100)
    np.testing.assert_array_equal(bins.copy_to_host(), np.bincount(values % (size * 100), minlength=size * 100))


def test_a_kernel_declares_its_clusters():
    out = bascule.to_device(np.zeros((4, 6, 4), "i4"))
    kernels().declared[(6, 4), 32](address_of(out))
    y, x = np.mgrid[:4, :6]
    expected = np.stack([np.full_like(x, 22), x % 2 * 10 + y % 2, x % 2 + 2 * (y % 2), np.full_like(x, 128)], axis=-1)
    np.testing.assert_array_equal(out.copy_to_host(), expected)
    kernels().declared.launch((6, 4), 32, (address_of(out),), cluster=(2, 2))


def test_declared_clusters_must_divide_the_grid_and_agree_with_the_launch():
    out = bascule.to_device(np.zeros((4, 6, 4), "i4"))
    with pytest.raises(ValueError, match="__cluster_dims__"):
        kernels().declared[(5, 4), 32](address_of(out))
    with pytest.raises(ValueError, match="cluster"):
        kernels().declared.launch((6, 4), 32, (address_of(out),), cluster=(2, 1))


@pytest.mark.parametrize("size", [1, 2, 8])
def test_arrival_and_wait_are_apart(rng, size):
    values = rng.integers(-100, 100, (8, 96)).astype("f4")
    out = bascule.to_device(np.zeros(8 // size, "f4"))
    kernels().sums.launch(8, 96, (bascule.to_device(values), out), cluster=size)
    np.testing.assert_array_equal(out.copy_to_host(), values.reshape(8 // size, -1).sum(axis=1))


def test_an_address_tells_its_block():
    out = bascule.to_device(np.zeros(8, "u4"))
    kernels().ranks.launch(8, 32, (out,), cluster=4)
    np.testing.assert_array_equal(out.copy_to_host(), 0xF | np.tile(np.arange(4, dtype="u4"), 2) << 16)


def test_sixteen_blocks_need_nothing_but_the_size(emulated):
    """More than eight blocks require a kernel attribute, which launches set themselves."""
    out = bascule.to_device(np.zeros(32, "u4"))
    kernels().ranks.launch(32, 32, (out,), cluster=16)
    np.testing.assert_array_equal(out.copy_to_host() >> 16, np.tile(np.arange(16, dtype="u4"), 2))
    assert kernels().ranks.attributes.non_portable_cluster


def test_more_than_sixteen_blocks_are_refused():
    out = bascule.to_device(np.zeros(32, "u4"))
    with pytest.raises(ValueError, match="Eight blocks are what every such GPU takes, and some take 16"):
        kernels().ranks.launch(32, 32, (out,), cluster=32)


def test_shared_memory_of_a_block_that_has_ended_is_gone(emulated):
    out = bascule.to_device(np.zeros(1, "i4"))
    kernels().left_alone.launch(2, 32, (out,), cluster=2)
    with pytest.raises(bascule.CudaError, match="has ended: its shared memory is gone"):
        out.copy_to_host()
    bascule.emulated.reset()


def test_a_cluster_that_does_not_meet_is_reported(emulated):
    kernels().not_all.launch(2, 64, (), cluster=2)
    with pytest.raises(bascule.CudaError, match="divergent barrier"):
        bascule.synchronize()
    bascule.emulated.reset()


@pytest.mark.parametrize("size", [1, 2, 4])
def test_clusters_of_a_cooperative_grid(rng, size):
    values = rng.integers(-1000, 1000, 8, dtype="i4")
    out = bascule.to_device(np.zeros(9, "i4"))
    kernels().whole_grid.launch(8, 32, (bascule.to_device(values), out), cluster=size, cooperative=True)
    result = out.copy_to_host()
    np.testing.assert_array_equal(result[:8:size], values.reshape(-1, size).sum(axis=1))
    assert result[8] == values.sum()
