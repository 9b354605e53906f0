"""Sparse products and triangular systems, compared with SciPy."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from .conftest import given, wanted

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")
importlib.import_module("scipy.sparse")
importlib.import_module("scipy.sparse.linalg")

sizes = pytest.mark.parametrize("size", [1, 33, 200])


def random_matrix(rng, size, density=0.1):
    """A matrix of integers, so that sums are exact in any order."""
    matrix = scipy.sparse.random(size, size, density, "csr", "f8", rng)
    matrix.data = rng.integers(1, 10, matrix.nnz).astype("f8")
    return matrix


@sizes
def test_entries_by_coordinates_add_up(kernel, rng, size):
    matrix = random_matrix(rng, size).tocoo()
    x, y = rng.integers(-9, 9, size).astype("f8"), given(np.zeros(size))
    rows, columns = given(matrix.row, "i4"), given(matrix.col, "i4")
    kernel("sparse.spmv_coordinates")[2, 64](rows, columns, given(matrix.data), given(x), y, matrix.nnz)
    np.testing.assert_array_equal(y.read(), matrix @ x)


@sizes
def test_rows_of_equal_length_multiply(kernel, rng, size):
    matrix = random_matrix(rng, size)
    width = max(1, np.diff(matrix.indptr).max())
    columns, values = np.full((width, size), -1, "i4"), np.zeros((width, size), "f4")
    for row in range(size):
        first, last = matrix.indptr[row : row + 2]
        columns[: last - first, row] = matrix.indices[first:last]
        values[: last - first, row] = matrix.data[first:last]
    x, y = rng.integers(-9, 9, size).astype("f4"), wanted(size, "f4")
    kernel("sparse.spmv_ell")[2, 64](given(columns), given(values), given(x), y, size, width)
    np.testing.assert_array_equal(y.read(), matrix @ x)


@sizes
def test_entries_of_a_product_are_counted(kernel, rng, size):
    a, b = random_matrix(rng, size), random_matrix(rng, size)
    counts = wanted(size, "i4")
    arrays = [given(array, "i4") for array in (a.indptr, a.indices, b.indptr, b.indices)]
    kernel("sparse.spgemm_count")[size, 64](*arrays, counts, size)
    np.testing.assert_array_equal(counts.read(), np.diff((a @ b).indptr))  # nothing cancels: all are positive


@sizes
def test_levels_of_a_triangle_are_solved_one_after_another(kernel, rng, size):
    lower = scipy.sparse.tril(random_matrix(rng, size, 0.05), -1).tocsr()
    matrix = (lower / 10 + scipy.sparse.diags(rng.uniform(1, 2, size))).tocsr()
    matrix.sort_indices()
    level = np.zeros(size, int)
    for row in range(size):
        before = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1] - 1]
        level[row] = 1 + level[before].max(initial=-1)
    b, x = rng.standard_normal(size), wanted(size, "f8")
    arrays = [given(matrix.indptr, "i4"), given(matrix.indices, "i4"), given(matrix.data), given(b)]
    for number in range(level.max() + 1):
        rows = np.flatnonzero(level == number).astype("i4")
        kernel("sparse.solve_level")[2, 64](*arrays, x, given(rows), len(rows))
    exact = scipy.sparse.linalg.spsolve_triangular(matrix, b)
    np.testing.assert_allclose(x.read(), exact, rtol=1e-9, atol=1e-9)
