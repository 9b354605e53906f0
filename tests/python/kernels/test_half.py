"""Half precision compared with NumPy's float16; bfloat16 with floats rounded by integer arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted

sweep = pytest.mark.parametrize("size", SIZES)
blocks = pytest.mark.parametrize("block", BLOCKS)


def bfloat(values):
    """Rounds to the nearest bfloat16, ties to even, and returns its 16 bits. Not for NaN."""
    bits = np.ascontiguousarray(values, "f4").view("u4").astype("u8")
    return ((bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)).astype("u2")


def widened(bits):
    return (bits.astype("u4") << np.uint32(16)).view("f4")


@sweep
@blocks
def test_pairs_of_halves_round_a_fused_product_once(kernel, rng, size, block):
    a, b, c = (rng.standard_normal((3, size)) * 8).astype("f2")
    out = wanted(size, "f2")
    kernel("half.half_fma")[2, block](given(a), given(b), given(c), out, size)
    exact = a.astype("f8") * b.astype("f8") + c.astype("f8")  # 22 bits of product: the double is exact
    np.testing.assert_array_equal(out.read(), exact.astype("f2"))


@sweep
@blocks
def test_operators_of_halves_are_numpys(kernel, rng, size, block):
    a, b = (rng.standard_normal((2, size)) * 50).astype("f2")
    a[::7] = np.nan
    sums, products, quotients, less = (wanted(size, dtype) for dtype in ("f2", "f2", "f2", "u1"))
    launch = kernel("half.half_operators")[blocks_for(size, block), block]
    launch(given(a), given(b), sums, products, quotients, less, size)
    np.testing.assert_array_equal(sums.read(), a + b)
    np.testing.assert_array_equal(products.read(), a * b)
    # The quotient is a float division by reciprocal, rounded to half: at most one unit off.
    expected = a.astype("f8") / b.astype("f8")
    finite = ~np.isnan(a)
    unit = np.spacing(np.abs(expected[finite]).astype("f2")).astype("f8")
    assert (np.abs(quotients.read()[finite] - expected[finite]) <= unit).all()
    assert np.isnan(quotients.read()[~finite]).all()
    np.testing.assert_array_equal(less.read(), (a < b) | (np.fmax(a, b) == a) << 1 | np.isnan(a) << 2)


@sweep
@blocks
def test_conversions_round_in_every_direction(kernel, rng, size, block):
    values = (rng.standard_normal(size) * np.exp2(rng.integers(-26, 15, size))).astype("f4")
    special = np.array([0.0, -0.0, 1e-9, -1e-9, 65504, 65519, 1 + 2**-11, 1 + 3 * 2**-11, 0.5, 2.5, -1.5], "f4")
    values[: len(special)] = special[:size]
    arrays = [wanted(size, dtype) for dtype in ("f2", "f2", "f2", "f2", "f4", "i4")]
    kernel("half.half_conversions")[blocks_for(size, block), block](given(values), *arrays, size)
    nearest, down, up, to_zero, back, whole = (array.read() for array in arrays)
    expected = values.astype("f2")
    np.testing.assert_array_equal(nearest.view("u2"), expected.view("u2"))
    with np.errstate(over="ignore"):  # values above the largest half become infinity
        lower, upper = np.nextafter(expected, np.float16(-np.inf)), np.nextafter(expected, np.float16(np.inf))
    below = np.where(expected.astype("f8") > values, lower, expected)
    above = np.where(expected.astype("f8") < values, upper, expected)
    np.testing.assert_array_equal(down, below)
    np.testing.assert_array_equal(up, above)
    np.testing.assert_array_equal(to_zero, np.where(values < 0, above, below))
    np.testing.assert_array_equal(back, expected.astype("f4"))
    np.testing.assert_array_equal(whole, np.rint(expected.astype("f8")).astype("i4"))


@pytest.mark.parametrize("pairs", [1, 31, 33, 257])
def test_pairs_travel_through_shuffles(kernel, rng, pairs):
    values = rng.integers(-3, 4, (pairs, 2)).astype("f2")  # every partial sum is below 2048: exact
    device, total, exact = given(values), wanted(2, "f2"), given([0, 0], "f4")
    kernel("half.half_sum")[1, 32](device.pointer, total.pointer, exact.pointer, pairs)
    np.testing.assert_array_equal(total.read(), values.sum(axis=0, dtype="f8"))
    np.testing.assert_array_equal(exact.read(), values.sum(axis=0, dtype="f8"))


@sweep
@blocks
def test_bfloat16_is_stored_after_rounding_to_even(kernel, rng, size, block):
    x, y = bfloat(rng.standard_normal((2, size)))
    out = given(y.view("V2"))
    kernel("half.bfloat_axpy")[2, block](1.3, given(x.view("V2")), out, size)
    expected = bfloat(np.float32(1.3) * widened(x) + widened(y))
    np.testing.assert_array_equal(out.read().view("u2"), expected)


@sweep
@blocks
def test_pairs_of_bfloat16_round_a_fused_product_once(kernel, rng, size, block):
    # Few bits, so that the sum is exact in float and rounds once on both sides.
    a, b, c = rng.integers(-128, 128, (3, 2 * size)).astype("f4")
    out, left, right = given(bfloat(c)), given(bfloat(a)), given(bfloat(b))
    kernel("half.bfloat_fma")[blocks_for(size, block), block](left.pointer, right.pointer, out.pointer, size)
    np.testing.assert_array_equal(out.read(), bfloat(a * b + c))
