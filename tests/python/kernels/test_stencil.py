"""Stencils: every element is computed from its neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted


@pytest.mark.parametrize("block", [*BLOCKS, 1, 2])
@pytest.mark.parametrize("size", SIZES)
def test_seven_points_on_a_line_repeat_the_ends(kernel, rng, size, block):
    values = rng.integers(-(2**31), 2**31, size).astype("i4")
    out = wanted(size, "i4")
    launch = kernel("stencil.stencil_line")[blocks_for(size, block), block, None, 4 * (block + 6)]
    launch(given(values), out, size)
    padded = np.pad(values, 3, mode="edge")
    expected = sum(padded[k : k + size] * np.int32(weight) for k, weight in enumerate([1, 2, 3, 4, 3, 2, 1]))
    np.testing.assert_array_equal(out.read(), expected)  # 32-bit arithmetic wraps around on both sides


@pytest.mark.parametrize("shape", [(1, 1), (2, 33), (3, 3), (8, 16), (31, 33), (65, 50)])
def test_five_points_in_the_plane_round_like_numpy(kernel, rng, shape):
    rows, columns = shape
    values = rng.standard_normal(shape).astype("f4")
    out = wanted(shape, "f4")
    grid = (blocks_for(columns, 16), blocks_for(rows, 8))
    kernel("stencil.stencil_plane")[grid, (16, 8)](given(values), out, rows, columns)
    expected = values.copy()
    around = (values[:-2, 1:-1] + values[2:, 1:-1]) + (values[1:-1, :-2] + values[1:-1, 2:])
    middle = values[1:-1, 1:-1]
    expected[1:-1, 1:-1] = middle + np.float32(0.1) * (around - np.float32(4) * middle)
    np.testing.assert_array_equal(out.read(), expected)


@pytest.mark.parametrize("block", [(32, 1), (7, 5), (16, 16)])
@pytest.mark.parametrize("shape", [(3, 3, 3), (5, 31, 33), (17, 8, 40), (2, 9, 9)])
def test_seven_points_in_space_leave_the_outermost_layer_alone(kernel, rng, shape, block):
    depth, rows, columns = shape
    values = rng.integers(-(2**40), 2**40, shape).astype("f8")
    out = given(np.full(shape, np.nan))
    grid = (blocks_for(columns, block[0]), blocks_for(rows, block[1]))
    kernel("stencil.stencil_space")[grid, block](given(values), out, depth, rows, columns)
    expected = np.full(shape, np.nan)
    v = values
    expected[1:-1, 1:-1, 1:-1] = (
        v[:-2, 1:-1, 1:-1] + v[2:, 1:-1, 1:-1] + v[1:-1, 1:-1, :-2] + v[1:-1, 1:-1, 2:]
        + v[1:-1, :-2, 1:-1] + v[1:-1, 2:, 1:-1] - 6 * v[1:-1, 1:-1, 1:-1]
    )  # fmt: skip
    np.testing.assert_array_equal(out.read(), expected)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", [(3, 3), (31, 33), (50, 41)])
def test_five_generations_of_life_on_a_torus(kernel, rng, shape, block):
    cells = (rng.random(shape) < 0.4).astype("u1")
    device = given(cells)
    for _ in range(5):
        following = wanted(shape, "u1")
        kernel("stencil.life")[3, block](device, following, *shape)
        device = following
        around = sum(np.roll(cells, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx)
        cells = ((around == 3) | ((around == 2) & (cells == 1))).astype("u1")
        np.testing.assert_array_equal(device.read(), cells)
