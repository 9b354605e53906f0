"""Transforms of signals."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, blocks_for, given, wanted


@pytest.mark.parametrize("block", [1, 32, 33, 128])
@pytest.mark.parametrize("bits", [0, 1, 5, 8, 10])
def test_a_fast_fourier_transform_in_shared_memory(kernel, rng, bits, block):
    signals = rng.standard_normal((3, 2**bits, 2)).astype("f4")
    device, out = given(signals), wanted(signals.shape, "f4")
    kernel("transform.fft")[3, block, None, 8 << bits](device.pointer, out.pointer, bits)
    spectrum = np.fft.fft(signals.view("c8")[..., 0].astype("c16"), axis=1)
    # Every one of `bits` stages adds some three roundings to the norm of the whole.
    norm = np.sqrt((np.abs(spectrum) ** 2).mean(axis=1, keepdims=True))
    away = np.abs(out.read().view("c8")[..., 0] - spectrum)
    assert (away <= 8 * (bits + 1) * 2.0**-24 * norm).all()


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", [1, 31, 97, 257])
def test_a_plain_fourier_transform_of_any_length(kernel, rng, size, block):
    signal = rng.standard_normal(size)
    out = wanted(size, "c16")
    kernel("transform.dft")[blocks_for(size, block), block](given(signal), out.pointer, size)
    # A product and a sum for each term, each within a unit or two of the terms' magnitudes.
    np.testing.assert_allclose(out.read(), np.fft.fft(signal), rtol=0, atol=4 * size * 2.0**-53 * np.abs(signal).sum())


@pytest.mark.parametrize("bits", [0, 1, 4, 5, 6, 10])
def test_walsh_hadamard_by_shuffles_and_shared_memory_is_exact(kernel, rng, bits):
    rows = rng.integers(-1000, 1000, (3, 2**bits), dtype="i4")
    out = wanted(rows.shape, "i4")
    kernel("transform.walsh_hadamard")[3, 2**bits, None, 4 << bits](given(rows), out, bits)
    expected = rows
    for bit in range(bits):
        pairs = expected.reshape(3, -1, 2, 1 << bit)
        expected = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
    np.testing.assert_array_equal(out.read(), expected.reshape(rows.shape))
