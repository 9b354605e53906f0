"""The mathematical library. The bounds are those that the CUDA C++ Programming Guide states for each function, in units
in the last place: for floats, from the correctly rounded result; for doubles, with one more unit for the error of
the reference."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from fractions import Fraction

import numpy as np
import pytest

from .conftest import BLOCKS, assert_within_ulps, blocks_for, given, wanted


def wide(name):
    """A function of the C library in long double, because Python's own gamma functions lose digits near 1 and 2."""
    function = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
    function.argtypes, function.restype = [ctypes.c_longdouble], ctypes.c_longdouble
    return function


wide_lgamma, wide_gamma = wide("lgammal"), wide("tgammal")

# name: (reference, bound in float, bound in double)
FUNCTIONS = {
    "exp": (lambda x, y: math.exp(x), 2, 1),
    "log": (lambda x, y: math.log(abs(x)), 1, 1),
    "erf": (lambda x, y: math.erf(x), 2, 2),
    "erfc": (lambda x, y: math.erfc(x), 4, 5),
    "lgamma": (lambda x, y: wide_lgamma(x), 6, 4),
    "pow": (lambda x, y: abs(x) ** y, 4, 2),
    "sin": (lambda x, y: math.sin(x), 2, 2),
    "cos": (lambda x, y: math.cos(x), 2, 2),
    "tan": (lambda x, y: math.tan(x), 4, 2),
    "atan": (lambda x, y: math.atan(x), 2, 2),
    "tanh": (lambda x, y: math.tanh(x), 2, 2),
    "cbrt": (lambda x, y: math.cbrt(x), 1, 1),
    "expm1": (lambda x, y: math.expm1(x), 1, 1),
    "log1p": (lambda x, y: math.log1p(abs(x)), 1, 1),
    "sinh": (lambda x, y: math.sinh(x), 3, 2),
    "sqrt": (lambda x, y: math.sqrt(abs(x)), 0, 0),
    "atan2": (lambda x, y: math.atan2(y, x), 3, 2),
    "hypot": (lambda x, y: math.hypot(x, y), 3, 2),
    "exp2": (lambda x, y: 2.0**x, 2, 1),
    "log2": (lambda x, y: math.log2(abs(x)), 1, 1),
    "tgamma": (lambda x, y: wide_gamma(abs(x)), 5, 10),
}
SIZES = [1, 33, 1009]


@pytest.mark.parametrize("block", [32, 97])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_are_within_the_stated_units(kernel, rng, size, dtype, block):
    x, y = rng.uniform(-9, 9, (2, size)).astype(dtype)
    out = wanted((len(FUNCTIONS), size), dtype)
    name = "special.special_float" if dtype == "f4" else "special.special_double"
    kernel(name)[blocks_for(size, block), block](given(x), given(y), out, size)
    for (function, (reference, single, double)), result in zip(FUNCTIONS.items(), out.read(), strict=True):
        expected = np.array([reference(*pair) for pair in zip(x.tolist(), y.tolist(), strict=True)])
        if function == "lgamma":  # the stated bound is for arguments outside (-10, -2.2), where it has zeros
            result, expected = result[x > 0], expected[x > 0]
        if dtype == "f4":  # rounded to float, and converted back to count units
            expected = expected.astype("f4").astype("f8")
        ulps = single if dtype == "f4" else double + (1 if double else 0)
        assert_within_ulps(result, expected, ulps, function)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", SIZES)
