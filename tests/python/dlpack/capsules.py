"""DLPack in ctypes, as specified: structures, capsules with wrong contents, and producers of every kind.

Written from the specification and independent of Bascule's own layout. A test compares both with a real dlpack.h.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import itertools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import bascule
from bascule import _bascule

CUDA, CUDA_HOST, CUDA_MANAGED, CPU = 2, 3, 13, 1
READ_ONLY, COPIED = 1, 2
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetName.restype = ctypes.c_char_p
python.PyCapsule_GetName.argtypes = [ctypes.py_object]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]

# The targets of capsules live as long as the process: names, destructors, and tensors whose deleters only count calls.
NAMES = {False: ctypes.create_string_buffer(b"dltensor"), True: ctypes.create_string_buffer(b"dltensor_versioned")}
USED = {
    False: ctypes.create_string_buffer(b"used_dltensor"),
    True: ctypes.create_string_buffer(b"used_dltensor_versioned"),
}
_kept: list[object] = []


def name_of(capsule: object) -> str | None:
    name = python.PyCapsule_GetName(capsule)
    return None if name is None else name.decode()


def read(capsule: object) -> Managed | ManagedVersioned:
    """Returns the tensor inside a fresh capsule. The result keeps the capsule, which still owns the tensor."""
    name = python.PyCapsule_GetName(capsule)
    form = ManagedVersioned if b"versioned" in name else Managed
    managed = form.from_address(python.PyCapsule_GetPointer(capsule, name))
    managed.capsule = capsule
    return managed


def consume(capsule: object) -> Managed | ManagedVersioned:
    """Consumes a capsule: renames it; the caller must call the deleter."""
    managed = read(capsule)
    del managed.capsule
    python.PyCapsule_SetName(capsule, USED[isinstance(managed, ManagedVersioned)])
    return managed


def delete(managed: Managed | ManagedVersioned) -> None:
    managed.deleter(ctypes.addressof(managed))


def extents(managed: Managed | ManagedVersioned) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides in elements."""
    tensor = managed.tensor
    return tuple(tensor.shape[: tensor.ndim]), tuple(tensor.strides[: tensor.ndim])


def _destroy(address: int) -> None:
    """A producer's own destructor: calls the deleter unless the capsule was renamed."""
    for versioned, name in NAMES.items():
        if python.PyCapsule_IsValid(address, name):
            form = ManagedVersioned if versioned else Managed
            managed = form.from_address(_pointer_in(address, name))
            if managed.deleter:
                delete(managed)


# A capsule that is being destroyed has no references left: it must not become a Python object again.
_pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", python))
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_destructor = _Destructor(_destroy)


class Exporter:
    """Capsules of one device array, as another library would make them; `deleted` counts calls of deleters.

    `poison` changes the managed tensor before it is exported.
    """

    def __init__(
        self,
        array: bascule.DeviceArray,
        *,
        versioned: bool = True,
        poison: Callable[[Managed | ManagedVersioned], None] = lambda managed: None,
    ) -> None:
        self.array = array
        self.versioned = versioned
        self.poison = poison
        self.deleted = 0

    def capsule(self, name: ctypes.Array[ctypes.c_char] | None = None) -> object:
        fields = self.array.__cuda_array_interface__
        shape = fields["shape"]
        itemsize = self.array.dtype.itemsize
        strides = tuple(stride // itemsize for stride in self.array.strides)
        managed = ManagedVersioned() if self.versioned else Managed()
        if self.versioned:
            managed.major, managed.minor = 1, 0
        tensor = managed.tensor
        tensor.data = fields["data"][0]
        tensor.device = Device(CUDA, 0)
        tensor.ndim = len(shape)
        tensor.dtype = DataType(CODES[self.array.dtype.kind], 8 * itemsize, 1)
        tensor.shape = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        tensor.strides = (ctypes.c_int64 * max(1, len(shape)))(*strides)

        def count(_: int) -> None:
            self.deleted += 1

        managed.deleter = Deleter(count)
        self.poison(managed)
        _kept.append((managed, self))
        return python.PyCapsule_New(
            ctypes.addressof(managed), NAMES[self.versioned] if name is None else name, _destructor
        )


class Producer(Exporter):
    """An array of a library with DLPack only, in its current form or that before 1.0; records the requests."""

    device = (CUDA, 0)

    def __init__(self, array: bascule.DeviceArray, **options: object) -> None:
        super().__init__(array, **options)
        self.asked: list[dict[str, object]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **keywords: object) -> object:
        self.asked.append(keywords)
        if not self.versioned and keywords.keys() - {"stream"}:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        return self.capsule()


def native() -> ModuleType:
    """Returns the extension module of exchange_native.c, built with the package under test or packed with the tests."""
    builds = [Path(_bascule.__file__).resolve().parents[2], Path(__file__).resolve().parents[3] / "build" / "dev"]
    for build, suffix in itertools.product(builds, importlib.machinery.EXTENSION_SUFFIXES):
        path = build / "tests" / "python" / "dlpack" / f"exchange_native{suffix}"
        if path.is_file():
            specification = importlib.util.spec_from_file_location("exchange_native", path)
            module = importlib.util.module_from_spec(specification)
            specification.loader.exec_module(module)
            return module
    pytest.skip(f"exchange_native is not built in {builds[0]}", allow_module_level=True)
