"""Iterations of different lengths in one warp, and bodies that attract each other."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, blocks_for, given, wanted


def escapes(x, y, cx, cy, limit):
    x, y, cx, cy = (np.array(value, "f4") for value in np.broadcast_arrays(x, y, cx, cy))
    steps = np.full(x.shape, limit)
    running = np.ones(x.shape, bool)
    for k in range(limit):
        with np.errstate(over="ignore", invalid="ignore"):
            xx, yy = x * x, y * y
            ending = running & (xx + yy > 4)
            steps[ending] = k
            running &= ~ending
            x, y = (xx - yy) + cx, (x + x) * y + cy
    return steps


@pytest.mark.parametrize("block", [(32, 1), (7, 5), (16, 16)])
@pytest.mark.parametrize("shape", [(1, 1), (31, 33), (40, 61)])
def test_mandelbrots_set_takes_the_same_steps_everywhere(kernel, shape, block):
    height, width = shape
    xs, ys = np.linspace(-2.1, 0.7, width, dtype="f4"), np.linspace(-1.2, 1.1, height, dtype="f4")
    out = wanted(shape, "u2")
    grid = (blocks_for(width, block[0]), blocks_for(height, block[1]))
    kernel("fractal.mandelbrot")[grid, block](given(xs), given(ys), out, width, height, 300)
    np.testing.assert_array_equal(out.read(), escapes(0, 0, xs, ys[:, None], 300))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("pitch", [53, 64])
def test_julias_set_leaves_the_ends_of_pitched_rows_alone(kernel, pitch, block):
    width, height = 53, 29
    xs, ys = np.linspace(-1.6, 1.6, width, dtype="f4"), np.linspace(-1, 1, height, dtype="f4")
    out = wanted((height, pitch), "u1")
    before = out.read()
    kernel("fractal.julia")[3, block](given(xs), given(ys), out, width, height, pitch, -0.8, 0.156)
    expected = before.copy()
    expected[:, :width] = escapes(xs, ys[:, None], np.float32(-0.8), np.float32(0.156), 200)
    np.testing.assert_array_equal(out.read(), expected)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", [1, 33, 257])
def test_bodies_attract_each_other(kernel, rng, size, block):
    bodies = rng.uniform(-1, 1, (size, 4)).astype("f4")
    bodies[:, 3] = rng.uniform(0.5, 2, size)
    out = wanted((size, 4), "f4")
    device, softening = given(bodies), np.float32(0.01)
    grid = blocks_for(size, block)
    kernel("fractal.n_body")[grid, block, None, 16 * block](device.pointer, out.pointer, size, softening)
    at, mass = bodies[:, :3].astype("f8"), bodies[:, 3].astype("f8")
    away = at[None] - at[:, None]
    inverse = 1 / np.sqrt((away**2).sum(axis=2) + np.float64(softening))
    terms = np.concatenate([away * (mass * inverse**3)[..., None], (mass * inverse)[..., None]], axis=2)
    # A term has some ten roundings, rsqrtf has an error of 2 units at most and enters three times; a sum adds one
    # rounding for each body.
    bound = (20 + size) * 2.0**-24 * np.abs(terms).sum(axis=1)
    assert (np.abs(out.read() - terms.sum(axis=1)) <= bound).all()
