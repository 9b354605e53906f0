"""Kernels as people write them with textures and surfaces, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

from . import reference

WIDTH, HEIGHT = 128, 64
GRID, BLOCK = (WIDTH // 16, HEIGHT // 16), (16, 16)


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    y, x = np.meshgrid(np.arange(HEIGHT), np.arange(WIDTH), indexing="ij")
    noise = np.random.default_rng(5).normal(0, 0.05, (HEIGHT, WIDTH))
    return (0.5 + 0.4 * np.sin(x / 9) * np.cos(y / 7) + noise).astype("f4")


def test_an_image_is_rotated_with_normalised_wrapped_coordinates(photo) -> None:
    rotate = bascule.compile("""
__global__ void rotate(float* output, int width, int height, float theta, cudaTextureObject_t tex) {
    unsigned int x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int y = blockIdx.y * blockDim.y + threadIdx.y;
    float u = (float)x - (float)width / 2;
    float v = (float)y - (float)height / 2;
    float tu = (u * cosf(theta) - v * sinf(theta)) / width;
    float tv = (v * cosf(theta) + u * sinf(theta)) / height;
    output[y * width + x] = tex2D<float>(tex, tu + 0.5f, tv + 0.5f);
}""").rotate
    texture = bascule.texture(bascule.cuda_array(photo), address="wrap", filter="linear", normalized=True)
    out = bascule.device_array((HEIGHT, WIDTH), "f4")
    rotate[GRID, BLOCK](out, WIDTH, HEIGHT, 0.5, texture)
    y, x = np.meshgrid(np.arange(HEIGHT), np.arange(WIDTH), indexing="ij")
    u, v = x - WIDTH / 2, y - HEIGHT / 2
    at = [
        (u * np.cos(0.5) - v * np.sin(0.5)).ravel() / WIDTH + 0.5,
        (v * np.cos(0.5) + u * np.sin(0.5)).ravel() / HEIGHT + 0.5,
    ]
    wanted = reference.sample(photo[..., None].astype("f8"), at, address="wrap", filter="linear", normalized=True)
    # Coordinates in float differ by less than a step of the weights.
    np.testing.assert_allclose(out.copy_to_host().ravel(), wanted[:, 0], atol=0.005)


def test_rows_with_a_pitch_are_shifted() -> None:
    shift = bascule.compile("""
__global__ void shift(float* odata, int pitch, int width, int height, int dx, int dy, cudaTextureObject_t tex) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    odata[y * pitch + x] = tex2D<float>(tex, (x + dx) / (float)width, (y + dy) / (float)height);
}""").shift
    values = np.random.default_rng(6).random((HEIGHT, 160), "f4")
    image = bascule.to_device(values)[:, :WIDTH]
    out = bascule.zeros((HEIGHT, 160), "f4")
    texture = bascule.texture(image, address="wrap", normalized=True)
    shift[GRID, BLOCK](out, 160, WIDTH, HEIGHT, 16, 32, texture)
    np.testing.assert_array_equal(out.copy_to_host()[:, :WIDTH], np.roll(values[:, :WIDTH], (-32, -16), axis=(0, 1)))


def test_bicubic_interpolation_by_four_linear_samples(photo) -> None:
    bicubic = bascule.compile("""
