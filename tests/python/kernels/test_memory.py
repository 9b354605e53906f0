"""Data in every state space of PTX."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import BLOCKS, SIZES, blocks_for, given, wanted

sweep = pytest.mark.parametrize("size", SIZES[:-1])
blocks = pytest.mark.parametrize("block", BLOCKS)


def wrapped(value):
    """The integer, wrapped around to 64 bits with a sign."""
    return (value + 2**63) % 2**64 - 2**63


@sweep
@blocks
def test_generic_pointers_reach_every_space(kernel, rng, size, block):
    values = rng.integers(-(2**31), 2**31, 9).astype("i4")
    out, where = wanted(size, "i8"), wanted(size, "u1")
    kernel("memory.generic_pointers")[blocks_for(size, block), block](given(values), out, where, size)
    weights = np.arange(1, 17)

    def weighted(numbers):
        return int((np.asarray(numbers, "i8") * weights[: len(numbers)]).sum())

    sources = [lambda i: values, lambda i: 10 * np.arange(16) + i // block, lambda i: i - np.arange(7)]
    sources.append(lambda i: [3, -1, 4, 1, -5])
    np.testing.assert_array_equal(out.read(), [weighted(sources[i % 4](i)) for i in range(size)])
    # On some devices a generic address of constant memory is also one of global memory: checks only the others.
    np.testing.assert_array_equal(
        where.read()[np.arange(size) % 4 != 3] & 7, [1 << i % 4 for i in range(size) if i % 4 < 3]
    )


@pytest.mark.parametrize("block", [1, 31, 33, 256])
def test_one_dynamic_array_holds_several_types(kernel, rng, block):
    values = rng.uniform(-1000, 1000, 3 * block)
    out, size = wanted(3 * block, "f8"), wanted(1, "u4")
    kernel("memory.carved_arena")[3, block, None, 13 * block](given(values), out, size)
    mirrored = values.reshape(3, block)[:, ::-1].ravel()
    whole = np.trunc(mirrored)
    np.testing.assert_array_equal(out.read(), np.sign(mirrored) * (whole + (mirrored - whole)))
    assert size.read()[0] == 13 * block


@sweep
@blocks
def test_structs_of_odd_sizes_are_copied_whole(kernel, rng, size, block):
    values = np.frombuffer(rng.bytes(50 * size), "u1").reshape(size, 50)
    device, out, raw = given(values), wanted((size, 50), "u1"), wanted(13 * size, "u1")
    kernel("memory.copy_structs")[2, block](device.pointer, out.pointer, raw, size)
    result = out.read()
    np.testing.assert_array_equal(result[:, :37], values[:, :37])
    number = np.ascontiguousarray(values[:, 38:40]).view("i2")
    np.testing.assert_array_equal(np.ascontiguousarray(result[:, 38:40]).view("i2"), number * np.int16(3))
    np.testing.assert_array_equal(result[:, 40:], values[:, 40:])
    np.testing.assert_array_equal(raw.read(), np.repeat(values[:, 0], 13))


@pytest.mark.parametrize(("size", "block"), [(1, 32), (257, 97)])
def test_a_large_struct_is_passed_by_value(kernel, rng, size, block):
    kind = np.dtype([("table", "i4", 100), ("scale", "f8"), ("flags", "u1", 3)], align=True)
    settings = np.zeros((), kind)
    settings["table"], settings["scale"], settings["flags"] = rng.integers(-999, 999, 100), 0.375, [7, 0, 255]
    index = rng.integers(0, 2**32, size, dtype="u4")
    out = wanted(size, "f8")
    kernel("memory.by_value")[blocks_for(size, block), block](settings.tobytes(), given(index), out, size)
    expected = settings["table"][index % 100] * 0.375 + settings["flags"][index % 3]
    np.testing.assert_array_equal(out.read(), expected)


def test_globals_of_a_module_outlive_its_launches(kernel, rng):
    before, ring = wanted(1, "u8"), wanted(64, "i4")
    remember = kernel("memory.kept::remember")
    total, sizes = 1000, np.zeros(64, "i4")
    for turn, size in enumerate([1, 33, 257, 1000]):
        values = rng.integers(0, 1000, size, dtype="i4")
        remember[1, 97](given(values), before, ring, size)
        sizes[turn] = size
        assert before.read()[0] == total
        np.testing.assert_array_equal(ring.read(), sizes)
        total += int(values.sum())


@sweep
@blocks
def test_loads_with_hints_load_the_same(kernel, rng, size, block):
    values, pairs = rng.standard_normal((size, 4)).astype("f4"), rng.integers(-9999, 9999, (size, 2)).astype("i2")
    device, device_pairs = given(values), given(pairs)
    out, sums = wanted((size, 4), "f4"), wanted(size, "i4")
    launch = kernel("memory.hinted_loads")[blocks_for(size, block), block]
    launch(device.pointer, out.pointer, device_pairs.pointer, sums, size)
    expected = values.copy()
    expected[:, 1] = values[::-1, 1]
    np.testing.assert_array_equal(out.read(), expected)
    np.testing.assert_array_equal(sums.read(), pairs.sum(axis=1))


@pytest.mark.parametrize("block", [32, 33])
def test_threads_allocate_lists_of_their_own(kernel, rng, block):
    lengths = rng.integers(0, 20, 257, dtype="i4")
    sums = wanted(257, "i8")
    kernel("memory.allocate_lists")[blocks_for(257, block), block](given(lengths), sums, 257)
    expected = []
    for i, length in enumerate(lengths.tolist()):
        total = 0
        for k in reversed(range(length)):
            total = wrapped(total * 3 + i * k)
        expected.append(total)
    np.testing.assert_array_equal(sums.read(), expected)
