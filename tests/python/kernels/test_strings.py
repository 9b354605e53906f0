"""Searches in texts, compared with Python's own strings."""

from __future__ import annotations

import re

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted

blocks = pytest.mark.parametrize("block", BLOCKS)


@blocks
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("pattern", ["a", "aba", "abbabaabab"])
def test_every_occurrence_is_marked_overlapping_ones_too(kernel, rng, size, pattern, block):
    text = "".join(rng.choice(list("ab"), size))
    found = wanted(size, "u1")
    characters = [given(np.frombuffer(part.encode(), "i1")) for part in (text, pattern)]
    kernel("strings.find_naive")[2, block](characters[0], size, characters[1], len(pattern), found)
    np.testing.assert_array_equal(found.read(), [text.startswith(pattern, i) for i in range(size)])


@blocks
@pytest.mark.parametrize("lines", [1, 33, 257])
def test_an_automaton_in_constant_memory_counts_in_every_line(kernel, rng, lines, block):
    texts = ["".join(rng.choice(["abababca", "ab", "c", "a"], rng.integers(0, 30))) for _ in range(lines)]
    starts = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype("i4")
    counts = wanted(lines, "i4")
    whole = given(np.frombuffer(("".join(texts) + "\0").encode(), "i1"))
    kernel("strings.count_kmp")[blocks_for(lines, block), block](whole, given(starts), counts, lines)
    np.testing.assert_array_equal(counts.read(), [len(re.findall("(?=abababca)", text)) for text in texts])


@blocks
@pytest.mark.parametrize("size", SIZES)
def test_words_are_counted_and_upper_cased(kernel, rng, size, block):
    text = "".join(rng.choice(list("abcXYZmz@`[{ .09"), size))
    device, count = given(np.frombuffer(text.encode(), "i1")), given([0], "i4")
    kernel("strings.words")[blocks_for(size, block), block](device, size, count)
    assert device.read().tobytes().decode() == text.upper()
    assert count.read()[0] == len(re.findall("[A-Za-z]+", text))
