"""Kernels that include CUB and libcu++."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted


@pytest.mark.parametrize("tiles", [1, 3])
def test_a_block_radix_sort_carries_values_along(kernel, rng, tiles):
    keys = rng.integers(-100, 100, (tiles, 640)).astype("f4") / 8
    keys[:, ::97] = np.inf
    values = np.arange(tiles * 640, dtype="i4").reshape(keys.shape)
    device, carried = given(keys), given(values)
    kernel("library.library_sort")[tiles, 128](device, carried)
    order = np.argsort(-keys, axis=1, kind="stable")  # the sort is stable
    np.testing.assert_array_equal(device.read(), np.take_along_axis(keys, order, axis=1))
    np.testing.assert_array_equal(carried.read(), np.take_along_axis(values, order, axis=1))


@pytest.mark.parametrize("size", SIZES)
def test_block_reductions_and_scans_of_ragged_tiles(kernel, rng, size):
    values = rng.integers(-1000, 1000, size, dtype="i4")
    grid = blocks_for(size, 96)
    sums, greatest, scanned = wanted(grid, "i4"), wanted(grid, "i4"), wanted(size, "i4")
    kernel("library.library_reduce_scan")[grid, 96](given(values), sums, greatest, scanned, size)
    tiles = [values[start : start + 96] for start in range(0, size, 96)]
    np.testing.assert_array_equal(sums.read(), [tile.sum() for tile in tiles])
    np.testing.assert_array_equal(greatest.read(), [tile.max() for tile in tiles])
    np.testing.assert_array_equal(scanned.read(), np.concatenate([np.cumsum(tile) - tile for tile in tiles]))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", [1, 33, 257])
def test_complex_numbers_of_the_library(kernel, rng, size, block):
    z = rng.uniform(-2, 2, (size, 2)).view("c16")[:, 0]
    out = wanted((size, 2), "f8")
    kernel("library.library_complex")[blocks_for(size, block), block](given(z.view("f8")), out, size)
    expected = z * z + np.exp(z) + np.conj(z) / (z + 3)
    # Some ten roundings of terms that are below 8 in magnitude.
    assert (np.abs(out.read().view("c16")[:, 0] - expected) <= 10 * 8 * 2.0**-52).all()


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", SIZES[:-1])
def test_atomic_references_keep_every_change(kernel, rng, size, block):
    values = rng.integers(-(2**20), 2**20, size, dtype="i4")
    least, total, bits, handed = given([2**31 - 1], "i4"), given([0], "f8"), given([0], "u8"), given([1], "i4")
    launch = kernel("library.library_atomics")[blocks_for(size, block), block]
    launch(given(values), least, total, bits, handed, size)
    assert least.read()[0] == values.min()
    assert total.read()[0] == values.sum(dtype="i8") / 2
    assert bits.read()[0] == np.bitwise_xor.reduce(np.uint64(1) << (values & 63).astype("u8"))
    assert handed.read()[0] == 1 + 2 * size
