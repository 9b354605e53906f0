"""Clusters of points, contours of fields, and rays, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import blocks_for, given, wanted


@pytest.mark.parametrize(("count", "centres", "dimensions"), [(1, 1, 1), (500, 7, 3), (333, 16, 4)])
def test_points_go_to_the_nearest_centre_and_move_it(kernel, rng, count, centres, dimensions):
    # Small integers: distances and sums are exact.
    points = rng.integers(-50, 50, (count, dimensions)).astype("f4")
    places = rng.integers(-50, 50, (centres, dimensions)).astype("f4")
    labels = wanted(count, "i4")
    device_points = given(points)
    kernel("points.kmeans_assign")[2, 64](device_points, given(places), labels, count, centres, dimensions)
    nearest = ((points[:, None] - places) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(labels.read(), nearest)
    sums, counts = given(np.zeros((centres, dimensions)), "f4"), given(np.zeros(centres), "i4")
    kernel("points.kmeans_gather")[2, 64](device_points, labels, sums, counts, count, centres, dimensions)
    np.testing.assert_array_equal(counts.read(), np.bincount(nearest, minlength=centres))
    exact = np.zeros((centres, dimensions))
    np.add.at(exact, nearest, points)
    np.testing.assert_array_equal(sums.read(), exact)


def lines_of_cell(corner, x, y, level):
    places = []
    for edge in range(4):
        start, stop = corner[edge], corner[(edge + 1) % 4]
        if (start < level) == (stop < level):
            continue
        t, one = (level - start) / (stop - start), np.float32(1)
        places.append([(x + t, y), (x + one, y + t), (x + (one - t), y + one), (x, y + (one - t))][edge])
    return [(*places[k], *places[k + 1]) for k in range(0, len(places), 2)]


@pytest.mark.parametrize(("width", "height"), [(2, 2), (17, 9)])
def test_contours_cross_the_edges_where_the_field_does(kernel, rng, width, height):
    field, level = rng.standard_normal((height, width), "f4"), np.float32(0.1)
    lines, count = wanted((2 * width * height, 4), "f4"), given([0], "i4")
    grid = (blocks_for(width, 8), blocks_for(height, 4))
    kernel("points.marching_squares")[grid, (8, 4)](given(field), width, height, level, lines.pointer, count)
    exact = []
    for y, x in np.ndindex(height - 1, width - 1):
        corner = [field[y, x], field[y, x + 1], field[y + 1, x + 1], field[y + 1, x]]
        exact += lines_of_cell(corner, np.float32(x), np.float32(y), level)
    assert count.read()[0] == len(exact)
    found = lines.read()[: len(exact)].tolist()
    np.testing.assert_array_equal(sorted(found), sorted(map(list, exact)))


@pytest.mark.parametrize(("rays", "spheres"), [(1, 1), (300, 20)])
def test_rays_meet_the_nearest_sphere(kernel, rng, rays, spheres):
    origins, directions = rng.uniform(-5, 5, (rays, 3)), rng.standard_normal((rays, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    balls = np.column_stack([rng.uniform(-5, 5, (spheres, 3)), rng.uniform(0.2, 1.5, spheres)])
    hits, distances = wanted(rays, "i4"), wanted(rays, "f8")
    arrays = [given(array) for array in (origins, directions, balls)]
    kernel("points.ray_spheres")[2, 64](*arrays, spheres, hits, distances, rays)
    to = balls[:, :3] - origins[:, None]
    along = np.einsum("rsd,rd->rs", to, directions)
    inside = balls[:, 3] ** 2 - ((to**2).sum(axis=2) - along**2)
    root = np.sqrt(np.where(inside < 0, np.nan, inside))
    near, far = along - root, along + root
    exact = np.where(near >= 0, near, np.where(far >= 0, far, np.inf))
    nearest = exact.min(axis=1)
    np.testing.assert_allclose(distances.read(), nearest, rtol=1e-9)
    np.testing.assert_array_equal(hits.read(), np.where(np.isinf(nearest), -1, exact.argmin(axis=1)))
