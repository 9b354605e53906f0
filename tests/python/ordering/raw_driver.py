"""Driver calls as another library in the process makes them: with ctypes, on the driver library that Bascule uses."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager

import bascule


@functools.cache
def driver() -> ctypes.CDLL:
    bascule.device_array(1, "f4")  # makes a context current in this thread
    return ctypes.CDLL(bascule._bascule._driver_info()["path"])


def call(function: str, *arguments: object) -> None:
    code = getattr(driver(), function)(*arguments)
    assert code == 0, f"{function} said {code}"


class BlockingStream:
    """A stream of the current device that synchronizes with the legacy default stream."""

    def __init__(self) -> None:
        self._stream = ctypes.c_void_p()
        with current(bascule.current_device()):
            call("cuStreamCreate", ctypes.byref(self._stream), 0)
        assert self._stream.value is not None
        self.handle: int = self._stream.value

    def __del__(self) -> None:
        call("cuStreamDestroy_v2", self._stream)


@contextmanager
def current(device: bascule.Device) -> Iterator[None]:
    """Makes the device's primary context current in the thread, as other libraries need it."""
    context = primary_context(device)
    call("cuCtxPushCurrent_v2", context)
    try:
        yield
    finally:
        call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


@functools.cache
def primary_context(device: bascule.Device) -> ctypes.c_void_p:
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device.ordinal)
    return context


def peer_copy(to: bascule.DeviceArray, array: bascule.DeviceArray, stream: bascule.Stream) -> None:
    """Copies from device to device, on a stream of either."""
    with current(stream.device):
        call(
            "cuMemcpyPeerAsync",
            _address(to),
            primary_context(to.device),
            _address(array),
            primary_context(array.device),
            ctypes.c_size_t(array.nbytes),
            _native(stream),
        )


class PoolArray:
    """Memory allocated in stream order; an array of another library that names no stream."""

    def __init__(self, count: int, stream: bascule.Stream) -> None:
        self._address = ctypes.c_uint64()
        self._count = count
        call("cuMemAllocAsync", ctypes.byref(self._address), ctypes.c_size_t(4 * count), _native(stream))
        self._open_to_peers(stream.device.ordinal)

    @staticmethod
    def _open_to_peers(device: int) -> None:
        """Peer access does not cover another library's pool; the library grants access itself."""
        pool = ctypes.c_void_p()
        call("cuDeviceGetDefaultMemPool", ctypes.byref(pool), device)
        for peer in (0, 1):
            if peer == device or driver().cuDeviceCanAccessPeer(ctypes.byref(ctypes.c_int()), peer, device) != 0:
                continue
            access = (ctypes.c_int * 3)(1, peer, 3)  # CU_MEM_LOCATION_TYPE_DEVICE, its number, PROT_READWRITE
            call("cuMemPoolSetAccess", pool, access, ctypes.c_size_t(1))

    def free(self, stream: bascule.Stream) -> None:
        call("cuMemFreeAsync", self._address, _native(stream))

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {
            "shape": (self._count,),
            "typestr": "<i4",
            "data": (self._address.value, False),
            "version": 3,
            "stream": None,
        }


def _address(array: bascule.DeviceArray) -> ctypes.c_uint64:
    return ctypes.c_uint64(bascule.as_cuda_array(array, sync=False).__cuda_array_interface__["data"][0])


def _native(stream: bascule.Stream) -> ctypes.c_void_p:
    return ctypes.c_void_p(stream.handle)
