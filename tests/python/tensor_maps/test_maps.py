"""Tensor maps in parameters, global and constant memory, changed by kernels, and copied to clusters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from child_process import run_python
from conftest import require_tensor_maps

import bascule

from .tiles import KERNELS, Map, address_of

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.usefixtures("hopper")

SOURCE = (
    KERNELS
    + """
#include <cooperative_groups.h>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

__constant__ CUtensorMap in_constant_memory;

__device__ void copy_tile(const CUtensorMap* map, int x, int y, int* out) {
    __shared__ alignas(128) int tile[8][8];
    __shared__ unsigned long long arrived;
    auto* barrier = reinterpret_cast<cuda::std::uint64_t*>(&arrived);
    if (threadIdx.x == 0) {
        begin(shared_address(barrier), sizeof tile);
        asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory");
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];"
                     :: "l"(map), "r"(x), "r"(y) : "memory");
        const cuda::std::int32_t at[2] = {x, y};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, map, at, barrier);
    }
    __syncthreads();
    wait(shared_address(barrier));
    for (int i = threadIdx.x; i < 64; i += blockDim.x) out[i] = tile[0][i];
}

extern "C" __global__ void from_parameter(const __grid_constant__ CUtensorMap map, int x, int y, int* out) {
    copy_tile(&map, x, y, out);
}
extern "C" __global__ void from_pointer(const CUtensorMap* map, int x, int y, int* out) { copy_tile(map, x, y, out); }
extern "C" __global__ void from_constant(int x, int y, int* out) { copy_tile(&in_constant_memory, x, y, out); }

// Each block of the cluster reads its part of a tile and sends it to all of them.
extern "C" __global__ void multicast(const __grid_constant__ CUtensorMap map, int* out) {
    __shared__ alignas(128) int tile[4][4][32];
    __shared__ unsigned long long arrived;
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank(), count = cluster.num_blocks(), barrier = shared_address(&arrived);
    if (threadIdx.x == 0) {
        begin(barrier, count * sizeof tile[0]);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    cluster.sync();
    if (threadIdx.x == 0) {
        const unsigned short all = (1 << count) - 1;
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                     :: "r"(shared_address(tile[rank])), "l"(&map), "r"(0), "r"(4 * (int)rank), "r"(barrier), "h"(all)
                     : "memory");
    }
    wait(barrier);
    for (int i = threadIdx.x; i < 128 * count; i += blockDim.x) out[blockIdx.x * 512 + i] = tile[0][0][i];
    cluster.sync();
}
"""
)

# tensormap.replace needs code for exactly this architecture.
CHANGING = """
#include <cuda.h>
extern "C" __global__ void change(const __grid_constant__ CUtensorMap map, CUtensorMap* out, const void* address) {
    __shared__ alignas(128) CUtensorMap changed;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&changed);
    if (threadIdx.x < 16) changed.opaque[threadIdx.x] = map.opaque[threadIdx.x];
    __syncwarp();
    if (threadIdx.x == 0) {
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "r"(at), "l"(address));
        asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], %1;" :: "r"(at), "r"(2));
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 2, %1;" :: "r"(at), "r"(3));
        asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 1, %1;" :: "r"(at), "l"(960ull));
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 2, %1;" :: "r"(at), "r"(2));
        asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 2, %1;" :: "r"(at), "r"(2));
        asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 10;" :: "r"(at));
        asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 1;" :: "r"(at));
        asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 2;" :: "r"(at));
        asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 1;" :: "r"(at));
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
                 "[%0], [%1], 128;" :: "l"(out), "r"(at) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(out) : "memory");
}
"""


@pytest.fixture(scope="module")
def kernels() -> bascule.Module:
    require_tensor_maps()  # before the text is compiled, which needs this compute capability too
    return bascule.compile(SOURCE)


@pytest.fixture
def values(rng) -> np.ndarray:
    return rng.integers(-1000, 1000, (24, 32), dtype="i4")


def words_map() -> Map:
    return Map("s32", [32, 24], [128], [8, 8])


def test_a_map_may_be_a_parameter(kernels, values):
    tensor, out = bascule.to_device(values), bascule.to_device(np.zeros((8, 8), "i4"))
    kernels.from_parameter[1, 32](bascule.raw_bytes(words_map().encode(address_of(tensor))), 12, 5, out)
    np.testing.assert_array_equal(out.copy_to_host(), values[5:13, 12:20])


def test_a_map_may_be_in_global_memory(kernels, values):
    tensor, out = bascule.to_device(values), bascule.to_device(np.zeros((8, 8), "i4"))
    encoded = np.frombuffer(words_map().encode(address_of(tensor)), "V128")
    kernels.from_pointer[1, 32](bascule.to_device(encoded), 24, 16, out)
    np.testing.assert_array_equal(out.copy_to_host(), values[16:, 24:])


def test_a_map_may_be_in_constant_memory(kernels, values):
    tensor, out = bascule.to_device(values), bascule.to_device(np.zeros((8, 8), "i4"))
    encoded = np.frombuffer(words_map().encode(address_of(tensor)), "V128")
    kernels.get_global("in_constant_memory").copy_from_host(encoded[0])
    kernels.from_constant[1, 32](0, 0, out)
    np.testing.assert_array_equal(out.copy_to_host(), values[:8, :8])


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_multicast_brings_all_parts_to_each_block(kernels, values, size):
    tensor, out = bascule.to_device(values), bascule.to_device(np.zeros((4, 512), "i4"))
    encoded = Map("s32", [32, 24], [128], [32, 4]).encode(address_of(tensor))
    kernels.multicast.launch(4, 32, (bascule.raw_bytes(encoded), out), cluster=size)
    for block in out.copy_to_host():
        np.testing.assert_array_equal(block[: 128 * size], values[: 4 * size].ravel())


def test_a_kernel_changes_each_field_of_a_map():
    before = Map("f32", [20, 5], [80], [8, 2])
    after = Map("bf16", [20, 5, 3], [80, 960], [8, 2, 2], [1, 1, 2], swizzle=64, interleave=16, nan=True)
    room = bascule.to_device(np.zeros(1, "V128"))
    module = bascule.compile(CHANGING, options=bascule.CompileOptions(arch="compute_90a"))
    module.change[1, 32](bascule.raw_bytes(before.encode(1 << 20)), room, bascule.raw_pointer(1 << 21))
    # A map of two dimensions has no values in the third, and the emulated device keeps none.
    assert room.copy_to_host().tobytes() == after.encode(1 << 21)


def test_a_tile_of_freed_memory_is_a_fault_with_the_kernels_line(emulated):
    program = """
