"""Dynamic programming: integers, compared with the textbook's loops."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, blocks_for, given, wanted


def edit_distance(a, b):
    row = np.arange(len(b) + 1)
    for i, letter in enumerate(a, 1):
        cheapest = np.minimum(row[1:] + 1, row[:-1] + (b != letter))
        following = [i]
        for cost in cheapest.tolist():
            following.append(min(cost, following[-1] + 1))
        row = np.array(following)
    return row[-1]


def longest_common(a, b):
    row = np.zeros(len(b) + 1, int)
    for letter in a:
        met = np.where(b == letter, row[:-1] + 1, row[1:])
        row = np.concatenate([[0], np.maximum.accumulate(met)])
    return row[-1]


@pytest.mark.parametrize("block", [1, 32, 33, 97])
@pytest.mark.parametrize("longest", [1, 31, 70])
def test_edit_distances_by_anti_diagonals(kernel, rng, longest, block):
    pairs = 5
    a, b = rng.integers(97, 100, (2, pairs, longest), dtype="i1")
    lengths = rng.integers(0, longest + 1, (2, pairs), dtype="i4")
    lengths[:, 0] = longest
    out = wanted(pairs, "i4")
    launch = kernel("dynamic.edit_distance")[pairs, block, None, 12 * (longest + 1)]
    launch(given(a), given(b), given(lengths[0]), given(lengths[1]), out, longest)
    expected = [edit_distance(a[p, : lengths[0, p]], b[p, : lengths[1, p]]) for p in range(pairs)]
    np.testing.assert_array_equal(out.read(), expected)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("pairs", "m", "n"), [(1, 1, 1), (31, 33, 20), (33, 64, 31), (5, 200, 97)])
def test_longest_common_subsequences_by_bits_with_carries(kernel, rng, pairs, m, n, block):
    a, b = rng.integers(0, 4, (pairs, m), dtype="u1"), rng.integers(0, 4, (pairs, n), dtype="u1")
    out = wanted(pairs, "i4")
    kernel("dynamic.longest_common")[blocks_for(pairs, block), block](given(a), given(b), out, pairs, m, n)
    np.testing.assert_array_equal(out.read(), [longest_common(*pair) for pair in zip(a, b, strict=True)])


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("items", "capacity"), [(1, 1), (10, 33), (31, 1009)])
def test_the_knapsack_holds_the_greatest_value(kernel, rng, items, capacity, block):
    weights, values = rng.integers(1, 60, items, dtype="i4"), rng.integers(1, 1000, items, dtype="i4")
    table = wanted((2, capacity + 1), "i4")
    kernel("dynamic.knapsack")[1, block](given(weights), given(values), items, table, capacity)
    expected = np.zeros(capacity + 1, "i4")
    for weight, value in zip(weights, values, strict=True):
        taken = expected[: max(0, capacity + 1 - weight)] + value
        expected[weight:] = np.maximum(expected[weight:], taken)
    np.testing.assert_array_equal(table.read()[items % 2], expected)


@pytest.mark.parametrize("block", [(32, 4), (7, 5)])
@pytest.mark.parametrize("size", [1, 13, 37])
def test_shortest_paths_by_way_of_every_vertex(kernel, rng, size, block):
    distances = rng.integers(1, 1000, (size, size), dtype="u4")
    distances[rng.random((size, size)) < 0.8] = 2**32 - 1
    np.fill_diagonal(distances, 0)
    device = given(distances)
    grid = (blocks_for(size, block[0]), blocks_for(size, block[1]))
    expected = np.where(distances == 2**32 - 1, np.inf, distances.astype("f8"))
    for k in range(size):
        kernel("dynamic.floyd_warshall")[grid, block](device, size, k)
        expected = np.minimum(expected, expected[:, k, None] + expected[None, k])
    result = device.read().astype("f8")
    np.testing.assert_array_equal(np.where(result == 2**32 - 1, np.inf, result), expected)
