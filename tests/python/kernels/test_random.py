"""Random numbers: integers that must be the same everywhere, compared with the same algorithms in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted

LOW = np.uint64(0xFFFFFFFF)


def philox(counter, key):
    """Ten rounds over arrays: `counter` has four columns, `key` is a pair."""
    c = [np.asarray(word, "u8") for word in counter]
    key = [int(word) for word in key]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        shift = np.uint64(32)
        c = [b >> shift ^ c[1] ^ np.uint64(key[0]), b & LOW, a >> shift ^ c[3] ^ np.uint64(key[1]), a & LOW]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return np.stack(np.broadcast_arrays(*c), axis=-1).astype("u4")


def test_the_reference_is_the_published_philox():
    # Known results of Philox4x32-10: for counters and keys with all bits 0, and with all bits 1.
    assert [hex(w) for w in philox([0] * 4, [0] * 2)] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    ones = 2**32 - 1
    assert [hex(w) for w in philox([ones] * 4, [ones] * 2)] == [
        *("0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd")
    ]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("size", SIZES)
def test_philox_gives_numpys_words_whatever_the_grid(kernel, size, block):
    seed, stream = 0x89ABCDEF, 42
    out = wanted(size, "u4")
    kernel("random.random_philox")[2, block](out, size, seed, stream)
    expected = philox([np.arange((size + 3) // 4), 0, stream, 7], [seed, ~seed & 0xFFFFFFFF]).ravel()[:size]
    np.testing.assert_array_equal(out.read(), expected)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("threads", [1, 33, 257])
def test_xorshift_goes_on_where_the_last_launch_stopped(kernel, rng, threads, block):
    states = rng.integers(1, 2**63, threads, dtype="u8")
    device = given(states)
    for _ in range(2):
        out = wanted((5, threads), "u8")
        kernel("random.random_xorshift")[blocks_for(threads, block), block](device, out, threads, 5)
        expected = np.empty((5, threads), "u8")
        for row in expected:
            states = states ^ (states >> np.uint64(12))
            states = states ^ (states << np.uint64(25))
            states = states ^ (states >> np.uint64(27))
            row[:] = states * np.uint64(2685821657736338717)
        np.testing.assert_array_equal(out.read(), expected)
        np.testing.assert_array_equal(device.read(), states)


@pytest.mark.parametrize("block", [32, 96, 256])
@pytest.mark.parametrize("samples", [1, 1000, 20011])
def test_the_points_inside_the_circle_are_counted_exactly(kernel, samples, block):
    inside = given([0], "u8")
    kernel("random.monte_carlo_pi")[3, block](inside, samples, 99)
    words = philox([np.arange(samples), 1, 2, 3], [99, 0])
    x, y = words[:, 0].astype("O"), words[:, 1].astype("O")
    expected = int((x * x + y * y < 2**64).sum())
    assert inside.read()[0] == expected
    if samples > 20000:
        assert abs(4 * expected / samples - np.pi) < 0.05
