"""Products of tiles by whole warps. Small whole numbers make every sum exact."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import given, wanted


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (32, 48, 64)])
def test_tiles_of_halves_are_multiplied_into_floats(kernel, rng, m, n, k):
    a, b = rng.integers(-9, 10, (m, k)).astype("f2"), rng.integers(-9, 10, (k, n)).astype("f2")
    before = rng.integers(-9, 10, (m, n)).astype("f4")
    c = given(before)
    kernel("tensor.tiles_of_half")[(n // 16, m // 16), 32](given(a), given(b), c, m, n, k)
    np.testing.assert_array_equal(c.read(), (a.astype("f4") @ b.astype("f4") + before) / 2)


def test_one_instruction_multiplies_a_tile(kernel, rng):
    a, b = rng.integers(-9, 10, (16, 16)).astype("f2"), rng.integers(-9, 10, (16, 8)).astype("f2")
    left, right, c = given(a), given(b.T), wanted((16, 8), "f4")
    kernel("tensor.tile_by_instruction")[1, 32](left.pointer, right.pointer, c)
    np.testing.assert_array_equal(c.read(), a.astype("f4") @ b.astype("f4"))
