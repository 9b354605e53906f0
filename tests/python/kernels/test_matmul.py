"""Products of matrices. Small integers make every sum exact, in any order; real numbers are bounded."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, blocks_for, given, wanted

SHAPES = [(1, 1, 1), (31, 33, 1), (8, 16, 24), (33, 31, 37), (64, 65, 7)]


@pytest.mark.parametrize("shape", SHAPES)
def test_tiles_in_shared_memory_multiply_whole_numbers_exactly(kernel, rng, shape):
    m, n, k = shape
    a, b = rng.integers(-50, 50, (m, k)).astype("f4"), rng.integers(-50, 50, (k, n)).astype("f4")
    c = wanted((m, n), "f4")
    kernel("matmul.matmul_tiled")[(blocks_for(n, 8), blocks_for(m, 8)), (8, 8)](given(a), given(b), c, m, n, k)
    np.testing.assert_array_equal(c.read(), a @ b)


@pytest.mark.parametrize("shape", SHAPES)
def test_four_by_four_elements_in_registers_multiply_whole_numbers_exactly(kernel, rng, shape):
    m, n, k = shape
    a, b = rng.integers(-50, 50, (m, k)).astype("f4"), rng.integers(-50, 50, (k, n)).astype("f4")
    before = rng.integers(-50, 50, (m, n)).astype("f4")
    c = given(before)
    launch = kernel("matmul.gemm_registers")[(blocks_for(n, 32), blocks_for(m, 32)), (8, 8)]
    launch(0.5, given(a), given(b), -3, c, m, n, k)
    np.testing.assert_array_equal(c.read(), 0.5 * (a @ b) - 3 * before)


def test_real_numbers_stay_within_the_bound_of_a_sum_of_fused_products(kernel, rng):
    m, n, k = 33, 31, 37
    a, b = rng.standard_normal((m, k)).astype("f4"), rng.standard_normal((k, n)).astype("f4")
    c = wanted((m, n), "f4")
    kernel("matmul.matmul_tiled")[(blocks_for(n, 8), blocks_for(m, 8)), (8, 8)](given(a), given(b), c, m, n, k)
    exact = a.astype("f8") @ b.astype("f8")
    # Higham: k roundings of 2**-24 each, relative to the sum of the products' magnitudes.
    bound = 1.01 * k * 2.0**-24 * (np.abs(a).astype("f8") @ np.abs(b))
    assert (np.abs(c.read() - exact) <= bound).all()


@pytest.mark.parametrize("block", [32, 96, 256])
@pytest.mark.parametrize("shape", [(1, 1), (31, 33), (7, 128), (100, 131), (3, 1000)])
def test_a_warp_a_row_multiplies_matrix_and_vector(kernel, rng, shape, block):
    rows, columns = shape
    a, x = rng.integers(-50, 50, shape).astype("f4"), rng.integers(-50, 50, columns).astype("f4")
    y = wanted(rows, "f4")
    kernel("matmul.gemv")[blocks_for(rows * 32, block), block](given(a), given(x), y, rows, columns)
    np.testing.assert_array_equal(y.read(), a @ x)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("batch", [1, 31, 257])
def test_a_thread_multiplies_a_pair_of_small_matrices(kernel, rng, batch, block):
    a, b = rng.integers(-(2**20), 2**20, (2, batch, 3, 3)).astype("f8")
    c = wanted((9, batch), "f8")
    planes = [given(np.moveaxis(value, 0, -1)) for value in (a, b)]
    kernel("matmul.matmul_batched")[blocks_for(batch, block), block](*planes, c, batch)
    np.testing.assert_array_equal(np.moveaxis(c.read().reshape(3, 3, batch), -1, 0), a @ b)
