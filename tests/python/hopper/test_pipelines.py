"""Kernels that keep several stages in flight, or change their map, and multiply by wgmma. NumPy computes the same."""

from __future__ import annotations

import numpy as np
import pytest
from wgmma.programs import multiply
from wgmma.test_products import KINDS

import bascule

from .test_products import F16, check, operands
from .texts import compiled

pytestmark = pytest.mark.usefixtures("hopper")

# What a warpgroup does with the sums of 64 x 64 elements that its threads hold, and with one stage of two tiles.
PARTS = """
template <class T> __device__ void multiply_tiles(T (&d)[32], const char* a, const char* b) {
    fence();
    for (int k = 0; k < 4; ++k)
        multiply(d, descriptor(shared(a) + k * 32, 16, 1024), descriptor(shared(b) + k * 32, 16, 1024), 1);
    commit();
    wait<0>();
}
template <class T> __device__ void write(const T (&d)[32], T* out, int pitch, int rows) {
    for (int i = 0; i < 32; ++i) {
        const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i % 4 / 2 * 8;
        if (row < rows) out[row * pitch + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = d[i];
    }
}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_product_of_one_warpgroup_with_four_stages(kind):
    text = """
    extern "C" __global__ void __launch_bounds__(128) gemm(MAP a, MAP b, ELEMENT* out, int n, int steps) {
        constexpr int stages = 4, tile = 64 * 128;
        extern __shared__ __align__(1024) char tiles[];
        __shared__ u64 full[stages];
        const int row = blockIdx.y * 64, column = blockIdx.x * 64;
        const auto fetch = [&](int step) {
            char* const to = tiles + step % stages * 2 * tile;
            expect(full + step % stages, 2 * tile);
            load(to, a, full + step % stages, step * PER_ROW, row);
            load(to + tile, b, full + step % stages, step * PER_ROW, column);
        };
        if (threadIdx.x == 0) {
            for (u64& each : full) init(&each, 1);
            ready();
            for (int step = 0; step < min(stages, steps); ++step) fetch(step);
        }
        __syncthreads();
        ELEMENT d[32] = {};
        for (int step = 0; step < steps; ++step) {
            wait_for(full + step % stages, step / stages % 2);
            const char* const from = tiles + step % stages * 2 * tile;
            multiply_tiles(d, from, from + tile);
            __syncthreads();
            if (threadIdx.x == 0 && step + stages < steps) fetch(step + stages);
        }
        write(d, out + row * n + column, n, 64);
    }
    """
    shape, types, scales, dtype, tolerance = KINDS[kind]
    per_row = 128 // np.dtype(dtype).itemsize
    m, n, steps = 128, 64, 6
    maps, exact, magnitude = operands(kind, m, n, steps * per_row)
    out = bascule.to_device(np.full((m, n), -7, "i4" if tolerance == 0 else "f4"))
    element = "int" if tolerance == 0 else "float"
    module = compiled(multiply("multiply", shape, types, scales) + PARTS + text, PER_ROW=per_row, ELEMENT=element)
    config = bascule.LaunchConfig((n // 64, m // 64), 128, shared_bytes=4 * sum(each.bytes for each in maps))
    module["gemm"][config](*maps, out, n, steps)
    check(out, exact, magnitude, tolerance)


def test_a_convolution_by_im2col_and_wgmma():
    text = """
    // Each block has 64 pixels and 64 filters; each step has one place of the 3 x 3 filter and 64 channels.
    extern "C" __global__ void convolve(MAP image, MAP weights, float* out, int pixels) {
        __shared__ __align__(1024) char columns[64 * 128], filters[64 * 128];
        __shared__ u64 full;
        if (threadIdx.x == 0) { init(&full, 1); ready(); }
        __syncthreads();
        const int first = blockIdx.x * 64;
        const int n = first / (HEIGHT * WIDTH), y = first / WIDTH % HEIGHT, x = first % WIDTH;
        float d[32] = {};
        for (int place = 0; place < 9; ++place) {
            if (threadIdx.x == 0) {
                expect(&full, 2 * 64 * 128);
                load(filters, weights, &full, 0, place * 64);
                asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                             "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
                             :: "r"(shared(columns)), "l"(&image), "r"(0), "r"(x - 1), "r"(y - 1), "r"(n),
                                "r"(shared(&full)), "h"((unsigned short)(place % 3)), "h"((unsigned short)(place / 3))
                             : "memory");
            }
            wait_for(&full, place % 2);
            multiply_tiles(d, columns, filters);
            __syncthreads();
        }
        write(d, out + first * 64, 64, pixels - first);
    }
    """
    images, height, width = 2, 7, 10
    rng = np.random.default_rng(6)
    host = rng.standard_normal((images, height, width, 64)).astype("f2")
    weights = rng.standard_normal((3, 3, 64, 64)).astype("f2")  # the channels of each filter are a row
    out = bascule.full((images, height, width, 64), np.nan, "f4")
    columns = bascule.tensor_map(bascule.to_device(host), (64, 64), im2col=((-1, -1), (-1, -1)), swizzle=128)
    filters = bascule.tensor_map(bascule.to_device(weights.reshape(-1, 64)), (64, 64), swizzle=128)
    pixels = images * height * width
    module = compiled(F16 + PARTS + text, HEIGHT=height, WIDTH=width)
    module["convolve"][-(-pixels // 64), 128](columns, filters, out, pixels)
    padded = np.pad(host, ((0, 0), (1, 1), (1, 1), (0, 0))).astype("f8")
    right = np.zeros(out.shape)
    for r, s in np.ndindex(3, 3):
        right += padded[:, r : r + height, s : s + width] @ weights[r, s].astype("f8").T
    np.testing.assert_allclose(out.copy_to_host(), right, atol=1e-3)


def test_products_of_a_group_with_other_sizes_and_addresses_of_a():
    text = """
    extern "C" __global__ void gemm(MAP any, MAP b, void* maps, const u64* addresses, const int* rows, float* out) {
        __shared__ __align__(1024) char ta[64 * 128], tb[64 * 128];
        __shared__ __align__(128) CUtensorMap changed;
        __shared__ u64 full;
        CUtensorMap* const mine = (CUtensorMap*)maps + blockIdx.x;
        if (threadIdx.x < 32) {
            ((u32*)&changed)[threadIdx.x] = ((const u32*)&any)[threadIdx.x];
            __syncwarp();
            if (threadIdx.x == 0) {
                asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;"
                             :: "r"(shared(&changed)), "l"(addresses[blockIdx.x]) : "memory");
                asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;"
                             :: "r"(shared(&changed)), "r"(rows[blockIdx.x]) : "memory");
            }
            __syncwarp();
            asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
                         "[%0], [%1], 128;" :: "l"(mine), "r"(shared(&changed)) : "memory");
        }
        if (threadIdx.x == 0) {
            asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(mine) : "memory");
            init(&full, 1);
            ready();
            expect(&full, 2 * 64 * 128);
            load(ta, *mine, &full, 0, 0);
            load(tb, b, &full, 0, 0);
        }
        __syncthreads();
        wait_for(&full, 0);
        float d[32] = {};
        multiply_tiles(d, ta, tb);
        write(d, out + blockIdx.x * 64 * 64, 64, 64);
    }
    """
    rng = np.random.default_rng(9)
    rows = np.array([64, 17, 40], "i4")
    hosts = [rng.standard_normal((64, 64)).astype("f2") for _ in rows]
    b = rng.standard_normal((64, 64)).astype("f2")
    matrices = [bascule.to_device(host) for host in hosts]
    addresses = np.array([each.__cuda_array_interface__["data"][0] for each in matrices], "u8")
    out = bascule.full((3, 64, 64), np.nan, "f4")
    maps = [bascule.tensor_map(x, (64, 64), swizzle=128) for x in (matrices[0], bascule.to_device(b))]
    room = bascule.device_array(3 * 128, "u1")
    arrays = [bascule.to_device(x) for x in (addresses, rows)]
    compiled(F16 + PARTS + text)["gemm"][3, 128](*maps, room, *arrays, out)
    for made, host, count in zip(out.copy_to_host(), hosts, rows, strict=True):
        right = host.astype("f8") @ b.astype("f8").T
        right[count:] = 0  # the map ends there, though the array has more
        np.testing.assert_allclose(made, right, atol=1e-3)


def test_a_transposition_whose_reads_meet_no_bank_twice():
    text = """
    extern "C" __global__ void transpose(MAP in, float* out, int rows, int* conflicts) {
        __shared__ __align__(1024) float4 tile[32][8];
        __shared__ u64 full;
        if (threadIdx.x == 0) {
            init(&full, 1);
            ready();
            expect(&full, 32 * 128);
            load(tile, in, &full, blockIdx.x * 32, blockIdx.y * 32);
        }
        __syncthreads();
        wait_for(&full, 0);
        const int row = threadIdx.x % 32, unit = threadIdx.x / 32;
        const int place = unit ^ row % 8;
        // Eight threads read 128 bytes at once: all banks, if their places in the rows differ.
        if (__match_any_sync(~0u, row / 8 * 8 + place) != 1u << row) atomicAdd(conflicts, 1);
        const float4 four = tile[row][place];
        float* const to = out + (blockIdx.x * 32 + unit * 4) * rows + blockIdx.y * 32 + row;
        to[0] = four.x, to[rows] = four.y, to[2 * rows] = four.z, to[3 * rows] = four.w;
    }
    """
    host = np.random.default_rng(12).standard_normal((96, 64)).astype("f4")
    out = bascule.full((64, 96), np.nan, "f4")
    conflicts = bascule.zeros(1, "i4")
    tiles = bascule.tensor_map(bascule.to_device(host), (32, 32), swizzle=128)
    compiled(text)["transpose"][(2, 3), 256](tiles, out, 96, conflicts)
    np.testing.assert_array_equal(out.copy_to_host(), host.T)
    assert conflicts.copy_to_host()[0] == 0
