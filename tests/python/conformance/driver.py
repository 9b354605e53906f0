"""Memory as other libraries get it: from the driver that kernels run on, without Bascule's knowledge."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import bascule

BYTES = 4096


def check(code: int) -> None:
    if code != 0:
        raise RuntimeError(f"the driver returned CUresult {code}")


@functools.cache
def driver() -> ctypes.CDLL:
    emulated = bascule.current_device().emulated
    return ctypes.CDLL(str(Path(bascule.__file__).parent / "libbascule_emulator.so") if emulated else "libcuda.so.1")


@functools.cache
def context_of(device: int) -> ctypes.c_void_p:
    """Returns the primary context, which Bascule uses too."""
    context = ctypes.c_void_p()
    check(driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    return context


@contextmanager
def current(device: int) -> Iterator[None]:
    check(driver().cuCtxSetCurrent(context_of(device)))
    try:
        yield
    finally:
        check(driver().cuCtxSetCurrent(context_of(0)))


class Memory:
    """4 KiB of one kind: 'device', 'pinned', 'managed' or 'pool'."""

    def __init__(self, kind: str = "device", device: int = 0) -> None:
        self.kind = kind
        self.device = device
        address = ctypes.c_uint64()
        out, size = ctypes.byref(address), ctypes.c_size_t(BYTES)
        with current(device):
            if kind == "device":
                check(driver().cuMemAlloc_v2(out, size))
            elif kind == "pinned":
                check(driver().cuMemHostAlloc(out, size, 2))  # CU_MEMHOSTALLOC_DEVICEMAP
            elif kind == "managed":
                check(driver().cuMemAllocManaged(out, size, 1))  # CU_MEM_ATTACH_GLOBAL
            else:
                check(driver().cuMemAllocAsync(out, size, None))
        self.address = address.value

    def free(self) -> None:
        with current(self.device):
            check(driver().cuCtxSynchronize())
            check(driver().cuMemFree_v2(ctypes.c_uint64(self.address)))

    def write(self, values: np.ndarray) -> None:
        data = values.tobytes()
        with current(self.device):
            check(driver().cuCtxSynchronize())
            check(driver().cuMemcpyHtoD_v2(ctypes.c_uint64(self.address), data, ctypes.c_size_t(len(data))))

    def read(self, dtype: np.dtype, count: int) -> np.ndarray:
        values = np.empty(count, dtype)
        host, size = ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(values.nbytes)
        with current(self.device):
            check(driver().cuCtxSynchronize())
            check(driver().cuMemcpyDtoH_v2(host, ctypes.c_uint64(self.address), size))
        return values
