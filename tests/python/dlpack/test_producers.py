"""`from_dlpack`: producers old and new, streams, devices and copies."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from conftest import traced

import bascule
from dlpack.capsules import COPIED, CPU, CUDA, Exporter, Producer

HOST = np.arange(6, dtype="f4").reshape(2, 3)


@pytest.fixture
def array() -> bascule.DeviceArray:
    return bascule.to_device(HOST)


def test_a_producer_is_asked_with_our_stream_and_version(array):
    producer = Producer(array)
    stream = bascule.stream()
    taken = bascule.from_dlpack(producer, stream=stream)
    assert producer.asked == [{"stream": stream.handle, "max_version": (1, 3)}]
    assert taken.stream == stream
    assert taken.__cuda_array_interface__["stream"] == stream.handle
    assert bascule.from_dlpack(producer).stream == bascule.default_stream()
    assert producer.asked[1]["stream"] == 1
    assert bascule.from_dlpack(producer, stream=2).__cuda_array_interface__["stream"] == 2


def test_an_old_producer_is_asked_again_as_it_knows(array):
    producer = Producer(array, versioned=False)
    taken = bascule.from_dlpack(producer)
    assert producer.asked == [{"stream": 1, "max_version": (1, 3)}, {"stream": 1}]
    np.testing.assert_array_equal(taken.copy_to_host(), HOST)


@pytest.mark.parametrize("versioned", [True, False])
def test_copy_reaches_the_producer_or_is_done_here(array, versioned):
    producer = Producer(array, versioned=versioned)
    taken = bascule.from_dlpack(producer, copy=True)
    assert producer.asked[0]["copy"] is True
    shared = taken.__cuda_array_interface__["data"][0] == array.__cuda_array_interface__["data"][0]
    assert shared == versioned  # a producer that accepts `copy` is trusted; this one does not copy
    np.testing.assert_array_equal(taken.copy_to_host(), HOST)
    assert bascule.from_dlpack(producer, copy=False).shape == (2, 3)


def test_a_producer_that_says_it_copied_is_not_copied_again(array):
    def copied(managed):
        managed.flags = COPIED

    taken = bascule.from_dlpack(Exporter(array, poison=copied).capsule(), copy=True)
    assert taken.__cuda_array_interface__["data"] == array.__cuda_array_interface__["data"]


def test_the_device_is_looked_at_before_anything_is_asked(array):
    producer = Producer(array)
    producer.device = (CPU, 0)
    with pytest.raises(ValueError, match="host memory.*bascule.to_device"):
        bascule.from_dlpack(producer)
    producer.device = (10, 0)
    with pytest.raises(ValueError, match="type 10"):
        bascule.from_dlpack(producer)
    assert producer.asked == []
    with pytest.raises(ValueError, match="to_device"):
        bascule.from_dlpack(HOST)


def test_the_device_that_is_asked_for_is_the_arrays(array):
    assert bascule.from_dlpack(array, device=bascule.current_device()).shape == (2, 3)
    assert bascule.from_dlpack(array, device=0).shape == (2, 3)
    with pytest.raises(ValueError, match="no device 63"):
        bascule.from_dlpack(array, device=63)


class Raising:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CUDA, 0)

    def __dlpack__(self, **keywords: object) -> object:
        raise self.error


@pytest.mark.parametrize("error", [BufferError("no"), RuntimeError("no"), KeyboardInterrupt(), TypeError("no")])
def test_a_producers_own_exception_passes_unchanged(error):
    with pytest.raises(type(error)) as caught:
        bascule.from_dlpack(Raising(error))
    assert caught.value is error


class Odd:
    """A producer that returns wrong values."""

    def __init__(self, capsule: object, device: object = (CUDA, 0)) -> None:
        self.answers = capsule, device

    def __dlpack_device__(self) -> object:
        return self.answers[1]

    def __dlpack__(self, **keywords: object) -> object:
        return self.answers[0]


class WithoutDevice:
    def __dlpack__(self, **keywords: object) -> object:
        raise AssertionError("must not be asked")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Odd(None), TypeError, "must return a capsule.*NoneType"),
        (lambda: Odd(42), TypeError, "must return a capsule.*int"),
        (lambda: Odd(None, device=2), TypeError, "__dlpack_device__ must return a pair"),
        (lambda: Odd(None, device=("cuda", 0)), TypeError, "must return a pair"),
        (WithoutDevice, TypeError, "no __dlpack_device__"),
        (object, TypeError, "takes an array with __dlpack__ or a DLPack capsule"),
        (lambda: Producer, TypeError, "takes an array with __dlpack__"),
        (lambda: None, TypeError, "from_dlpack takes"),
    ],
)
def test_what_is_no_producer_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        bascule.from_dlpack(make())


@pytest.mark.parametrize("option", [{"copy": 1}, {"stream": True}, {"stream": "x"}])
def test_an_option_of_the_wrong_type_is_named(array, option):
    with pytest.raises(TypeError, match=f"`{next(iter(option))}`"):
        bascule.from_dlpack(array, **option)


def test_our_own_arrays_go_round_and_order_their_streams():
    bound, other = bascule.stream(), bascule.stream()
    array = bascule.to_device(HOST, stream=bound)
    with traced() as operations:
        taken = bascule.from_dlpack(array, stream=other)
    assert [(o.kind, o.stream) for o in operations if o.kind in ("record", "wait")] == [
        ("record", bound.handle),
        ("wait", other.handle),
    ]
    assert taken.stream == other
    del array
    gc.collect()
    np.testing.assert_array_equal(taken.copy_to_host(), HOST)


def test_the_tensor_is_kept_until_the_kernels_that_use_it_are_done(emulated, array):
    exporter = Exporter(array)
    kernel = bascule.compile("__global__ void add_one(float* p) { p[threadIdx.x] += 1; }").add_one
    stream = bascule.stream()
    bascule.synchronize()  # the host waits, because a capsule names no stream
    taken = bascule.from_dlpack(exporter.capsule(), stream=stream)
    kernel[1, 6, stream](taken)
    del taken
    gc.collect()
    assert exporter.deleted == 0  # the lazy device has not run the kernel yet
    stream.synchronize()
    gc.collect()
    assert exporter.deleted == 1
    np.testing.assert_array_equal(array.copy_to_host(), HOST + 1)
