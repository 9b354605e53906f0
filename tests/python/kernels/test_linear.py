"""Small matrices, one per thread: the results must solve the equations, with residuals close to rounding errors."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, blocks_for, given, wanted

counts = pytest.mark.parametrize("count", [1, 31, 33, 257])
blocks = pytest.mark.parametrize("block", BLOCKS)
UNIT = 2.0**-53


def planes(matrices):
    return np.moveaxis(matrices.reshape(len(matrices), -1), 0, -1)


def stacked(flat, n):
    return np.moveaxis(flat, -1, 0).reshape(-1, n, n)


@counts
@blocks
def test_inverses_with_pivots(kernel, rng, count, block):
    matrices = rng.standard_normal((count, 4, 4))
    matrices[::5, :, 2] = 0  # singular ones are reported, and not written
    out, singular = wanted((16, count), "f8"), wanted(count, "u1")
    kernel("linear.invert")[blocks_for(count, block), block](given(planes(matrices)), out, singular, count)
    np.testing.assert_array_equal(singular.read(), np.arange(count) % 5 == 0)
    inverses = stacked(out.read(), 4)
    assert np.isnan(inverses[::5]).all()
    good = np.arange(count) % 5 != 0
    a, inverse = matrices[good], inverses[good]
    condition = np.linalg.norm(a, axis=(1, 2)) * np.linalg.norm(inverse, axis=(1, 2))
    residuals = np.abs(a @ inverse - np.eye(4)).max(axis=(1, 2), initial=0)
    assert (residuals <= 64 * UNIT * condition).all()  # 4 steps of elimination, each some 16 roundings


@counts
@blocks
@pytest.mark.parametrize("order", [1, 3, 8])
def test_choleskys_factor_multiplies_back(kernel, rng, count, order, block):
    root = rng.standard_normal((count, order, order))
    matrices = (root @ root.transpose(0, 2, 1) + np.eye(order)).astype("f4")
    out = wanted((order * order, count), "f4")
    kernel("linear.cholesky")[blocks_for(count, block), block](given(planes(matrices)), out, order, count)
    lower = stacked(out.read(), order).astype("f8")
    assert (np.triu(lower, 1) == 0).all()
    # Higham: the backward error is below (n + 1) roundings of |L| |L^T|.
    bound = (order + 2) * 2.0**-24 * (np.abs(lower) @ np.abs(lower).transpose(0, 2, 1))
    assert (np.abs(lower @ lower.transpose(0, 2, 1) - matrices) <= bound).all()


@counts
@blocks
def test_householders_factors_are_orthogonal_and_triangular(kernel, rng, count, block):
    matrices = rng.standard_normal((count, 5, 5))
    q_out, r_out = wanted((25, count), "f8"), wanted((25, count), "f8")
    kernel("linear.qr")[blocks_for(count, block), block](given(planes(matrices)), q_out, r_out, count)
    q, r = stacked(q_out.read(), 5), stacked(r_out.read(), 5)
    near = 100 * UNIT * np.linalg.norm(matrices, axis=(1, 2))[:, None, None]  # 4 reflections of some 20 roundings
    assert (np.abs(q @ q.transpose(0, 2, 1) - np.eye(5)) <= 100 * UNIT).all()
    assert (np.abs(np.tril(r, -1)) <= near).all()
    assert (np.abs(q @ r - matrices) <= near).all()


@blocks
@pytest.mark.parametrize(("length", "systems"), [(1, 1), (2, 33), (31, 257), (97, 31)])
def test_tridiagonal_systems_are_solved(kernel, rng, length, systems, block):
    lower, upper, right = rng.uniform(-1, 1, (3, length, systems))
    diagonal = rng.uniform(2.5, 4, (length, systems))  # dominant: no pivoting is needed
    out, scratch = given(right), wanted((length, systems), "f8")
    launch = kernel("linear.tridiagonal")[2, block]
    launch(given(lower), given(diagonal), given(upper), out, scratch, length, systems)
    x = out.read()
    product = diagonal * x
    product[1:] += lower[1:] * x[:-1]
    product[:-1] += upper[:-1] * x[1:]
    np.testing.assert_allclose(product, right, rtol=0, atol=30 * UNIT * 4)
