"""The rules of tensor maps: against a second statement of them and the driver's verdict, and the sentence of each."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from conftest import ForeignArray

import bascule
from bascule import _bascule

from .descriptions import fits, random_description


def test_rules_and_driver_agree_on_random_descriptions(hopper) -> None:
    memory = bascule.zeros(4096, "u1")
    address = memory.__cuda_array_interface__["data"][0]
    chosen = random.Random(20)
    accepted = 0
    for _ in range(10_000):
        description = random_description(chosen, address)
        broken, taken = _bascule._tensor_map_verdicts(tuple(description.values()))
        assert (broken is None) == taken == fits(description), (broken, taken, description)
        accepted += taken
    assert 3_000 < accepted < 8_000


def strided(shape: tuple[int, ...], strides: tuple[int, ...], dtype: str = "f4") -> ForeignArray:
    """An array with these strides in bytes. Its memory is too small for most of them, and no kernel reads it."""
    return ForeignArray(bascule.zeros(4096, dtype), shape=shape, strides=strides)


def plain(shape: tuple[int, ...], dtype: str = "f4") -> bascule.DeviceArray:
    return bascule.zeros(shape, dtype)


# Each row: the field that is wrong, what the sentence says, the array, the box, and the options.
REFUSED = [
    ("array", "has 1 to 5 dimensions, and the array has 6", lambda: plain((2,) * 6), (2,) * 6, {}),
    ("array", "has 1 to 5 dimensions, and the array has 0", lambda: plain(()), (), {}),
    ("array", "'interleave' has 3 to 5 dimensions", lambda: plain((8, 8)), (8, 8), {"interleave": 16}),
    ("array", "'im2col' has 3 to 5 dimensions", lambda: plain((8, 8)), (8, 8), {"im2col": ((), ())}),
    ("array", "a multiple of 16 bytes", lambda: plain((64,))[1:], 16, {}),
    (
        "array",
        "a multiple of 32 bytes",
        lambda: plain((4, 4, 64))[:, :, 4:],
        (4, 4, 8),
        {"interleave": 32, "swizzle": 32},
    ),
    ("array", "at least one element", lambda: plain((0, 16)), (1, 16), {}),
    ("array", "axis 0 are 20 bytes apart", lambda: plain((4, 5)), (4, 4), {}),
    ("array", r"less than 2\*\*40", lambda: strided((1, 4, 4), (64, 2**40, 4)), (1, 4, 4), {}),
    ("array", "axis 0 has a stride of -16 bytes", lambda: plain((4, 4))[::-1], (4, 4), {}),
    ("array", "axis 0 has a stride of 0 bytes", lambda: strided((4, 4), (0, 4)), (4, 4), {}),
    ("array", "of the last axis are 16 bytes apart", lambda: plain((4, 4)).T, (4, 4), {}),
    ("array", "of the last axis are 8 bytes apart", lambda: plain((4, 8))[:, ::2], (4, 4), {}),
    ("array", "1 to 8 bytes, got an? .*complex64.*: pass a view", lambda: plain((4, 4), "c8"), (4, 4), {}),
    ("array", "1 to 8 bytes, got an? .*complex128.*: pass a view", lambda: plain((4, 4), "c16"), (4, 4), {}),
    ("array", "1 to 8 bytes, got an? .*datetime64.*: pass a view", lambda: plain((4, 4), "M8[s]"), (4, 4), {}),
    ("array", "1 to 8 bytes, got an? .*12 opaque bytes: pass a view", lambda: plain((4, 4), "V12"), (4, 4), {}),
    (
        "array",
        "ignores which elements are valid",
        lambda: bascule.to_device(np.ma.masked_equal(np.zeros((4, 4)), 0)),
        (4, 4),
        {},
    ),
    ("box", r"a number for each axis of the array, 2 of them, got \(4,\)", lambda: plain((4, 4)), 4, {}),
    ("box", "1 to 256 elements on each axis, got 257 on axis 0", lambda: plain((512, 4)), (257, 4), {}),
    ("box", "got 0 on axis 0", lambda: plain((4, 4)), (0, 4), {}),
    ("box", "got 0 on axis 1", lambda: plain((4, 4)), (4, -5), {}),
    ("box", "3 elements of 4 bytes, 12 bytes.*pass a multiple of 4 there", lambda: plain((4, 4)), (4, 3), {}),
    ("box", "64 elements of 4 bytes, 256 bytes.*at most 32 there", lambda: plain((4, 64)), (4, 64), {"swizzle": 128}),
    ("box", "at most 8 there, or a wider", lambda: plain((4, 64)), (4, 64), {"swizzle": 32}),
    ("box", "2 of them, got", lambda: plain((1, 8, 16)), (1, 8, 16), {"im2col": ((0,), (0,))}),
    ("box", "1 to 1024 pixels, got 1025", lambda: plain((1, 8, 16)), (1025, 16), {"im2col": ((0,), (0,))}),
    ("box", "1 to 256 channels, got 260", lambda: plain((1, 8, 16)), (8, 260), {"im2col": ((0,), (0,))}),
    ("swizzle", "32, 64 or 128 bytes, got 48", lambda: plain((4, 4)), (4, 4), {"swizzle": 48}),
    ("swizzle", "goes with a 'swizzle' of 32 alone", lambda: plain((4, 4, 8)), (4, 4, 8), {"interleave": 32}),
    ("interleave", "16 or 32 bytes, got 8", lambda: plain((4, 4)), (4, 4), {"interleave": 8}),
    ("l2_promotion", "64, 128 or 256 bytes, got 32", lambda: plain((4, 4)), (4, 4), {"l2_promotion": 32}),
    ("fill", "'zeros', 'nan', got 'ones'", lambda: plain((4, 4)), (4, 4), {"fill": "ones"}),
    ("fill", "floats? ?16, bfloat16, float32 and float64", lambda: plain((4, 4), "i4"), (4, 4), {"fill": "nan"}),
    ("element_strides", "1 to 8, got 9 for axis 0", lambda: plain((4, 4)), (4, 4), {"element_strides": (9, 1)}),
    ("element_strides", "pass 1 there", lambda: plain((4, 4)), (4, 4), {"element_strides": (1, 2)}),
    ("element_strides", "2 of them", lambda: plain((4, 4)), (4, 4), {"element_strides": 1}),
    ("im2col", "a pair of corners", lambda: plain((1, 8, 16)), (8, 16), {"im2col": 3}),
    ("im2col", "1 of them, got", lambda: plain((1, 8, 16)), (8, 16), {"im2col": ((0, 0), (0,))}),
    (
        "im2col",
        "-128 to 127.*got 128 and 0 for axis 1",
        lambda: plain((1, 8, 8, 16)),
        (8, 16),
        {"im2col": ((128, 0), (0, 0))},
    ),
    ("im2col", "leave no pixel of the 8 on axis 1", lambda: plain((1, 8, 16)), (8, 16), {"im2col": ((4,), (-4,))}),
]


@pytest.mark.parametrize(("field", "says", "array", "box", "options"), REFUSED, ids=[row[1] for row in REFUSED])
def test_a_broken_rule_is_a_sentence_with_its_argument(hopper, field, says, array, box, options) -> None:
    with pytest.raises(bascule.ArgumentError) as error:
        bascule.tensor_map(array(), box, **options)
    assert re.search(says, str(error.value)), str(error.value)
    assert error.value.field == field


@pytest.mark.parametrize("given", [np.zeros((4, 4), "f4"), 3, None, "x", [1, 2]])
def test_other_objects_are_refused_by_their_type(hopper, given) -> None:
    with pytest.raises(
        bascule.ArgumentTypeError, match=r"a tensor map is made of a device array, got an object of type"
    ):
        bascule.tensor_map(given, (4, 4))


@pytest.mark.parametrize("box", [2.5, "ab", (4, None), {4: 4}])
def test_a_box_has_integers(hopper, box) -> None:
    with pytest.raises(bascule.ArgumentError, match="box"):
        bascule.tensor_map(plain((4, 4)), box)


def test_axes_of_one_element_may_have_any_stride(hopper) -> None:
    for strides in ((7, 64, 4), (-16, 64, 4), (0, 64, 4), (2**50, 64, 4)):
        assert bascule.tensor_map(strided((1, 4, 16), strides), (1, 4, 16)).shape == (1, 4, 16)
    assert bascule.tensor_map(strided((4, 1), (16, 999)), (4, 4)).box == (4, 4)


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "bfloat16", "V2"]
)
def test_every_element_type_has_maps(hopper, dtype) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    array = plain((64, 64), dtype)
    assert bascule.tensor_map(array, (4, 16)).bytes == 64 * array.dtype.itemsize


def test_bytes_count_the_elements_that_are_moved(hopper) -> None:
    array = plain((64, 64, 64), "f2")
    assert bascule.tensor_map(array, (8, 16, 32)).bytes == 8 * 16 * 32 * 2
    assert bascule.tensor_map(array, (7, 16, 32), element_strides=(2, 3, 1)).bytes == 4 * 6 * 32 * 2
    sliced = bascule.tensor_map(plain((2, 4, 8), "f2"), (2, 4, 8), interleave=16, element_strides=(1, 1, 2))
    assert sliced.bytes == 2 * 4 * 4 * 2  # with 'interleave' the last axis has steps, too
    assert bascule.tensor_map(array, (100, 64), im2col=(-1, 1), element_strides=(1, 2, 1)).bytes == 100 * 64 * 2
