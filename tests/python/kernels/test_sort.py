"""Sorting, merging and searching, whose results are exact."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted


@pytest.mark.parametrize("block", [*BLOCKS, 1])
@pytest.mark.parametrize("size", [1, 31, 33, 257])
def test_a_bitonic_network_sorts_with_any_number_of_threads(kernel, rng, size, block):
    keys = rng.integers(-100, 100, size, dtype="i4")
    device = given(keys)
    width = 1 << (size - 1).bit_length()
    kernel("sort.sort_bitonic")[1, block, None, 4 * width](device, size, width)
    np.testing.assert_array_equal(device.read(), np.sort(keys))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", [1, 2, 31, 33, 257])
def test_odd_even_transposition_is_stable(kernel, rng, size, block):
    keys = rng.integers(0, 20, size).astype("f4")
    device, order = given(keys), given(np.arange(size), "i4")
    kernel("sort.sort_odd_even")[1, block](device, order, size)
    expected = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(order.read(), expected)
    np.testing.assert_array_equal(device.read(), keys[expected])


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", [1, 31, 257, 1000])
def test_radix_passes_of_count_scan_and_scatter_sort_words(kernel, rng, size, block):
    keys = rng.integers(0, 2**32, size, dtype="u4")
    grid = blocks_for(size, block)
    device = given(keys)
    for shift in range(0, 32, 4):
        counts, out = wanted(16 * grid, "u4"), wanted(size, "u4")
        kernel("sort.radix_count")[grid, block](device, counts, size, shift)
        kernel("sort.radix_scan")[1, 1](counts, 16 * grid)
        kernel("sort.radix_scatter")[grid, block](device, counts, out, size, shift)
        device = out
        mask = np.uint32((1 << (shift + 4)) - 1)
        expected = keys[np.argsort(keys & mask, kind="stable")]
        np.testing.assert_array_equal(device.read(), expected)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("sizes", [(1, 1), (0, 33), (31, 0), (257, 1000), (1009, 13)])
def test_merging_along_its_path_gives_every_thread_an_equal_share(kernel, rng, sizes, block):
    a, b = (np.sort(rng.integers(-50, 50, size, dtype="i4")) for size in sizes)
    out = wanted(sum(sizes), "i4")
    grid = blocks_for(sum(sizes), 7 * block)
    kernel("sort.merge_sorted")[grid, block](given(a), len(a), given(b), len(b), out)
    np.testing.assert_array_equal(out.read(), np.sort(np.concatenate([a, b])))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("rows", "length"), [(1, 1), (31, 2), (33, 97), (257, 20), (40, 257)])
def test_quicksort_with_a_stack_in_local_memory_sorts_a_row_a_thread(kernel, rng, rows, length, block):
    keys = rng.integers(-300, 300, (rows, length)).astype("i2")
    device = given(keys)
    kernel("sort.sort_quick")[blocks_for(rows, block), block](device, rows, length)
    np.testing.assert_array_equal(device.read(), np.sort(keys, axis=1))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", [0, *SIZES])
def test_binary_search_finds_the_first_not_less(kernel, rng, size, block):
    keys = np.sort(rng.integers(-100, 100, size).astype("f8"))
    sought = np.concatenate([rng.integers(-110, 110, 300).astype("f8"), [np.inf, -np.inf, 0.5]])
    found = wanted(len(sought), "i4")
    kernel("sort.lower_bound")[2, block](given(keys), size, given(sought), found, len(sought))
    np.testing.assert_array_equal(found.read(), np.searchsorted(keys, sought))
