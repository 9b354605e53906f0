"""Elements that are moved: transposed, and exchanged inside a block."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import blocks_for, given, wanted

SHAPES = [(1, 1), (1, 31), (33, 1), (16, 16), (31, 33), (97, 41)]


@pytest.mark.parametrize("block", [(32, 1), (7, 5), (16, 16)])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_plain_transposition_moves_every_double(kernel, rng, shape, block):
    rows, columns = shape
    values = rng.standard_normal(shape)
    out = wanted((columns, rows), "f8")
    grid = (blocks_for(columns, block[0]), blocks_for(rows, block[1]))
    kernel("transpose.transpose_naive")[grid, block](given(values), out, rows, columns)
    np.testing.assert_array_equal(out.read(), values.T)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_padded_tile_in_shared_memory_transposes_ragged_edges(kernel, rng, shape):
    rows, columns = shape
    values = rng.integers(-(2**31), 2**31, shape).astype("i4")
    out = wanted((columns, rows), "i4")
    grid = (blocks_for(columns, 16), blocks_for(rows, 16))
    kernel("transpose.transpose_tiled")[grid, (16, 8)](given(values), out, rows, columns)
    np.testing.assert_array_equal(out.read(), values.T)


@pytest.mark.parametrize("block", [1, 31, 32, 33, 257])
def test_a_block_exchanges_blocked_for_striped_order(kernel, rng, block):
    values = rng.integers(-(2**31), 2**31, (3, block * 5)).astype("i4")
    out = wanted(values.shape, "i4")
    kernel("transpose.block_exchange")[3, block, None, 20 * block](given(values), out)
    np.testing.assert_array_equal(out.read().reshape(3, block, 5), values.reshape(3, 5, block).transpose(0, 2, 1))
