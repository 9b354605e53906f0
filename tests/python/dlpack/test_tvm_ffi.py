"""Arrays passed to apache-tvm-ffi and back: by Bascule's table, by `__dlpack__`, through one of its functions."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import bascule
from dlpack.capsules import CUDA

tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")

HOST = np.arange(12, dtype="f4").reshape(3, 4)


@pytest.fixture
def array() -> bascule.DeviceArray:
    return bascule.to_device(HOST)


def address(array: bascule.DeviceArray) -> int:
    return array.__cuda_array_interface__["data"][0]


class WithoutTable:
    """The array with only `__dlpack__`."""

    def __init__(self, array: bascule.DeviceArray) -> None:
        self.__dlpack__ = array.__dlpack__
        self.__dlpack_device__ = array.__dlpack_device__


@pytest.mark.parametrize("offer", [lambda array: array, WithoutTable], ids=["table", "__dlpack__"])
@pytest.mark.parametrize("dtype", ["b1", "i1", "u2", "i4", "u8", "f2", "f4", "f8"])
def test_tvm_ffi_sees_the_array_as_it_is(offer, dtype):
    array = bascule.to_device(HOST.astype(dtype))
    tensor = tvm_ffi.from_dlpack(offer(array))
    assert tensor.shape == (3, 4)
    assert tensor.strides == (4, 1)
    assert str(tensor.dtype) == str(array.dtype)
    assert tensor.data_ptr() == address(array)
    assert tensor.__dlpack_device__() == (CUDA, 0)


def test_strides_reach_tvm_ffi():
    tensor = tvm_ffi.from_dlpack(bascule.to_device(HOST.T))
    assert (tensor.shape, tensor.strides) == ((4, 3), (1, 4))


def test_a_tensor_of_tvm_ffi_comes_back(array):
    tensor = tvm_ffi.from_dlpack(array)
    back = bascule.from_dlpack(tensor)
    assert address(back) == address(array)
    assert (back.shape, back.dtype) == (array.shape, array.dtype)
    del array, tensor
    gc.collect()
    np.testing.assert_array_equal(back.copy_to_host(), HOST)


def test_a_function_of_tvm_ffi_takes_our_arrays(array):
    seen: list[object] = []

    @tvm_ffi.convert
    def look(tensor: object) -> int:
        seen.append((type(tensor), tensor.shape, tensor.data_ptr()))
        return tensor.numel()

    assert look(array) == 12
    assert seen[0][1:] == ((3, 4), address(array))


def test_what_a_function_of_tvm_ffi_returns_is_an_array_of_ours(array):
    """tvm_ffi converts the tensor with the table of its arguments' library, which is Bascule's."""
    same = tvm_ffi.convert(lambda tensor: tensor)
    back = same(array)
    assert type(back) is bascule.DeviceArray
    assert address(back) == address(array)
    del array
    gc.collect()
    np.testing.assert_array_equal(back.copy_to_host(), HOST)


def test_a_launch_takes_a_tensor_of_tvm_ffi(array):
    kernel = bascule.compile("__global__ void twice(float* p) { p[threadIdx.x] *= 2; }").twice
    kernel[1, 12](tvm_ffi.from_dlpack(array))
    np.testing.assert_array_equal(array.copy_to_host(), 2 * HOST)


def test_a_tensor_on_the_host_is_refused_with_a_hint():
    kernel = bascule.compile("__global__ void twice(float* p) { p[threadIdx.x] *= 2; }").twice
    tensor = tvm_ffi.from_dlpack(HOST.copy())
    with pytest.raises(TypeError, match="argument 1 'p'.*bascule.to_device"):
        kernel[1, 12](tensor)
    with pytest.raises(ValueError, match="host memory.*bascule.to_device"):
        bascule.from_dlpack(tensor)


def test_a_read_only_array_keeps_its_flag():
    """A tensor of tvm_ffi cannot express that it is read-only; tvm_ffi accepts the array anyway, by its own choice."""
    array = bascule.to_device(HOST)
    frozen = bascule.from_cuda_array_interface(
        {**array.__cuda_array_interface__, "data": (address(array), True)}, array
    )
    assert tvm_ffi.from_dlpack(frozen).data_ptr() == address(array)
    assert frozen.readonly


def test_a_type_of_tvm_ffi_that_has_a_table_goes_into_a_launch(array):
    """The kernel reads one tensor of this type and writes another."""
    wrapper = getattr(tvm_ffi.core, "DLTensorTestWrapper", None)
    if wrapper is None:
        pytest.skip("this apache-tvm-ffi has no type with an exchange table")
    kernel = bascule.compile(
        "__global__ void copy(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x]; }"
    )
    result = bascule.to_device(np.full((3, 4), np.nan, "f4"))
    kernel.copy[1, 12](wrapper(tvm_ffi.from_dlpack(array)), wrapper(tvm_ffi.from_dlpack(result)))
    np.testing.assert_array_equal(result.copy_to_host(), HOST)
