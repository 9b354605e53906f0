"""Integers wider than any register, compared with Python's."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, blocks_for, given, wanted

sizes = pytest.mark.parametrize("size", [1, 31, 33, 257])
blocks = pytest.mark.parametrize("block", BLOCKS)


def random_words(rng, size):
    """Eight words for each number; many are all zeros or all ones, so that carries propagate far."""
    values = rng.integers(0, 2**32, (size, 8), dtype="u4")
    values[rng.random((size, 8)) < 0.3] = 2**32 - 1
    values[rng.random((size, 8)) < 0.2] = 0
    return values


def numbers(words):
    return [sum(word << 32 * k for k, word in enumerate(row)) for row in words.tolist()]


@sizes
@blocks
def test_carries_and_borrows_travel_through_eight_words(kernel, rng, size, block):
    a, b = random_words(rng, size), random_words(rng, size)
    sums, differences, carries = wanted((size, 8), "u4"), wanted((size, 8), "u4"), wanted(size, "u4")
    launch = kernel("wide.wide_add_subtract")[blocks_for(size, block), block]
    launch(given(a), given(b), sums, differences, carries, size)
    pairs = list(zip(numbers(a), numbers(b), strict=True))
    assert numbers(sums.read()) == [(x + y) % 2**256 for x, y in pairs]
    assert numbers(differences.read()) == [(x - y) % 2**256 for x, y in pairs]
    assert carries.read().tolist() == [(x + y >= 2**256) << 1 | (x < y) for x, y in pairs]


@sizes
@blocks
def test_products_of_512_bits(kernel, rng, size, block):
    a, b = random_words(rng, size), random_words(rng, size)
    products = wanted((size, 16), "u4")
    kernel("wide.wide_multiply")[blocks_for(size, block), block](given(a), given(b), products, size)
    assert numbers(products.read()) == [x * y for x, y in zip(numbers(a), numbers(b), strict=True)]


@sizes
@blocks
def test_powers_modulo_64_bits(kernel, rng, size, block):
    bases, exponents, moduli = rng.integers(1, 2**64, (3, size), dtype="u8")
    exponents >>= rng.integers(0, 64, size, dtype="u8")
    moduli[::3] |= np.uint64(2**63)
    out = wanted(size, "u8")
    kernel("wide.power_modulo")[2, block](given(bases), given(exponents), given(moduli), out, size)
    rows = zip(bases.tolist(), exponents.tolist(), moduli.tolist(), strict=True)
    assert out.read().tolist() == [pow(*row) for row in rows]
