"""Maps: one element in, one element out."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import ForeignArray

import bascule

from .conftest import BLOCKS, SIZES, assert_within_ulps, blocks_for, given, wanted


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", SIZES)
def test_saxpy_rounds_once(kernel, rng, size, block):
    x, y = rng.standard_normal((2, size)).astype("f4")
    out = given(y)
    kernel("map.saxpy")[blocks_for(size, block), block](1.7, given(x), out, size)
    exact = np.float64(np.float32(1.7)) * x.astype("f8") + y.astype("f8")
    # A fused multiply-add rounds once: half a unit, and the double itself may be rounded.
    assert_within_ulps(out.read(), exact, 0.5 + 1e-6)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", SIZES)
def test_axpby_covers_strided_views_with_a_grid_of_three_blocks(kernel, rng, size, block):
    x = rng.integers(-1000, 1000, 2 * size).astype("f8")
    y = rng.integers(-1000, 1000, size).astype("f8")
    base = bascule.to_device(x)
    out = given(y)
    every_other = ForeignArray(base, shape=(size,), strides=(16,))
    kernel("map.axpby")[3, block](2.5, every_other, -4, out)
    np.testing.assert_array_equal(out.read(), 2.5 * x[::2] - 4 * y)  # integers and halves: exact


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", SIZES)
def test_clamp_agrees_with_numpy_over_all_shorts(kernel, rng, size, block):
    values = rng.integers(-32768, 32768, size).astype("i2")
    out = wanted(size, "i2")
    kernel("map.clamp")[blocks_for(size, block), block](given(values), out, -12345, 321, size)
    np.testing.assert_array_equal(out.read(), np.clip(values, -12345, 321))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", SIZES)
def test_horners_scheme_without_fusing_is_numpys_to_the_last_bit(kernel, rng, size, block):
    x = rng.uniform(-4, 4, size).astype("f4")
    out = wanted(size, "f4")
    kernel("map.polynomial")[2, block](given(x), out, size)
    expected = np.full(size, 0.125, "f4")
    for coefficient in np.array([-3, 2.5, 7, -0.75, 1], "f4"):
        expected = expected * x + coefficient
    np.testing.assert_array_equal(out.read(), expected)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", SIZES)
def test_complex_products_of_a_struct_are_exact_for_small_whole_numbers(kernel, rng, size, block):
    a, b = (rng.integers(-30, 30, (2, size, 2)).astype("f4")).view("c8")[..., 0]
    product, norm = wanted(2 * size, "f4"), wanted(size, "f4")
    parts = [given(value.view("f4").view("u1")) for value in (a, b)]
    kernel("map.multiply_complex")[blocks_for(size, block), block](
        *(part.pointer for part in parts), product.pointer, norm, size
    )
    np.testing.assert_array_equal(product.read().view("c8"), a * b)
    np.testing.assert_array_equal(norm.read(), (np.abs(a.astype("c16") * b) ** 2).round())


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", SIZES)
def test_functors_and_lambdas_are_called_for_every_element(kernel, rng, size, block):
    values = rng.integers(-(2**20), 2**20, size, dtype="i4")
    affine, captured = wanted(size, "i4"), wanted(size, "i4")
    kernel("map.functors")[2, block](given(values), affine, captured, size, 97, -5)
    np.testing.assert_array_equal(affine.read(), 97 * values - 5)
    np.testing.assert_array_equal(captured.read(), np.where(values % 2 != 0, values ^ -5, -values))
