"""Normalised rows, rotated positions and attention, compared with NumPy in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import given, wanted


@pytest.mark.parametrize("block", [32, 128])
@pytest.mark.parametrize("columns", [1, 33, 257])
def test_rows_have_a_mean_square_of_one(kernel, rng, columns, block):
    x, gain = rng.standard_normal((4, columns), "f4"), rng.standard_normal(columns, "f4")
    out = wanted((4, columns), "f4")
    kernel("attention.rms_norm")[4, block](given(x), given(gain), out, columns, 1e-5)
    wide = x.astype("f8")
    exact = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + np.float32(1e-5)) * gain
    np.testing.assert_allclose(out.read(), exact, rtol=1e-5)


@pytest.mark.parametrize("columns", [2, 64])
def test_pairs_are_turned_as_complex_numbers(kernel, rng, columns):
    x = rng.standard_normal((9, columns), "f4")
    positions = rng.integers(0, 500, 9, dtype="i4")
    device = given(x)
    kernel("attention.rotary")[2, 64](device, given(positions), 9, columns, 10000.0)
    angles = positions[:, None] * 10000.0 ** (-2.0 * np.arange(columns // 2) / columns)
    exact = np.ascontiguousarray(x).astype("f8").view("c16") * np.exp(1j * angles)
    # The angle has a relative error of a few 2^-24, and is up to 500.
    assert np.abs(device.read().astype("f8").view("c16") - exact).max() <= 500 * 2.0**-20


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("tokens", [1, 33, 70])
def test_attention_in_tiles_is_that_of_whole_rows(kernel, rng, tokens, causal):
    q, k, v = (rng.standard_normal((2, tokens, 32), "f4") for _ in range(3))
    out = wanted((2, tokens, 32), "f4")
    kernel("attention.attention")[((tokens + 63) // 64, 2), 64](given(q), given(k), given(v), out, tokens, causal)
    scores = q.astype("f8") @ k.astype("f8").transpose(0, 2, 1) / np.sqrt(32)
    if causal:
        scores[:, ~np.tri(tokens, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    exact = weights / weights.sum(axis=2, keepdims=True) @ v
    np.testing.assert_allclose(out.read(), exact, rtol=1e-4, atol=1e-5)