import numpy as np
import bascule
from tests.python.tensor_maps.test_maps import SOURCE, words_map
from tests.python.tensor_maps.tiles import address_of
kernels = bascule.compile(SOURCE)
tensor, out = bascule.to_device(np.zeros((24, 32), "i4")), bascule.to_device(np.zeros((8, 8), "i4"))
encoded = bascule.raw_bytes(words_map().encode(address_of(tensor)))
del tensor
try:
    kernels.from_parameter[1, 32](encoded, 0, 0, out)
    out.copy_to_host()
except bascule.CudaError as error:
    print(error)
"""
    done = run_python("-c", program, cwd=ROOT, PYTHONPATH=f"{ROOT}:{ROOT}/tests/python")
    assert "freed" in done.stdout, done.stdout + done.stderr
    assert "cp_async_bulk_tensor" in done.stdout


def test_a_wrong_use_of_a_map_is_told_with_its_line(emulated):
    """715 is CUDA_ERROR_ILLEGAL_INSTRUCTION."""
    program = """
import numpy as np
import bascule
from tests.python.tensor_maps.test_maps import SOURCE, words_map
from tests.python.tensor_maps.tiles import address_of
kernels = bascule.compile(SOURCE)
tensor, out = bascule.to_device(np.zeros((24, 32), "i4")), bascule.to_device(np.zeros((8, 8), "i4"))
try:
    kernels.from_parameter[1, 32](bascule.raw_bytes(words_map().encode(address_of(tensor))), 2, 0, out)
    out.copy_to_host()
except bascule.CudaError as error:
    print(error.code, error)
"""
    done = run_python("-c", program, cwd=ROOT, PYTHONPATH=f"{ROOT}:{ROOT}/tests/python")
    assert done.stdout.startswith("715 "), done.stdout + done.stderr
    assert "kernel 'from_parameter' misused a tensor map" in done.stdout
    assert "the tile starts at element 2 of its rows" in done.stdout
    assert "called from" in done.stdout
