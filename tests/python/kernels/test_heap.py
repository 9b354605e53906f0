"""Memory that kernels allocate: data structures on the heap and on their stacks, compared with NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import bascule

from .conftest import BLOCKS, given, wanted


def live_bytes():
    return sum(leak.bytes for leak in bascule.emulated.leaks()) if bascule.current_device().emulated else 0


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("n", [1, 33, 1000])
def test_lists_live_until_a_later_kernel_frees_them(kernel, rng, n, block):
    before = live_bytes()
    x = rng.integers(-1000, 1000, n, dtype="i4")
    threads = 2 * block
    heads, out = given(np.zeros(threads, "u8")), wanted(n, "i4")
    parts = [x[t::threads] for t in range(threads)]
    starts = np.cumsum([0] + [len(part) for part in parts[:-1]])
    pointer = heads.pointer
    kernel("heap.build_lists")[2, block](given(x), n, pointer)
    if bascule.current_device().emulated:
        assert live_bytes() - before == 16 * n
    kernel("heap.walk_lists")[2, block](pointer, given(starts, "i4"), out)
    kernel("heap.free_lists")[2, block](pointer)
    np.testing.assert_array_equal(out.read(), np.concatenate(parts))
    assert not heads.read().any()
    assert live_bytes() == before


@pytest.mark.parametrize("block", [1, 32, 33])
@pytest.mark.parametrize("width", [1, 7, 60])
def test_search_trees_sort_and_count(kernel, rng, width, block):
    before = live_bytes()
    x = rng.integers(0, 40, (block, width), dtype="i4")
    keys, counts = given(np.zeros((block, width), "i4")), given(np.zeros((block, width), "i4"))
    sizes = wanted(block, "i4")
    kernel("heap.sort_by_trees")[1, block](given(x), width, keys, counts, sizes)
    for row, (size, k, c) in enumerate(zip(sizes.read(), keys.read(), counts.read(), strict=True)):
        unique, occurrences = np.unique(x[row], return_counts=True)
        np.testing.assert_array_equal(k[:size], unique)
        np.testing.assert_array_equal(c[:size], occurrences)
    assert live_bytes() == before


@pytest.mark.parametrize("block", BLOCKS)
def test_each_thread_allocates_as_much_as_it_needs(kernel, rng, block):
    lengths = rng.integers(0, 100, 3 * block, dtype="i4")
    out = wanted(3 * block, "i8")
    kernel("heap.prefix_sums")[3, block](given(lengths), out)
    np.testing.assert_array_equal(out.read(), np.maximum(lengths * (lengths.astype("i8") - 1) // 2, 0))


@pytest.mark.parametrize(("n", "power"), [(1, 0), (3, 4), (5, 7)])
def test_objects_with_constructors_and_destructors(kernel, rng, n, power):
    before = live_bytes()
    x = rng.integers(-2, 3, (33, n, n)).astype("f4")
    out = wanted((33, n, n), "f4")
    kernel("heap.matrix_powers")[1, 33](given(x), out, n, power)
    np.testing.assert_array_equal(out.read(), np.linalg.matrix_power(x, power))
    assert live_bytes() == before


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_shares_what_one_thread_allocated(kernel, block):
    out = wanted((5, 100), "i4")
    kernel("heap.shared_by_a_block")[5, block](out, 100)
    np.testing.assert_array_equal(out.read(), np.tile((np.arange(100) ** 2)[::-1], (5, 1)))


@pytest.mark.parametrize(("bytes", "alignment"), [(1, 0), (17, 0), (100, 32), (5, 4096)])
def test_addresses_are_aligned_and_apart(kernel, bytes, alignment):
    out = wanted(64, "u8")
    kernel("heap.alignments")[1, 64](out, bytes, alignment)
    addresses = np.sort(out.read())
    assert (addresses % max(16, alignment) == 0).all()
    assert addresses[0] != 0
    assert (np.diff(addresses) >= bytes).all()


@pytest.fixture
def large_stack() -> Iterator[None]:
    """Sets a larger stack: the default of 1024 bytes per thread is too little for these kernels."""
    device = bascule.current_device()
    before = device.stack_bytes
    device.stack_bytes = 1 << 16
    yield
    device.stack_bytes = before


@pytest.mark.usefixtures("large_stack")
@pytest.mark.parametrize("depth", [0, 1, 9])
def test_stack_memory_of_functions_that_call_themselves(kernel, rng, depth):
    x = rng.integers(0, 2**32, 66, dtype="u4")

    def digits(number, depth):
        count = number % 7 + 1
        below = digits((number * 1664525 + 1013904223) % 2**32, depth - 1) if depth else 0
        for i in range(count):
            below = (below * 31 + number * (i + 1)) % 2**32
        return below

    out = wanted(66, "u4")
    kernel("heap.recursive_stack")[2, 33](given(x), out, depth)
    np.testing.assert_array_equal(out.read(), [digits(int(v), depth) ^ digits((int(v) + 1) % 2**32, depth) for v in x])


@pytest.mark.usefixtures("large_stack")
def test_stack_memory_is_given_back_in_a_loop(kernel):
    out = wanted(33, "i4")
    kernel("heap.stack_in_a_loop")[1, 33](out, 200, 1000)
    expected = 0
    for turn in range(200):
        for i in reversed(range(1000)):
            expected = (expected * 3 + (turn ^ i)) % 2**32
    expected = (expected + np.arange(33)).astype("u4").view("i4")
    np.testing.assert_array_equal(out.read(), expected)
