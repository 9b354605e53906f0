"""Lattices that are updated one colour at a time, and small systems of equations."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import blocks_for, given, wanted
from .test_random import philox


@pytest.mark.parametrize(("width", "height"), [(4, 2), (32, 10)])
def test_spins_flip_by_the_same_random_numbers(kernel, rng, width, height):
    spins = rng.choice(np.array([-1, 1], "i4"), (height, width))
    acceptance = np.minimum(1, np.exp(-0.8 * (2 * np.arange(5) - 4))).astype("f4")
    device, device_acceptance = given(spins), given(acceptance)
    y, x = np.mgrid[:height, :width]
    cells = np.arange(width * height).reshape(height, width)
    for sweep in range(3):
        for colour in range(2):
            launch = kernel("lattice.ising_half_sweep")[2, 64]
            launch(device, width, height, device_acceptance, colour, sweep, 77)
            agreeing = sum(np.roll(spins, step, axis) == spins for step in (1, -1) for axis in (0, 1))
            words = philox([cells.ravel(), sweep, colour, 0], [77, 0])[:, 0].reshape(cells.shape)
            flips = ((words >> 8) * np.float32(2.0**-24) < acceptance[agreeing]) & ((x + y) % 2 == colour)
            spins = np.where(flips, -spins, spins)
            np.testing.assert_array_equal(device.read(), spins)


@pytest.mark.parametrize(("width", "height"), [(3, 3), (40, 21)])
def test_half_steps_use_what_the_other_colour_has_become(kernel, rng, width, height):
    u, f = rng.standard_normal((height, width)), rng.standard_normal((height, width))
    device, device_f = given(u), given(f)
    y, x = np.mgrid[1 : height - 1, 1 : width - 1]
    for colour in (0, 1, 0, 1):
        grid = (blocks_for(width - 2, 16), blocks_for(height - 2, 4))
        kernel("lattice.gauss_seidel_half")[grid, (16, 4)](device, device_f, width, height, colour)
        new = (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1] - f[1:-1, 1:-1]) / 4
        u[1:-1, 1:-1] = np.where((x + y) % 2 == colour, new, u[1:-1, 1:-1])
    np.testing.assert_allclose(device.read(), u, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 5, 32])
def test_factors_multiply_to_the_rows_in_the_order_of_the_pivots(kernel, rng, n):
    matrices = rng.standard_normal((4, n, n))
    device, pivots = given(matrices), wanted((4, n), "i4")
    kernel("lattice.lu")[4, n](device, pivots, n)
    for matrix, factors, order in zip(matrices, device.read(), pivots.read(), strict=True):
        lower, upper = np.tril(factors, -1) + np.eye(n), np.triu(factors)
        assert np.abs(lower).max() <= 1
        for k, pivot in enumerate(order):
            matrix[[k, pivot]] = matrix[[pivot, k]]
        np.testing.assert_allclose(lower @ upper, matrix, atol=1e-12)
