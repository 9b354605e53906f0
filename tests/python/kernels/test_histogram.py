"""Histograms: every count must be right, however many threads update one counter."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, given

pytestmark = [pytest.mark.parametrize("block", BLOCKS), pytest.mark.parametrize("size", SIZES)]


@pytest.mark.parametrize("bins", [1, 7, 257])
def test_atomics_in_global_memory_count_every_value(kernel, rng, size, block, bins):
    values = rng.integers(0, 2**32, size, dtype="u4")
    counts = given(np.full(bins, 100), "u4")  # the kernel adds to these counts
    kernel("histogram.histogram_global")[3, block](given(values), counts, size, bins)
    np.testing.assert_array_equal(counts.read(), np.bincount(values % bins, minlength=bins) + 100)


@pytest.mark.parametrize("bins", [1, 7, 257])
def test_private_counters_of_blocks_are_joined(kernel, rng, size, block, bins):
    values = rng.integers(0, 2**32, size, dtype="u4")
    counts = given(np.zeros(bins), "u4")
    kernel("histogram.histogram_shared")[3, block, None, 4 * bins](given(values), counts, size, bins)
    np.testing.assert_array_equal(counts.read(), np.bincount(values % bins, minlength=bins))


def test_bytes_are_counted_four_at_a_time(kernel, rng, size, block):
    values = rng.binomial(255, 0.4, size).astype("u1")
    counts = given(np.zeros(256), "u4")
    kernel("histogram.histogram_bytes")[2, block](given(values), counts, size)
    np.testing.assert_array_equal(counts.read(), np.bincount(values, minlength=256))
