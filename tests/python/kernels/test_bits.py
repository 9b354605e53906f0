"""Integers, compared with Python's unbounded ones, and with zlib and hashlib."""

from __future__ import annotations

import hashlib
import zlib

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted

sweep = pytest.mark.parametrize("size", SIZES[:-1])
blocks = pytest.mark.parametrize("block", BLOCKS)

EDGES = [0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF, 0x10000, 0x55555555, 0xDEADBEEF]
WORD = 2**32 - 1


def with_edges(rng, size, bits):
    """Edge values, and random words, half of which have fewer bits set."""
    values = rng.integers(0, 2**bits, size, dtype=f"u{bits // 8}")
    values[::2] &= rng.integers(0, 2**bits, len(values[::2]), dtype=values.dtype)
    edges = np.array(EDGES if bits == 32 else [*EDGES, 2**63 - 1, 2**63, 2**64 - 1], values.dtype)
    count = min(size, len(edges))
    values[:count] = rng.permutation(edges)[:count]
    return values


def signed(x, bits):
    return x - (1 << bits) if x >> (bits - 1) else x


def quotient(a, b):
    """C's division, which rounds toward zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b):
    return a - b * quotient(a, b)


def selected(x, y, s):
    pool = [(x >> 8 * k) & 255 for k in range(4)] + [(y >> 8 * k) & 255 for k in range(4)]
    return sum(pool[s >> 4 * k & 7] << 8 * k for k in range(4))


def dot(x, y, s, is_signed):
    parts = [[signed(v >> 8 * k & 255, 8) if is_signed else v >> 8 * k & 255 for k in range(4)] for v in (x, y)]
    return s + sum(a * b for a, b in zip(*parts, strict=True))


def tricks(x, y, s):
    p, q = signed(x, 32), signed(y, 32)
    low24 = [signed(v & 0xFFFFFF, 24) for v in (x, y)]
    both = y << 32 | x
    return [
        x.bit_count(),
        int(f"{x:032b}"[::-1], 2),
        (x & -x).bit_length(),
        32 - x.bit_length(),
        selected(x, y, s),
        both << s % 32 >> 32,
        both >> s % 32,
        both << min(s, 32) >> 32,
        both >> min(s, 32),
        x * y >> 32,
        p * q >> 32,
        abs(x - y) + s,
        abs(p - q) + s,
        (x + y) // 2,
        (x + y + 1) // 2,
        (p + q) // 2,
        (p + q + 1) // 2,
        (x & 0xFFFFFF) * (y & 0xFFFFFF),
        low24[0] * low24[1],
        dot(x, y, s, True),
        dot(x, y, s, False),
        (x & y) ^ (~x & s),
        (x & y) ^ (x & s) ^ (y & s),
    ]


@sweep
@blocks
def test_intrinsics_on_words(kernel, rng, size, block):
    a, b, c = (with_edges(rng, size, 32) for _ in range(3))
    out = wanted((23, size), "u4")
    kernel("bits.bit_tricks")[blocks_for(size, block), block](given(a), given(b), given(c), out, size)
    expected = [[value & WORD for value in tricks(*row)] for row in zip(*(v.tolist() for v in (a, b, c)), strict=True)]
    np.testing.assert_array_equal(out.read(), np.array(expected).T)


@sweep
@blocks
def test_intrinsics_on_words_of_64_bits(kernel, rng, size, block):
    a, b = with_edges(rng, size, 64), with_edges(rng, size, 64)
    out = wanted((10, size), "u8")
    kernel("bits.bit_tricks_wide")[blocks_for(size, block), block](given(a), given(b), out, size)

    def expected(x, y):
        p, q, by = signed(x, 64), signed(y, 64), y % 64
        values = [x.bit_count(), int(f"{x:064b}"[::-1], 2), (x & -x).bit_length(), 64 - x.bit_length()]
        values += [x * y >> 64, p * q >> 64, x << by, x >> by, p >> by, x << by | x >> (64 - by) % 64]
        return [value % 2**64 for value in values]

    rows = [expected(*pair) for pair in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_array_equal(out.read(), np.array(rows, "u8").T)


@sweep
@blocks
def test_divisions_round_towards_zero(kernel, rng, size, block):
    a, b = with_edges(rng, size, 32).view("i4"), with_edges(rng, size, 32).view("i4")
    b[(b == 0) | (b == -1)] = 3  # division by 0 is undefined in C, and by -1 it may overflow
    b[1::3] = rng.integers(1, 1000, len(b[1::3]))
    out = wanted((16, size), "i4")
    kernel("bits.divisions")[blocks_for(size, block), block](given(a), given(b), out, size)

    def expected(x, y):
        u, v, short, odd = x & WORD, y & WORD, signed(x & 0xFFFF, 16), signed((y | 1) & 0xFFFF, 16)
        values = [quotient(x, 7), remainder(x, 7), quotient(x, -10), remainder(x, 1000003), quotient(x, 16)]
        values += [remainder(x, 16), u // 7, u % 641, u // 10, quotient(x, y), remainder(x, y), u // v, u % v]
        values += [quotient(short, 3), remainder(short, odd), (x & 255) // 5]
        return [signed(value & WORD, 32) for value in values]

    rows = [expected(*pair) for pair in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_array_equal(out.read(), np.array(rows).T)


@sweep
@blocks
def test_divisions_of_64_bits_round_towards_zero(kernel, rng, size, block):
    a, b = with_edges(rng, size, 64).view("i8"), with_edges(rng, size, 64).view("i8")
    b[(b == 0) | (b == -1)] = 3
    b[1::3] = rng.integers(1, 1000, len(b[1::3]))
    out = wanted((8, size), "i8")
    kernel("bits.divisions_wide")[blocks_for(size, block), block](given(a), given(b), out, size)

    def expected(x, y):
        u, v = x % 2**64, y % 2**64
        values = [quotient(x, 1000000007), remainder(x, 97), quotient(x, y), remainder(x, y)]
        values += [u // v, u % v, u // 10, quotient(x, 4096)]
        return [signed(value % 2**64, 64) for value in values]

    rows = [expected(*pair) for pair in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_array_equal(out.read(), np.array(rows).T)


@blocks
@pytest.mark.parametrize("messages", [1, 33, 257])
def test_checksums_are_zlibs(kernel, rng, messages, block):
    texts = [rng.bytes(int(length)) for length in rng.integers(0, 100, messages)]
    starts = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype("i4")
    sums = wanted(messages, "u4")
    whole = given(np.frombuffer(b"".join(texts) + b"\0", "u1"))
    kernel("bits.crc32")[blocks_for(messages, block), block](whole, given(starts), sums, messages)
    np.testing.assert_array_equal(sums.read(), [zlib.crc32(text) for text in texts])


@blocks
@pytest.mark.parametrize("length", [1, 55, 56, 64, 119, 120])
def test_digests_are_hashlibs(kernel, rng, length, block):
    count = 33
    messages = rng.integers(0, 256, (count, length), dtype="u1")
    digests = wanted((count, 8), "u4")
    kernel("bits.sha256")[blocks_for(count, block), block](given(messages), length, digests, count)
    expected = [hashlib.sha256(message.tobytes()).digest() for message in messages]
    assert [row.tobytes() for row in digests.read()] == expected