__device__ float w0(float a) { return (1.0f / 6.0f) * (a * (a * (-a + 3.0f) - 3.0f) + 1.0f); }
__device__ float w1(float a) { return (1.0f / 6.0f) * (a * a * (3.0f * a - 6.0f) + 4.0f); }
__device__ float w2(float a) { return (1.0f / 6.0f) * (a * (a * (-3.0f * a + 3.0f) + 3.0f) + 1.0f); }
__device__ float w3(float a) { return (1.0f / 6.0f) * (a * a * a); }
__global__ void bicubic(cudaTextureObject_t tex, float* out, int width, float tx, float ty, float scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    float x = i * scale + tx - 0.5f, y = j * scale + ty - 0.5f;
    float px = floorf(x), py = floorf(y), fx = x - px, fy = y - py;
    float g0x = w0(fx) + w1(fx), g1x = w2(fx) + w3(fx);
    float h0x = -1.0f + w1(fx) / (w0(fx) + w1(fx)) + 0.5f, h1x = 1.0f + w3(fx) / (w2(fx) + w3(fx)) + 0.5f;
    float h0y = -1.0f + w1(fy) / (w0(fy) + w1(fy)) + 0.5f, h1y = 1.0f + w3(fy) / (w2(fy) + w3(fy)) + 0.5f;
    out[j * width + i] =
        (w0(fy) + w1(fy)) *
            (g0x * tex2D<float>(tex, px + h0x, py + h0y) + g1x * tex2D<float>(tex, px + h1x, py + h0y)) +
        (w2(fy) + w3(fy)) * (g0x * tex2D<float>(tex, px + h0x, py + h1y) + g1x * tex2D<float>(tex, px + h1x, py + h1y));
}""").bicubic
    out = bascule.device_array((HEIGHT, WIDTH), "f4")
    texture = bascule.texture(bascule.cuda_array(photo), filter="linear")
    bicubic[GRID, BLOCK](texture, out, WIDTH, 3.3, 5.7, 0.7)

    def weights(a: np.ndarray) -> list[np.ndarray]:
        return [
            (a * (a * (-a + 3) - 3) + 1) / 6,
            (a * a * (3 * a - 6) + 4) / 6,
            (a * (a * (-3 * a + 3) + 3) + 1) / 6,
            a * a * a / 6,
        ]

    x, y = np.arange(WIDTH) * 0.7 + 3.3 - 0.5, np.arange(HEIGHT) * 0.7 + 5.7 - 0.5
    wanted = np.zeros((HEIGHT, WIDTH))
    for dy, wy in enumerate(weights(y - np.floor(y))):
        for dx, wx in enumerate(weights(x - np.floor(x))):
            rows = np.clip(np.floor(y).astype(int) + dy - 1, 0, HEIGHT - 1)
            columns = np.clip(np.floor(x).astype(int) + dx - 1, 0, WIDTH - 1)
            wanted += wy[:, None] * wx[None, :] * photo[np.ix_(rows, columns)]
    np.testing.assert_allclose(out.copy_to_host(), wanted, atol=0.004)  # weights of 8 bits


def test_a_bilateral_filter_of_packed_pixels() -> None:
    bilateral = bascule.compile("""
__constant__ float gaussian[64];
__global__ void bilateral(uchar4* out, int w, int h, float e_d, int r, cudaTextureObject_t image) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.0f;
    float4 t = make_float4(0, 0, 0, 0), center = tex2D<float4>(image, x, y);
    for (int i = -r; i <= r; i++) {
        for (int j = -r; j <= r; j++) {
            float4 p = tex2D<float4>(image, x + j, y + i);
            float mod = (p.x - center.x) * (p.x - center.x) + (p.y - center.y) * (p.y - center.y) +
                        (p.z - center.z) * (p.z - center.z);
            float factor = gaussian[i + r] * gaussian[j + r] * expf(-mod / (2.0f * e_d * e_d));
            t.x += factor * p.x; t.y += factor * p.y; t.z += factor * p.z; t.w += factor * p.w;
            sum += factor;
        }
    }
    out[y * w + x] = make_uchar4(255 * t.x / sum + 0.5f, 255 * t.y / sum + 0.5f, 255 * t.z / sum + 0.5f, 255);
}""")
    r, e_d = 3, 0.2
    gaussian = np.exp(-((np.arange(2 * r + 1) - r) ** 2) / 8).astype("f4")
    bilateral.get_global("gaussian")[: 2 * r + 1] = gaussian
    pixels = np.random.default_rng(8).integers(0, 256, (HEIGHT, WIDTH, 4), "u1")
    texture = bascule.texture(bascule.to_device(pixels), read="normalized", channels=4)
    out = bascule.device_array((HEIGHT, WIDTH, 4), "u1")
    bilateral.bilateral[GRID, BLOCK](out, WIDTH, HEIGHT, e_d, r, texture)
    colors = pixels / 255.0
    padded = np.pad(colors, ((r, r), (r, r), (0, 0)), "edge")
    total, weight = np.zeros((HEIGHT, WIDTH, 4)), np.zeros((HEIGHT, WIDTH, 1))
    for i in range(2 * r + 1):
        for j in range(2 * r + 1):
            p = padded[i : i + HEIGHT, j : j + WIDTH]
            mod = ((p - colors)[..., :3] ** 2).sum(-1, keepdims=True)
            factor = gaussian[i] * gaussian[j] * np.exp(-mod / (2 * e_d * e_d))
            total += factor * p
            weight += factor
    wanted = np.floor(255 * (total / weight)[..., :3] + 0.5)
    assert np.abs(out.copy_to_host()[..., :3] - wanted).max() <= 1


def test_a_volume_is_rendered_through_a_transfer_function() -> None:
    march = bascule.compile("""
