"""What goes by value into a kernel: ctypes structures, and small host arrays for vector types."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import bascule

TEXT = """
struct Body { float mass; int count; double position[3]; };
struct Block { float* data; int n; };
__global__ void body(Body b, double* out) { out[0] = b.mass; out[1] = b.count; out[2] = b.position[2]; }
__global__ void block(Block b) { b.data[b.n] = b.n; }
__global__ void vector(float4 v, double* out) { out[0] = v.x; out[1] = v.y; out[2] = v.w; }
"""


class Body(ctypes.Structure):
    _fields_ = (("mass", ctypes.c_float), ("count", ctypes.c_int), ("position", ctypes.c_double * 3))


class Swapped(ctypes.Structure):
    _fields_ = (("count", ctypes.c_int), ("mass", ctypes.c_float), ("position", ctypes.c_double * 3))


class Block(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("n", ctypes.c_int))


class Either(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("real", ctypes.c_float))


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    return bascule.compile(TEXT)


@pytest.fixture
def out() -> bascule.DeviceArray:
    return bascule.zeros(3, "f8")


def test_a_ctypes_structure_is_compared_field_by_field(module, out):
    module.body[1, 1](Body(1.5, 7, (1, 2, 3)), out)
    assert out.copy_to_host().tolist() == [1.5, 7, 3]
    with pytest.raises(bascule.ArgumentError, match="argument 1 'b'"):
        module.body[1, 1](Swapped(7, 1.5, (1, 2, 3)), out)


def test_a_ctypes_structure_of_another_size_is_refused_with_both(module, out):
    with pytest.raises(ValueError, match=r"argument 1 'b'.*16 bytes.*struct has 32 bytes"):
        module.body[1, 1](Block(0, 1), out)


def test_a_ctypes_structure_with_a_device_pointer_goes_by_its_bytes(module):
    x = bascule.zeros(4)
    address, _ = x.__cuda_array_interface__["data"]
    module.block[1, 1](Block(address, 2))
    assert x.copy_to_host().tolist() == [0, 0, 2, 0]


def test_a_ctypes_union_names_raw_bytes(module, out):
    with pytest.raises(TypeError, match=r"argument 1 'b'.*bascule\.raw_bytes"):
        module.body[1, 1](Either(1), out)


@pytest.mark.parametrize("values", [np.array([1, 2, 3, 4], "f4"), np.arange(8, dtype="f8")[1:5]], ids=["f4", "f8"])
def test_a_small_host_array_is_a_vector(module, out, values):
    module.vector[1, 1](values, out)
    assert out.copy_to_host().tolist() == [values[0], values[1], values[3]]


def test_an_array_for_a_vector_or_a_structure_is_not_sent_to_the_device(module, out):
    with pytest.raises(ValueError, match=r"argument 1 'v'.*tuple of 3 numbers.*tuple of 4 numbers"):
        module.vector[1, 1](np.zeros(3, "f4"), out)
    for kernel, values in [(module.vector, np.zeros((2, 2), "f4")), (module.body, np.zeros(8, "f4"))]:
        with pytest.raises(TypeError, match="It is passed by value: pass a ") as caught:
            kernel[1, 1](values, out)
        assert "to_device" not in str(caught.value)
