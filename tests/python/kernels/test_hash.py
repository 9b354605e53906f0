"""Hash tables with open addressing, compared with a dict."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import given, wanted


@pytest.mark.parametrize("block", [32, 97])
@pytest.mark.parametrize(("capacity", "count"), [(64, 60), (1024, 900)])
def test_what_is_inserted_is_found_until_it_is_erased(kernel, rng, capacity, count, block):
    keys = rng.integers(0, 2 * count, count, dtype="u4")  # some of them twice
    with_values = rng.integers(0, 1000, count, dtype="i4")
    table: dict[int, int] = {}
    for key, value in zip(keys.tolist(), with_values.tolist(), strict=True):
        table[key] = max(table.get(key, -1), value)
    slots, values = given(np.full(capacity, 2**32 - 1), "u4"), given(np.full(capacity, -1), "i4")
    kernel("hash.hash_insert")[2, block](slots, values, capacity, given(keys), given(with_values), count)

    def assert_finds():
        asked = np.arange(2 * count, dtype="u4")
        found = wanted(2 * count, "i4")
        kernel("hash.hash_find")[2, block](slots, values, capacity, given(asked), found, 2 * count)
        np.testing.assert_array_equal(found.read(), [table.get(key, -1) for key in range(2 * count)])

    assert_finds()
    assert sorted(key for key in slots.read().tolist() if key < 2**32 - 2) == sorted(table)
    out = np.unique(rng.integers(0, 2 * count, count // 2, dtype="u4"))
    gone = given([0], "i4")
    kernel("hash.hash_erase")[2, block](slots, capacity, given(out), len(out), gone)
    assert gone.read()[0] == sum(table.pop(key, None) is not None for key in out.tolist())
    assert_finds()
