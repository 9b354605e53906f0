"""cp.reduce.async.bulk.tensor combines a tile with the tensor's elements, those inside of it only."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

from .tiles import ELEMENTS, REDUCTIONS, Map, store

pytestmark = pytest.mark.usefixtures("hopper")

INTEGERS = ("u32", "s32", "u64", "s64")
SMALL = ("f16", "bf16")
# The table of the PTX ISA: the element types of each operation. Bits may be those of any type of the size.
TYPES = {
    "add": ("u32", "s32", "u64", "f32", "f32_ftz", *SMALL),
    "min": (*INTEGERS, *SMALL),
    "max": (*INTEGERS, *SMALL),
    "and": (*INTEGERS, "f32", "f64"),
    "or": (*INTEGERS, "f32", "f64"),
    "xor": (*INTEGERS, "f32", "f64"),
    "inc": ("u32",),
    "dec": ("u32",),
}


def numbers(bits: np.ndarray, element: str) -> np.ndarray:
    return (bits.view("u2").astype("u4") << 16).view("f4") if element == "bf16" else bits.view(ELEMENTS[element][1])


def bits(values: np.ndarray, element: str) -> np.ndarray:
    if element != "bf16":
        return values.astype(ELEMENTS[element][1]).view("u1")
    words = values.astype("f4").view("u4")  # finite numbers, rounded to nearest and ties to even
    return (words + 0x7FFF + (words >> 16 & 1) >> 16).astype("u2").view("u1")


def combined(operation: str, element: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    if operation in ("and", "or", "xor"):
        size = old.size
        return getattr(np, f"bitwise_{operation}")(old.view(f"u{size}"), new.view(f"u{size}")).view("u1")
    a, b = numbers(old, element), numbers(new, element)
    if operation == "inc":
        made = np.where(a >= b, 0, a + 1)
    elif operation == "dec":
        made = np.where((a == 0) | (a > b), b, a - 1)
    else:
        made = {"add": np.add, "min": np.minimum, "max": np.maximum}[operation](a, b)
    return bits(made, element)


@pytest.mark.parametrize(("operation", "element"), [(o, e) for o in REDUCTIONS for e in TYPES[o]])
@pytest.mark.parametrize("swizzle", [0, 64])
def test_a_tile_is_combined(rng, operation, element, swizzle):
    kind = np.dtype(ELEMENTS[element][1])
    size, row = kind.itemsize, 64 // kind.itemsize

    def some(count: int) -> np.ndarray:
        if operation in ("inc", "dec"):
            return rng.integers(0, 4, count, dtype="u4").view("u1")
        if element in ("f16", "bf16", "f32", "f32_ftz") and operation in ("add", "min", "max"):
            return bits(rng.standard_normal(count), element)
        return rng.integers(0, 256, count * size, dtype="u1")

    map = Map(element, [row - 16 // size, 10], [64], [row, 4], swizzle=swizzle)
    start = [16 // size, 8]
    memory, tile = some(row * 10), some(map.span // size)
    tensor = bascule.to_device(memory)
    store(f"reduce_{operation}", map, tensor, start, tile)
    with np.errstate(over="ignore"):
        expected = map.stored(
            memory, tile, map.tile(start), combine=lambda old, new: combined(operation, element, old, new)
        )
    np.testing.assert_array_equal(tensor.copy_to_host(), expected)


def test_sums_that_are_subnormal_are_flushed_if_the_elements_say_so():
    least = np.full(16, 1e-39, "f4")
    for element, expected in (("f32", 2 * least), ("f32_ftz", 0 * least)):
        map = Map(element, [16, 1], [64], [16, 1])
        tensor = bascule.to_device(least)
        store("reduce_add", map, tensor, [0, 0], least.view("u1"))
        np.testing.assert_array_equal(tensor.copy_to_host(), expected)
