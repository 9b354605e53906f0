"""Barriers, pipelines and copies of CUDA's C++ library."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import given, wanted


@pytest.mark.parametrize("block", [2, 33, 256])
def test_a_thread_may_leave_a_barrier(kernel, rng, block):
    values = rng.integers(-1000, 1000, (3, block), dtype="i4")
    out = wanted(values.shape, "i4")
    kernel("pipelines.barrier_rounds")[3, block](given(values), out, 4)
    mine, shared = values.copy(), values.copy()
    for step in range(4):
        shared[:, 1:] = mine[:, 1:]  # thread 0 keeps its first number where its neighbour reads it
        after = np.roll(shared, -1, axis=1) + 2 * mine
        if step > 0:
            after[:, 0] = mine[:, 0]
        mine = after
    np.testing.assert_array_equal(out.read(), mine)


@pytest.mark.parametrize("per_thread", [1, 4, 7])
@pytest.mark.parametrize("block", [32, 97])
def test_a_barrier_counts_copies(kernel, rng, block, per_thread):
    values = rng.integers(-(2**31), 2**31, (3, block * per_thread), dtype="i4")
    out = wanted(values.shape, "i4")
    kernel("pipelines.barrier_copies")[3, block, None, 4 * block * per_thread](given(values), out, per_thread)
    np.testing.assert_array_equal(out.read(), values[:, ::-1])


@pytest.mark.parametrize("tiles", [1, 2, 3, 10])
@pytest.mark.parametrize("block", [32, 100, 128])
def test_a_pipeline_of_three_stages(kernel, rng, block, tiles):
    values = rng.integers(-(2**31), 2**31, (2, tiles, block), dtype="i4")
    out = wanted((2, block), "i8")
    kernel("pipelines.pipeline_sums")[2, block](given(values), out, tiles)
    weights = np.arange(1, tiles + 1, dtype="i8")[:, None]
    np.testing.assert_array_equal(out.read(), (values[:, :, ::-1] * weights).sum(axis=1))


@pytest.mark.parametrize("tiles", [1, 2, 9])
def test_one_warp_copies_for_the_others(kernel, rng, tiles):
    values = rng.integers(-1000, 1000, (tiles, 96), dtype="i4")
    out = wanted(96, "i4")
    kernel("pipelines.specialised_warps")[1, 128](given(values), out, tiles)
    expected = np.zeros(96, "i4")
    for tile in values:
        expected = 3 * expected + tile[::-1]
    np.testing.assert_array_equal(out.read(), expected)


@pytest.mark.parametrize("block", [31, 256])
def test_a_thread_has_a_pipeline_of_its_own(kernel, rng, block):
    values = rng.integers(-1000, 1000, (3, block, 4), dtype="i4")
    device, out = given(values), wanted(values.shape, "i4")
    kernel("pipelines.thread_pipeline")[3, block](device.pointer, out.pointer)
    np.testing.assert_array_equal(out.read(), values[:, ::-1])


@pytest.mark.parametrize("count", [16, 48, 200])
def test_a_group_waits_for_its_first_copy(kernel, rng, count):
    values = rng.integers(-1000, 1000, (2, count), dtype="i4")
    out = wanted(64, "i4")
    kernel("pipelines.group_copies")[1, 64, None, 8 * count](given(values), out, count)
    places = np.arange(64) % count
    np.testing.assert_array_equal(out.read(), (values[0] - values[1])[places])


@pytest.mark.parametrize("n", [16, 48, 64])
def test_a_product_whose_tiles_are_on_their_way(kernel, rng, n):
    a, b = (rng.integers(-8, 9, (n, n)).astype("f4") for _ in range(2))
    c = wanted((n, n), "f4")
    kernel("pipelines.tiled_product")[(n // 16, n // 16), (16, 16)](given(a), given(b), c, n)
    np.testing.assert_array_equal(c.read(), a @ b)