def test_exact_functions_are_exact(kernel, rng, size, block):
    x = rng.standard_normal(size) * np.exp2(rng.integers(-5, 30, size))
    y = rng.standard_normal(size) * np.exp2(rng.integers(-5, 30, size))
    x[::7] = np.rint(x[::7]) + 0.5
    out = wanted((24, size), "f8")
    kernel("special.exact_double")[blocks_for(size, block), block](given(x), given(y), out, size)
    part, whole = np.modf(x)
    fraction, exponent = np.frexp(x)
    result = out.read()
    simple = {
        "floor": np.floor(x), "ceil": np.ceil(x), "trunc": np.trunc(x), "rint": np.rint(x),
        "round": np.trunc(x + np.copysign(0.5, x)), "modf": part, "whole": whole, "frexp": fraction,
        "exponent": exponent, "fmod": np.fmod(x, y),
        "remainder": np.array([math.remainder(*pair) for pair in zip(x, y, strict=True)]),
        "copysign": np.copysign(x, y),
    }  # fmt: skip
    for row, (name, expected) in zip(result, simple.items(), strict=False):
        np.testing.assert_array_equal(row, expected, err_msg=name)
    exact = [(Fraction(a), Fraction(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    product = [float(a * b - Fraction(float(a) * float(b))) for a, b in exact]
    np.testing.assert_array_equal(result[12], product, err_msg="fma gives the rounding error of a product")
    np.testing.assert_array_equal(result[13], np.nextafter(x, y))
    np.testing.assert_array_equal(result[14], x * 128)
    np.testing.assert_array_equal(result[15], np.minimum(x, y))
    np.testing.assert_array_equal(result[16], np.maximum(x, y))
    np.testing.assert_array_equal(result[17], np.maximum(x - y, 0))
    sums, products = [a + b for a, b in exact], [a * b for a, b in exact]
    np.testing.assert_array_equal(result[18], [rounded(s, 0 if s < 0 else -1) for s in sums])
    np.testing.assert_array_equal(result[19], [rounded(s, 0) for s in sums])
    np.testing.assert_array_equal(result[20], [rounded(p, -1) for p in products])
    np.testing.assert_array_equal(result[21], 1 / x)
    np.testing.assert_array_equal(result[22], x / y)
    np.testing.assert_array_equal(result[23], np.sqrt(np.abs(x)))


def rounded(exact, direction):
    """The double next to an exact fraction: from above (0) or from below (-1)."""
    near = float(exact)
    if direction and Fraction(near) > exact:
        return math.nextafter(near, -math.inf)
    if not direction and Fraction(near) < exact:
        return math.nextafter(near, math.inf)
    return near


@pytest.mark.parametrize("block", BLOCKS)
def test_conversions_saturate_and_make_zero_or_the_least_of_no_number(kernel, rng, block):
    edges = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 2.0**31 - 1, 2.0**31, -(2.0**31), -(2.0**31) - 1, 2.0**32 - 0.5]
    edges += [2.0**63, -(2.0**63), 1e300, -1e300, np.inf, -np.inf, 1e-320, 3.4028235e38, 3.4028236e38, 0.1, -0.1]
    x = np.concatenate([edges, rng.standard_normal(99) * np.exp2(rng.integers(-3, 70, 99))])
    size = len(x)
    arrays = [wanted(size, dtype) for dtype in ("i4", "u4", "i8", "f4", "i1", "f8")]
    kernel("special.convert_edges")[blocks_for(size, block), block](given(x), *arrays, size)
    ints, unsigneds, longs, floats, narrow, back = (array.read() for array in arrays)

    def saturated(values, low, high):
        return [low if v <= low else high if v >= high else int(v) for v in values.tolist()]

    expected_ints = np.array(saturated(np.trunc(x), -(2**31), 2**31 - 1), "i4")
    expected_longs = np.array(saturated(np.floor(x), -(2**63), 2**63 - 1), "i8")
    expected_unsigneds = np.array(saturated(np.rint(x), 0, 2**32 - 1), "u4")
    np.testing.assert_array_equal(ints, expected_ints)
    np.testing.assert_array_equal(unsigneds, expected_unsigneds)
    np.testing.assert_array_equal(longs, expected_longs)
    with np.errstate(over="ignore", under="ignore"):
        nearest = x.astype("f4")
        upper = np.nextafter(nearest, np.float32(np.inf))
    np.testing.assert_array_equal(floats, np.where(nearest.astype("f8") < x, upper, nearest))
    np.testing.assert_array_equal(narrow, expected_ints.astype("i1"))
    odd = (expected_longs | 1).tolist()
    to_zero = [math.nextafter(float(v), 0) if abs(int(float(v))) > abs(v) else float(v) for v in odd]
    np.testing.assert_array_equal(back, np.array(to_zero) + expected_unsigneds)
