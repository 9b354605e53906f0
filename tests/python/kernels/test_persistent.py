"""Persistent blocks: queues, warps that work for others, and sums that come from earlier blocks."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import given, wanted


@pytest.mark.parametrize("block", [32, 96])
@pytest.mark.parametrize("size", [1, 64, 1000])
def test_a_queue_is_drained_whoever_fills_it(kernel, rng, size, block):
    elements = rng.integers(-99, 99, size, dtype="i4")
    device, ranges = given(elements), np.zeros((256, 2), "i4")
    ranges[0] = 0, size
    ready = np.zeros(256, "i4")
    ready[0] = 1
    head, tail, still_open = given([0], "i4"), given([1], "i4"), given([1], "i4")
    queue = given(ranges)
    kernel("persistent.drain_queue")[3, block](device, queue.pointer, given(ready), head, tail, still_open)
    np.testing.assert_array_equal(device.read(), elements**2)
    assert still_open.read()[0] == 0
    assert head.read()[0] == tail.read()[0] >= size / 64


@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_warps_fill_tiles_that_other_warps_empty(kernel, rng, tiles):
    values, out = rng.integers(-999, 999, (tiles, 128), dtype="i4"), wanted((tiles, 128), "i4")
    kernel("persistent.produce_and_consume")[1, 256](given(values), out, tiles)
    np.testing.assert_array_equal(out.read(), 3 * values[:, ::-1])


@pytest.mark.parametrize("size", [1, 256, 2000])
def test_sums_look_back_at_earlier_blocks(kernel, rng, size):
    values, out = rng.integers(0, 2**32, size, dtype="u4"), wanted(size, "u4")
    blocks = (size + 255) // 256
    states, following = given(np.zeros(blocks, "u8")), given([0], "u4")
    kernel("persistent.scan_look_back")[blocks, 256](given(values), out, states, following, size)
    np.testing.assert_array_equal(out.read(), np.cumsum(values, dtype="u4"))
    assert states.read()[-1] == 2 << 32 | int(out.read()[-1])
