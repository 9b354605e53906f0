"""Launches near the limits."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, architecture, blocks_for, given, wanted


@pytest.mark.parametrize("block", [(1024, 1, 1), (1, 1024, 1), (16, 1, 64), (7, 11, 13), (1023, 1, 1)])
def test_blocks_of_a_thousand_threads_meet_at_every_barrier(kernel, rng, block):
    threads = int(np.prod(block))
    values = rng.integers(-1000, 1000, (2, threads), dtype="i4")
    out = wanted(values.shape, "i4")
    kernel("limits.full_blocks")[2, block, None, 4 * threads](given(values), out)
    np.testing.assert_array_equal(out.read(), np.cumsum(values, axis=1))


@pytest.mark.parametrize("grid", [(100_003, 1, 1), (1, 65535, 1), (3, 1, 20_011), (17, 23, 29)])
def test_every_block_of_a_large_grid_runs_once(kernel, grid):
    marks = given(np.zeros(int(np.prod(grid)), "u1"))
    kernel("limits.large_grid")[grid, 2](marks)
    assert (marks.read() == 1).all()


def test_all_static_shared_memory_can_be_used(kernel, rng):
    table = rng.integers(0, 2**32, 12288, dtype="u4")
    out = wanted((3, 257), "u4")
    kernel("limits.full_static_shared")[3, 257](given(table), out)
    for block, result in enumerate(out.read()):
        mine, at, total = table ^ np.uint32(block), np.arange(257, dtype="u4"), np.zeros(257, "u4")
        for _ in range(100):
            at = mine[at % 12288]
            total += at
        np.testing.assert_array_equal(result, total)


@pytest.mark.parametrize("size", [1, 6144, 6145, 12_289, 20_000])
def test_dynamic_shared_memory_beyond_48_kilobytes(kernel, rng, size):
    most = {750: 64, 860: 99, 890: 99}.get(architecture(), 163)  # KiB a block
    if 8 * size > most * 1024:
        pytest.skip(f"a block has {most} KiB of shared memory at most")
    values = rng.standard_normal(size)
    out = wanted(size, "f8")
    kernel("limits.large_dynamic_shared")[1, 97, None, 8 * size](given(values), out, size)
    np.testing.assert_array_equal(out.read(), values[::-1])


@pytest.mark.parametrize("block", [1, 33, 64])
def test_a_large_table_in_local_memory(kernel, rng, block):
    size = 97
    seeds = rng.integers(0, 2**32, size, dtype="u4")
    out = wanted(size, "u4")
    kernel("limits.large_local")[blocks_for(size, block), block](given(seeds), out, size)
    state, table = seeds.copy(), np.empty((4096, size), "u4")
    for row in table:
        state = state * np.uint32(1664525) + np.uint32(1013904223)
        row[:] = state
    mixed = np.zeros(size, "u4")
    for k in range(64):
        state = table[state % 4096, np.arange(size)] + np.uint32(k)
        mixed ^= state
    np.testing.assert_array_equal(out.read(), mixed)


def test_sixty_parameters_of_every_type_arrive(kernel, rng):
    kinds = ["i1", "i2", "i4", "i8", "f4", "f8", "u1", "u2", "u4", "?"]
    values = []
    for k in range(60):
        kind = np.dtype(kinds[k % 10])
        if kind.kind == "f":
            values.append(kind.type(rng.standard_normal()))
        elif kind.kind == "b":
            values.append(bool(rng.integers(0, 2)))
        else:
            low, high = np.iinfo(kind).min, np.iinfo(kind).max
            values.append(int(rng.integers(low // 1024, high // 1024 + 1)))
    out = wanted(60, "f8")
    kernel("limits.many_parameters")[1, 1](*values, out)
    np.testing.assert_array_equal(out.read(), np.array([float(value) for value in values]))


@pytest.mark.parametrize("block", BLOCKS)
def test_a_hundred_values_alive_at_once(kernel, rng, block):
    size = 1000
    values = rng.integers(-(2**31), 2**31, size).astype("i4")
    out = wanted(size, "i4")
    kernel("limits.many_registers")[blocks_for(size, block), block](given(values), out, size)
    sums = [values + np.int32(k) for k in range(100)]
    for turn in range(3):
        for k in range(100):
            sums[k] = sums[k] * np.int32(31) + (sums[(k * 37 + 11) % 100] ^ np.int32(turn))
    mixed = np.zeros(size, "i4")
    for each in sums:
        mixed = mixed * np.int32(7) + each
    np.testing.assert_array_equal(out.read(), mixed)
