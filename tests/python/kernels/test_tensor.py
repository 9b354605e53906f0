"""Products of tiles by whole warps: nvcuda::wmma, and the instructions themselves.

Sums of floats may differ from the exact sums by a rounding of each addition; sums of integers must be equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bascule

from .conftest import given, wanted

Array = np.ndarray[Any, Any]


def assert_product(result: Array, a: Array, b: Array, unit: float = 2.0**-24) -> None:
    """Checks that `result` is a @ b for some order of additions, each of which loses at most `unit` of the sum of
    magnitudes. Tensor cores truncate differently from float additions: four times that error is allowed."""
    a, b = a.astype("f8"), b.astype("f8")
    allowed = 4 * (a.shape[1] + 1) * unit * (np.abs(a) @ np.abs(b))
    assert (np.abs(result - a @ b) <= allowed).all()


def bfloat16(values: Array) -> tuple[Array, Array]:
    """The bits, truncated, and the values that they represent."""
    bits = (values.astype("f4").view("u4") >> 16).astype("u2")
    return bits, (bits.astype("u4") << 16).view("f4")


def tf32(values: Array) -> Array:
    return (values.astype("f4").view("u4") & 0xFFFFE000).view("f4")


def nibbles(values: Array) -> Array:
    """Eight 4-bit numbers per word, the first in the lowest bits."""
    parts = (values.astype("i8") & 15).reshape(*values.shape[:-1], -1, 8)
    return (parts << (4 * np.arange(8))).sum(axis=-1).astype("u4")


def bits(values: Array) -> Array:
    return np.packbits(values.astype("u1"), axis=-1, bitorder="little").view("u4")


def float8(codes: Array, mantissa: int) -> Array:
    """The values of e4m3 and e5m2 by their definition."""
    bias = (1 << (6 - mantissa)) - 1
    exponent, fraction = (codes & 0x7F).astype("i4") >> mantissa, (codes & ((1 << mantissa) - 1)) / 2.0**mantissa
    magnitude = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    return np.where(codes & 0x80, -magnitude, magnitude)


# --- nvcuda::wmma ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (32, 48, 64)])
def test_tiles_of_halves_are_multiplied_into_floats(kernel, rng, m, n, k):
    a, b = rng.integers(-9, 10, (m, k)).astype("f2"), rng.integers(-9, 10, (k, n)).astype("f2")
    before = rng.integers(-9, 10, (m, n)).astype("f4")
    c = given(before)
    kernel("tensor.tiles_of_half")[(n // 16, m // 16), 32](given(a), given(b), c, m, n, k)
    np.testing.assert_array_equal(c.read(), (a.astype("f4") @ b.astype("f4") + before) / 2)


def test_halves_of_any_size_are_rounded_like_floats(kernel, rng):
    a, b = (rng.standard_normal((64, 64)) * 10.0 ** rng.integers(-3, 3, (64, 64)) for _ in range(2))
    a, b = a.astype("f2"), b.astype("f2")
    c = given(np.zeros((64, 64), "f4"))
    kernel("tensor.tiles_of_half")[(4, 4), 32](given(a), given(b), c, 64, 64, 64)
    assert_product(2 * c.read(), a, b)


@pytest.mark.parametrize(("m", "n", "k"), [(32, 8, 16), (64, 24, 80)])
def test_tiles_of_bfloat16(kernel, rng, m, n, k):
    (a, left), (b, right) = bfloat16(rng.standard_normal((m, k))), bfloat16(rng.standard_normal((k, n)))
    c = wanted((m, n), "f4")
    tiles = kernel("tensor.tiles_of_bfloat16")[(n // 8, m // 32), 32]
    x, y = given(a), given(b)
    tiles(x.pointer, y.pointer, c, m, n, k)
    assert_product(c.read(), left, right)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 8), (32, 48, 40)])
def test_tiles_of_tf32(kernel, rng, m, n, k):
    a, b = tf32(rng.standard_normal((m, k))), tf32(rng.standard_normal((n, k)))
    c = wanted((m, n), "f4")
    kernel("tensor.tiles_of_tf32")[(n // 16, m // 16), 32](given(a), given(b), c, m, n, k)
    assert_product(c.read(), a, b.T)


@pytest.mark.parametrize(("m", "n", "k"), [(8, 8, 4), (24, 16, 36)])
def test_tiles_of_doubles(kernel, rng, m, n, k):
    a, b = rng.standard_normal((k, m)), rng.standard_normal((k, n))
    c = wanted((n, m), "f8")
    kernel("tensor.tiles_of_doubles")[(n // 8, m // 8), 32](given(a), given(b), c, m, n, k)
    assert_product(c.read().T, a.T, b, 2.0**-53)


@pytest.mark.parametrize(("m", "n", "k"), [(8, 32, 16), (24, 64, 80)])
def test_tiles_of_bytes(kernel, rng, m, n, k):
    a, b = rng.integers(-128, 128, (k, m), "i1"), rng.integers(-128, 128, (n, k), "i1")
    c = wanted((m, n), "i4")
    kernel("tensor.tiles_of_bytes")[(n // 32, m // 8), 32](given(a), given(b), c, m, n, k)
    np.testing.assert_array_equal(c.read(), a.T.astype("i4") @ b.T.astype("i4"))


def test_saturating_sums_stop_at_the_greatest_integer(kernel, rng):
    a, b = rng.integers(0, 256, (16, 16), "u1"), rng.integers(0, 256, (16, 16), "u1")
    c = rng.integers(2**31 - 500_000, 2**31, (16, 16)).astype("i4")
    d = wanted((16, 16), "i4")
    kernel("tensor.saturating_tile")[1, 32](given(a), given(b), given(c), d)
    exact = a.astype("i8") @ b.astype("i8") + c
    assert (exact > 2**31 - 1).any()
    assert (exact < 2**31 - 1).any()
    np.testing.assert_array_equal(d.read(), np.minimum(exact, 2**31 - 1))


def test_fragments_are_changed_element_by_element(kernel, rng):
    a, b = rng.integers(-4, 5, (16, 16)).astype("f2"), rng.integers(-4, 5, (16, 16)).astype("f2")
    c = wanted((16, 16), "f2")
    kernel("tensor.scaled_in_shared_memory")[1, 32](given(a), given(b), c, 2.0)
    np.testing.assert_array_equal(c.read(), 2 * a.astype("f4") @ b.T.astype("f4") + 1)


@pytest.mark.parametrize("words", [4, 20])
def test_tile_of_four_bits(kernel, rng, words):
    a, b = (rng.integers(-8, 8, (8, 8 * words)) for _ in range(2))
    c = wanted((8, 8), "i4")
    kernel("tensor.tile_of_nibbles")[1, 32](given(nibbles(a).view("i4")), given(nibbles(b).view("i4")), c, words)
    np.testing.assert_array_equal(c.read(), a @ b.T)


@pytest.mark.parametrize("words", [4, 12])
def test_tile_of_single_bits(kernel, rng, words):
    a, b = (rng.integers(0, 2, (8, 32 * words)) for _ in range(2))
    differ, common = wanted((8, 8), "i4"), wanted((8, 8), "i4")
    kernel("tensor.tile_of_bits")[1, 32](given(bits(a)), given(bits(b)), differ, common, words)
    np.testing.assert_array_equal(differ.read(), (a[:, None] != b[None]).sum(axis=-1))
    np.testing.assert_array_equal(common.read(), a @ b.T)


# --- the instructions -----------------------------------------------------------------------------------------------


def test_one_instruction_multiplies_a_tile(kernel, rng):
    a, b = rng.integers(-9, 10, (16, 16)).astype("f2"), rng.integers(-9, 10, (16, 8)).astype("f2")
    c = wanted((16, 8), "f4")
    x, y = given(a), given(b.T)
    kernel("tensor.tile_by_instruction")[1, 32](x.pointer, y.pointer, c)
    np.testing.assert_array_equal(c.read(), a.astype("f4") @ b.astype("f4"))


@pytest.mark.parametrize("name", ["tensor_instructions.gemm_of_halves", "tensor_instructions.pipelined_gemm_of_halves"])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 32, 32), (128, 96, 160)])
def test_gemm_through_shared_memory(kernel, rng, name, m, n, k):
    a, b = rng.standard_normal((m, k)).astype("f2"), rng.standard_normal((k, n)).astype("f2")
    c = wanted((m, n), "f4")
    kernel(name)[(n // 32, m // 64), 128](given(a), given(b), c, n, k)
    assert_product(c.read(), a, b)


@pytest.mark.parametrize("count", [16, 112])
def test_attention_with_softmax_on_the_way(kernel, rng, count):
    queries, keys, values = (rng.standard_normal((size, 16)).astype("f2") for size in (48, count, count))
    out = wanted((48, 16), "f4")
    kernel("tensor_instructions.attention")[3, 32](given(queries), given(keys), given(values), out, count)
    scores = queries.astype("f8") @ keys.astype("f8").T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    exact = weights / weights.sum(axis=1, keepdims=True) @ values.astype("f8")
    np.testing.assert_allclose(out.read(), exact, atol=2e-3)  # weights are rounded to halves


@pytest.mark.parametrize("words", [8, 40])
def test_products_of_whole_numbers(kernel, rng, words):
    def run(name: str, a: Array, b: Array) -> Array:
        c = wanted((16, 8), "i4")
        kernel(name)[1, 32](given(a), given(b), c, words)
        return c.read()

    a, b = rng.integers(-128, 128, (16, 4 * words), "i1"), rng.integers(0, 256, (8, 4 * words), "u1")
    exact = a.astype("i4") @ b.T.astype("i4")
    assert (run("tensor_instructions.product_of_bytes", a.view("u4"), b.view("u4")) == exact).all()
    a, b = rng.integers(0, 16, (16, 8 * words)), rng.integers(-8, 8, (8, 8 * words))
    assert (run("tensor_instructions.product_of_nibbles", nibbles(a), nibbles(b)) == a @ b.T).all()
    a, b = rng.integers(0, 2, (16, 32 * words)), rng.integers(0, 2, (8, 32 * words))
    assert (run("tensor_instructions.product_of_bits", bits(a), bits(b)) == (a[:, None] != b[None]).sum(axis=-1)).all()


@pytest.mark.parametrize("words", [8, 40])
def test_products_of_floats(kernel, rng, words):
    a, b = tf32(rng.standard_normal((16, words))), tf32(rng.standard_normal((8, words)))
    c = wanted((16, 8), "f4")
    kernel("tensor_instructions.product_of_tf32")[1, 32](given(a.view("u4")), given(b.view("u4")), c, words)
    assert_product(c.read(), a, b.T)
    (a, left), (b, right) = (bfloat16(rng.standard_normal((size, 2 * words))) for size in (16, 8))
    kernel("tensor_instructions.product_of_bfloat16")[1, 32](given(a.view("u4")), given(b.view("u4")), c, words)
    assert_product(c.read(), left, right.T)
    a, b = rng.standard_normal((8, words)), rng.standard_normal((8, words))
    d = wanted((8, 8), "f8")
    kernel("tensor_instructions.product_of_doubles")[1, 32](given(a), given(b), d, words)
    assert_product(d.read(), a, b.T, 2.0**-53)


@pytest.mark.parametrize("tiles", [1, 5])
def test_tiles_are_turned_in_registers(kernel, rng, tiles):
    values = rng.integers(0, 2**16, (tiles, 8, 8), "u2")
    out = wanted((tiles, 32), "u4")
    kernel("tensor_instructions.transposed_tiles")[2, 32](given(values.reshape(tiles, 64).view("u4")), out, tiles)
    np.testing.assert_array_equal(out.read().view("u2").reshape(tiles, 8, 8), values.transpose(0, 2, 1))


# --- sparse A ---------------------------------------------------------------------------------------------------------


def sparse(rng: np.random.Generator, k: int) -> tuple[Array, Array]:
    """The columns of the stored elements of a 16 x k matrix, two of each four; four bits of metadata for each pair."""
    pairs = np.array([(first, second) for second in range(4) for first in range(second)])
    chosen = pairs[rng.integers(0, len(pairs), (16, k // 4))]
    places = (chosen + 4 * np.arange(k // 4)[:, None]).reshape(16, k // 2)
    return places, (chosen[..., 0] | chosen[..., 1] << 2).astype("u4")


def words_of(codes: Array) -> Array:
    """Packs rows of four-bit values into words."""
    return (codes << (4 * np.arange(codes.shape[-1], dtype="u4"))).sum(axis=-1).astype("u4")


@pytest.mark.parametrize("k", [32, 160])
def test_sparse_product_of_halves(kernel, rng, k):
    places, codes = sparse(rng, k)
    stored, b = rng.standard_normal((16, k // 2)).astype("f2"), rng.standard_normal((8, k)).astype("f2")
    a = np.zeros((16, k), "f2")
    np.put_along_axis(a, places, stored, axis=1)
    # Lanes 4 g and 4 g + 1 have 16 columns each of row g, and of row g + 8 in their upper halves.
    metadata = np.zeros((k // 32, 8, 4), "u4")
    halves = words_of(codes.reshape(2, 8, k // 32, 2, 4))
    metadata[:, :, :2] = (halves[0] | halves[1] << 16).transpose(1, 0, 2)
    c = wanted((16, 8), "f4")
    run = kernel("tensor_sparse.sparse_product_of_halves")[1, 32]
    run(given(stored.view("u4")), given(b.view("u4")), given(metadata.reshape(-1)), c, k)
    assert_product(c.read(), a, b.T)


@pytest.mark.parametrize("k", [64, 192])
def test_sparse_product_of_bytes(kernel, rng, k):
    places, codes = sparse(rng, k)
    stored, b = rng.integers(-128, 128, (16, k // 2), "i1"), rng.integers(-128, 128, (8, k), "i1")
    a = np.zeros((16, k), "i4")
    np.put_along_axis(a, places, stored.astype("i4"), axis=1)
    # Lanes 4 g and 4 g + 2 have 32 columns each of row g, and each next lane those of row g + 8.
    metadata = words_of(codes.reshape(2, 8, k // 64, 2, 8)).transpose(2, 1, 3, 0).copy()
    c = wanted((16, 8), "i4")
    run = kernel("tensor_sparse.sparse_product_of_bytes")[1, 32]
    run(given(stored.view("u4")), given(b.view("u4")), given(metadata.reshape(-1)), c, k)
    np.testing.assert_array_equal(c.read(), a @ b.T.astype("i4"))


# --- instructions of sm_89 and sm_90 --------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [8, 40])
def test_products_of_float8(kernel, rng, newer_device, words):
    a, b = (rng.integers(0, 256, (size, 4 * words)).astype("u1") for size in (16, 8))
    a[(a & 0x7F) > 0x7B], b[(b & 0x7F) == 0x7F] = 0x3A, 0xC1  # no infinities and NaNs of either format
    e4m3, mixed = wanted((16, 8), "f4"), wanted((16, 8), "f4")
    kernel("tensor_newer.product_of_float8")[1, 32](given(a.view("u4")), given(b.view("u4")), e4m3, mixed, words)
    # On a GPU these sums have fewer bits than floats.
    unit = 2.0**-24 if bascule.current_device().emulated else 2.0**-13
    assert_product(e4m3.read(), float8(a, 3), float8(b, 3).T, unit)
    assert_product(mixed.read(), float8(a, 2), float8(b, 3).T, unit)


def test_tiles_are_stored_from_registers(kernel, rng, newer_device):
    values = rng.integers(0, 2**16, (4, 8, 8), "u2")
    out = wanted((32, 4), "u4")
    kernel("tensor_newer.stored_tiles")[1, 32](given(values.reshape(4, 64).view("u4").reshape(-1)), out)
    values[2:] = values[2:].transpose(0, 2, 1)
    np.testing.assert_array_equal(out.read().view("u2").reshape(4, 8, 8), values)
