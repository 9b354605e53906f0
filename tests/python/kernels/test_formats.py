"""Small formats, packed bytes and halves, and cache hints, compared with NumPy."""

from __future__ import annotations

import time

import numpy as np
import pytest

import bascule

from .conftest import blocks_for, given, wanted


def values_of(mantissa, bias, infinite):
    """The value of each of the 256 codes of an eight-bit format."""
    codes = np.arange(256)
    exponent, fraction = (codes & 127) >> mantissa, codes & ((1 << mantissa) - 1)
    magnitude = np.where(
        exponent == 0,
        np.ldexp(fraction.astype("f8"), 1 - bias - mantissa),
        np.ldexp((fraction + (1 << mantissa)).astype("f8"), exponent - bias - mantissa),
    )
    if infinite:
        magnitude[(codes & 127) > 0x7C] = np.nan
        magnitude[(codes & 127) == 0x7C] = np.inf
    else:
        magnitude[(codes & 127) == 0x7F] = np.nan
    return np.where(codes & 128, -magnitude, magnitude)


E4M3, E5M2 = values_of(3, 7, False), values_of(2, 15, True)


def nearest(x, values):
    """Codes of the nearest finite values; ties go to the even code. NaN is code 127."""
    codes = np.flatnonzero(np.isfinite(values[:128]))
    finite = values[codes]
    middles = (finite[1:] + finite[:-1]) / 2
    magnitude = np.abs(x.astype("f8"))
    low = np.searchsorted(middles, magnitude, "left")
    high = np.searchsorted(middles, magnitude, "right")
    chosen = np.where(low % 2 == 0, low, high)
    return np.where(np.isnan(x), 127, codes[chosen] | np.where(np.signbit(x), 128, 0)).astype("u1")


@pytest.fixture
def numbers(rng):
    tiny = rng.normal(size=400) * 2.0 ** rng.integers(-20, 12, 400)
    ties = (E4M3[:126] + E4M3[1:127]) / 2
    special = [0, -0.0, 448, 464, 465, 480, 1e30, -1e30, np.inf, -np.inf, np.nan, 57344, 61440, 61441, 1e-40]
    return np.concatenate([tiny, ties, -ties, E5M2[:123], special]).astype("f4")


@pytest.mark.parametrize(("name", "values"), [("formats.through_e4m3", E4M3), ("formats.through_e5m2", E5M2)])
def test_eight_bit_floats_round_to_the_nearest_and_saturate(kernel, numbers, name, values):
    codes, back = wanted(len(numbers), "u1"), wanted(len(numbers), "f4")
    kernel(name)[3, 33](given(numbers), codes, back, len(numbers))
    got, expected = codes.read(), nearest(numbers, values)
    is_nan = np.isnan(numbers)
    np.testing.assert_array_equal(got[~is_nan], expected[~is_nan])
    assert np.isnan(values[got[is_nan]]).all()
    np.testing.assert_array_equal(back.read(), values[got].astype("f4"))


