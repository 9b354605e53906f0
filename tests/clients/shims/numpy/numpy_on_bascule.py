"""NumPy's names on Bascule's arrays, as far as NumPy's tests of DLPack use them. It only maps names.

`device` and `pinned` are NumPy with arrays in that kind of memory, to which NumPy's values are copied.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import bascule


class counted:  # noqa: N801
    """Replaces `sys`: counts references to the Bascule array that an array of this module wraps."""

    @staticmethod
    def getrefcount(array: ndarray) -> int:
        return sys.getrefcount(array.array)


class Flags:
    def __init__(self, of: ndarray) -> None:
        self.of = of

    @property
    def writeable(self) -> bool:
        return not self.of.array.readonly

    @writeable.setter
    def writeable(self, writeable: bool) -> None:
        array = self.of.array
        self.of.array = described(array, data=(array.__cuda_array_interface__["data"][0], not writeable))


def described(array: bascule.DeviceArray, **changed: Any) -> bascule.DeviceArray:
    """A view of the array's memory by another descriptor."""
    return bascule.from_cuda_array_interface({**array.__cuda_array_interface__, **changed}, owner=array)


class ndarray:  # noqa: N801
    """Wraps a DeviceArray. It can be subclassed, like NumPy's class."""

    def __init__(self, *, shape: Any, dtype: Any, strides: Any, buffer: ndarray, order: str) -> None:
        dtype = np.dtype(dtype)
        self.array = described(buffer.array, shape=shape, typestr=dtype.str, descr=dtype.descr, strides=strides)

    @classmethod
    def of(cls, array: bascule.DeviceArray) -> Any:
        made = cls.__new__(cls)
        made.array = array
        return made

    def view(self, kind: type[ndarray]) -> Any:
        return kind.of(self.array)

    def copy(self) -> Any:
        return type(self).of(self.array.copy())

    def astype(self, dtype: Any) -> Any:
        return type(self).of(self.array.astype(dtype))

    def reshape(self, shape: tuple[int, ...]) -> Any:
        return type(self).of(self.array.reshape(shape))

    def __getitem__(self, key: Any) -> Any:
        return type(self).of(self.array[key])

    def __bool__(self) -> bool:
        return bool(self.array.copy_to_host())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.array.copy_to_host()

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    @property
    def flags(self) -> Flags:
        return Flags(self)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype


class Numpy:
    """NumPy's functions with results in one kind of memory; its types and similar names are NumPy's own."""

    ndarray = ndarray

    def __init__(self, memory: str) -> None:
        self.memory = memory

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def asarray(self, values: Any, dtype: Any = None) -> ndarray:
        host = np.asarray(values, dtype)
        if self.memory == "device":
            return ndarray.of(bascule.to_device(host))
        array = bascule.pinned_array(host.shape, host.dtype)
        array.copy_from_host(host)
        return ndarray.of(array)

    array = asarray

    def arange(self, count: int, dtype: Any = None) -> ndarray:
        return self.asarray(np.arange(count, dtype=dtype))

    def zeros(self, shape: Any, dtype: Any = float) -> ndarray:
        return self.asarray(np.zeros(shape, dtype))

    def ones(self, shape: Any, dtype: Any = float) -> ndarray:
        return self.asarray(np.ones(shape, dtype))

    def diagonal(self, array: ndarray) -> ndarray:
        shape, strides = array.shape, array.array.strides
        return ndarray.of(described(array.array, shape=(min(shape),), strides=(sum(strides),)))

    def from_dlpack(self, array: Any, **options: Any) -> ndarray:
        return ndarray.of(bascule.from_dlpack(array, **options))

    def may_share_memory(self, x: ndarray, y: ndarray) -> bool:
        (x_first, x_last), (y_first, y_last) = (bounds(each.array) for each in (x, y))
        return x_first < y_last and y_first < x_last


def bounds(array: bascule.DeviceArray) -> tuple[int, int]:
    """The first byte of an array in C order, and the one after its last."""
    first = array.__cuda_array_interface__["data"][0]
    return first, first + array.nbytes


device = Numpy("device")
pinned = Numpy("pinned")
