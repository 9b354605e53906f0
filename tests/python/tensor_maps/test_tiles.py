"""Tiles go from tensors to shared memory and back as the manual's layouts say, also over every edge."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

from .tiles import ELEMENTS, FLOATS, POISON, SWIZZLES, Map, load, store

pytestmark = pytest.mark.usefixtures("hopper")


def contiguous(element: str, extents: list[int], padding: int = 0, **others) -> Map:
    """Returns a map of a tensor whose rows are padded to a multiple of 16 bytes, and by 16 times `padding` more."""
    strides, size = [], np.dtype(ELEMENTS[element][1]).itemsize
    for extent in extents[:-1]:
        size = -(-size * extent // 16) * 16 + 16 * padding
        strides.append(size)
    return Map(element, extents, strides, **others)


def bytes_of(map: Map) -> int:
    row = map.extents[0] * map.size
    return row + sum((n - 1) * stride for n, stride in zip(map.extents[1:], map.strides, strict=True))


def random_map(rng: np.random.Generator, rank: int) -> tuple[Map, list[int]]:
    """Returns a map with a tile of at most some thousand bytes, and where the tile starts, perhaps outside."""
    element = str(rng.choice(list(ELEMENTS)))
    size = np.dtype(ELEMENTS[element][1]).itemsize
    swizzle = int(rng.choice([0, *SWIZZLES]))
    row = int(rng.integers(1, (swizzle or 96) // 16 + 1)) * 16 // size
    box, steps = [row], [1]
    for _ in range(rank - 1):
        box.append(int(rng.integers(1, [0, 0, 20, 6, 4, 3][rank] + 1)))
        steps.append(int(rng.choice([1, 1, 1, 2, 3])))
    extents = [int(rng.integers(1, 3 * n + 2)) for n in box]
    nan = element in FLOATS and bool(rng.integers(2))
    made = contiguous(element, extents, int(rng.integers(3)), box=box, steps=steps, swizzle=swizzle, nan=nan)
    start = [int(rng.integers(-n, extent + 1)) for n, extent in zip(box, extents, strict=True)]
    start[0] = start[0] * size // 16 * 16 // size
    return made, start


@pytest.mark.parametrize("rank", range(1, 6))
@pytest.mark.parametrize("seed", range(12))
def test_random_tiles_are_loaded(rank, seed):
    rng = np.random.default_rng([rank, seed])
    for _ in range(4):
        map, start = random_map(rng, rank)
        memory = rng.integers(0, 256, bytes_of(map), dtype="u1")
        shift = 128 * int(rng.integers(9))
        loaded = load(map, bascule.to_device(memory), start, shift)
        # The dynamic shared memory is aligned to 1024 bytes, so the swizzle's pattern starts at byte 0 of it.
        np.testing.assert_array_equal(loaded, map.loaded(memory, map.tile(start), shift), str((map, start, shift)))


@pytest.mark.parametrize("rank", range(1, 6))
@pytest.mark.parametrize("seed", range(6))
def test_random_tiles_are_stored(rank, seed):
    rng = np.random.default_rng([rank, seed, 1])
    for _ in range(4):
        map, start = random_map(rng, rank)
        start = [max(each, 0) for each in start]
        memory = rng.integers(0, 256, bytes_of(map), dtype="u1")
        tile = rng.integers(0, 256, map.span, dtype="u1")
        shift = 128 * int(rng.integers(9))
        tensor = bascule.to_device(memory)
        store(f"store{rank}", map, tensor, start, tile, shift)
        stored = map.stored(memory, tile, map.tile(start), shared=shift)
        np.testing.assert_array_equal(tensor.copy_to_host(), stored, str((map, start, shift)))


@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_a_swizzled_tile_reads_as_an_index_says(rng, swizzle):
    """The CUDA C++ Programming Guide: smem[y][x] is smem[y][((y + offset) % 8) ^ x] of chunks of 16 bytes."""
    rows = 1024 // swizzle
    values = rng.integers(0, 1 << 16, (rows, swizzle // 2), dtype="u2")
    map = contiguous("u16", [swizzle // 2, rows], box=[swizzle // 2, rows], swizzle=swizzle)
    for shift in (0, 128, 640):
        loaded = load(map, bascule.to_device(values), [0, 0], shift).reshape(8, 8, 16)
        chunks = values.view("u1").reshape(8, 8, 16)
        count = swizzle // 16
        for y in range(8):
            for x in range(8):
                there = x // count * count + (x % count ^ (y + shift // 128) % count)
                np.testing.assert_array_equal(loaded[y, there], chunks[y, x])


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_elements_outside_are_nan_if_asked(element):
    size = np.dtype(ELEMENTS[element][1]).itemsize
    values = np.zeros((6, 32 // size), ELEMENTS[element][1])
    map = contiguous(element, [32 // size, 6], box=[64 // size, 8], nan=True)
    loaded = load(map, bascule.to_device(values), [-16 // size, -1])
    loaded = loaded.view("u4" if element == "bf16" else f"f{size}").reshape(8, -1)
    if element == "bf16":
        loaded = (loaded[..., None] >> np.array([0, 16], "u4") << 16).astype("u4").view("f4").reshape(8, -1)
    outside = np.ones((8, 64 // size), bool)
    outside[1:7, 16 // size : 48 // size] = False
    np.testing.assert_array_equal(np.isnan(loaded), outside)


@pytest.mark.parametrize("interleave", [16, 32])
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_slices_of_an_interleaved_tensor(rng, interleave, rank):
    """NC/8DHWC8 and NC/16DHWC16 of 16-bit channels: the images' pixels are slices of channels, one after the other."""
    channels, count = interleave // 2, 3
    pixels = [int(rng.integers(2, 5)) for _ in range(rank - 2)]
    values = rng.integers(0, 1 << 16, (2, count, *reversed(pixels), channels), dtype="u2")
    strides, stride = [], interleave
    for extent in pixels:
        strides.append(stride)
        stride *= extent
    # The last slice has fewer channels than there is room for.
    map = Map("u16", [channels * count - 2, *pixels, 2], [*strides, stride * count], [channels] + [3] * (rank - 1))
    map.interleave, map.swizzle = interleave, 32 if interleave == 32 else 0
    for slice_number in range(-1, count + 1):
        start = [channels * slice_number, -1, *([1] * (rank - 2))]
        loaded = load(map, bascule.to_device(values), start)
        np.testing.assert_array_equal(loaded, map.loaded(values.reshape(-1).view("u1"), map.tile(start)))
        if slice_number == 1 and rank == 3 and interleave == 16:
            tile = loaded.view("u2").reshape(3, 3, channels)
            np.testing.assert_array_equal(tile[0, 1:], values[1, 1, :2])