def test_pairs_of_eight_bit_floats(kernel, numbers, newer_device):
    pairs = numbers[: len(numbers) // 2 * 2].reshape(-1, 2)
    codes, halves = wanted(len(pairs), "u2"), wanted(len(pairs), "u4")
    launch = kernel("formats_newer.pairs_of_e4m3")[blocks_for(len(pairs), 64), 64]
    x = given(pairs)
    launch(x.pointer, codes, halves, len(pairs))
    expected = nearest(pairs, E4M3)
    got = codes.read().view("u1").reshape(-1, 2)
    known = ~np.isnan(pairs)
    np.testing.assert_array_equal(got[known], expected[known])
    positive = np.where(E4M3[got] < 0, 0, E4M3[got]).astype("f2")  # the kernel converts with .relu
    np.testing.assert_array_equal(halves.read().view("f2").reshape(-1, 2), positive)


def test_tf32_keeps_ten_bits(kernel, rng, newer_device):
    bits = rng.integers(0, 2**32, 1000, dtype="u4")
    bits[:4] = [0x3F801000, 0xBF801000, 0x3F800FFF, 0x7F7FFFFF]
    x = bits.view("f4")
    x = x[np.isfinite(x)]
    rounded, cut = wanted(len(x), "f4"), wanted(len(x), "f4")
    launch = kernel("formats_newer.to_tf32")[blocks_for(len(x), 97), 97]
    launch(given(x), rounded, cut, len(x))
    expected = ((x.view("u4") + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view("f4")  # ties away from zero
    np.testing.assert_array_equal(rounded.read(), expected)
    truncated = (x.view("u4") & np.uint32(0xFFFFE000)).view("f4")
    np.testing.assert_array_equal(cut.read(), np.where(truncated < 0, 0, truncated))


@pytest.mark.parametrize("width", [1, 33, 200])
def test_a_product_of_rows_in_eight_bits(kernel, rng, width):
    x, y = rng.normal(size=(2, 5, width)).astype("f4")
    out = wanted(5, "f4")
    kernel("formats.quantized_dot")[5, 64, None, 2 * width](given(x), given(y), out, width)

    def quantized(row):
        return E4M3[nearest((row / np.abs(row).max()).astype("f4") * np.float32(448), E4M3)] * np.abs(row).max() / 448

    expected = [quantized(a) @ quantized(b) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(out.read(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("places", [1, 65])
def test_block_matching_by_absolute_differences(kernel, rng, places):
    image, window = rng.integers(0, 256, 256, dtype="u1"), rng.integers(0, 256, (places, 256), dtype="u1")
    out = wanted(places, "u4")
    kernel("formats.block_match")[blocks_for(places, 33), 33](
        given(image.view("u4")), given(window.view("u4")), out, places
    )
    np.testing.assert_array_equal(out.read(), np.abs(image.astype(int) - window).sum(1))


def test_bytes_side_by_side(kernel, rng):
    a, b = rng.integers(0, 256, (2, 1000), dtype="u1")
    n = len(a) // 4
    average, total, most = (wanted(n, "u4") for _ in range(3))
    launch = kernel("formats.blend_bytes")[blocks_for(n, 97), 97]
    launch(given(a.view("u4")), given(b.view("u4")), average, total, most, n)
    wide = a.astype(int) + b
    np.testing.assert_array_equal(average.read().view("u1"), (wide + 1) // 2)
    np.testing.assert_array_equal(total.read().view("u1"), np.minimum(wide, 255))
    np.testing.assert_array_equal(most.read().view("u1"), np.maximum(a, b))


def test_differences_of_halves(kernel, rng):
    a, b = rng.integers(-32768, 32768, (2, 200, 2), dtype="i2")
    out = wanted(200, "i4")
    x, y = given(a), given(b)
    kernel("formats.differences_of_halves")[2, 100](x.pointer, y.pointer, out, 200)
    np.testing.assert_array_equal(out.read(), np.abs(a.astype(int) - b).sum(1))


def test_fixed_point_products(kernel, rng):
    a, b = rng.integers(0, 2**32, (2, 300), dtype="u4")
    c = rng.integers(-(2**31), 2**31, 300, dtype="i8").astype("i4")
    out = wanted(300, "i4")
    kernel("formats.fixed_point")[3, 100](given(a), given(b), given(c), out, 300)
    product = (a >> 16).astype("u2").view("i2").astype("i8") * (b & 0xFFFF).astype("u2").view("i2")
    np.testing.assert_array_equal(out.read(), np.clip((product + c) >> 15, -(2**31), 2**31 - 1))


def test_properties_of_accesses_change_nothing(kernel, rng):
    x = rng.normal(size=1000).astype("f4")
    y = wanted(1000, "f4")
    kernel("formats.stream_through")[3, 97](given(x), y, 1000)
    np.testing.assert_array_equal(y.read(), 2 * x)


def test_scratch_memory_that_is_discarded(kernel):
    scratch, out = bascule.zeros(32 * 40, "f4"), wanted(40, "f4")
    kernel("formats.discards_its_scratch")[1, 40](scratch, out)
    np.testing.assert_array_equal(out.read(), np.arange(40) * np.arange(32).sum())
    if bascule.current_device().emulated:  # discarded memory has the contents of fresh memory
        assert (scratch.copy_to_host().view("u1") == 0xCB).all()


def test_policies_of_the_cache(kernel, rng):
    x = rng.integers(-9, 9, (64, 4)).astype("f4")
    read, y, total = given(x), wanted((64, 4), "f4"), given(np.zeros(1, "f4"))
    kernel("formats.with_policies")[1, 64](read.pointer, y.pointer, total)
    np.testing.assert_array_equal(y.read(), x[:, ::-1])
    assert total.read() == x[:, 0].sum()


@pytest.mark.parametrize("nanoseconds", [0, 20_000, 400_000])
def test_a_thread_sleeps_no_longer_than_the_kernel_runs(kernel, nanoseconds):
    out = wanted(32, "u8")
    begin = time.perf_counter()
    kernel("formats.naps")[1, 32](out, nanoseconds)
    slept = out.read()
    if bascule.current_device().emulated:  # a GPU sleeps for 0 to 2 times the duration (PTX ISA, nanosleep)
        assert (slept >= nanoseconds // 2).all()
    assert (slept * 1e-9 <= time.perf_counter() - begin).all()
