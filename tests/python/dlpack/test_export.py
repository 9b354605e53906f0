"""`DeviceArray.__dlpack__`: streams, versions, devices, copies, and the lifetime of a capsule."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref

import numpy as np
import pytest
from child_process import printed_by
from conftest import traced
from hypothesis import given, settings
from hypothesis import strategies as st

import bascule
from dlpack.capsules import CODES, COPIED, CPU, CUDA, READ_ONLY, consume, delete, extents, name_of, read

DTYPES = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def on_device(array: bascule.DeviceArray, **changes: object) -> bascule.DeviceArray:
    """The array seen through a changed interface."""
    return bascule.from_cuda_array_interface({**array.__cuda_array_interface__, **changes}, array)


@pytest.fixture
def array() -> bascule.DeviceArray:
    return bascule.to_device(np.arange(6, dtype="f4").reshape(2, 3))


def ordering(action) -> list[tuple[str, int]]:
    with traced() as operations:
        action()
    return [(o.kind, o.stream) for o in operations if o.kind in ("record", "wait", "synchronize", "copy")]


# --- Fields


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_capsule_says_what_the_array_is(dtype, max_version):
    array = bascule.to_device(np.zeros((2, 3), dtype))
    managed = read(array.__dlpack__(max_version=max_version))
    tensor = managed.tensor
    kind = np.dtype(dtype).kind
    assert tensor.data == array.__cuda_array_interface__["data"][0]
    assert (tensor.device.type, tensor.device.id) == array.__dlpack_device__() == (CUDA, 0)
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (CODES[kind], 8 * np.dtype(dtype).itemsize, 1)
    assert extents(managed) == ((2, 3), (3, 1))
    assert tensor.byte_offset == 0


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 64])
def test_arrays_of_no_dimensions_and_of_no_elements_are_tensors_too(shape):
    array = bascule.to_device(np.ones(shape, "i4"))
    managed = read(array.__dlpack__(max_version=(1, 3)))
    assert extents(managed)[0] == shape
    assert managed.tensor.ndim == len(shape)
    if 0 in shape:
        assert managed.tensor.data is None


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_view_of_an_array_comes_back_the_same(data):
    ndim = data.draw(st.integers(0, 4))
    shape = data.draw(st.tuples(*[st.integers(0, 4)] * ndim))
    host = np.arange(int(np.prod(shape)), dtype="i4").reshape(shape)
    axes = data.draw(st.permutations(range(ndim)))
    steps = data.draw(st.tuples(*[st.sampled_from([1, 2, 3, -1, -2])] * ndim))
    view = host.transpose(axes)[(..., *(slice(None, None, step) for step in steps))]  # ...: never a scalar
    base = bascule.to_device(host)
    offset = view.__array_interface__["data"][0] - host.__array_interface__["data"][0]
    address = base.__cuda_array_interface__["data"][0] + offset if view.size else 0
    seen = on_device(base, shape=view.shape, strides=view.strides, data=(address, False))
    managed = read(seen.__dlpack__(max_version=(1, 0)))
    assert extents(managed)[0] == view.shape
    if view.size:
        assert tuple(stride * 4 for stride in extents(managed)[1]) == view.strides
    back = bascule.from_dlpack(seen)
    assert back.shape == view.shape
    assert back.dtype == view.dtype
    np.testing.assert_array_equal(back.copy_to_host(), view)


STRUCTURE = np.dtype([("x", "f4"), ("n", "i4")])
REFUSED = [
    (lambda: bascule.to_device(np.zeros(3, STRUCTURE)), "structures"),
    (lambda: bascule.to_device(np.zeros(3, "M8[ns]")), "datetime64"),
    (lambda: bascule.to_device(np.zeros(3, "m8[s]")), "timedelta64"),
    (lambda: bascule.to_device(np.zeros(3, "V12")), "12 opaque bytes"),
    (lambda: on_device(bascule.to_device(np.zeros(12, "f4")), shape=(3,), strides=(6,)), "stride of 6 bytes"),
]


@pytest.mark.parametrize(("make", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_dlpack_cannot_say_is_refused(make, reason):
    array = make()
    with pytest.raises(BufferError, match=reason) as caught:
        array.__dlpack__(max_version=(1, 3))
    assert isinstance(caught.value, bascule.ArgumentError)


FORMATS = {
    "bfloat16": (4, 16),
    "float8_e3m4": (7, 8),
    "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_small_formats_of_ml_dtypes_have_codes_and_come_back(name):
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), name))
    host = np.array([1, 2, 4], dtype)
    array = bascule.to_device(host)
    tensor = read(array.__dlpack__(max_version=(1, 1))).tensor
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (*FORMATS[name], 1)
    back = bascule.from_dlpack(array)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back.copy_to_host().view("u1"), host.view("u1"))


def test_a_masked_array_is_refused():
    array = bascule.to_device(np.ma.array(np.ones(3, "f4"), mask=[False, True, False]))
    with pytest.raises(BufferError, match="mask"):
        array.__dlpack__(max_version=(1, 3))


# --- Versions and flags


@pytest.mark.parametrize(
    ("max_version", "name"),
    [
        (None, "dltensor"),
        ((0, 8), "dltensor"),
        ((1, 0), "dltensor_versioned"),
        ((1, 3), "dltensor_versioned"),
        ((2, 7), "dltensor_versioned"),
        ((np.int64(1), np.int64(0)), "dltensor_versioned"),
    ],
)
def test_the_consumer_gets_the_newest_form_that_it_knows(array, max_version, name):
    capsule = array.__dlpack__(max_version=max_version)
    assert name_of(capsule) == name
    if name == "dltensor_versioned":
        assert (read(capsule).major, read(capsule).minor) == (1, 3)
        assert read(capsule).flags == 0


@pytest.mark.parametrize("max_version", [1, (1,), (1, 0, 0), "10", (1.0, 0), (True, 0), [1, 0]])
def test_a_version_that_is_none_is_refused(array, max_version):
    with pytest.raises(TypeError, match="`max_version` of __dlpack__"):
        array.__dlpack__(max_version=max_version)


def test_a_read_only_array_says_so_or_is_refused(array):
    frozen = on_device(array, data=(array.__cuda_array_interface__["data"][0], True))
    assert read(frozen.__dlpack__(max_version=(1, 0))).flags == READ_ONLY
    with pytest.raises(BufferError, match="read-only.*max_version"):
        frozen.__dlpack__()


# --- Streams


def test_the_consumers_stream_waits_for_the_arrays():
    bound, other = bascule.stream(), bascule.stream()
    array = bascule.to_device(np.ones(4, "f4"), stream=bound)
    assert ordering(lambda: array.__dlpack__(stream=other.handle)) == [("record", bound.handle), ("wait", other.handle)]
    assert ordering(lambda: array.__dlpack__(stream=other)) == [("record", bound.handle), ("wait", other.handle)]
    for stream in (None, 1):
        assert ordering(lambda stream=stream: array.__dlpack__(stream=stream)) == [
            ("record", bound.handle),
            ("wait", 1),
        ]
    assert ordering(lambda: array.__dlpack__(stream=2)) == [("record", bound.handle), ("wait", 2)]
    assert ordering(lambda: array.__dlpack__(stream=np.int64(2))) == [("record", bound.handle), ("wait", 2)]


def test_the_same_stream_and_minus_one_wait_for_nothing():
    bound = bascule.stream()
    array = bascule.to_device(np.ones(4, "f4"), stream=bound)
    assert ordering(lambda: array.__dlpack__(stream=bound.handle)) == []
    assert ordering(lambda: array.__dlpack__(stream=-1)) == []
    default = bascule.to_device(np.ones(4, "f4"))
    assert ordering(lambda: default.__dlpack__()) == []
    unordered = bascule.as_cuda_array(array, sync=False)
    assert ordering(lambda: unordered.__dlpack__(stream=1)) == []


@pytest.mark.parametrize(
    ("stream", "error", "words"),
    [
        (0, ValueError, "forbids 0"),
        (-2, ValueError, "is -2"),
        (2**64, ValueError, "2\\*\\*64 - 1"),
        (True, TypeError, "is True"),
        (1.0, TypeError, "stream"),
        ("1", TypeError, "stream"),
    ],
)
def test_a_stream_that_dlpack_forbids_is_refused_before_anything_is_enqueued(stream, error, words):
    array = bascule.to_device(np.ones(4, "f4"), stream=bascule.stream())

    def ask():
        with pytest.raises(error, match=words):
            array.__dlpack__(stream=stream)

    assert ordering(ask) == []


# --- Devices and copies


def test_host_memory_is_given_by_a_copy(array):
    host = np.arange(6, dtype="f4").reshape(2, 3)
    capsule = array.__dlpack__(dl_device=(CPU, 0), max_version=(1, 0))
    managed = read(capsule)
    assert (managed.tensor.device.type, managed.tensor.device.id) == (CPU, 0)
    assert managed.flags == COPIED
    values = ctypes.cast(managed.tensor.data, ctypes.POINTER(ctypes.c_float))[:6]
    np.testing.assert_array_equal(values, host.ravel())
    np.testing.assert_array_equal(np.from_dlpack(array, device="cpu"), host)
    with pytest.raises(BufferError, match="without a copy"):
        array.__dlpack__(dl_device=(CPU, 0), copy=False)


def test_the_arrays_own_device_is_no_reason_to_copy(array):
    capsule = array.__dlpack__(dl_device=array.__dlpack_device__(), copy=False, max_version=(1, 0))
    assert read(capsule).tensor.data == array.__cuda_array_interface__["data"][0]
    assert read(capsule).flags == 0


@pytest.mark.parametrize("device", [(CUDA, 7), (10, 0), (CPU, 1)])
def test_other_devices_are_refused(array, device):
    with pytest.raises(BufferError, match="own device \\(2, 0\\)"):
        array.__dlpack__(dl_device=device)


@pytest.mark.parametrize("option", [{"dl_device": 2}, {"dl_device": (2,)}, {"copy": 1}, {"copy": "yes"}])
def test_wrong_types_are_named(array, option):
    with pytest.raises(TypeError, match=f"`{next(iter(option))}` of __dlpack__"):
        array.__dlpack__(**option)


def test_a_copy_has_memory_of_its_own(array):
    capsule = array.__dlpack__(copy=True, max_version=(1, 0))
    assert read(capsule).flags == COPIED
    assert read(capsule).tensor.data != array.__cuda_array_interface__["data"][0]
    copy = bascule.from_dlpack(capsule)
    array.copy_from_host(np.zeros((2, 3), "f4"))
    np.testing.assert_array_equal(copy.copy_to_host(), np.arange(6, dtype="f4").reshape(2, 3))


def test_a_read_only_array_is_copied_for_old_consumers(array):
    frozen = on_device(array, data=(array.__cuda_array_interface__["data"][0], True))
    assert name_of(frozen.__dlpack__(copy=True)) == "dltensor"


# --- The lifetime of a capsule


class Owner:
    """An object that a weak reference can watch."""


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_an_unconsumed_capsule_keeps_the_array_and_lets_it_go(array, max_version):
    owner = Owner()
    reference = weakref.ref(owner)
    capsule = bascule.from_cuda_array_interface(array.__cuda_array_interface__, owner).__dlpack__(
        max_version=max_version
    )
    del owner
    gc.collect()
    assert reference() is not None
    del capsule
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_consumed_capsule_leaves_the_tensor_to_its_consumer(array, max_version):
    owner = Owner()
    reference = weakref.ref(owner)
    capsule = bascule.from_cuda_array_interface(array.__cuda_array_interface__, owner).__dlpack__(
        max_version=max_version
    )
    del owner
    managed = consume(capsule)
    del capsule
    gc.collect()
    assert reference() is not None
    assert extents(managed) == ((2, 3), (3, 1))
    delete(managed)
    gc.collect()
    assert reference() is None


def test_the_deleter_runs_on_any_thread(array):
    owner = Owner()
    reference = weakref.ref(owner)
    managed = consume(bascule.from_cuda_array_interface(array.__cuda_array_interface__, owner).__dlpack__())
    del owner
    thread = threading.Thread(target=delete, args=(managed,))  # ctypes releases the GIL for the call
    thread.start()
    thread.join()
    gc.collect()
    assert reference() is None


def test_threads_export_and_delete_at_once(array):
    owner = Owner()
    reference = weakref.ref(owner)
    seen = bascule.from_cuda_array_interface(array.__cuda_array_interface__, owner)
    del owner

    def work():
        for i in range(200):
            managed = consume(seen.__dlpack__(max_version=(1, 0) if i % 2 else None))
            assert extents(managed)[0] == (2, 3)
            delete(managed)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reference() is not None
    seen = None
    gc.collect()
    assert reference() is None


def test_a_tensor_may_outlive_the_interpreter():
    program = """
import sys
from dlpack.capsules import native
import numpy as np, bascule
native().delete_at_exit(bascule.to_device(np.ones(4, "f4")))
"""
    paths = [path for path in sys.path if path]
    assert "deleted after Python" in printed_by("-c", f"import sys; sys.path[:0] = {paths!r}\n{program}")
