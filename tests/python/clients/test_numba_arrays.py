"""A launch that does not call `__cuda_array_interface__` of Numba's arrays reads what the property would return."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from conftest import require_tensor_maps

import bascule

pytestmark = pytest.mark.usefixtures("other_libraries")

TYPES = {
    "i1": "signed char",
    "u2": "unsigned short",
    "i4": "int",
    "u8": "unsigned long long",
    "f4": "float",
    "f8": "double",
}
WHERE = "".join(
    f"__global__ void where_{name}({spelling}* x, unsigned long long* out) {{ *out = (unsigned long long)x; }}\n"
    for name, spelling in TYPES.items()
)


class Described:
    """An array whose descriptor is a snapshot of another object's property."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = dict(array.__cuda_array_interface__)
        self.array = array


@pytest.fixture(scope="module")
def cuda(other_libraries: None) -> Any:
    from numba import cuda

    return cuda


@pytest.fixture(scope="module")
def kernels(other_libraries: None) -> bascule.Module:
    return bascule.compile(WHERE)


@pytest.fixture
def seen(kernels: bascule.Module) -> Callable[..., tuple[int, list[tuple[str, int]]]]:
    """Launches a kernel: returns the address that it gets for an array, and the records, waits and launches."""
    out = bascule.zeros(1, "u8")
    stream = bascule.stream()
    out = bascule.as_cuda_array(out, sync=False)
    bascule.synchronize()

    def launch(array: Any, name: str = "f4") -> tuple[int, list[tuple[str, int]]]:
        with bascule.emulated.trace() as operations:
            kernels[f"where_{name}"][1, 1, stream](array, out)
        stream.synchronize()
        ordered = [(each.kind, each.stream) for each in operations if each.kind in ("record", "wait", "launch")]
        return int(out.copy_to_host()[0]), ordered

    return launch


@contextmanager
def property_reads() -> Iterator[list[object]]:
    """Records the objects whose `__cuda_array_interface__` was read by a call of Python code."""
    reads: list[object] = []

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "__cuda_array_interface__":
            reads.append(frame.f_locals["self"])

    sys.setprofile(note)
    try:
        yield reads
    finally:
        sys.setprofile(None)


def address(array: Any) -> int:
    return array.__cuda_array_interface__["data"][0]


def test_a_launch_reads_an_array_without_its_property(cuda, seen):
    array = cuda.to_device(np.zeros(8, "f4"))
    seen(array)  # learns the layout of Numba's class
    with property_reads() as reads:
        where, operations = seen(array)
    assert reads == []
    assert where == address(array)
    assert [kind for kind, _ in operations] == ["launch"]


def outcome(seen: Callable[..., Any], array: Any, name: str) -> Any:
    """Returns the result of a launch, or the message of its error, which stream 0 causes: the interface forbids it."""
    try:
        return seen(array, name)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("way", ["own memory", "a view", "another library's", "another view"])
