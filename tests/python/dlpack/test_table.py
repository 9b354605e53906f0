"""DLPack's exchange table of DeviceArray, used from C: exchange_native.c knows only the table's layout."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from conftest import traced

import bascule
from dlpack.capsules import CPU, CUDA, CUDA_MANAGED, READ_ONLY
from dlpack.exchanged import HOST, Owner, address, counted, exchange_native, tensor


@pytest.fixture
def array() -> bascule.DeviceArray:
    return bascule.to_device(HOST)


def test_the_table_lends_the_tensor_of_an_array(array):
    fields = {
        "data": address(array),
        "device": (CUDA, 0),
        "dtype": (2, 32, 1),
        "shape": (8,),
        "strides": (1,),
    }
    assert exchange_native.version(bascule.DeviceArray) == (1, 3)
    assert exchange_native.borrow(array) == fields
    assert exchange_native.borrow(array) == fields
    assert exchange_native.take(array) == (fields, 0, 1, 3)


def test_strides_are_lent_in_elements():
    transposed = bascule.to_device(np.zeros((3, 4, 5), "c8").T)
    assert exchange_native.borrow(transposed)["shape"] == (5, 4, 3)
    assert exchange_native.borrow(transposed)["strides"] == (1, 5, 20)
    assert exchange_native.borrow(bascule.to_device(np.float64(1)))["shape"] == ()


def test_a_read_only_array_is_lent_with_its_flag_only(array):
    frozen = bascule.from_cuda_array_interface(
        {**array.__cuda_array_interface__, "data": (address(array), True)}, array
    )
    with pytest.raises(BufferError, match="read-only"):
        exchange_native.borrow(frozen)
    assert exchange_native.take(frozen)[1] == READ_ONLY


def test_what_dlpack_cannot_say_is_a_buffer_error():
    structured = bascule.to_device(np.zeros(2, [("x", "f4"), ("n", "i4")]))
    for use in (exchange_native.borrow, exchange_native.take, exchange_native.round_trip):
        with pytest.raises(BufferError, match="structures"):
            use(structured)


def test_the_table_refuses_objects_of_other_types(array):
    with pytest.raises(TypeError, match="bascule.DeviceArray.*type Tensor|exchange_native.Tensor"):
        exchange_native.borrow_wrongly(tensor(array), bascule.DeviceArray)


def test_the_work_stream_is_the_default_stream(array):
    assert exchange_native.current_stream(bascule.DeviceArray, CUDA, 0) == bascule.default_stream().handle
    assert exchange_native.current_stream(bascule.DeviceArray, CUDA_MANAGED, 0) == bascule.default_stream().handle
    assert exchange_native.current_stream(bascule.DeviceArray, CPU, 0) == 0
    with pytest.raises(ValueError, match="type 10"):
        exchange_native.current_stream(bascule.DeviceArray, 10, 0)
    with pytest.raises(ValueError, match="no device 63"):
        exchange_native.current_stream(bascule.DeviceArray, CUDA, 63)


def test_an_array_on_another_stream_is_ordered_before_the_work_stream():
    bound = bascule.stream()
    array = bascule.to_device(HOST, stream=bound)
    for use in (exchange_native.borrow, exchange_native.take):
        with traced() as operations:
            use(array)
        assert [(o.kind, o.stream) for o in operations if o.kind in ("record", "wait", "synchronize")] == [
            ("record", bound.handle),
            ("wait", bascule.default_stream().handle),
        ]
    on_default = bascule.to_device(HOST)
    with traced() as operations:
        exchange_native.borrow(on_default)
    assert [o for o in operations if o.kind in ("record", "wait", "synchronize")] == []


def test_a_managed_tensor_becomes_an_array_that_keeps_the_first_one(array):
    copy = exchange_native.round_trip(array)
    assert type(copy) is bascule.DeviceArray
    assert address(copy) == address(array)
    assert copy.stream == bascule.default_stream()
    del array
    gc.collect()
    np.testing.assert_array_equal(copy.copy_to_host(), HOST)


def test_another_types_tensor_becomes_an_array_and_is_deleted_with_it(array):
    foreign = tensor(array, readonly=True)
    made = exchange_native.hand_over(foreign, bascule.DeviceArray)
    assert made.readonly
    del foreign
    gc.collect()
    deleted = exchange_native.count()["deleted"]
    np.testing.assert_array_equal(made.copy_to_host(), HOST)
    del made
    gc.collect()
    assert exchange_native.count()["deleted"] == deleted + 1


def test_a_tensor_that_is_refused_stays_its_owners(array):
    on_host = tensor(array, device_type=CPU)

    def refused():
        with pytest.raises(ValueError, match="host memory"):
            exchange_native.hand_over(on_host, bascule.DeviceArray)

    assert counted(refused) == {"borrowed": 0, "made": 1, "deleted": 1, "streams": 0}


def test_a_tensor_is_deleted_by_a_thread_that_python_does_not_know(array):
    owner = Owner()
    reference = weakref.ref(owner)
    seen = bascule.from_cuda_array_interface(array.__cuda_array_interface__, owner)
    del owner
    exchange_native.delete_elsewhere(seen)
    assert reference() is not None
    del seen
    gc.collect()
    assert reference() is None


def test_the_table_allocates_without_python(module):
    made = exchange_native.allocate(bascule.DeviceArray, (2, 4), 2, 32, CUDA, 0)
    assert (made.shape, made.dtype, made.strides, made.readonly) == ((2, 4), np.dtype("f4"), (16, 4), False)
    module.copy[1, 8](bascule.to_device(HOST), made)
    np.testing.assert_array_equal(made.copy_to_host().ravel(), HOST)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((4,), 2, 32, CPU, 0), "BufferError: .*host memory"),
        (((4,), 17, 4, CUDA, 0), "BufferError: .*float4_e2m1fn"),
        (((-4,), 2, 32, CUDA, 0), "BufferError: .*negative"),
        (((4,), 2, 32, CUDA, 63), "BufferError: .*no device 63"),
        (((2**50,), 2, 32, CUDA, 0), "MemoryError: .*4503599627370496 bytes"),
    ],
)
def test_the_allocator_says_why_it_fails(arguments, words):
    with pytest.raises(MemoryError, match=words):
        exchange_native.allocate(bascule.DeviceArray, *arguments)
