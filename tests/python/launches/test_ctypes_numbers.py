"""Numbers of ctypes as arguments: each has exactly its C type, as NumPy's scalars have their dtypes."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import bascule

TYPES = [
    (ctypes.c_bool, "bool", "?"),
    (ctypes.c_int8, "signed char", "i1"),
    (ctypes.c_uint8, "unsigned char", "u1"),
    (ctypes.c_int16, "short", "i2"),
    (ctypes.c_uint16, "unsigned short", "u2"),
    (ctypes.c_int, "int", "i4"),
    (ctypes.c_uint, "unsigned int", "u4"),
    (ctypes.c_long, "long", "i8"),
    (ctypes.c_ulong, "unsigned long", "u8"),
    (ctypes.c_longlong, "long long", "i8"),
    (ctypes.c_ulonglong, "unsigned long long", "u8"),
    (ctypes.c_size_t, "size_t", "u8"),
    (ctypes.c_float, "float", "f4"),
    (ctypes.c_double, "double", "f8"),
]


def values_of(dtype: str) -> list[object]:
    if dtype == "?":
        return [False, True]
    if dtype[0] == "f":
        return [0.0, -1.5, float(np.finfo(dtype).max), np.inf]
    info = np.iinfo(dtype)
    return [0, 7, info.min, info.max]


@pytest.mark.parametrize(("kind", "name", "dtype"), TYPES, ids=lambda each: getattr(each, "__name__", None))
def test_a_number_arrives(kind: type, name: str, dtype: str) -> None:
    put = bascule.compile(f"__global__ void put({name}* out, {name} value) {{ *out = value; }}").put
    for value in values_of(dtype):
        out = bascule.zeros(1, dtype)
        put[1, 1](out, kind(value))
        assert out.copy_to_host()[0] == np.array(value, dtype)


@pytest.mark.parametrize(
    ("kind", "dtype"), [(ctypes.c_int16, "i2"), (ctypes.c_uint, "u4"), (ctypes.c_float, "f4"), (ctypes.c_double, "f8")]
)
def test_its_type_chooses_the_instance_of_a_template(kind: type, dtype: str) -> None:
    kernel = bascule.compile("template <class T> __global__ void size(int* out, T) { *out = sizeof(T); }").size
    out = bascule.zeros(1, "i4")
    kernel[1, 1](out, kind(3))
    assert out.copy_to_host()[0] == np.dtype(dtype).itemsize
    assert kernel.prepare(out, kind(3)).signature == kernel.prepare(out, np.dtype(dtype).type(3)).signature


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (ctypes.c_double(2.5), "`int`, got the float 2.5"),
        (ctypes.c_longlong(1 << 40), "`int`, which holds .* got 1099511627776"),
        (ctypes.c_uint(0xFFFFFFFF), "`int`, which holds .* got 4294967295"),
        (ctypes.c_longdouble(1), "an object of type c_longdouble"),
        (ctypes.c_char(b"a"), "an object of type c_char"),
        (ctypes.c_void_p(3), "the raw pointer 0x3"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_does_not_fit_is_refused_as_of_numpy(number: object, message: str) -> None:
    put = bascule.compile("__global__ void put(int* out, int value) { *out = value; }").put
    with pytest.raises((bascule.ArgumentTypeError, bascule.ArgumentOverflowError), match=message):
        put[1, 1](bascule.zeros(1, "i4"), number)


def test_an_address_of_ctypes_is_a_pointer() -> None:
    put = bascule.compile("__global__ void put(int* out, int value) { if (out) *out = value; }").put
    out = bascule.zeros(1, "i4")
    put[1, 1](ctypes.c_void_p(out.__cuda_array_interface__["data"][0]), 9)
    put[1, 1](ctypes.c_void_p(), 10)
    bascule.synchronize()
    assert out.copy_to_host()[0] == 9


def test_numbers_of_another_byte_order_are_no_numbers() -> None:
    put = bascule.compile("__global__ void put(int* out, int value) { *out = value; }").put
    out = bascule.zeros(1, "i4")
    put[1, 1](out, ctypes.c_int.__ctype_le__(5))
    assert out.copy_to_host()[0] == 5
    with pytest.raises(bascule.ArgumentTypeError):
        put[1, 1](out, ctypes.c_int.__ctype_be__(5))
