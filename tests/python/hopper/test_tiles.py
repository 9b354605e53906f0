"""Kernels that copy tiles by TMA and compute on them with plain CUDA C++. NumPy computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

from .texts import compiled

pytestmark = pytest.mark.usefixtures("hopper")

# What most kernels below begin with: thread 0 loads one box, and all threads wait for it.
ONE_BOX = """
#define LOAD(to, map, ...) \\
    __shared__ u64 full; \\
    if (threadIdx.x == 0) { init(&full, 1); ready(); expect(&full, BYTES); load(to, map, &full, __VA_ARGS__); } \\
    __syncthreads(); \\
    wait_for(&full, 0);
"""


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(11).standard_normal(shape).astype("f4")


def test_a_transposition_of_swizzled_tiles():
    text = """
    __global__ void transpose(MAP in, float* out, int rows) {
        __shared__ __align__(1024) float tile[32 * 32];
        LOAD(tile, in, blockIdx.x * 32, blockIdx.y * 32)
        for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) {
            const int row = i % 32, column = i / 32;  // a warp reads a column: eight rows have it in other banks
            const int unit = (column / 4) ^ row % 8;
            out[(blockIdx.x * 32 + column) * rows + blockIdx.y * 32 + row] = tile[row * 32 + unit * 4 + column % 4];
        }
    }
    """
    host = random(64, 96)
    out = bascule.full((96, 64), np.nan, "f4")
    tiles = bascule.tensor_map(bascule.to_device(host), (32, 32), swizzle=128)
    compiled(ONE_BOX + text, BYTES=tiles.bytes).transpose[(3, 2), 128](tiles, out, 64)
    np.testing.assert_array_equal(out.copy_to_host(), host.T)


def test_a_stencil_of_five_points_with_a_halo_of_zeros():
    text = """
    __global__ void laplace(MAP in, float* out, int rows, int columns) {
        __shared__ __align__(128) float tile[18][40];  // 4 floats at each side: 16 bytes
        const int top = blockIdx.y * 16, left = blockIdx.x * 32;
        LOAD(tile, in, left - 4, top - 1)
        for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) {
            const int r = i / 32 + 1, c = i % 32 + 4;
            if (top + r - 1 < rows && left + c - 4 < columns)
                out[(top + r - 1) * columns + left + c - 4] =
                    tile[r - 1][c] + tile[r + 1][c] + tile[r][c - 1] + tile[r][c + 1] - 4 * tile[r][c];
        }
    }
    """
    host = random(37, 60)
    out = bascule.full(host.shape, np.nan, "f4")
    tiles = bascule.tensor_map(bascule.to_device(host), (18, 40))
    compiled(ONE_BOX + text, BYTES=tiles.bytes).laplace[(2, 3), 128](tiles, out, *host.shape)
    p = np.pad(host, 1)
    right = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * host
    np.testing.assert_allclose(out.copy_to_host(), right, atol=1e-5)


def test_a_stencil_of_seven_points_in_three_dimensions():
    text = """
    __global__ void laplace(MAP in, float* out, int depth, int rows, int columns) {
        __shared__ __align__(128) float tile[6][10][24];
        const int front = blockIdx.z * 4, top = blockIdx.y * 8, left = blockIdx.x * 16;
        LOAD(tile, in, left - 4, top - 1, front - 1)
        for (int i = threadIdx.x; i < 4 * 8 * 16; i += blockDim.x) {
            const int z = i / 128 + 1, y = i / 16 % 8 + 1, x = i % 16 + 4;
            const int at_z = front + z - 1, at_y = top + y - 1, at_x = left + x - 4;
            if (at_z < depth && at_y < rows && at_x < columns)
                out[(at_z * rows + at_y) * columns + at_x] =
                    tile[z - 1][y][x] + tile[z + 1][y][x] + tile[z][y - 1][x] + tile[z][y + 1][x] +
                    tile[z][y][x - 1] + tile[z][y][x + 1] - 6 * tile[z][y][x];
        }
    }
    """
    host = random(7, 18, 28)
    out = bascule.full(host.shape, np.nan, "f4")
    tiles = bascule.tensor_map(bascule.to_device(host), (6, 10, 24))
    compiled(ONE_BOX + text, BYTES=tiles.bytes).laplace[(2, 3, 2), 128](tiles, out, *host.shape)
    p = np.pad(host, 1)
    inner = slice(1, -1)
    right = p[:-2, inner, inner] + p[2:, inner, inner] + p[inner, :-2, inner] + p[inner, 2:, inner]
    right += p[inner, inner, :-2] + p[inner, inner, 2:] - 6 * host
    np.testing.assert_allclose(out.copy_to_host(), right, atol=1e-5)


def test_a_histogram_that_blocks_add_up_by_tma():
    text = """
    __global__ void count(const unsigned char* values, int n, MAP bins) {
        __shared__ __align__(128) u32 mine[256];
        for (int i = threadIdx.x; i < 256; i += blockDim.x) mine[i] = 0;
        __syncthreads();
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            atomicAdd(mine + values[i], 1);
        proxy();
        __syncthreads();
        if (threadIdx.x == 0) { add(bins, mine, 0); stored(); }
    }
    """
    values = np.random.default_rng(2).integers(0, 256, 5000).astype("u1")
    bins = bascule.zeros(256, "u4")
    compiled(text).count[6, 128](bascule.to_device(values), values.size, bascule.tensor_map(bins, (256,)))
    np.testing.assert_array_equal(bins.copy_to_host(), np.bincount(values, minlength=256))


def test_a_softmax_of_rows():
    text = """
    #include <cmath>
    __global__ void softmax(MAP in, MAP out) {
        __shared__ __align__(128) float tile[4][128];
        LOAD(tile, in, 0, blockIdx.x * 4)
        float* const row = tile[threadIdx.x / 32];
        float most = -INFINITY, sum = 0;
        for (int i = threadIdx.x % 32; i < 128; i += 32) most = fmaxf(most, row[i]);
        for (int w = 16; w > 0; w /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, w));
        for (int i = threadIdx.x % 32; i < 128; i += 32) sum += row[i] = expf(row[i] - most);
        for (int w = 16; w > 0; w /= 2) sum += __shfl_xor_sync(~0u, sum, w);
        for (int i = threadIdx.x % 32; i < 128; i += 32) row[i] /= sum;
        proxy();
        __syncthreads();
        if (threadIdx.x == 0) { store(out, tile, 0, blockIdx.x * 4); stored(); }
    }
    """
    host = random(14, 128)
    out = bascule.full(host.shape, np.nan, "f4")
    tiles = bascule.tensor_map(bascule.to_device(host), (4, 128))
    compiled(ONE_BOX + text, BYTES=tiles.bytes).softmax[4, 128](tiles, bascule.tensor_map(out, (4, 128)))
    weights = np.exp(host - host.max(1, keepdims=True))
    np.testing.assert_allclose(out.copy_to_host(), weights / weights.sum(1, keepdims=True), rtol=1e-5)


def test_sums_of_columns_that_blocks_add_up_by_tma():
    text = """
    __global__ void sums(MAP in, MAP out) {
        __shared__ __align__(128) float tile[16][64], sum[64];
        LOAD(tile, in, blockIdx.x * 64, blockIdx.y * 16)
        for (int c = threadIdx.x; c < 64; c += blockDim.x) {
            sum[c] = 0;
            for (int r = 0; r < 16; ++r) sum[c] += tile[r][c];  // rows outside of the array are zeros
        }
        proxy();
        __syncthreads();
        if (threadIdx.x == 0) { add(out, sum, blockIdx.x * 64); stored(); }
    }
    """
    host = random(50, 100)
    out = bascule.zeros(100, "f4")
    tiles = bascule.tensor_map(bascule.to_device(host), (16, 64))
    compiled(ONE_BOX + text, BYTES=tiles.bytes).sums[(2, 4), 64](tiles, bascule.tensor_map(out, (64,)))
    np.testing.assert_allclose(out.copy_to_host(), host.sum(0), atol=1e-4)


def test_every_second_row_is_copied_by_element_strides():
    text = """
    __global__ void shrink(MAP in, MAP out) {
        __shared__ __align__(128) float tile[8][32];
        LOAD(tile, in, blockIdx.x * 32, blockIdx.y * 16)
        if (threadIdx.x == 0) { store(out, tile, blockIdx.x * 32, blockIdx.y * 8); stored(); }
    }
    """
    host = random(48, 64)
    out = bascule.full((24, 64), np.nan, "f4")
    tiles = bascule.tensor_map(bascule.to_device(host), (16, 32), element_strides=(2, 1))
    compiled(ONE_BOX + text, BYTES=tiles.bytes).shrink[(2, 3), 32](tiles, bascule.tensor_map(out, (8, 32)))
    np.testing.assert_array_equal(out.copy_to_host(), host[::2])


def test_the_mean_of_a_neighbourhood_counts_what_is_inside():
    text = """
    __global__ void mean(MAP in, float* out, int rows, int columns) {
        __shared__ __align__(128) float tile[10][40];
        const int top = blockIdx.y * 8, left = blockIdx.x * 32;
        LOAD(tile, in, left - 4, top - 1)
        for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) {
            const int r = i / 32 + 1, c = i % 32 + 4;
            float sum = 0;
            int count = 0;
            for (int y = -1; y <= 1; ++y)
                for (int x = -1; x <= 1; ++x) {
                    const float value = tile[r + y][c + x];
                    if (!isnan(value)) { sum += value; ++count; }  // NaN is outside of the array
                }
            if (top + r - 1 < rows && left + c - 4 < columns)
                out[(top + r - 1) * columns + left + c - 4] = sum / count;
        }
    }
    """
    host = random(21, 44)
    out = bascule.full(host.shape, np.nan, "f4")
    tiles = bascule.tensor_map(bascule.to_device(host), (10, 40), fill="nan")
    compiled(ONE_BOX + text, BYTES=tiles.bytes).mean[(2, 3), 128](tiles, out, *host.shape)
    padded = np.pad(host, 1, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    np.testing.assert_allclose(out.copy_to_host(), np.nanmean(windows, axis=(2, 3)), rtol=1e-4, atol=1e-5)


def test_rows_of_a_table_are_gathered_by_their_indices():
    text = """
    __global__ void gather(MAP table, const int* indices, int n, float* out) {
        __shared__ __align__(128) float rows[16][64];
        __shared__ u64 full;
        const int first = blockIdx.x * 16;
        if (threadIdx.x == 0) {
            init(&full, 1);
            ready();
            expect(&full, 16 * BYTES);
            for (int i = 0; i < 16; ++i) load(rows[i], table, &full, 0, first + i < n ? indices[first + i] : -1);
        }
        __syncthreads();
        wait_for(&full, 0);
        for (int i = threadIdx.x; i < 16 * 64; i += blockDim.x)
            if (first + i / 64 < n) out[(first + i / 64) * 64 + i % 64] = rows[i / 64][i % 64];
    }
    """
    host = random(300, 64)
    indices = np.random.default_rng(4).integers(0, 300, 75).astype("i4")
    out = bascule.full((75, 64), np.nan, "f4")
    table = bascule.tensor_map(bascule.to_device(host), (1, 64))
    compiled(text, BYTES=table.bytes).gather[5, 128](table, bascule.to_device(indices), 75, out)
    np.testing.assert_array_equal(out.copy_to_host(), host[indices])


def test_a_convolution_by_im2col():
    text = """
    // Columns of all pixels of an image for one place of the 3 x 3 filter, times its weights (channels x filters).
    __global__ void convolve(MAP image, const float* weights, float* out, int pixels) {
        __shared__ __align__(128) float tile[32][8];
        __shared__ u64 full;
        if (threadIdx.x == 0) { init(&full, 1); ready(); }
        __syncthreads();
        const int first = blockIdx.x * 32, pixel = first + threadIdx.x;
        const int n = first / (HEIGHT * WIDTH), y = first / WIDTH % HEIGHT, x = first % WIDTH;
        float sum[4] = {};
        for (int place = 0; place < 9; ++place) {
            if (threadIdx.x == 0) {
                expect(&full, BYTES);
                asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                             "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
                             :: "r"(shared(tile)), "l"(&image), "r"(0), "r"(x - 1), "r"(y - 1), "r"(n),
                                "r"(shared(&full)), "h"((unsigned short)(place % 3)), "h"((unsigned short)(place / 3))
                             : "memory");
            }
            wait_for(&full, place % 2);
            for (int c = 0; c < 8; ++c)
                for (int f = 0; f < 4; ++f) sum[f] += tile[threadIdx.x][c] * weights[(place * 8 + c) * 4 + f];
            __syncthreads();
        }
        if (pixel < pixels)
            for (int f = 0; f < 4; ++f) out[pixel * 4 + f] = sum[f];
    }
    """
    images, height, width = 2, 8, 12
    host = random(images, height, width, 8)
    weights = random(3, 3, 8, 4)
    out = bascule.full((images, height, width, 4), np.nan, "f4")
    columns = bascule.tensor_map(bascule.to_device(host), (32, 8), im2col=((-1, -1), (-1, -1)))
    module = compiled(text, BYTES=columns.bytes, HEIGHT=height, WIDTH=width)
    pixels = images * height * width
    module.convolve[pixels // 32, 32](columns, bascule.to_device(weights), out, pixels)
    padded = np.pad(host, ((0, 0), (1, 1), (1, 1), (0, 0)))
    right = np.zeros(out.shape)
    for r, s in np.ndindex(3, 3):
        right += padded[:, r : r + height, s : s + width].astype("f8") @ weights[r, s].astype("f8")
    np.testing.assert_allclose(out.copy_to_host(), right, atol=1e-4)


def test_a_map_in_memory_is_changed_for_each_matrix_of_a_group():
    text = """
    __global__ void scale(MAP first, void* maps, const u64* addresses, float* out) {
        __shared__ __align__(128) CUtensorMap changed;
        __shared__ __align__(128) float tile[8][32];
        CUtensorMap* const mine = (CUtensorMap*)maps + blockIdx.x;
        if (threadIdx.x < 32)
            ((u32*)&changed)[threadIdx.x] = ((const u32*)&first)[threadIdx.x];
        __syncwarp();
        if (threadIdx.x == 0)
            asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;"
                         :: "r"(shared(&changed)), "l"(addresses[blockIdx.x]) : "memory");
        __syncwarp();
        if (threadIdx.x < 32)
            asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
                         "[%0], [%1], 128;" :: "l"(mine), "r"(shared(&changed)) : "memory");
        if (threadIdx.x == 0)
            asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(mine) : "memory");
        LOAD(tile, *mine, 0, 0)
        for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) out[blockIdx.x * 256 + i] = 2 * tile[i / 32][i % 32];
    }
    """
    hosts = [random(8, 32) + i for i in range(3)]
    matrices = [bascule.to_device(host) for host in hosts]
    addresses = np.array([each.__cuda_array_interface__["data"][0] for each in matrices], "u8")
    out = bascule.full((3, 8, 32), np.nan, "f4")
    first = bascule.tensor_map(matrices[0], (8, 32))
    maps = bascule.device_array(3 * 128, "u1")
    kernel = compiled(ONE_BOX + text, BYTES=first.bytes).scale
    kernel[3, 64](first, maps, bascule.to_device(addresses), out)
    np.testing.assert_array_equal(out.copy_to_host(), 2 * np.stack(hosts))