def test_it_is_what_the_property_says_for_every_type_and_stream(cuda, seen, rng, name, way):
    own = bascule.stream()
    streams = [0, cuda.stream(), cuda.external_stream(own.handle), cuda.default_stream()]
    streams += [cuda.legacy_default_stream(), cuda.per_thread_default_stream(), own.handle]
    ours = bascule.to_device(rng.integers(0, 100, 512, "u1"))
    bascule.synchronize()
    for stream in streams:
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 4)))
        host = rng.integers(0, 100, (*shape,)).astype(name)
        if way in ("own memory", "a view"):
            array = cuda.to_device(host)
        else:
            array = cuda.as_cuda_array(ours.view(name).reshape(-1)[: host.size].reshape(shape), sync=False)
        if way in ("a view", "another view"):
            array = array[shape[0] // 2 :]
        array = array.bind(stream)
        expected = outcome(seen, Described(array), name)
        for _ in range(2):
            assert outcome(seen, array, name) == expected


def test_a_tensor_map_of_an_array_is_passed_without_its_property(cuda, seen):
    require_tensor_maps()
    text = "__global__ void first(const __grid_constant__ CUtensorMap map, CUtensorMap* out) { *out = map; }"
    module, out = bascule.compile("#include <cuda.h>\n" + text), bascule.zeros(1, "V128")
    array, other = (cuda.to_device(np.zeros((4, 32), "f4")) for _ in range(2))
    seen(cuda.to_device(np.zeros(8, "f4")))  # learns the layout of Numba's class
    map = bascule.tensor_map(array, (2, 16))
    with property_reads() as reads:
        module.first[1, 1](map, out)
    assert reads == []
    assert out.copy_to_host().tobytes() == map.encoded
    before, array.gpu_data = map.encoded, other.gpu_data
    module.first[1, 1](map, out)
    assert out.copy_to_host().tobytes() == map.encoded != before


def test_what_is_not_plain_goes_by_the_property(cuda, seen):
    seen(cuda.to_device(np.zeros(8, "f4")))
    strided = cuda.to_device(np.zeros((4, 4), "f4"))[:, ::2]
    with property_reads() as reads, pytest.raises(ValueError, match="C-contiguous"):
        seen(strided)
    assert reads[0] is strided
    with property_reads() as reads, pytest.raises(TypeError, match="float64"):
        seen(cuda.to_device(np.zeros(8, "f8")))
    assert len(reads) == 1
    empty = cuda.to_device(np.zeros(0, "f4"))
    assert seen(empty) == seen(Described(empty))


def test_attributes_that_change_are_read_at_each_launch(cuda, seen):
    array, other = (cuda.to_device(np.zeros(8, "f4")) for _ in range(2))
    stream = cuda.stream()
    first = seen(array)
    assert seen(array) == first
    array.gpu_data, kept = other.gpu_data, array.gpu_data
    assert seen(array)[0] == address(other) != first[0]
    array.gpu_data = kept
    array.stream = stream
    where, operations = seen(array)
    assert where == first[0]
    assert ("record", stream.handle.value if hasattr(stream.handle, "value") else int(stream.handle)) in operations
    array.dtype = np.dtype("f8")
    with pytest.raises(TypeError, match="float64"):
        seen(array)
    array.dtype = np.dtype("f4")
    del array.shape
    with pytest.raises((TypeError, AttributeError), match="shape"):
        seen(array)


def test_an_address_that_others_wrote_is_read(cuda, seen):
    ours = bascule.to_device(np.zeros(16, "f4"))
    array = cuda.as_cuda_array(ours[:8], sync=False)
    first, _ = seen(array)
    pointer = array.gpu_data.device_pointer
    array.gpu_data.device_pointer = type(pointer)(first + 16)
    assert seen(array)[0] == first + 16 == address(array)


@pytest.fixture
def devicearray(cuda: Any) -> Any:
    from numba.cuda.cudadrv import devicearray

    return devicearray


def moved(array: Any) -> dict[str, Any]:
    """A descriptor of eight elements, from the array's ninth on."""
    address = array.gpu_data.device_ctypes_pointer.value + 32
    return {"shape": (8,), "typestr": "<f4", "data": (address, False), "version": 3}


def test_a_property_that_was_replaced_is_called(cuda, seen, devicearray, monkeypatch):
    array = cuda.to_device(np.zeros(16, "f4"))
    first, _ = seen(array)
    assert seen(array)[0] == first
    with monkeypatch.context() as patch:
        patch.setattr(devicearray.DeviceNDArrayBase, "__cuda_array_interface__", property(moved))
        assert seen(array)[0] == first + 32
    assert seen(array)[0] == first


def test_code_that_was_exchanged_is_called(cuda, seen, devicearray):
    array = cuda.to_device(np.zeros(16, "f4"))
    first, _ = seen(array)
    assert seen(array)[0] == first
    getter = devicearray.DeviceNDArrayBase.__cuda_array_interface__.fget
    code = getter.__code__
    getter.__code__ = moved.__code__
    try:
        assert seen(array)[0] == first + 32
    finally:
        getter.__code__ = code
    assert seen(array)[0] == first


def test_parts_that_were_replaced_are_called(cuda, seen, devicearray, monkeypatch):
    from ctypes import c_size_t

    from numba.cuda.cudadrv import driver

    ours = bascule.to_device(np.zeros(16, "f4"))
    array = cuda.as_cuda_array(ours[:8], sync=False)
    first, _ = seen(array)
    assert seen(array)[0] == first

    def further(self: Any) -> Any:
        return c_size_t(int(self.device_pointer) + 32)

    with monkeypatch.context() as patch:
        patch.setattr(driver.MemoryPointer, "device_ctypes_pointer", property(further))
        assert seen(array)[0] == first + 32
    with monkeypatch.context() as patch:
        patch.setattr(
            devicearray.DeviceNDArrayBase, "device_ctypes_pointer", property(lambda self: further(self.gpu_data))
        )
        assert seen(array)[0] == first + 32
    other = bascule.stream()
    array.stream = cuda.stream()
    seen(array)
    with monkeypatch.context() as patch:
        patch.setattr(driver.Stream, "__int__", lambda self: other.handle)
        assert ("record", other.handle) in seen(array)[1]
    assert ("record", other.handle) not in seen(array)[1]


def test_a_class_of_ones_own_is_asked_itself(cuda, seen, devicearray):
    class Moved(devicearray.DeviceNDArray):
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return moved(self)

    class Same(devicearray.DeviceNDArray):
        pass

    array = cuda.to_device(np.zeros(16, "f4"))
    for cls, offset in ((Moved, 32), (Same, 0)):
        made = cls(array.shape, array.strides, array.dtype, gpu_data=array.gpu_data)
        for _ in range(3):
            assert seen(made)[0] == address(array) + offset


def test_what_an_attribute_raises_is_what_the_property_raises(cuda, seen):
    class Failing:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def __getattr__(self, name: str) -> Any:
            raise self.error

    array = cuda.to_device(np.zeros(8, "f4"))
    seen(array)
    for error in (ZeroDivisionError("mine"), KeyboardInterrupt("mine")):
        array.gpu_data = Failing(error)
        for _ in range(2):
            with pytest.raises(type(error), match="mine"):
                seen(array)
