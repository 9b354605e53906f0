"""Cooperative groups of threads."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

from .conftest import BLOCKS, SIZES, architecture, blocks_for, find_kernel, given, wanted

sweep = pytest.mark.parametrize("size", SIZES[:-1])
blocks = pytest.mark.parametrize("block", BLOCKS)


def warps(size, block):
    """The slices of elements that the grid's warps hold, one element a thread."""
    for start in range(0, size, block):
        for first in range(start, min(start + block, size), 32):
            yield slice(first, min(first + 32, start + block, size))


def by_warps(values, block, function):
    """The result of `function` on each warp's values, for every one of its threads."""
    return np.concatenate([np.broadcast_to(function(values[w]), len(values[w])) for w in warps(len(values), block)])


def packed(flags):
    return sum(int(flag) << lane for lane, flag in enumerate(flags))


@sweep
@blocks
def test_votes_are_of_the_lanes_that_take_part(kernel, rng, size, block):
    values = rng.integers(0, 95, size, dtype="i4")
    ballots, any_, all_, uniform = (wanted(size, dtype) for dtype in ("u4", "i4", "i4", "i4"))
    launch = kernel("groups.votes")[blocks_for(size, block), block]
    launch(given(values), ballots, any_, all_, uniform, size)
    np.testing.assert_array_equal(ballots.read(), by_warps(values, block, lambda v: packed(v & 1)))
    np.testing.assert_array_equal(any_.read() != 0, by_warps(values, block, lambda v: (v == 7).any()))
    np.testing.assert_array_equal(all_.read() != 0, by_warps(values, block, lambda v: (v < 90).all()))
    np.testing.assert_array_equal(uniform.read(), 1)


@sweep
@blocks
def test_lanes_of_equal_values_find_each_other(kernel, rng, size, block):
    values = rng.integers(0, 6, size, dtype="i4") + 100 * (rng.random(size) < 0.002)
    values = values.astype("i4")
    wide = rng.integers(0, 3, size) << 40 | 1
    equal, equal_wide, same = (wanted(size, "u4") for _ in range(3))
    everywhere, counts = wanted(size, "i4"), given(np.zeros(106), "i4")
    launch = kernel("groups.matches")[blocks_for(size, block), block]
    launch(given(values), given(wide), equal, equal_wide, same, everywhere, counts, size)

    def matched(numbers):
        return np.concatenate([[packed(numbers[w] == x) for x in numbers[w]] for w in warps(size, block)])

    np.testing.assert_array_equal(equal.read(), matched(values))
    np.testing.assert_array_equal(equal_wide.read(), matched(wide))
    hundreds = by_warps(values // 100, block, lambda v: packed(v == v) if (v == v[0]).all() else 0)
    np.testing.assert_array_equal(same.read(), hundreds)
    np.testing.assert_array_equal(everywhere.read() != 0, hundreds != 0)
    np.testing.assert_array_equal(counts.read(), np.bincount(values, minlength=106))


@sweep
@blocks
def test_warps_reduce_in_one_instruction(kernel, rng, size, block):
    values = rng.integers(-(2**31), 2**31, size).astype("i4")
    sums, least, greatest, bits = (wanted(size, dtype) for dtype in ("i4", "i4", "u4", "u4"))
    launch = kernel("groups.warp_reductions")[blocks_for(size, block), block]
    launch(given(values), sums, least, greatest, bits, size)
    np.testing.assert_array_equal(sums.read(), by_warps(values, block, lambda v: v.sum(dtype="i4")))
    np.testing.assert_array_equal(least.read(), by_warps(values, block, np.min))
    unsigned = values.view("u4")
    np.testing.assert_array_equal(greatest.read(), by_warps(unsigned, block, np.max))

    def mixed(v):
        shifted = np.uint32(1) << (v & np.uint32(31))
        reduce_or, reduce_and = np.bitwise_or.reduce(shifted), np.bitwise_and.reduce(v | np.uint32(0xFF00))
        return np.bitwise_xor.reduce(v) ^ reduce_or ^ reduce_and

    np.testing.assert_array_equal(bits.read(), by_warps(unsigned, block, mixed))


@sweep
@pytest.mark.parametrize("block", [8, 32, 40, 256])
def test_tiles_of_eight_and_blocks_have_their_sums(kernel, rng, size, block):
    values = rng.integers(-(2**20), 2**20, size, dtype="i4")
    grid = blocks_for(size, block)
    tile_sums, block_sums = wanted(size, "i4"), wanted(grid, "i4")
    kernel("groups.tiles_of_eight")[grid, block](given(values), tile_sums, block_sums, size)
    padded = np.zeros(grid * block, "i4")
    padded[:size] = values
    of_tiles = np.repeat(padded.reshape(-1, 8).sum(axis=1), 8)[:size]
    np.testing.assert_array_equal(tile_sums.read(), of_tiles)
    np.testing.assert_array_equal(block_sums.read(), padded.reshape(grid, block).sum(axis=1))


@sweep
@blocks
def test_coalesced_lanes_reserve_places_together(kernel, rng, size, block):
    values = rng.integers(-(2**20), 2**20, size, dtype="i4")
    kept = values[values % 3 == 0]
    out, count = given(np.full(len(kept) + 5, 1), "i4"), given([0], "i4")
    kernel("groups.compact")[blocks_for(size, block), block](given(values), out, count, size)
    assert count.read()[0] == len(kept)
    np.testing.assert_array_equal(np.sort(out.read()[: len(kept)]), np.sort(kept))
    assert (out.read()[len(kept) :] == 1).all()


def smooth(size, grid, block):
    values = np.random.default_rng(size).integers(-1000, 1000, size, dtype="i4")
    a, b, steps = given(values), wanted(size, "i4"), 6
    find_kernel("groups.smooth_ring").launch(grid, block, (a, b, size, steps), cooperative=True)
    for _ in range(steps):
        values = np.roll(values, 1) + 2 * values + np.roll(values, -1)
    np.testing.assert_array_equal(a.read(), values)


@pytest.mark.parametrize("size", [3, 33, 1009])
@pytest.mark.parametrize(("grid", "block"), [(1, 33), (3, 64), (7, 32), ((2, 3, 2), (8, 4, 2))])
def test_a_cooperative_grid_waits_for_all_its_blocks(size, grid, block):
    smooth(size, grid, block)


def test_more_blocks_than_are_resident_at_once_are_refused():
    smooth(1009, 1, 1024)
    with pytest.raises(ValueError, match="needs all of its .* blocks"):
        smooth(33, 1 << 16, 1024)
    if bascule.current_device().emulated:  # eight multiprocessors, each with this many resident threads
        threads = {750: 1024, 800: 2048, 860: 1536, 890: 1536, 900: 2048}[architecture()]
        resident = 8 * (threads // 1024)
        smooth(33, resident, 1024)
        with pytest.raises(ValueError, match="needs all of its .* blocks"):
            smooth(33, resident + 1, 1024)


def test_cooperative_grids_follow_each_other_with_workspaces_that_are_clean():
    for _ in range(20):
        smooth(100, 5, 32)
