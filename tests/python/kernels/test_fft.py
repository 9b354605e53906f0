"""Fourier transforms of batches of rows, compared with NumPy's in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import given, wanted


@pytest.mark.parametrize("block", [32, 97, 256])
@pytest.mark.parametrize(
    ("name", "n"), [("fft.fft_radix2", 2), ("fft.fft_radix2", 128), ("fft.fft_radix4", 4), ("fft.fft_radix4", 256)]
)
def test_transforms_are_numpys_and_go_back(kernel, rng, name, n, block):
    rows = (rng.standard_normal((3, n)) + 1j * rng.standard_normal((3, n))).astype("c8")
    there, back = wanted((3, 2 * n), "f4"), wanted((3, 2 * n), "f4")
    kernel(name)[3, block](given(rows.view("f4")), there, n, -1)
    spectrum = there.read().view("c8")
    # A few roundings of 2^-24 for each of the log2 n stages, relative to the whole row.
    most = 8 * np.log2(n) * 2.0**-24
    exact = np.fft.fft(rows.astype("c16"), axis=1)
    assert np.abs(spectrum - exact).max() <= most * np.abs(exact).max()
    kernel(name)[3, block](there, back, n, 1)
    assert np.abs(back.read().view("c8") / n - rows).max() <= 2 * most * np.abs(rows).max() * np.sqrt(n)
