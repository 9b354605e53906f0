"""Pinned and managed arrays: NumPy reads them through DLPack, where `stream=None` means that the host reads."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import traced

import bascule
from dlpack.capsules import COPIED, CPU, CUDA_HOST, CUDA_MANAGED, READ_ONLY, Producer, native, read
from dlpack.host_memory import HostMemory

HOST = np.arange(6, dtype="f4").reshape(2, 3)
KINDS = {"pinned": CUDA_HOST, "managed": CUDA_MANAGED}


@pytest.fixture(scope="module")
def add_one() -> bascule.Kernel:
    return bascule.compile("__global__ void add_one(float* p) { p[threadIdx.x] += 1; }").add_one


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture
def memory(kind) -> HostMemory:
    return HostMemory(HOST, managed=kind == "managed")


def ordering(action) -> list[tuple[str, int]]:
    with traced() as operations:
        action()
    return [(o.kind, o.stream) for o in operations if o.kind in ("record", "wait", "synchronize", "copy")]


def test_the_device_is_the_kind_of_memory_and_number_0(kind, memory):
    array = memory.array()
    assert array.__dlpack_device__() == (KINDS[kind], 0)
    tensor = read(array.__dlpack__(max_version=(1, 0))).tensor
    assert (tensor.device.type, tensor.device.id) == (KINDS[kind], 0)
    assert tensor.data == memory.address
    assert native().borrow(array)["device"] == (KINDS[kind], 0)


def test_numpy_shares_the_memory(memory, add_one):
    array = memory.array(stream=bascule.stream())
    host = np.from_dlpack(array)
    assert np.shares_memory(host, memory.host)
    np.testing.assert_array_equal(host, HOST)
    add_one[1, 6](array)
    again = np.from_dlpack(array)  # waits for the kernel, which the lazy device has not run yet
    np.testing.assert_array_equal(again, HOST + 1)
    again[0, 0] = 7
    assert array.copy_to_host()[0, 0] == 7


def test_numpy_sees_that_an_array_is_read_only(memory):
    assert not np.from_dlpack(memory.array(readonly=True)).flags.writeable
    assert np.from_dlpack(memory.array()).flags.writeable


def test_numpy_keeps_the_memory(memory):
    host = np.from_dlpack(memory.array())
    del memory
    np.testing.assert_array_equal(host, HOST)


def test_without_a_stream_the_host_waits_and_with_one_it_does_not(memory):
    bound, other = bascule.stream(), bascule.stream()
    array = memory.array(stream=bound)
    assert ordering(lambda: array.__dlpack__()) == [("synchronize", bound.handle)]
    assert ordering(lambda: array.__dlpack__(stream=-1)) == []
    assert ordering(lambda: array.__dlpack__(stream=other.handle)) == [("record", bound.handle), ("wait", other.handle)]
    assert ordering(lambda: array.__dlpack__(stream=1)) == [("record", bound.handle), ("wait", 1)]
    assert ordering(lambda: array.__dlpack__(dl_device=(CPU, 0), stream=other.handle)) == [
        ("synchronize", bound.handle)
    ]


def test_as_host_memory_it_is_shared_unless_a_copy_is_wanted(memory):
    array = memory.array()
    for copy in (None, False):
        managed = read(array.__dlpack__(dl_device=(CPU, 0), copy=copy, max_version=(1, 0)))
        assert (managed.tensor.device.type, managed.tensor.data, managed.flags) == (CPU, memory.address, 0)
    managed = read(array.__dlpack__(dl_device=(CPU, 0), copy=True, max_version=(1, 0)))
    assert (managed.tensor.device.type, managed.flags) == (CPU, COPIED)
    assert managed.tensor.data != memory.address


@pytest.mark.parametrize("device", [None, "cpu"])
def test_numpy_gets_a_copy_when_it_asks_for_one(memory, device):
    copy = np.from_dlpack(memory.array(), copy=True, device=device)
    memory.host[...] = 0
    np.testing.assert_array_equal(copy, HOST)


def test_a_copy_of_it_comes_back_on_the_device(memory):
    array = memory.array()
    copy = bascule.from_dlpack(array, copy=True)
    bascule.synchronize()
    memory.host[:] = 0
    np.testing.assert_array_equal(copy.copy_to_host(), HOST)
    assert bascule.pointer_attributes(copy).kind in ("device", "pool")


def test_it_comes_back_without_a_copy(kind, memory, add_one):
    back = bascule.from_dlpack(memory.array())
    assert back.__dlpack_device__() == (KINDS[kind], 0)
    add_one[1, 6](back)
    np.testing.assert_array_equal(np.from_dlpack(back), HOST + 1)
    np.testing.assert_array_equal(memory.host, HOST + 1)


def test_producers_of_pinned_memory_are_asked_without_a_stream(kind, memory):
    def elsewhere(managed):
        managed.tensor.device.type = KINDS[kind]

    producer = Producer(memory.array(), poison=elsewhere)
    producer.device = (KINDS[kind], 0)
    taken = bascule.from_dlpack(producer, stream=bascule.stream())
    assert (producer.asked[0]["stream"] is None) == (kind == "pinned")
    np.testing.assert_array_equal(taken.copy_to_host(), HOST)


def test_a_launch_takes_such_tensors_by_the_table(kind, memory, add_one):
    tensor = native().Tensor(memory.address, (2, 3), device_type=KINDS[kind], owner=memory)
    add_one[1, 6](tensor)
    bascule.synchronize()
    np.testing.assert_array_equal(memory.host, HOST + 1)


def test_a_read_only_one_says_so(memory):
    assert read(memory.array(readonly=True).__dlpack__(max_version=(1, 0))).flags == READ_ONLY
