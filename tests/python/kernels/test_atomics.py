"""Atomics: the result shows the operation of every thread, in any order."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted

sweep = pytest.mark.parametrize("size", SIZES)
blocks = pytest.mark.parametrize("block", BLOCKS)


@sweep
@blocks
def test_signed_operations_of_32_bits(kernel, rng, size, block):
    values = rng.integers(-(2**31), 2**31, size).astype("i4")
    cells = given([0, 0, 2**31 - 1, -(2**31), -1, 0, 0], "i4")
    kernel("atomics.atomics_int")[3, block](given(values), cells, size)
    total = values.sum(dtype="i4")
    reduced = [functools.reduce(f, values.tolist()) for f in (operator.and_, operator.or_, operator.xor)]
    np.testing.assert_array_equal(cells.read(), [total, np.negative(total), values.min(), values.max(), *reduced])


@sweep
@blocks
def test_unsigned_operations_wrap_and_hand_out_every_ticket_once(kernel, rng, size, block):
    values = rng.integers(0, 2**32, size, dtype="u4")
    cells, tickets = given([2**32 - 1, 0, 0, 4, 0], "u4"), wanted(size, "u4")
    kernel("atomics.atomics_unsigned")[3, block](given(values), cells, tickets, size)
    # inc counts 0..6 and starts again; dec counts 4, 3, 2, 1, 0, 10, 9, ...
    np.testing.assert_array_equal(cells.read(), [values.min(), values.max(), size % 7, (4 - size) % 11, size])
    np.testing.assert_array_equal(np.sort(tickets.read()), np.arange(size))


@sweep
@blocks
def test_operations_of_64_bits(kernel, rng, size, block):
    values = rng.integers(-(2**63), 2**63, size, dtype="i8")
    cells = given([2**63 - 1, -(2**63)], "i8")
    words = given([0, 2**64 - 1, 0, 2**64 - 1, 0, 0], "u8")
    kernel("atomics.atomics_wide")[2, block](given(values), cells, words, size)
    unsigned = values.view("u8")
    np.testing.assert_array_equal(cells.read(), [values.min(), values.max()])
    reduced = [functools.reduce(f, unsigned.tolist()) for f in (operator.and_, operator.or_, operator.xor)]
    expected = [int(unsigned.sum()), int(unsigned.min()), int(unsigned.max()), *reduced]
    np.testing.assert_array_equal(words.read(), np.array(expected, "u8"))


@sweep
@blocks
def test_floats_are_added_and_loops_over_compare_and_swap_end(kernel, rng, size, block):
    values = rng.integers(-500, 500, size).astype("f4")
    sums, wide, largest, product = given([0], "f4"), given([0], "f8"), given([-np.inf], "f4"), given([1], "f8")
    grid = blocks_for(size, block)
    kernel("atomics.atomics_float")[grid, block](given(values), sums, wide, largest, product, size)
    assert sums.read()[0] == values.sum()
    assert wide.read()[0] == values.sum()
    assert largest.read()[0] == values.max()
    assert product.read()[0] == (0.5 if size % 2 else 1.0)


@blocks
@pytest.mark.parametrize("grid", [1, 7])
def test_exchanges_take_every_mark_once(kernel, grid, block):
    threads = grid * block
    cell, taken = given([-1], "i4"), wanted(threads, "i4")
    kernel("atomics.exchange")[grid, block](cell, taken)
    marks = np.concatenate([taken.read(), cell.read()])
    np.testing.assert_array_equal(np.sort(marks), np.arange(-1, threads))
    cell, taken = given([2**64 - 1], "u8"), wanted(threads, "u8")
    kernel("atomics.exchange_wide")[grid, block](cell, taken)
    i = np.arange(threads, dtype="u8")
    marks = np.append(i << np.uint64(32) | (~i & np.uint64(0xFFFFFFFF)), np.uint64(2**64 - 1))
    np.testing.assert_array_equal(np.sort(np.concatenate([taken.read(), cell.read()])), marks)


@sweep
@blocks
def test_shared_memory_and_other_scopes(kernel, rng, size, block):
    values = rng.integers(0, 2**30, size, dtype="i4")
    out = given([5, 0, 0, 0, 0], "i4")
    kernel("atomics.atomics_shared")[1, block](given(values), out, size)
    squares = int((values.astype("O") ** 2).sum()) % 2**64
    result = out.read()
    assert result[0] == np.int32(5) + values.sum(dtype="i4")
    assert result[1] == values.min()
    assert result[2:4].view("u4").tolist() == [squares >> 32, squares & 0xFFFFFFFF]
    assert result[4] == (values & 7).sum()


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (1, 32), (1, 33), (3, 64), (7, 17)])
def test_a_spin_lock_lets_one_thread_in_at_a_time(kernel, grid, block):
    lock, guarded = given([0], "i4"), given([0, 0], "i8")
    kernel("atomics.spin_lock")[grid, block](lock, guarded, 3)
    entered = 3 * grid * block
    chained = 0
    for _ in range(entered):
        chained = (chained * 3 + 1) % 2**64
    assert lock.read()[0] == 0
    assert guarded.read().view("u8").tolist() == [entered, chained]


@sweep
@blocks
def test_the_last_block_sees_what_all_the_others_left(kernel, rng, size, block):
    values = rng.integers(-(2**31), 2**31, size).astype("i4")
    grid = blocks_for(size, block)
    partial, tickets, out = wanted(grid, "i8"), given([0], "u4"), wanted(1, "i8")
    kernel("atomics.last_block")[grid, block](given(values), partial, tickets, out, size)
    assert out.read()[0] == values.sum(dtype="i8")
    assert tickets.read()[0] == 0
