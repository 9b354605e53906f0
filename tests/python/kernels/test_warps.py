"""Lanes that diverge and converge."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted

sweep = pytest.mark.parametrize("size", SIZES[:-1])
blocks = pytest.mark.parametrize("block", BLOCKS)


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (3, 64), (2, 256)])
def test_two_halves_of_a_warp_exchange_in_their_own_branches(kernel, rng, grid, block):
    values = rng.integers(0, 30, (grid * block // 32, 32), dtype="i4")
    out, pairs = wanted(values.shape, "i4"), wanted(values.shape, "i4")
    kernel("warps.halves_exchange")[grid, block](given(values), out, pairs)
    expected, counted = np.empty_like(values), np.empty_like(values)
    even, odd = values[:, ::2], values[:, 1::2]
    expected[:, ::2] = even.sum(axis=1, keepdims=True)
    expected[:, 1::2] = np.roll(odd, -1, axis=1)
    ballots = ((even & 1) << np.arange(0, 32, 2)).sum(axis=1)
    counted[:, ::2] = ballots[:, None]
    counted[:, 1::2] = (odd[:, :, None] // 4 == odd[:, None] // 4).sum(axis=2)
    np.testing.assert_array_equal(out.read(), expected)
    np.testing.assert_array_equal(pairs.read(), counted)


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (3, 96)])
def test_narrow_shuffles_stay_in_their_segment(kernel, rng, grid, block):
    size = grid * block
    values = rng.standard_normal(size)
    out = wanted((8, size), "f8")
    kernel("warps.narrow_shuffles")[grid, block](given(values), out, size)
    i = np.arange(size)
    lane = i % 32

    def inside(source, width):  # a lane whose source is outside its segment gets its own value
        return np.where(source // width == i // width, values[np.clip(source, 0, size - 1)], values)

    expected = [values[i - i % 8 + 3], values[i - i % 8 + 13 % 8], inside(i - 3, 16), inside(i + 5, 16)]
    expected += [values[i ^ 9], values[i ^ 6], values[i - lane + i * 7 % 32], inside(i + 31, 32)]
    np.testing.assert_array_equal(out.read(), expected)


@sweep
@blocks
def test_lanes_with_different_numbers_of_rounds_meet_again(kernel, rng, size, block):
    numbers = rng.integers(1, 2**20, size, dtype="u4")
    rounds, votes = wanted(size, "i4"), wanted(size, "i4")
    kernel("warps.different_rounds")[blocks_for(size, block), block](given(numbers), rounds, votes, size)

    def collatz(x):
        steps = 0
        while x != 1:
            x, steps = 3 * x + 1 if x & 1 else x // 2, steps + 1
        return steps

    expected = np.array([collatz(x) for x in numbers.tolist()])
    np.testing.assert_array_equal(rounds.read(), expected)
    # It is unspecified which lanes are converged after a loop: at least the lane itself, at most its whole warp.
    result = votes.read()
    for start in range(0, size, block):
        for first in range(start, min(start + block, size), 32):
            warp = slice(first, min(first + 32, start + block, size))
            assert (result[warp] >= expected[warp]).all()
            assert set(result[warp]) <= set(expected[warp])


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_two_warps_hand_a_buffer_to_and_fro(kernel, rng, rounds):
    values = rng.integers(-1000, 1000, (3, rounds, 32), dtype="i4")
    out = wanted(values.shape, "i4")
    kernel("warps.named_barriers")[3, 64](given(values), out, rounds)
    np.testing.assert_array_equal(out.read(), 2 * values[..., ::-1] + 1)


@pytest.mark.parametrize("block", [64, 128, 512])
def test_pairs_of_warps_meet_at_barriers_of_their_own(kernel, rng, block):
    values = rng.integers(-1000, 1000, (2 * block // 64, 64), dtype="i4")
    out = wanted(values.shape, "i4")
    kernel("warps.barrier_by_register")[2, block, None, 4 * block](given(values), out)
    np.testing.assert_array_equal(out.read(), values[:, ::-1])


@sweep
@blocks
def test_threads_that_left_are_not_waited_for(kernel, rng, size, block):
    values = rng.integers(-1000, 1000, size, dtype="i4")
    out = wanted(size, "i4")
    kernel("warps.early_leavers")[blocks_for(size, block), block](given(values), out, size)
    parts = [values[start : start + block][::-1] for start in range(0, size, block)]
    np.testing.assert_array_equal(out.read(), np.concatenate([part + 1 + part[0] + 1 for part in parts]))


@sweep
@blocks
def test_jumps_go_where_they_say(kernel, rng, size, block):
    values = rng.integers(-500, 500, size, dtype="i4")
    out, visits = wanted(size, "i4"), wanted(size, "i4")
    kernel("warps.jumps")[blocks_for(size, block), block](given(values), out, visits, size)

    def walk(x):
        seen = 0
        while True:
            seen += 1
            if seen > 50:
                return x, seen
            if x & 3 == 0:
                if x > 100:
                    return x, seen
                x += 7
                continue
            if x & 3 == 1:
                for k, j in np.ndindex(5, 5):
                    x += k * j
                    if x % 17 == 0:
                        break
                else:
                    x += 1
                    continue
            elif x & 3 == 2:
                x = int(x / 2) + 1
                continue
            x -= 3
            if x <= -1000:
                return x, seen

    expected = np.array([walk(x) for x in values.tolist()])
    np.testing.assert_array_equal(out.read(), expected[:, 0])
    np.testing.assert_array_equal(visits.read(), expected[:, 1])


@pytest.mark.parametrize(("grid", "block"), [(1, 2), (1, 32), (3, 66)])
def test_a_lane_may_spin_on_what_its_neighbour_will_write(kernel, grid, block):
    pairs = grid * block // 2
    flags, out = given(np.zeros(pairs), "i4"), wanted(pairs, "i4")
    kernel("warps.spin_in_a_warp")[grid, block](flags, out, 5)
    np.testing.assert_array_equal(out.read(), 10)
