"""`from_dlpack`: capsules of every kind and state, and when each is deleted, and by whom."""

from __future__ import annotations

import ctypes
import gc
import threading

import numpy as np
import pytest
from conftest import traced
from hypothesis import given, settings
from hypothesis import strategies as st

import bascule
from dlpack.capsules import (
    CPU,
    CUDA,
    READ_ONLY,
    USED,
    DataType,
    Device,
    Exporter,
    name_of,
)

HOST = np.arange(6, dtype="f4").reshape(2, 3)


@pytest.fixture
def array() -> bascule.DeviceArray:
    return bascule.to_device(HOST)


@pytest.mark.parametrize("versioned", [True, False])
def test_a_capsule_becomes_an_array_without_a_copy(array, versioned):
    exporter = Exporter(array, versioned=versioned)
    capsule = exporter.capsule()
    taken = bascule.from_dlpack(capsule)
    assert name_of(capsule) == ("used_dltensor_versioned" if versioned else "used_dltensor")
    assert taken.__cuda_array_interface__["data"] == array.__cuda_array_interface__["data"]
    assert (taken.shape, taken.dtype, taken.strides) == (array.shape, array.dtype, array.strides)
    assert not taken.readonly
    np.testing.assert_array_equal(taken.copy_to_host(), HOST)
    assert exporter.deleted == 0
    del capsule
    gc.collect()
    assert exporter.deleted == 0
    del taken
    gc.collect()
    assert exporter.deleted == 1


@pytest.mark.parametrize("versioned", [True, False])
def test_a_capsule_can_be_consumed_once(array, versioned):
    exporter = Exporter(array, versioned=versioned)
    capsule = exporter.capsule()
    taken = bascule.from_dlpack(capsule)
    with pytest.raises(ValueError, match="an earlier from_dlpack consumed it"):
        bascule.from_dlpack(capsule)
    del taken, capsule
    gc.collect()
    assert exporter.deleted == 1


def test_a_capsule_that_nobody_takes_is_deleted_by_its_own_destructor(array):
    exporter = Exporter(array)
    exporter.capsule()
    gc.collect()
    assert exporter.deleted == 1


def test_a_deleter_may_be_missing(array):
    def without(managed):
        managed.deleter = type(managed.deleter)()

    capsule = Exporter(array, poison=without).capsule()
    np.testing.assert_array_equal(bascule.from_dlpack(capsule).copy_to_host(), HOST)
    gc.collect()


def test_the_read_only_flag_is_honoured(array):
    def frozen(managed):
        managed.flags = READ_ONLY

    taken = bascule.from_dlpack(Exporter(array, poison=frozen).capsule())
    assert taken.readonly
    with pytest.raises(ValueError, match="read-only"):
        taken.copy_from_host(HOST)
    kernel = bascule.compile("__global__ void touch(float* p) { p[0] = 1; }").touch
    with pytest.raises(ValueError, match="'p'.*read-only"):
        kernel[1, 1](taken)


def test_missing_strides_mean_c_order_and_byte_offset_counts(array):
    def poison(managed):
        managed.tensor.strides = type(managed.tensor.strides)()
        managed.tensor.byte_offset = 12
        managed.tensor.shape[0] = 1

    taken = bascule.from_dlpack(Exporter(array, poison=poison).capsule())
    assert taken.strides == (12, 4)
    np.testing.assert_array_equal(taken.copy_to_host(), HOST[1:])


def set_field(**fields):
    def poison(managed):
        for name, value in fields.items():
            setattr(managed if hasattr(managed, name) else managed.tensor, name, value)

    return poison


def set_extent(name, index, value):
    def poison(managed):
        getattr(managed.tensor, name)[index] = value

    return poison


NULL = ctypes.POINTER(ctypes.c_int64)()
POISON = {
    "negative ndim": (set_field(ndim=-1), ValueError, "'ndim'.*-1"),
    "huge ndim": (set_field(ndim=2**31 - 1), ValueError, "'ndim'"),
    "65 dimensions": (set_field(ndim=65), ValueError, "'ndim' of the DLPack tensor is 65"),
    "no shape": (set_field(shape=NULL), ValueError, "'shape'.*NULL"),
    "negative extent": (set_extent("shape", 0, -2), ValueError, "'shape'.*\\(-2, 3\\)"),
    "overflow": (set_extent("shape", 0, 2**62), ValueError, "2\\*\\*63"),
    "no data": (set_field(data=None), ValueError, "'data'.*NULL"),
    "strides beyond memory": (set_extent("strides", 0, 2**61), ValueError, "'strides'"),
    "offset beyond memory": (set_field(byte_offset=2**64 - 1), ValueError, "'byte_offset'"),
    "unknown memory": (set_field(data=0x1234560000), ValueError, "memory that .*know"),
    "lanes": (set_field(dtype=DataType(2, 32, 4)), NotImplementedError, "4 lanes"),
    "no lanes": (set_field(dtype=DataType(2, 32, 0)), NotImplementedError, "0 lanes"),
    "opaque handle": (set_field(dtype=DataType(3, 64, 1)), TypeError, "opaque handle"),
    "half a byte": (set_field(dtype=DataType(0, 4, 1)), TypeError, "4 bits"),
    "unknown code": (set_field(dtype=DataType(99, 8, 1)), TypeError, "code 99"),
    "host memory": (set_field(device=Device(CPU, 0)), ValueError, "host memory.*to_device"),
    "another device": (set_field(device=Device(10, 1)), ValueError, "type 10"),
    "no such device": (set_field(device=Device(CUDA, 63)), ValueError, "no device 63"),
}


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize(("poison", "error", "words"), POISON.values(), ids=POISON)
def test_a_poisoned_tensor_is_refused_and_deleted_once(array, versioned, poison, error, words):
    exporter = Exporter(array, versioned=versioned, poison=poison)
    capsule = exporter.capsule()
    with traced() as operations, pytest.raises(error, match=words):
        bascule.from_dlpack(capsule)
    assert [o for o in operations if o.kind in ("record", "wait", "copy", "launch", "synchronize")] == []
    assert not name_of(capsule).startswith("used")  # the capsule still owns the tensor
    assert exporter.deleted == 0
    del capsule
    gc.collect()
    assert exporter.deleted == 1


