"""Filters of images."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, blocks_for, given, wanted

shapes = pytest.mark.parametrize("shape", [(1, 1), (1, 33), (31, 1), (31, 33), (40, 61)])
tiles = pytest.mark.parametrize("block", [(32, 1), (7, 5), (16, 16)])


def tiled(shape, block):
    return blocks_for(shape[1], block[0]), blocks_for(shape[0], block[1])


def windows(image, radius):
    side = 2 * radius + 1
    return np.lib.stride_tricks.sliding_window_view(np.pad(image, radius, mode="edge"), (side, side))


@shapes
@tiles
def test_grey_is_made_of_four_channels_in_pitched_rows(kernel, rng, shape, block):
    height, width = shape
    pixels = rng.integers(0, 256, (height, width + 3, 4), dtype="u1")
    device, out = given(pixels), wanted((height, width + 5), "u1")
    expected = out.read().copy()
    kernel("image.grey")[tiled(shape, block), block](device.pointer, out, width, height, width + 3, width + 5)
    weighted = pixels[:, :width, :3].astype("i4") @ [77, 150, 29]
    expected[:, :width] = (weighted + 128) >> 8
    np.testing.assert_array_equal(out.read(), expected)


@shapes
@tiles
def test_sobels_gradients_are_exact(kernel, rng, shape, block):
    image = rng.integers(0, 256, shape, dtype="u1")
    across, down = wanted(shape, "i2"), wanted(shape, "i2")
    kernel("image.sobel")[tiled(shape, block), block](given(image), across, down)
    kernel_across = np.outer([1, 2, 1], [-1, 0, 1])
    around = windows(image, 1).astype("i4")
    np.testing.assert_array_equal(across.read(), np.einsum("yxij,ij->yx", around, kernel_across))
    np.testing.assert_array_equal(down.read(), np.einsum("yxij,ji->yx", around, kernel_across))


@shapes
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("radius", [1, 4, 50])
def test_a_running_sum_blurs_rows(kernel, rng, shape, radius, block):
    height, width = shape
    image = rng.integers(0, 256, shape, dtype="u1")
    out = wanted(shape, "u1")
    kernel("image.box_blur_rows")[blocks_for(height, block), block](given(image), out, width, height, radius)
    padded = np.pad(image, ((0, 0), (radius, radius)), mode="edge").astype("i4")
    sums = np.lib.stride_tricks.sliding_window_view(padded, 2 * radius + 1, axis=1).sum(axis=-1)
    np.testing.assert_array_equal(out.read(), (sums + radius) // (2 * radius + 1))


@shapes
@tiles
def test_a_bilateral_filter_keeps_edges(kernel, rng, shape, block):
    height, width = shape
    image = (rng.random(shape) + (np.arange(width) > width // 2)).astype("f4")
    out = wanted(shape, "f4")
    kernel("image.bilateral")[tiled(shape, block), block](given(image), out, width, height, 0.25, 2.0)
    around = windows(image, 2).astype("f8")
    j, i = np.mgrid[-2:3, -2:3]
    weights = np.exp(-(i * i + j * j) * 0.25 - (around - image[..., None, None]) ** 2 * 2)
    expected = (weights * around).sum(axis=(2, 3)) / weights.sum(axis=(2, 3))
    # __expf is ex2 of a product: its argument, up to 10 here, is rounded, so a weight is accurate to 2**-20; all are
    # positive, and so are the pixels, so that the mean is equally accurate.
    np.testing.assert_allclose(out.read(), expected, rtol=2.0**-18)


@shapes
@tiles
def test_the_median_of_nine_is_exact(kernel, rng, shape, block):
    height, width = shape
    image = rng.integers(0, 65536, shape).astype("u2")
    out = wanted(shape, "u2")
    kernel("image.median")[tiled(shape, block), block](given(image), out, width, height)
    np.testing.assert_array_equal(out.read(), np.median(windows(image, 1), axis=(2, 3)))
