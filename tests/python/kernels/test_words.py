"""Several small numbers in one word, and the components of floats."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted

sweep = pytest.mark.parametrize("size", SIZES[:-1])
blocks = pytest.mark.parametrize("block", BLOCKS)


def random_words(rng, size):
    """Bytes that are often at the ends of their range."""
    values = rng.choice([0, 1, 0x7F, 0x80, 0xFF], (size, 4)).astype("u1")
    anything = rng.integers(0, 256, (size, 4), dtype="u1")
    return np.where(rng.random((size, 4)) < 0.5, values, anything).view("u4")[:, 0]


@sweep
@blocks
def test_four_bytes_and_two_shorts_are_added_and_compared(kernel, rng, size, block):
    a, b = random_words(rng, size), random_words(rng, size)
    b[::5] = a[::5]
    out = wanted((10, size), "u4")
    kernel("words.small_sums")[blocks_for(size, block), block](given(a), given(b), out, size)
    bytes_, shorts = (a.view("u1"), b.view("u1")), (a.view("i2"), b.view("i2"))
    p, q = (v.astype("i4") for v in bytes_)
    s, t = (v.astype("i4") for v in shorts)
    expected = [
        (p + q).astype("u1"), (s - t).astype("i2"), np.minimum(p + q, 255).astype("u1"),
        np.clip(s + t, -32768, 32767).astype("i2"), np.maximum(s, t).astype("i2"), np.minimum(p, q).astype("u1"),
        ((p + q + 1) // 2).astype("u1"), np.where(p > q, 255, 0).astype("u1"), np.where(s == t, -1, 0).astype("i2"),
        (-p).astype("u1"),
    ]  # fmt: skip
    np.testing.assert_array_equal(out.read(), [value.view("u4") for value in expected])


@pytest.mark.parametrize(("size", "block"), [(1, 32), (257, 97)])
def test_absolute_differences_of_bytes_and_shorts(kernel, rng, size, block):
    a, b = random_words(rng, size), random_words(rng, size)
    out = wanted((3, size), "u4")
    kernel("words.small_differences")[blocks_for(size, block), block](given(a), given(b), out, size)
    away = np.abs(a.view("u1").astype("i4") - b.view("u1"))
    shorts = np.abs(a.view("i2").astype("i4") - b.view("i2"))
    expected = [away.astype("u1").view("u4"), away.reshape(size, 4).sum(axis=1), shorts.astype("u2").view("u4")]
    np.testing.assert_array_equal(out.read(), expected)


@sweep
@blocks
def test_floats_are_taken_apart(kernel, rng, size, block):
    bits = rng.integers(0, 2**32, size, dtype="u4")
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 1.17549435e-38, 3.4e38, 0.5, -1.0], "f4")
    values = bits.view("f4").copy()
    values[: min(size, len(edges))] = rng.permutation(edges)[: min(size, len(edges))]
    kinds, exponents, signs, scaled = (wanted(size, dtype) for dtype in ("i4", "i4", "u4", "f4"))
    launch = kernel("words.float_anatomy")[blocks_for(size, block), block]
    launch(given(values), kinds, exponents, signs, scaled, size)
    nan, finite = np.isnan(values), np.isfinite(values)
    normal = finite & (np.abs(values) >= np.finfo("f4").tiny)
    parts = [nan, np.isinf(values), finite, np.signbit(values), values < 0, ~(values >= 0), nan, normal]
    np.testing.assert_array_equal(kinds.read(), sum(part.astype("i4") << k for k, part in enumerate(parts)))
    useful = finite & (values != 0)
    np.testing.assert_array_equal(exponents.read(), np.where(useful, np.frexp(np.where(useful, values, 1))[1] - 1, 0))
    np.testing.assert_array_equal(signs.read()[~nan], values.view("u4")[~nan] | np.uint32(2**31))
    with np.errstate(over="ignore", invalid="ignore"):
        saturated = np.where(nan, 0, np.clip(values, 0, 1)).astype("f4")
        expected = np.ldexp(values, 30) * saturated
    np.testing.assert_array_equal(scaled.read(), expected)


def small_float(bits, exponent_bits, bias):
    fraction_bits = 7 - exponent_bits
    exponent, fraction = bits >> fraction_bits & (1 << exponent_bits) - 1, bits & (1 << fraction_bits) - 1
    scale = np.exp2(np.maximum(exponent, 1).astype("f8") - bias - fraction_bits)
    return np.where(bits & 128, -1.0, 1.0) * (fraction + ((exponent > 0) << fraction_bits)) * scale


@sweep
@blocks
def test_eight_bits_of_float_are_the_nearest(kernel, rng, size, block):
    values = (rng.standard_normal(size) * np.exp2(rng.integers(-12, 12, size))).astype("f4")
    narrow, wide, back = wanted(size, "u1"), wanted(size, "u1"), wanted(size, "f4")
    kernel("words.eighth_precision")[2, block](given(values), narrow, wide, back, size)
    # `count` is the number of non-negative finite values of the format. Conversion saturates above the greatest.
    for result, exponent_bits, bias, count in ((narrow.read(), 4, 7, 127), (wide.read(), 5, 15, 124)):
        table = small_float(np.arange(count), exponent_bits, bias)
        away = np.abs(np.abs(values[:, None]).astype("f8") - table)
        best = away.min(axis=1)
        chosen = result & 127
        assert (chosen < count).all()
        assert (np.abs(np.abs(values) - table[chosen]) == best).all()
        ties = (away == best[:, None]).sum(axis=1) == 2
        assert (chosen[ties] % 2 == 0).all()
        np.testing.assert_array_equal(result >> 7, np.signbit(values))
    np.testing.assert_array_equal(back.read(), small_float(narrow.read().astype("i4"), 4, 7))