EXTENTS = st.one_of(st.integers(0, 5), st.integers(-(2**63), 2**63 - 1))


@settings(max_examples=150, deadline=None)
@given(
    shape=st.lists(EXTENTS, max_size=4),
    strides=st.lists(EXTENTS, min_size=4, max_size=4),
    strided=st.booleans(),
    offset=st.one_of(st.just(0), st.integers(0, 2**64 - 1)),
    dtype=st.tuples(st.integers(0, 20), st.sampled_from([0, 1, 4, 8, 16, 32, 64, 128, 255]), st.integers(0, 2)),
    flags=st.integers(0, 2**64 - 1),
    versioned=st.booleans(),
)
def test_any_tensor_is_taken_or_refused_and_deleted_once(shape, strides, strided, offset, dtype, flags, versioned):
    """An accepted tensor has the address, extents and strides that Python's unbounded integers give."""

    def poison(managed):
        tensor = managed.tensor
        tensor.ndim = len(shape)
        tensor.shape = (ctypes.c_int64 * 4)(*shape)
        tensor.strides = (ctypes.c_int64 * 4)(*strides) if strided else NULL
        tensor.byte_offset = offset
        tensor.dtype = DataType(*dtype)
        if versioned:
            managed.flags = flags

    array = bascule.to_device(HOST)
    base = array.__cuda_array_interface__["data"][0]
    exporter = Exporter(array, versioned=versioned, poison=poison)
    capsule = exporter.capsule()
    try:
        taken = bascule.from_dlpack(capsule)
    except bascule.ArgumentError:
        pass
    else:
        itemsize = dtype[1] // 8
        assert taken.shape == tuple(shape)
        assert taken.readonly == (versioned and flags & READ_ONLY == READ_ONLY)
        assert taken.dtype.itemsize == itemsize
        if taken.size:
            assert taken.__cuda_array_interface__["data"][0] == base + offset
            reach = [(extent - 1) * stride for extent, stride in zip(shape, taken.strides, strict=True)]
            assert base + offset + sum(step for step in reach if step < 0) >= 0
            assert base + offset + sum(step for step in reach if step > 0) + itemsize <= 2**64
            if strided:
                assert taken.strides == tuple(stride * itemsize for stride in strides[: len(shape)])
        del taken
    del capsule
    gc.collect(0)
    assert exporter.deleted == 1


def test_of_another_major_version_only_the_deleter_is_known(array):
    exporter = Exporter(array, poison=set_field(major=2, ndim=-5))
    capsule = exporter.capsule()
    with pytest.raises(ValueError, match="DLPack version 2.0.*max_version=\\(1, 3\\)"):
        bascule.from_dlpack(capsule)
    del capsule
    gc.collect()
    assert exporter.deleted == 1


def test_a_later_minor_version_is_read(array):
    taken = bascule.from_dlpack(Exporter(array, poison=set_field(minor=77)).capsule())
    np.testing.assert_array_equal(taken.copy_to_host(), HOST)


@pytest.mark.parametrize("name", [b"tensor", b"dltensor ", b"", b"dltensor\xff", b"arrow_array"])
def test_a_capsule_of_another_name_is_refused(array, name):
    text = ctypes.create_string_buffer(name)
    capsule = Exporter(array).capsule(text)
    with pytest.raises(ValueError, match='a DLPack capsule is named "dltensor"'):
        bascule.from_dlpack(capsule)


@pytest.mark.parametrize("versioned", [True, False])
def test_a_used_capsule_is_refused(array, versioned):
    exporter = Exporter(array, versioned=versioned)
    capsule = exporter.capsule(USED[versioned])
    with pytest.raises(ValueError, match="an earlier from_dlpack consumed it"):
        bascule.from_dlpack(capsule)
    del capsule
    gc.collect()
    assert exporter.deleted == 0


def test_threads_take_the_same_capsule_and_one_gets_it(array):
    exporter = Exporter(array)
    for _ in range(20):
        capsule = exporter.capsule()
        barrier = threading.Barrier(4)
        results: list[object] = []

        def work(capsule=capsule, barrier=barrier, results=results):
            barrier.wait()
            try:
                results.append(bascule.from_dlpack(capsule))
            except ValueError:
                results.append(None)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(result is not None for result in results) == 1
    del results, capsule, threads, work
    gc.collect()
    assert exporter.deleted == 20