__global__ void march(float4* out, int w, int h, cudaTextureObject_t volume, cudaTextureObject_t transfer, int steps) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int i = 0; i < steps; i++) {
        float sample = tex3D<float>(volume, (x + 0.5f) / w, (y + 0.5f) / h, (i + 0.5f) / steps);
        float4 col = tex1D<float4>(transfer, sample);
        col.w *= 0.05f;
        float alpha = col.w * (1.0f - sum.w);
        sum.x += col.x * alpha; sum.y += col.y * alpha; sum.z += col.z * alpha; sum.w += alpha;
    }
    out[y * w + x] = sum;
}""").march
    random = np.random.default_rng(9)
    volume = random.integers(0, 256, (8, 8, 8), "u1")
    transfer = random.random((9, 4), "f4")
    steps = 20
    out = bascule.device_array((HEIGHT, WIDTH, 4), "f4")
    march[GRID, BLOCK](
        out,
        WIDTH,
        HEIGHT,
        bascule.texture(bascule.cuda_array(volume), read="normalized", normalized=True, filter="linear"),
        bascule.texture(bascule.cuda_array(transfer, channels=4), normalized=True, filter="linear"),
        steps,
    )
    y, x = (axis.ravel() for axis in np.meshgrid(np.arange(HEIGHT), np.arange(WIDTH), indexing="ij"))
    numbers = reference.as_numbers(volume, "normalized")[..., None]
    total = np.zeros((x.size, 4))
    for i in range(steps):
        at = [
            np.float32((x + 0.5) / WIDTH),
            np.float32((y + 0.5) / HEIGHT),
            np.full(x.size, np.float32((i + 0.5) / steps)),
        ]
        sample = reference.sample(numbers, [np.float64(a) for a in at], filter="linear", normalized=True)[:, 0]
        color = reference.sample(transfer.astype("f8"), [sample], filter="linear", normalized=True)
        alpha = color[:, 3] * 0.05 * (1 - total[:, 3])
        total += np.concatenate([color[:, :3] * alpha[:, None], alpha[:, None]], axis=1)
    np.testing.assert_allclose(out.copy_to_host().reshape(-1, 4), total, atol=0.003)


def test_layers_and_cubes_are_transformed() -> None:
    module = bascule.compile("""
