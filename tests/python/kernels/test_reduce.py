"""Reductions: sums, extremes, positions and counts."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted

blocks = pytest.mark.parametrize("block", [*BLOCKS, 1])
sweep = pytest.mark.parametrize("size", SIZES)


@sweep
@blocks
def test_a_tree_in_dynamic_shared_memory_sums_whole_floats_exactly(kernel, rng, size, block):
    values = rng.integers(-1000, 1000, size).astype("f4")  # every partial sum is below 2**24: exact in any order
    out = wanted(3, "f4")
    kernel("reduce.sum_tree")[3, block, None, 4 * block](given(values), out, size)
    assert out.read().sum(dtype="f8") == values.sum(dtype="f8")


@sweep
@blocks
def test_shuffles_of_64_bits_sum_and_wrap_around(kernel, rng, size, block):
    values = rng.integers(-(2**63), 2**63, size, dtype="i8")
    out = given(np.zeros(1, "i8"))
    kernel("reduce.sum_shuffle")[3, block](given(values), out, size)
    assert out.read()[0] == values.sum()


@sweep
@blocks
def test_two_passes_sum_doubles_in_the_kernels_own_order(kernel, rng, size, block):
    values = rng.standard_normal(size)
    partial, out = wanted(5, "f8"), wanted(1, "f8")
    kernel("reduce.sum_two_pass")[5, block](given(values), partial, size)
    kernel("reduce.sum_two_pass")[1, block](partial, out, 5)

    def one_pass(numbers, grid):  # the same additions in the same order: equal to the last bit
        sums = np.zeros(grid * block)
        for start in range(0, len(numbers), grid * block):
            chunk = numbers[start : start + grid * block]
            sums[: len(chunk)] += chunk
        return np.add.accumulate(sums.reshape(grid, block), axis=1)[:, -1]

    expected = one_pass(values, 5)
    np.testing.assert_array_equal(partial.read(), expected)
    assert out.read() == one_pass(expected, 1)


@sweep
@blocks
def test_argmin_gives_the_first_of_equal_minima(kernel, rng, size, block):
    values = rng.integers(-20, 20, size).astype("f4")
    out = wanted(1, "i4")
    kernel("reduce.argmin")[1, block](given(values), out, size)
    assert out.read()[0] == np.argmin(values)


@sweep
@blocks
def test_minimum_and_maximum_of_all_ints(kernel, rng, size, block):
    values = rng.integers(-(2**31), 2**31, size).astype("i4")
    low, high = given([2**31 - 1], "i4"), given([-(2**31)], "i4")
    kernel("reduce.min_max")[2, block](given(values), low, high, size)
    assert (low.read()[0], high.read()[0]) == (values.min(), values.max())


@pytest.mark.parametrize(("size", "block"), [(1, 32), (257, 97), (1000, 33)])
def test_barriers_count_and_combine_predicates_of_the_whole_block(kernel, rng, size, block):
    values = rng.choice([0, 1, 2, 3], size, p=[0.002, 0.4, 0.4, 0.198]).astype("i4")
    grid = blocks_for(size, block)
    odd, positive, zero = (wanted(grid, "i4") for _ in range(3))
    kernel("reduce.counting_barriers")[grid, block](given(values), odd, positive, zero, size)
    whole = np.full(grid * block, 2)
    whole[:size] = values
    whole = whole.reshape(grid, block)
    np.testing.assert_array_equal(odd.read(), (whole % 2).sum(axis=1))
    np.testing.assert_array_equal(positive.read(), (whole > 0).all(axis=1))
    np.testing.assert_array_equal(zero.read(), (whole == 0).any(axis=1))
