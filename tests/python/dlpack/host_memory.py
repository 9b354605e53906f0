"""Pinned and managed memory from the driver itself, so that these tests need no allocator of Bascule."""

from __future__ import annotations

import ctypes
import weakref
from pathlib import Path

import numpy as np

import bascule
from bascule import _bascule


def _driver() -> ctypes.CDLL:
    if bascule.current_device().emulated:
        return ctypes.CDLL(str(Path(_bascule.__file__).parent / "libbascule_emulator.so"))
    return ctypes.CDLL("libcuda.so.1")


def _check(code: int, call: str) -> None:
    if code != 0:
        raise RuntimeError(f"{call} returned {code}")


class HostMemory:
    """`values` in host memory that the device can read: pinned or managed."""

    def __init__(self, values: np.ndarray, *, managed: bool = False) -> None:
        driver = _driver()
        bascule.device_array(1, "f4")  # makes the device's context current in this thread
        address = ctypes.c_uint64()
        size = ctypes.c_size_t(max(1, values.nbytes))
        if managed:
            _check(driver.cuMemAllocManaged(ctypes.byref(address), size, 1), "cuMemAllocManaged")
            free = driver.cuMemFree_v2
        else:
            _check(driver.cuMemHostAlloc(ctypes.byref(address), size, 0), "cuMemHostAlloc")
            free = driver.cuMemFreeHost
        weakref.finalize(self, free, ctypes.c_uint64(address.value))
        buffer = (ctypes.c_char * size.value).from_address(address.value)
        self.host = np.frombuffer(buffer, values.dtype, values.size).reshape(values.shape)
        self.host[...] = values
        self.address = address.value

    def array(self, *, stream: bascule.Stream | None = None, readonly: bool = False) -> bascule.DeviceArray:
        """Returns a DeviceArray of this memory, bound to the stream."""
        descriptor = {
            "shape": self.host.shape,
            "typestr": self.host.dtype.str,
            "data": (self.address, readonly),
            "version": 3,
            "stream": None if stream is None else stream.handle,
        }
        return bascule.from_cuda_array_interface(descriptor, (self, stream))
