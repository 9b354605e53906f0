"""Calls that are not inlined: with structs, through pointers, and of recursive functions."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted

sweep = pytest.mark.parametrize("size", SIZES[:-1])
blocks = pytest.mark.parametrize("block", BLOCKS)


@sweep
@blocks
def test_a_table_of_functions_is_called_by_index(kernel, rng, size, block):
    which, values = rng.integers(0, 3, size, dtype="i4"), rng.integers(-9999, 9999, size, dtype="i4")
    out = wanted(size, "i4")
    kernel("calls_indirect.call_by_table")[blocks_for(size, block), block](given(which), given(values), out, size)
    np.testing.assert_array_equal(out.read(), np.choose(which, [2 * values, values**2, -values]))


@sweep
@blocks
def test_a_pointer_chosen_at_run_time_is_called(kernel, rng, size, block):
    values = rng.integers(-50, 50, size, dtype="i4")
    out = wanted(size, "i4")
    kernel("calls_indirect.call_by_choice")[blocks_for(size, block), block](given(values), out, size, 3)
    expected = np.select([values < 3, values == 3], [2 * values, -values], values**2)
    np.testing.assert_array_equal(out.read(), expected)


@sweep
@blocks
def test_virtual_functions_are_those_of_the_object(kernel, rng, size, block):
    a, b = rng.integers(0, 1000, (2, size)).astype("f8")
    out = wanted(size, "f8")
    kernel("calls_indirect.call_virtual")[blocks_for(size, block), block](given(a), given(b), out, size)
    expected = np.where(np.arange(size) % 3 == 0, 3 * (b * b - a * a), a * b)
    np.testing.assert_array_equal(out.read(), expected)


@sweep
@blocks
def test_calls_take_and_give_structs(kernel, rng, size, block):
    points = rng.standard_normal((size, 2))
    out, turns, calls = wanted((size, 2), "f8"), wanted(size, "i4"), wanted(size, "i4")
    kernel("calls.call_with_structs")[blocks_for(size, block), block](given(points), out, turns, calls, size)
    i = np.arange(size)
    quarters = i % 7 - (i % 3 == 0)
    turned = (points @ [1, 1j]) * np.array([1, 1j, -1, -1j])[quarters % 4]  # zeros of either sign are equal
    np.testing.assert_array_equal(out.read(), np.stack([turned.real, turned.imag], axis=1))
    np.testing.assert_array_equal(turns.read(), i % 7 + (i % 3 == 0))
    np.testing.assert_array_equal(calls.read(), i % 7 + (i % 3 == 0))


@pytest.mark.parametrize("block", [1, 33])
def test_fibonacci_numbers_by_recursion(kernel, rng, block):
    numbers = rng.integers(0, 13, 33, dtype="u4")
    out = wanted(33, "u4")
    kernel("calls.recurse_fibonacci")[blocks_for(33, block), block](given(numbers), out, 33)
    table = [0, 1]
    while len(table) < 13:
        table.append(table[-1] + table[-2])
    np.testing.assert_array_equal(out.read(), np.array(table)[numbers])


@pytest.mark.parametrize("block", [1, 33])
def test_ackermanns_function_by_recursion_inside_recursion(kernel, rng, block):
    m, n = rng.integers(0, 3, 33, dtype="u4"), rng.integers(0, 6, 33, dtype="u4")
    out = wanted(33, "u4")
    kernel("calls.recurse_ackermann")[blocks_for(33, block), block](given(m), given(n), out, 33)
    np.testing.assert_array_equal(out.read(), np.choose(m, [n + 1, n + 2, 2 * n + 3]))


@pytest.mark.parametrize("block", [1, 33])
def test_two_functions_that_call_each_other(kernel, rng, block):
    numbers = rng.integers(0, 20, 33, dtype="u4")
    out = wanted(33, "i4")
    kernel("calls.recurse_mutually")[blocks_for(33, block), block](given(numbers), out, 33)
    np.testing.assert_array_equal(out.read(), numbers % 2 == 0)
