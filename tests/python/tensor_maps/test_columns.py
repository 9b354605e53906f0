"""Columns of images (.im2col): each row of a tile has the channels of one pixel under a filter's element."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

from .tiles import Map, load, store

pytestmark = pytest.mark.usefixtures("hopper")


class Convolution:
    """Images and the positions of a filter over them, from a convolution's formulas."""

    def __init__(self, rng: np.random.Generator, dimensions: int, swizzle: int = 0, interleave: int = 0) -> None:
        self.pixels = [int(rng.integers(3, 8)) for _ in range(dimensions)]  # width first
        self.filter = [int(rng.integers(1, 4)) for _ in range(dimensions)]
        self.padding = [int(rng.integers(0, 3)) for _ in range(dimensions)]
        self.step = [int(rng.integers(1, 3)) for _ in range(dimensions)]
        self.images, self.channels = 2, 16
        # The first pixel of the filter goes from -padding to pixels + padding - filter.
        self.count = [
            (n + 2 * p - f) // s + 1
            for n, p, f, s in zip(self.pixels, self.padding, self.filter, self.step, strict=True)
        ]
        strides, stride = [], interleave or 2 * self.channels
        for extent in self.pixels:
            strides.append(stride)
            stride *= extent
        if interleave:
            stride *= 2 * self.channels // interleave  # all slices of an image
        self.map = Map(
            "f16",
            [self.channels, *self.pixels, self.images],
            [*strides, stride],
            steps=[1, *self.step, 1],
            lower=[-p for p in self.padding],
            upper=[p - (f - 1) for p, f in zip(self.padding, self.filter, strict=True)],
            channels=8 if interleave != 32 else 16,
            pixels=int(rng.integers(1, 60)),
            swizzle=swizzle,
            interleave=interleave,
        )
        self.values = rng.standard_normal((self.images, *reversed(self.pixels), self.channels)).astype("f2")

    @property
    def positions(self) -> int:
        return self.images * int(np.prod(self.count))

    def base(self, number: int) -> list[int]:
        """Returns the filter's position with this number: width, height, ..., image."""
        at = []
        for count, step, padding in zip(self.count, self.step, self.padding, strict=True):
            number, k = divmod(number, count)
            at.append(k * step - padding)
        return [*at, number]

    def elements(self, first: int, channel: int, offset: list[int]):
        for s, begin in enumerate(self.map.slices):
            for row in range(self.map.pixels):
                *at, image = self.base(first + row)
                pixel = [a + o for a, o in zip(at, offset, strict=True)]
                for k in range(self.map.row // self.map.size):
                    yield s * self.map.pixels + row, k, (channel + begin + k, *pixel, image)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_columns_of_a_convolution_are_loaded(dimensions, seed):
    rng = np.random.default_rng([dimensions, seed])
    for swizzle in (0, 32):
        made = Convolution(rng, dimensions, swizzle)
        first, channel = int(rng.integers(made.positions)), 8 * int(rng.integers(-1, 3))
        offset = [int(rng.integers(f)) for f in made.filter]
        at = [channel, *made.base(first), *offset]
        loaded = load(made.map, bascule.to_device(made.values), at, columns=True)
        expected = made.map.loaded(made.values.reshape(-1).view("u1"), made.elements(first, channel, offset))
        np.testing.assert_array_equal(loaded, expected, str((made.map, at)))


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_columns_of_an_interleaved_tensor_are_loaded_and_stored(dimensions, seed):
    """A tile has all its pixels of one slice, and then those of the next."""
    rng = np.random.default_rng([dimensions, seed, 1])
    for interleave in (16, 32):
        made = Convolution(rng, dimensions, 32 if interleave == 32 else 0, interleave)
        per_slice = interleave // 2
        made.map.channels = per_slice * int(rng.integers(1, 4))
        first, channel = int(rng.integers(made.positions)), per_slice * int(rng.integers(-1, 2))
        offset = [int(rng.integers(f)) for f in made.filter]
        memory, tensor = made.values.reshape(-1).view("u1"), bascule.to_device(made.values)
        loaded = load(made.map, tensor, [channel, *made.base(first), *offset], columns=True)
        expected = made.map.loaded(memory, made.elements(first, channel, offset))
        np.testing.assert_array_equal(loaded, expected, str((made.map, first, channel, offset)))
        tile = rng.integers(0, 256, made.map.span, dtype="u1")
        store(f"store_columns{dimensions + 2}", made.map, tensor, [0, *made.base(first)], tile)
        expected = made.map.stored(memory, tile, made.elements(first, 0, [0] * dimensions))
        np.testing.assert_array_equal(tensor.copy_to_host().reshape(-1).view("u1"), expected)


def test_the_manuals_example():
    """PTX ISA, "im2col mode example 1": pixels of a 9 x 14 image, with a border of one pixel under a 3 x 3 filter."""
    values = np.arange(3 * 14 * 9 * 64, dtype="u2").reshape(3, 14, 9, 64)
    map = Map("u16", [64, 9, 14, 3], [128, 128 * 9, 128 * 9 * 14], steps=[1, 1, 1, 1])
    map.lower, map.upper, map.channels, map.pixels = [-1, -1], [-1, -1], 8, 64
    loaded = load(map, bascule.to_device(values), [0, 7, 7, 1, 0, 0], columns=True).view("u2").reshape(64, 8)
    # The filter's first pixel is at widths -1 to 7: one row has the pixel at 7, the next starts before the image.
    np.testing.assert_array_equal(loaded[0], values[1, 7, 7, :8])
    np.testing.assert_array_equal(loaded[1], np.zeros(8))
    np.testing.assert_array_equal(loaded[2:10], values[1, 8, :8, :8])
    # Heights end at 12, so after 8 to 12 the filter is at height -1 of the next image.
    np.testing.assert_array_equal(loaded[1 + 5 * 9 : 1 + 6 * 9], np.zeros((9, 8)))
    np.testing.assert_array_equal(loaded[2 + 6 * 9 :], values[2, 0, :8, :8])


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_columns_are_stored_where_the_filter_is(rng, dimensions):
    made = Convolution(rng, dimensions)
    memory = made.values.reshape(-1).view("u1")
    tile = rng.integers(0, 256, made.map.span, dtype="u1")
    first = int(rng.integers(made.positions))
    tensor = bascule.to_device(memory)
    store(f"store_columns{dimensions + 2}", made.map, tensor, [8, *made.base(first)], tile)
    expected = made.map.stored(memory, tile, made.elements(first, 8, [0] * dimensions))
    np.testing.assert_array_equal(tensor.copy_to_host(), expected)
