"""Tests `bascule.set_allocator` with stand-ins for the allocators of RMM, CuPy and cuda.core, which count calls."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest
from conftest import traced

import bascule

pytestmark = pytest.mark.usefixtures("allocator_restored")


@pytest.fixture
def allocator_restored() -> Iterator[None]:
    yield
    gc.collect()
    bascule.set_allocator(None)
    bascule.synchronize()


class Memory:
    """The memory that each stand-in hands out: arrays that Bascule makes without an allocator."""

    def __init__(self):
        self.live: dict[int, bascule.DeviceArray] = {}
        self.given: list[tuple[int, int]] = []
        self.returned: list[tuple[int, int]] = []

    def take(self, nbytes: int, stream: int) -> int:
        before = bascule.set_allocator(None)
        try:
            array = bascule.device_array(nbytes, "u1")
        finally:
            bascule.set_allocator(before)
        address = array.export(stream=None).__cuda_array_interface__["data"][0]
        self.live[address] = array
        self.given.append((nbytes, stream))
        return address

    def put_back(self, address: int, stream: int) -> None:
        self.returned.append((self.live.pop(address).nbytes, stream))


def handle_of(stream: object) -> int:
    return stream.__cuda_stream__()[1]


class RmmResource:
    """rmm.mr.DeviceMemoryResource: allocate(nbytes, stream) -> int, deallocate(ptr, nbytes, stream)."""

    def __init__(self):
        self.memory = Memory()

    def allocate(self, nbytes, stream=None):
        return self.memory.take(nbytes, handle_of(stream))

    def deallocate(self, ptr, nbytes, stream=None):
        assert self.memory.live[ptr].nbytes == nbytes
        self.memory.put_back(ptr, handle_of(stream))


class CudaCoreResource:
    """cuda.core.MemoryResource: allocate(size, *, stream) -> Buffer; Buffer.close(stream) frees it."""

    class Buffer:
        def __init__(self, resource, address):
            self.resource, self.handle = resource, address

        def close(self, stream=None):
            self.resource.memory.put_back(self.handle, handle_of(stream))

    def __init__(self):
        self.memory = Memory()

    def allocate(self, size, *, stream):
        return self.Buffer(self, self.memory.take(size, handle_of(stream)))

    def deallocate(self, ptr, size, *, stream):
        raise AssertionError("the Buffer is closed instead")


class CupyPool:
    """cupy.cuda.MemoryPool: malloc(nbytes) -> MemoryPointer; its destruction frees on the stream of the malloc."""

    class MemoryPointer:
        def __init__(self, pool, nbytes):
            self.stream = Cupy.current[-1] if Cupy.current else 0
            self.ptr = pool.memory.take(nbytes, self.stream)
            self.pool = pool

        def __del__(self):
            self.pool.memory.put_back(self.ptr, self.stream)

    def __init__(self):
        self.memory = Memory()

    def malloc(self, nbytes):
        return self.MemoryPointer(self, nbytes)


class Cupy:
    """Stands in for `cupy.cuda`: external streams and the current stream."""

    current: ClassVar[list[int]] = []

    class ExternalStream:
        def __init__(self, handle):
            self.handle = handle

        def __enter__(self):
            Cupy.current.append(self.handle)

        def __exit__(self, *_):
            Cupy.current.pop()


class Functions:
    def __init__(self):
        self.memory = Memory()

    def pair(self):
        return (
            lambda nbytes, stream: self.memory.take(nbytes, stream.handle),
            lambda address, _nbytes, stream: self.memory.put_back(address, stream.handle),
        )


@pytest.fixture(params=["rmm", "cuda.core", "cupy", "functions"])
def counting(request, monkeypatch) -> Memory:
    """Sets one allocator and returns its memory; stand-ins replace the library's stream classes as far as needed."""
    if request.param == "rmm":
        monkeypatch.setattr(RmmResource, "__module__", "rmm.pylibrmm.memory_resource")
        module = types.ModuleType("rmm.pylibrmm.stream")
        module.Stream = type("Stream", (), {"__init__": lambda s, o: setattr(s, "o", o),
                                            "__cuda_stream__": lambda s: s.o.__cuda_stream__()})  # fmt: skip
        for name in ("rmm", "rmm.pylibrmm"):
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        monkeypatch.setitem(sys.modules, "rmm.pylibrmm.stream", module)
        allocator = RmmResource()
    elif request.param == "cuda.core":
        monkeypatch.setattr(CudaCoreResource, "__module__", "cuda.core._memory")
        module = types.ModuleType("cuda.core")
        stream_class = type("Stream", (), {"__cuda_stream__": lambda s: (0, s.h)})
        stream_class.from_handle = classmethod(lambda cls, handle: (s := cls(), setattr(s, "h", handle))[0])
        module.Stream = stream_class
        monkeypatch.setitem(sys.modules, "cuda.core", module)
        allocator = CudaCoreResource()
    elif request.param == "cupy":
        monkeypatch.setattr(CupyPool, "__module__", "cupy.cuda.memory")
        module = types.ModuleType("cupy")
        module.cuda = Cupy
        monkeypatch.setitem(sys.modules, "cupy", module)
        allocator = CupyPool()
    else:
        allocator = Functions()
        bascule.set_allocator(allocator.pair())
        return allocator.memory
    bascule.set_allocator(allocator)
    return allocator.memory


