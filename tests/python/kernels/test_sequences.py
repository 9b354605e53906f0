"""Sequences that are sorted, merged and aligned."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import blocks_for, given, wanted


def test_each_block_sorts_its_keys_bit_by_bit(kernel, rng):
    keys = rng.integers(0, 2**32, (3, 256), dtype="u4")
    keys[1] %= 7
    device = given(keys)
    kernel("sequences.radix_sort_block")[3, 256](device)
    np.testing.assert_array_equal(device.read(), np.sort(keys, axis=1))


@pytest.mark.parametrize("share", [1, 7])
@pytest.mark.parametrize(("a_count", "b_count"), [(0, 5), (5, 0), (300, 41), (257, 257)])
def test_threads_merge_equal_shares(kernel, rng, a_count, b_count, share):
    a, b = (np.sort(rng.integers(0, 100, count, dtype="i4")) for count in (a_count, b_count))
    out = wanted(a_count + b_count, "i4")
    blocks = blocks_for(blocks_for(a_count + b_count, share), 64)
    kernel("sequences.merge_path")[blocks, 64](given(a), a_count, given(b), b_count, out, share)
    np.testing.assert_array_equal(out.read(), np.sort(np.concatenate([a, b])))


def best_alignment(a, b):
    scores = np.zeros((len(a) + 1, len(b) + 1), int)
    for i, j in np.ndindex(len(a), len(b)):
        corner = scores[i, j] + (3 if a[i] == b[j] else -2)
        scores[i + 1, j + 1] = max(0, corner, scores[i, j + 1] - 1, scores[i + 1, j] - 1)
    return scores.max()


@pytest.mark.parametrize(("first", "second"), [(1, 1), (40, 9), (33, 70)])
def test_the_best_local_alignment_is_found_diagonal_by_diagonal(kernel, rng, first, second):
    a, b = rng.integers(0, 4, (2, first), dtype="u1"), rng.integers(0, 4, (2, second), dtype="u1")
    best = wanted(2, "i4")
    kernel("sequences.smith_waterman")[2, 96](given(a), given(b), first, second, best)
    np.testing.assert_array_equal(best.read(), [best_alignment(*pair) for pair in zip(a, b, strict=True)])