def random_slices(rng: np.random.Generator, rank: int) -> tuple[Map, list[int]]:
    """Returns a map of an interleaved tensor with tiles of up to three slices, and where the tile starts."""
    element, interleave = str(rng.choice(list(ELEMENTS))), int(rng.choice([16, 32]))
    size = np.dtype(ELEMENTS[element][1]).itemsize
    per_slice = interleave // size
    swizzle = 32 if interleave == 32 else int(rng.choice([0, *SWIZZLES]))
    slices, box = int(rng.integers(1, 4)), [per_slice * int(rng.integers(1, 4))]
    box += [int(rng.integers(1, [0, 0, 0, 6, 4, 3][rank] + 1)) for _ in range(rank - 1)]
    steps = [1, *(int(rng.choice([1, 1, 2, 3])) for _ in range(rank - 1))]
    pixels = [int(rng.integers(1, 3 * n + 1)) for n in box[1:]]
    strides, stride = [], interleave
    for extent in pixels[:-1]:
        strides.append(stride)
        stride *= extent
    extents = [per_slice * slices - int(rng.integers(per_slice)), *pixels]
    nan = element in FLOATS and bool(rng.integers(2))
    made = Map(element, extents, [*strides, stride * slices], box, steps, swizzle, interleave, nan)
    start = [int(rng.integers(-n, extent + 1)) for n, extent in zip(box, extents, strict=True)]
    start[0] = start[0] // per_slice * per_slice
    return made, start


@pytest.mark.parametrize("rank", [3, 4, 5])
@pytest.mark.parametrize("seed", range(8))
def test_random_tiles_of_slices_are_loaded_and_stored(rank, seed):
    rng = np.random.default_rng([rank, seed, 2])
    for _ in range(3):
        map, start = random_slices(rng, rank)
        memory = rng.integers(0, 256, map.strides[-1] * map.extents[-1], dtype="u1")
        shift, tensor = 128 * int(rng.integers(9)), bascule.to_device(memory)
        loaded = load(map, tensor, start, shift)
        np.testing.assert_array_equal(loaded, map.loaded(memory, map.tile(start), shift), str((map, start, shift)))
        start = [max(each, 0) for each in start]
        tile = rng.integers(0, 256, map.span, dtype="u1")
        store(f"store{rank}", map, tensor, start, tile, shift)
        stored = map.stored(memory, tile, map.tile(start), shared=shift)
        np.testing.assert_array_equal(tensor.copy_to_host(), stored, str((map, start, shift)))


def test_before_its_wait_a_tile_is_poison(rng, emulated):
    values = rng.integers(0, 255, (8, 64), dtype="u1")
    map = contiguous("u8", [64, 8], box=[64, 8])
    loaded = load(map, bascule.to_device(values), [0, 0], waits=False)
    np.testing.assert_array_equal(loaded, np.full(512, POISON, "u1"))