__global__ void layered(float* g_odata, int width, int height, int layer, cudaTextureObject_t tex) {
    unsigned int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float u = (x + 0.5f) / (float)width, v = (y + 0.5f) / (float)height;
    g_odata[layer * width * height + y * width + x] = -tex2DLayered<float>(tex, u, v, layer) + layer;
}
__global__ void cube(float* g_odata, int width, cudaTextureObject_t tex) {
    unsigned int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float u = ((x + 0.5f) / (float)width) * 2.f - 1.f, v = ((y + 0.5f) / (float)width) * 2.f - 1.f;
    for (unsigned int face = 0; face < 6; face++) {
        float cx, cy, cz;
        if (face == 0) { cx = 1; cy = -v; cz = -u; }
        else if (face == 1) { cx = -1; cy = -v; cz = u; }
        else if (face == 2) { cx = u; cy = 1; cz = v; }
        else if (face == 3) { cx = u; cy = -1; cz = -v; }
        else if (face == 4) { cx = u; cy = -v; cz = 1; }
        else { cx = -u; cy = -v; cz = -1; }
        g_odata[face * width * width + y * width + x] = -texCubemap<float>(tex, cx, cy, cz);
    }
}""")
    layers = np.random.default_rng(10).random((5, 32, 32), "f4")
    out = bascule.device_array((5, 32, 32), "f4")
    texture = bascule.texture(
        bascule.cuda_array(layers, layered=True), address="wrap", filter="linear", normalized=True
    )
    for layer in range(5):
        module.layered[(2, 2), (16, 16)](out, 32, 32, layer, texture)
    np.testing.assert_allclose(out.copy_to_host(), np.arange(5)[:, None, None] - layers, rtol=1e-6)
    faces = np.random.default_rng(11).random((6, 64, 64), "f4")
    out = bascule.device_array((6, 64, 64), "f4")
    texture = bascule.texture(bascule.cuda_array(faces, cube=True), address="wrap", filter="linear")
    module.cube[(4, 4), (16, 16)](out, 64, texture)
    np.testing.assert_allclose(out.copy_to_host(), -faces, atol=1e-6)


def test_a_surface_is_written_and_read_as_a_texture(photo) -> None:
    module = bascule.compile("""
__global__ void surface_write(const float* data, int width, int height, cudaSurfaceObject_t out) {
    unsigned int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    surf2Dwrite(data[y * width + x], out, x * 4, y, cudaBoundaryModeTrap);
}
__global__ void transform(float* data, int width, int height, cudaTextureObject_t tex) {
    unsigned int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    data[y * width + x] = tex2D<float>(tex, height - y - 0.5f, x + 0.5f);
}
__global__ void blur(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            float value;
            surf2Dread(&value, from, 4 * (x + dx), y + dy, cudaBoundaryModeClamp);
            sum += value;
        }
    surf2Dwrite(sum / 9, to, 4 * x, y);
}""")
    array = bascule.CudaArray((HEIGHT, WIDTH), surface=True)
    module.surface_write[GRID, BLOCK](bascule.to_device(photo), WIDTH, HEIGHT, bascule.surface(array))
    out = bascule.device_array((WIDTH, HEIGHT), "f4")
    module.transform[(HEIGHT // 16, WIDTH // 16), (16, 16)](out, HEIGHT, WIDTH, bascule.texture(array))
    y, x = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT), indexing="ij")
    np.testing.assert_array_equal(out.copy_to_host(), photo[x, np.clip(WIDTH - y - 1, 0, WIDTH - 1)])

    other = bascule.CudaArray((HEIGHT, WIDTH), surface=True)
    module.blur[GRID, BLOCK](bascule.surface(array), bascule.surface(other))
    padded = np.pad(photo, 1, "edge").astype("f8")
    wanted = sum(padded[i : i + HEIGHT, j : j + WIDTH] for i in range(3) for j in range(3)) / 9
    np.testing.assert_allclose(other.copy_to_host(), wanted, rtol=1e-5)


def test_a_table_of_doubles_is_fetched_as_pairs_of_integers() -> None:
    fetch = bascule.compile("""
__device__ double fetch_double(cudaTextureObject_t t, int i) {
    int2 v = tex1Dfetch<int2>(t, i);
    return __hiloint2double(v.y, v.x);
}
__global__ void spmv(cudaTextureObject_t x, const int* columns, const double* values, double* y, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    for (int k = 0; k < width; ++k) sum += values[row * width + k] * fetch_double(x, columns[row * width + k]);
    y[row] = sum;
}""").spmv
    random = np.random.default_rng(12)
    x, values = random.normal(size=500), random.normal(size=(128, 7))
    columns = random.integers(0, 500, (128, 7), "i4")
    y = bascule.device_array(128, "f8")
    texture = bascule.texture(bascule.to_device(x).view("i4").reshape(500, 2), channels=2)
    fetch[2, 64](texture, bascule.to_device(columns), bascule.to_device(values), y, 7)
    np.testing.assert_allclose(y.copy_to_host(), (values * x[columns]).sum(axis=1), rtol=1e-12)
