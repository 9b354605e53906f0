"""Every kind of texture, compared with a reference that is written from the guide: random texels and coordinates."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import bascule

from . import reference

SOURCE = """
template <typename T>
__global__ void fetch1(cudaTextureObject_t t, const int* x, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<T>(t, x[i]);
}
template <typename T>
__global__ void sample1(cudaTextureObject_t t, const float* x, const float*, const float*, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1D<T>(t, x[i]);
}
template <typename T>
__global__ void sample2(cudaTextureObject_t t, const float* x, const float* y, const float*, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<T>(t, x[i], y[i]);
}
template <typename T>
__global__ void sample3(cudaTextureObject_t t, const float* x, const float* y, const float* z, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex3D<T>(t, x[i], y[i], z[i]);
}
template <typename T>
__global__ void layer1(cudaTextureObject_t t, const float* x, const float*, const int* l, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1DLayered<T>(t, x[i], l[i]);
}
template <typename T>
__global__ void layer2(cudaTextureObject_t t, const float* x, const float* y, const int* l, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2DLayered<T>(t, x[i], y[i], l[i]);
}
template <typename T>
__global__ void cube(cudaTextureObject_t t, const float* x, const float* y, const float* z, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = texCubemap<T>(t, x[i], y[i], z[i]);
}
template <typename T>
__global__ void cubes(cudaTextureObject_t t, const float* x, const float* y, const float* z, const int* l, T* out,
                      int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = texCubemapLayered<T>(t, x[i], y[i], z[i], l[i]);
}
template <typename T, int component>
__global__ void gather(cudaTextureObject_t t, const float* x, const float* y, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2Dgather<T>(t, x[i], y[i], component);
}
template <typename T>
__global__ void levels(cudaTextureObject_t t, const float* x, const float* y, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool resident = false;
    if (i < n) {
        T lod = tex2DLod<T>(t, x[i], y[i], 0.0f);
        T grad = tex2DGrad<T>(t, x[i], y[i], make_float2(0.1f, 0.0f), make_float2(0.0f, 0.1f));
        T plain = tex2D<T>(t, x[i], y[i], &resident);
        out[i] = resident && lod == grad ? plain - lod : -1;
    }
}
"""
COUNT = 500
INTEGERS = ("u1", "i1", "u2", "i2", "u4", "i4")
CPP = {
    "u1": "uchar",
    "i1": "char",
    "u2": "ushort",
    "i2": "short",
    "u4": "uint",
    "i4": "int",
    "f4": "float",
    "f2": "float",
}
SCALAR = {**CPP, "u1": "unsigned char", "i1": "signed char", "u2": "unsigned short", "u4": "unsigned int"}


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    return bascule.compile(SOURCE)


def texels_of(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype[0] == "f":
        return random.normal(size=shape).astype(dtype)
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, size=shape, dtype=dtype, endpoint=True)


def coordinates(random: np.random.Generator, extents: tuple[int, ...], normalized: bool) -> list[np.ndarray]:
    """Coordinates inside, outside, and exactly on and between texels."""
    made = []
    for extent in extents:
        size = 1 if normalized else extent
        x = random.uniform(-2.5 * size, 3.5 * size, COUNT).astype("f4")
        x[::3] = (random.integers(-2 * extent, 3 * extent, len(x[::3])) / (extent if normalized else 1)).astype("f4")
        x[1::7] = (
            (random.integers(-2 * extent, 3 * extent, len(x[1::7])) + 0.5) / (extent if normalized else 1)
        ).astype("f4")
        made.append(x)
    return made


def cpp_type(dtype: str, channels: int, read: str) -> tuple[str, np.dtype[Any]]:
    """The type that the kernel reads, in C++ and in NumPy."""
    result = "f4" if read == "normalized" or dtype[0] == "f" else dtype
    return SCALAR[result] if channels == 1 else f"{CPP[result]}{channels}", np.dtype(result)


def run(kernel: bascule.Kernel, cpp: str, texture: Any, at: list[np.ndarray], channels: int, dtype: Any) -> np.ndarray:
    arrays = [bascule.to_device(x) for x in at]
    out = bascule.device_array((COUNT, channels) if channels > 1 else COUNT, dtype)
    kernel.instantiate(cpp)[(COUNT + 63) // 64, 64](texture, *arrays, out, COUNT)
    return out.copy_to_host().reshape(COUNT, channels)


def check(got: np.ndarray, wanted: np.ndarray, *, slices: bool = False) -> None:
    if slices:
        # The last bits below those of the largest texel are unknown when two slices are added.
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-8)
    else:
        np.testing.assert_array_equal(got, wanted.astype(got.dtype))


def modes(filterable: bool) -> list[tuple[str, bool, str]]:
    """Each combination of address mode, kind of coordinates and filter that is valid."""
    made = [(mode, False, "point") for mode in ("clamp", "border")]
    made += [(mode, True, "point") for mode in ("clamp", "border", "wrap", "mirror")]
    return made + [(mode, normalized, "linear") for mode, normalized, _ in made if filterable]


KINDS = [(dtype, "element") for dtype in (*INTEGERS, "f4", "f2")]
KINDS += [(dtype, "normalized") for dtype in ("u1", "i1", "u2", "i2")]


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize(("dtype", "read"), KINDS)
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_arrays_of_every_dimension_and_type_are_sampled(module, dimensions, dtype, read, channels) -> None:
    random = np.random.default_rng([dimensions, channels, *dtype.encode(), len(read)])
    shape = (5, 6, 7)[-dimensions:]
    texels = texels_of(random, (*shape, channels), dtype)
    array = bascule.cuda_array(texels if channels > 1 else texels[..., 0], channels=channels)
    cpp, result = cpp_type(dtype, channels, read)
    for address, normalized, filter in modes(result.kind == "f"):
        at = coordinates(random, shape[::-1], normalized)
        texture = bascule.texture(array, address=address, normalized=normalized, filter=filter, read=read)
        full = at + [np.zeros(COUNT, "f4")] * (3 - dimensions)
        got = run(module[f"sample{dimensions}"], cpp, texture, full, channels, result)
        wanted = reference.sample(
            texels, [x.astype("f8") for x in at], address=address, normalized=normalized, filter=filter, read=read
        )
        check(got, wanted, slices=dimensions == 3 and filter == "linear")


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize(("dtype", "read"), KINDS)
def test_pitched_memory_is_sampled_where_it_lies(module, dtype, read, channels) -> None:
    random = np.random.default_rng([channels, *dtype.encode(), len(read)])
    texels = texels_of(random, (9, 32, channels), dtype)
    wide = bascule.to_device(texels if channels > 1 else texels[..., 0])
    cpp, result = cpp_type(dtype, channels, read)
    texels = texels[:, :11]
    for address, normalized, filter in modes(result.kind == "f"):
        at = coordinates(random, (11, 9), normalized)
        texture = bascule.texture(
            wide[:, :11], address=address, normalized=normalized, filter=filter, read=read, channels=channels
        )
        got = run(module.sample2, cpp, texture, [*at, np.zeros(COUNT, "f4")], channels, result)
        wanted = reference.sample(
            texels, [x.astype("f8") for x in at], address=address, normalized=normalized, filter=filter, read=read
        )
        check(got, wanted)


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize(("dtype", "read"), KINDS)
def test_linear_memory_is_fetched_and_is_0_outside(module, dtype, read, channels) -> None:
    random = np.random.default_rng([channels, *dtype.encode(), len(read)])
    texels = texels_of(random, (100, channels), dtype)
    array = bascule.to_device(texels if channels > 1 else texels[..., 0])
    cpp, result = cpp_type(dtype, channels, read)
    numbers = reference.as_numbers(texels, read)
    x = random.integers(-50, 150, COUNT, dtype="i4")
    texture = bascule.texture(array, read=read, channels=channels)
    got = run(module.fetch1, cpp, texture, [x], channels, result)
    inside = (x >= 0) & (x < 100)
    check(got, np.where(inside[:, None], numbers[np.clip(x, 0, 99)], 0))


@pytest.mark.parametrize("address", list(itertools.permutations(("wrap", "clamp", "mirror", "border"), 3)))
def test_each_axis_has_an_address_mode_of_its_own(module, address) -> None:
    random = np.random.default_rng(list(address[0].encode()))
    texels = texels_of(random, (3, 4, 5, 1), "f4")
    array = bascule.cuda_array(texels[..., 0])
    at = coordinates(random, (5, 4, 3), True)
    for filter in ("point", "linear"):
        texture = bascule.texture(array, address=address, normalized=True, filter=filter)
        got = run(module.sample3, "float", texture, at, 1, "f4")
        wanted = reference.sample(texels, [x.astype("f8") for x in at], address=address, normalized=True, filter=filter)
        check(got, wanted, slices=filter == "linear")


def test_a_border_has_a_colour(module) -> None:
    random = np.random.default_rng(7)
    texels = texels_of(random, (6, 8, 4), "f4")
    at = coordinates(random, (8, 6), False)
    for filter in ("point", "linear"):
        texture = bascule.texture(
            bascule.cuda_array(texels, channels=4), address="border", filter=filter, border=(0.5, -1, 2, 3)
        )
        got = run(module.sample2, "float4", texture, [*at, np.zeros(COUNT, "f4")], 4, "f4")
        wanted = reference.sample(
            texels, [x.astype("f8") for x in at], address="border", filter=filter, border=(0.5, -1, 2, 3)
        )
        check(got, wanted)


@pytest.mark.parametrize("dtype", ["f4", "i2"])
@pytest.mark.parametrize("dimensions", [1, 2])
def test_layers_are_sampled_one_by_one(module, dimensions, dtype) -> None:
    random = np.random.default_rng(dimensions)
    shape = (6, 7)[-dimensions:]
    texels = texels_of(random, (4, *shape, 1), dtype)
    array = bascule.cuda_array(texels[..., 0], layered=True)
    layers = random.integers(-2, 6, COUNT, dtype="i4")
    cpp, result = cpp_type(dtype, 1, "element")
    for address, normalized, filter in modes(dtype == "f4"):
        at = coordinates(random, shape[::-1], normalized)
        texture = bascule.texture(array, address=address, normalized=normalized, filter=filter)
        full = [*at, np.zeros(COUNT, "f4")][:2]
        got = run(module[f"layer{dimensions}"], cpp, texture, [*full, layers], 1, result)
        for layer in range(4):
            here = np.minimum(layers.view("u4"), 3) == layer  # unsigned: a negative number selects the last layer
            # A one-dimensional layer is sampled like a two-dimensional texture with one row, at the middle of the row.
            middle = [np.full(COUNT, 0.5)] if dimensions == 1 else []
            wanted = reference.sample(
                texels[layer].reshape(-1, shape[-1], 1),
                [x[here].astype("f8") for x in [*at, *middle]],
                address=address,
                normalized=normalized,
                filter=filter,
            )
            check(got[here], wanted)


@pytest.mark.parametrize("layered", [False, True])
@pytest.mark.parametrize("filter", ["point", "linear"])
def test_cubes_are_sampled_by_direction(module, layered, filter) -> None:
    random = np.random.default_rng(11)
    cubes = 3 if layered else 1
    texels = texels_of(random, (6 * cubes, 8, 8, 1), "f4")
    array = bascule.cuda_array(texels[..., 0], cube=True, layered=layered)
    at = [random.normal(size=COUNT).astype("f4") for _ in range(3)]
    at[0][:6], at[1][:6], at[2][:6] = (1, -1, 0, 0, 0, 0), (0, 0, 1, -1, 0, 0), (0, 0, 0, 0, 1, -1)
    layers = random.integers(0, cubes, COUNT, dtype="i4")
    texture = bascule.texture(array, filter=filter)
    extra = [layers] if layered else []
    got = run(module.cubes if layered else module.cube, "float", texture, [*at, *extra], 1, "f4")
    wanted = np.empty((COUNT, 1))
    for i in range(COUNT):
        face, s, t = reference.cube_face(*(float(x[i]) for x in at))
        wanted[i] = reference.sample(
            texels[6 * layers[i] + face],
            [np.array([s]), np.array([t])],
            normalized=True,
            filter=filter,
        )
    check(got, wanted)


@pytest.mark.parametrize("dtype", ["f4", "u4", "i4"])
@pytest.mark.parametrize("component", range(4))
@pytest.mark.parametrize("address", ["clamp", "border"])
def test_gathers_take_one_component_of_four_texels(module, dtype, component, address) -> None:
    random = np.random.default_rng(component)
    texels = texels_of(random, (6, 8, 4), dtype)
    array = bascule.cuda_array(texels, channels=4, gather=True)
    at = coordinates(random, (8, 6), False)
    out = bascule.device_array((COUNT, 4), dtype)
    kernel = module.gather.instantiate(f"{CPP[dtype]}4", component)
    kernel[(COUNT + 63) // 64, 64](
        bascule.texture(array, address=address), bascule.to_device(at[0]), bascule.to_device(at[1]), out, COUNT
    )
    wanted = reference.gather(texels, at[0].astype("f8"), at[1].astype("f8"), component, address)
    np.testing.assert_array_equal(out.copy_to_host(), wanted.astype(dtype))


def test_a_level_and_derivatives_do_not_change_the_only_level(module) -> None:
    random = np.random.default_rng(3)
    array = bascule.cuda_array(texels_of(random, (6, 8), "f4"))
    at = coordinates(random, (8, 6), False)
    got = run(module.levels, "float", bascule.texture(array, filter="linear"), at, 1, "f4")
    assert not got.any()


def test_srgb_is_decoded_but_for_alpha(module) -> None:
    texels = np.arange(256, dtype="u1").repeat(4).reshape(16, 16, 4)
    texture = bascule.texture(bascule.cuda_array(texels, channels=4), read="normalized", srgb=True)
    x, y = (axis.ravel()[:COUNT].astype("f4") + 0.5 for axis in np.meshgrid(np.arange(16), np.arange(16)))
    at = [np.resize(x, COUNT), np.resize(y, COUNT), np.zeros(COUNT, "f4")]
    got = run(module.sample2, "float4", texture, at, 4, "f4")[:256]
    encoded = np.arange(256) / 255
    decoded = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    # Colours agree within 2**-7 of their value; alpha is exact.
    np.testing.assert_allclose(got[:, :3], np.stack([decoded] * 3, axis=1), rtol=2**-7)
    np.testing.assert_array_equal(got[:, 3], encoded.astype("f4"))


def test_coordinates_that_are_not_finite_read_something(module) -> None:
    texels = np.arange(1, 9, dtype="f4")
    x = np.resize(np.array([np.nan, np.inf, -np.inf, 3e38, -3e38], "f4"), COUNT)
    rest = [np.zeros(COUNT, "f4")] * 2
    got = run(module.sample1, "float", bascule.texture(bascule.cuda_array(texels)), [x, *rest], 1, "f4")
    assert got[1:5, 0].tolist() == [8, 1, 8, 1]
    assert got[0, 0] in texels