def test_every_array_comes_from_it_and_goes_back(counting, rng):
    stream = bascule.stream()
    host = rng.standard_normal((50, 3))
    x = bascule.to_device(host, stream=stream)
    y = x[:, ::2].astype("f4")
    z = bascule.device_array(7, "i2")
    assert counting.given == [(1200, stream.handle), (400, stream.handle), (14, 1)]
    assert counting.returned == []
    np.testing.assert_array_equal(y.copy_to_host(), host[:, ::2].astype("f4"))
    view = x[1:]
    del x, y, z
    gc.collect()
    bascule.synchronize()
    gc.collect()
    assert sorted(counting.returned) == [(14, 1), (400, stream.handle)]
    np.testing.assert_array_equal(view.copy_to_host(), host[1:])
    del view
    gc.collect()
    bascule.synchronize()
    assert sorted(counting.returned) == [(14, 1), (400, stream.handle), (1200, stream.handle)]
    assert counting.live == {}


def test_memory_goes_back_after_the_last_kernel_that_uses_it(counting, scale):
    stream = bascule.stream()  # a new one: its 64th operation releases completed work
    x = bascule.to_device(np.ones(64, "f4"), stream=stream)
    bascule.synchronize()
    scale[1, 64](x, 2, 64)
    del x
    gc.collect()
    assert counting.returned == []
    bascule.synchronize()
    assert counting.returned == [(256, stream.handle)]


def test_the_stream_lives_until_the_memory_is_back(counting):
    stream = bascule.stream()
    x = bascule.device_array(10, "u1", stream=stream)
    handle = stream.handle
    with traced() as operations:
        del stream
        gc.collect()
    assert "destroy" not in [o.kind for o in operations]
    with traced() as operations:
        del x
        gc.collect()
    kinds = [o.kind for o in operations]
    assert counting.returned == [(10, handle)]
    assert "destroy" in kinds


def test_none_restores_and_memory_still_goes_back_where_it_came_from(counting):
    x = bascule.device_array(10, "u1")
    before = bascule.set_allocator(None)
    assert before is not None
    assert bascule.get_allocator() is None
    y = bascule.device_array(20, "u1")
    assert [size for size, _ in counting.given] == [10]
    del x, y
    gc.collect()
    assert [size for size, _ in counting.returned] == [10]


def test_empty_pinned_and_managed_arrays_ask_nobody(counting):
    arrays = bascule.device_array(0, "f4"), bascule.pinned_array(3, "f4"), bascule.managed_array(3, "f4")
    assert counting.given == []
    assert len(arrays) == 3


def test_the_allocator_lives_as_long_as_its_memory():
    resource = RmmResource()
    alive = weakref.ref(resource)
    bascule.set_allocator(resource)
    x = bascule.device_array(10, "f4")
    bascule.set_allocator(None)
    del resource
    gc.collect()
    assert alive() is not None
    del x
    gc.collect()
    assert alive() is None


def test_its_exception_reaches_who_asked_for_an_array():
    def refuse(nbytes, stream):
        raise MemoryError(f"no {nbytes} bytes")

    bascule.set_allocator((refuse, lambda *_: None))
    with pytest.raises(MemoryError, match="no 40 bytes"):
        bascule.device_array(10, "f4")


@pytest.mark.parametrize(("value", "error", "message"), [
    (0, ValueError, "returned 0, which is not an address"),
    (-5, ValueError, "returned -5, which is not an address"),
    ("x", TypeError, "returned an object of type str where an address was expected"),
])  # fmt: skip
def test_what_it_returns_is_checked(value, error, message):
    bascule.set_allocator((lambda *_: value, lambda *_: None))
    with pytest.raises(error, match=message):
        bascule.device_array(10, "f4")


def test_a_failure_to_give_back_is_reported_and_not_raised(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: reported.append(info.exc_value))
    memory = Memory()

    def fail(address, nbytes, stream):
        memory.put_back(address, 0)
        raise RuntimeError("cannot")

    bascule.set_allocator((lambda nbytes, stream: memory.take(nbytes, 0), fail))
    x = bascule.device_array(10, "f4")
    del x
    gc.collect()
    assert [str(error) for error in reported] == ["cannot"]


@pytest.mark.parametrize("wrong", [3, "rmm", (1, 2), object()])
def test_what_is_no_allocator_is_refused(wrong):
    with pytest.raises(TypeError, match=r"`allocator` must have allocate\(nbytes, stream\)"):
        bascule.set_allocator(wrong)
