"""Sparse products and graphs, with rows of very different lengths, including empty ones."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")
importlib.import_module("scipy.sparse.csgraph")

sweep = pytest.mark.parametrize("size", SIZES[:-1])
blocks = pytest.mark.parametrize("block", BLOCKS)


def random_rows(rng, rows):
    """Returns row starts and columns: most rows are short, some are empty, and one is long."""
    lengths = np.minimum(rng.geometric(0.2, rows) - 1, rows)
    lengths[rng.integers(0, rows)] = rows
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype("i4")
    return starts, rng.integers(0, rows, starts[-1], dtype="i4")


def row_sums(starts, terms):
    return np.array([terms[a:b].sum() for a, b in itertools.pairwise(starts)])


@sweep
@blocks
def test_a_thread_a_row_multiplies_sparsely(kernel, rng, size, block):
    starts, columns = random_rows(rng, size)
    values, x = rng.integers(-999, 999, len(columns)).astype("f8"), rng.integers(-999, 999, size).astype("f8")
    y = wanted(size, "f8")
    launch = kernel("graph.spmv_scalar")[blocks_for(size, block), block]
    launch(given(starts), given(columns), given(values), given(x), y, size)
    np.testing.assert_array_equal(y.read(), row_sums(starts, values * x[columns]))


@sweep
@blocks
def test_a_warp_a_row_multiplies_sparsely(kernel, rng, size, block):
    starts, columns = random_rows(rng, size)
    values, x = rng.integers(-9, 9, len(columns)).astype("f4"), rng.integers(-9, 9, size).astype("f4")
    y = wanted(size, "f4")
    kernel("graph.spmv_warp")[3, block](given(starts), given(columns), given(values), given(x), y, size)
    np.testing.assert_array_equal(y.read(), row_sums(starts, values * x[columns]))


@sweep
@blocks
def test_breadth_first_search_reaches_every_vertex_at_its_level(kernel, rng, size, block):
    starts, neighbours = random_rows(rng, size)
    distances = np.full(size, -1)
    distances[0], level, edge = 0, 0, [0]
    device = given(distances, "i4")
    device_starts, device_neighbours = given(starts), given(neighbours)
    frontier, count = given([0], "i4"), 1
    while count:
        level += 1
        following, following_count = wanted(size, "i4"), given([0], "i4")
        kernel("graph.bfs_step")[2, block](
            device_starts, device_neighbours, device, frontier, count, following, following_count, level
        )
        reached = {other for v in edge for other in neighbours[starts[v] : starts[v + 1]] if distances[other] < 0}
        edge = sorted(reached)
        distances[edge] = level
        count = int(following_count.read()[0])
        np.testing.assert_array_equal(np.sort(following.read()[:count]), edge)
        np.testing.assert_array_equal(device.read(), distances)
        frontier = following


@sweep
@blocks
def test_page_ranks_flow_along_links(kernel, rng, size, block):
    starts, sources = random_rows(rng, size)
    degrees = np.maximum(np.bincount(sources, minlength=size), 1).astype("i4")
    ranks = rng.random(size)
    out = wanted(size, "f8")
    launch = kernel("graph.page_rank_step")[blocks_for(size, block), block]
    launch(given(starts), given(sources), given(degrees), given(ranks), out, size, 0.85)
    flows = row_sums(starts, ranks[sources] / degrees[sources])
    # Sums of positive terms: one rounding a term, in another order than NumPy's.
    np.testing.assert_allclose(out.read(), 0.15 / size + 0.85 * flows, rtol=(size + 4) * 2.0**-53)


@sweep
@blocks
def test_union_find_gives_every_component_its_least_vertex(kernel, rng, size, block):
    edges = rng.integers(0, size, (size * 4 // 5, 2), dtype="i4")
    parents, device = given(np.arange(size), "i4"), given(edges)
    if len(edges):
        kernel("graph.unite")[blocks_for(len(edges), block), block](device.pointer, parents, len(edges))
    kernel("graph.flatten")[blocks_for(size, block), block](parents, size)
    labels = np.arange(size)
    while True:
        before = labels.copy()
        np.minimum.at(labels, edges[:, 0], before[edges[:, 1]])
        np.minimum.at(labels, edges[:, 1], before[edges[:, 0]])
        if (labels == before).all():
            break
    np.testing.assert_array_equal(parents.read(), labels)


@pytest.mark.parametrize("size", [1, 33, 257])
def test_shortest_paths_are_found_edge_by_edge(kernel, rng, size):
    edges, weights = rng.integers(0, size, (2, 3 * size), dtype="i4"), rng.integers(1, 100, 3 * size, dtype="i4")
    far = 2**31 - 1
    distances = np.full(size, far)
    distances[0] = 0
    device = given(distances, "i4")
    from_vertices, to_vertices, device_weights = given(edges[0]), given(edges[1]), given(weights)
    for _ in range(size):
        changed = given([0], "i4")
        launch = kernel("graph.relax_edges")[2, 64]
        launch(from_vertices, to_vertices, device_weights, device, 3 * size, changed)
        if not changed.read()[0]:
            break
    else:
        pytest.fail("a path of more edges than there are vertices")
    costs = np.full((size, size), np.inf)
    np.minimum.at(costs, (edges[0], edges[1]), weights)
    exact = scipy.sparse.csgraph.dijkstra(np.where(np.isinf(costs), 0, costs), indices=0)
    np.testing.assert_array_equal(device.read(), np.where(np.isinf(exact), far, exact))


@pytest.mark.parametrize("size", [1, 33, 120])
def test_triangles_are_counted_once(kernel, rng, size):
    adjacent = np.triu(rng.random((size, size)) < 0.2, 1)
    starts = np.concatenate([[0], np.cumsum(adjacent.sum(axis=1))]).astype("i4")
    count = given([0], "u8")
    kernel("graph.count_triangles")[2, 64](given(starts), given(np.nonzero(adjacent)[1], "i4"), size, count)
    both = (adjacent | adjacent.T).astype("i8")
    assert count.read()[0] == np.trace(both @ both @ both) // 6
