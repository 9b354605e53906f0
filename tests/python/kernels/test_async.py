"""Asynchronous copies, and barriers at which threads arrive before they wait."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import given, wanted


@pytest.mark.parametrize("tiles", [1, 2, 5])
@pytest.mark.parametrize("block", [33, 64])
def test_two_buffers_take_turns(kernel, rng, tiles, block):
    values = rng.integers(-1000, 1000, (3, tiles, block, 4), dtype="i4")
    device, out = given(values), wanted((3, block, 4), "i4")
    kernel("async.pipelined_sums")[3, block, None, 32 * block](device.pointer, out.pointer, tiles)
    np.testing.assert_array_equal(out.read(), values.sum(axis=1)[:, ::-1])


@pytest.mark.parametrize("valid", [0, 1, 33, 97])
def test_missing_elements_become_zeros(kernel, rng, valid):
    values = rng.standard_normal(97).astype("f4")
    out = wanted(97, "f4")
    kernel("async.copied_with_zeros")[1, 97](given(values), out, valid)
    np.testing.assert_array_equal(out.read(), np.roll(np.where(np.arange(97) < valid, values, 0), -1))


@pytest.mark.parametrize("block", [1, 33, 256])
def test_threads_arrive_before_they_wait(kernel, rng, block):
    values = rng.integers(-1000, 1000, (3, block), dtype="i4")
    out = wanted(values.shape, "i4")
    kernel("async.split_barrier")[3, block](given(values), out, 4)
    for _ in range(4):
        values = np.roll(values, -1, axis=1) + 3 * values
    np.testing.assert_array_equal(out.read(), values)


@pytest.mark.parametrize(("commits", "waits", "arrives"), [(1, 1, True), (1, 0, False), (0, 1, False), (0, 0, False)])
def test_a_copy_without_a_wait_is_not_there(kernel, rng, unchecked, commits, waits, arrives):
    values = rng.integers(0, 2**32 - 1, 100, dtype="u4")
    out = wanted(100, "u4")
    kernel("async.forgotten_waits")[1, 100](given(values), out, commits, waits)
    np.testing.assert_array_equal(out.read(), values if arrives else np.full(100, 0xFFFFFFFF, "u4"))


@pytest.mark.parametrize("block", [1, 33, 256])
def test_copies_arrive_at_a_barrier(kernel, rng, block):
    values = rng.integers(-1000, 1000, (3, block, 2), dtype="i4")
    device, out = given(values), wanted(values.shape, "i4")
    kernel("async.copies_that_arrive")[3, block](device.pointer, out.pointer)
    np.testing.assert_array_equal(out.read(), np.roll(values, -(block // 2), axis=1))
