"""Prefix sums."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", SIZES)
def test_each_warp_scans_its_own_elements(kernel, rng, size, block):
    values = rng.integers(0, 2**32, size, dtype="u4")
    out = wanted(size, "u4")
    kernel("scan.scan_warps")[blocks_for(size, block), block](given(values), out, size)
    expected = np.empty(size, "u4")
    for start in range(0, size, block):
        for warp in range(start, min(start + block, size), 32):
            part = slice(warp, min(warp + 32, start + block, size))
            expected[part] = np.cumsum(values[part], dtype="u4")
    np.testing.assert_array_equal(out.read(), expected)


@pytest.mark.parametrize("size", [1, 2, 31, 33, 257, 1000, 1024])
@pytest.mark.parametrize("spare", [0, 7])
def test_a_block_scans_inclusively_and_exclusively(kernel, rng, size, spare):
    values = rng.integers(-(2**31), 2**31, size).astype("i4")
    inclusive, exclusive = wanted(size, "i4"), wanted(size, "i4")
    kernel("scan.scan_block")[1, min(size + spare, 1024)](given(values), inclusive, exclusive, size)
    sums = np.cumsum(values, dtype="i4")  # wraps around, like the kernel
    np.testing.assert_array_equal(inclusive.read(), sums)
    np.testing.assert_array_equal(exclusive.read(), sums - values)


@pytest.mark.parametrize("block", [*BLOCKS, 1])
@pytest.mark.parametrize("size", [1, 31, 33, 257, 1000])
def test_a_tree_scans_whole_doubles_exactly(kernel, rng, size, block):
    values = rng.integers(-(10**9), 10**9, size).astype("f8")
    width = 1 << (size - 1).bit_length()
    out = wanted(size, "f8")
    kernel("scan.scan_tree")[1, block, None, 8 * width](given(values), out, size, width)
    np.testing.assert_array_equal(out.read(), np.cumsum(values) - values)


@pytest.mark.parametrize("block", [*BLOCKS, 1])
@pytest.mark.parametrize("size", [1, 31, 33, 257, 1000])
def test_segments_start_anew_wherever_a_flag_is_set(kernel, rng, size, block):
    values = rng.integers(-1000, 1000, size, dtype="i4")
    starts = (rng.random(size) < 0.03).astype("u1")
    out = wanted(size, "i4")
    kernel("scan.scan_segments")[1, block](given(values), given(starts), out, size)
    sums, before = np.cumsum(values), 0
    expected = np.empty(size, "i4")
    for i in range(size):
        if starts[i]:
            before = sums[i] - values[i]
        expected[i] = sums[i] - before
    np.testing.assert_array_equal(out.read(), expected)


@pytest.mark.parametrize("block", [32, 33, 97, 1000])
@pytest.mark.parametrize("size", [1, 257, 4099, 20011])
def test_blocks_are_joined_by_carried_sums(kernel, rng, size, block):
    values = rng.integers(0, 2**32, size, dtype="u4")
    grid = blocks_for(size, block)
    outer = blocks_for(grid, block)
    assert outer <= block
    sums, totals, outer_totals, last = (wanted(n, "u4") for n in (size, grid, outer, 1))
    scan, add = kernel("scan.scan_blocks"), kernel("scan.add_carries")
    scan[grid, block](given(values), sums, totals, size)
    scan[outer, block](totals, totals, outer_totals, grid)
    scan[1, block](outer_totals, outer_totals, last, outer)
    add[outer, block](totals, outer_totals, grid)
    add[grid, block](sums, totals, size)
    expected = np.cumsum(values, dtype="u4")
    np.testing.assert_array_equal(sums.read(), expected)
    assert last.read()[0] == expected[-1]
