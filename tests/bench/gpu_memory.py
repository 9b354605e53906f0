"""The cost of an allocation and a copy with each library, compared with the driver's own calls.

A part of gpu_part.py. An allocation is made and freed at once, in a loop; the wait at its end is not measured. The
figure of a copy includes the wait for its end: by cuCtxSynchronize, the same for every library.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import peers
from gpu_part import Case, NotMeasuredError, Ratio, Timer, Writer, measure, need
from launches import bench_native

import bascule
from bascule import _bascule

KIB, MIB = 1 << 10, 1 << 20
ALLOCATIONS = {4 * KIB: 200, MIB: 200, 64 * MIB: 50}  # per measurement
COPIES = {4 * KIB: 50, MIB: 10, 256 * MIB: 1}
MOST_EMULATED = 4 * MIB


def text_of(size: int) -> str:
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


class Driver:
    """The driver's own calls, with a separate pool and stream."""

    def __init__(self) -> None:
        bascule.device_array(1, "f4")
        self.library = ctypes.CDLL(_bascule._driver_info()["path"])
        context = ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxSetCurrent", context)
        self.stream, self.pool = ctypes.c_void_p(), ctypes.c_void_p()
        self("cuStreamCreateWithPriority", ctypes.byref(self.stream), 1, 0)
        self("cuDeviceGetDefaultMemPool", ctypes.byref(self.pool), 0)
        self("cuMemPoolSetAttribute", self.pool, 4, ctypes.byref(ctypes.c_uint64(2**64 - 1)))  # RELEASE_THRESHOLD

    def __call__(self, name: str, *arguments: Any) -> None:
        if code := getattr(self.library, name)(*arguments):
            raise NotMeasuredError(f"{name} returned CUresult {code}")

    def wait(self) -> None:
        self("cuCtxSynchronize")

    def address(self, name: str) -> int:
        return ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value or 0

    def memory(self, size: int) -> int:
        made = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(size))
        return made.value


def in_a_loop(driver: Driver, call: Callable[[], object], count: int) -> Timer:
    def take() -> float:
        start = time.perf_counter()
        for _ in range(count):
            call()
        taken = time.perf_counter() - start
        driver.wait()
        return taken / count * 1e6

    return take


def waited_for(driver: Driver, call: Callable[[], object], count: int) -> Timer:
    def take() -> float:
        start = time.perf_counter()
        for _ in range(count):
            call()
            driver.wait()
        return (time.perf_counter() - start) / count * 1e6

    return take


# --- each library's operations: methods return the function that is timed; `host` is a NumPy array of bytes ---


class Bascule:
    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def allocate(self, size: int) -> Callable[[], object]:
        return partial(bascule.device_array, size, "u1")

    def to_new(self, host: np.ndarray) -> Callable[[], object]:
        return partial(bascule.to_device, host)

    def to_device(self, host: np.ndarray) -> Callable[[], object]:
        return partial(bascule.device_array(host.size, "u1").copy_from_host, host)

    def to_host(self, host: np.ndarray) -> Callable[[], object]:
        return bascule.to_device(host).copy_to_host

    def to_host_again(self, host: np.ndarray) -> Callable[[], object]:
        return partial(bascule.to_device(host).copy_to_host, out=np.empty_like(host))


class Raw(Bascule):
    """The driver's functions, called with ctypes, which adds about 0.5 us a call; allocations are called from C."""

    def allocation(self, size: int, count: int) -> Timer:
        d, made = self.driver, ctypes.c_uint64()
        stream, pool = d.stream.value, d.pool.value
        calls = (
            (d.address("cuMemAllocFromPoolAsync"), ctypes.addressof(made), size, pool, stream),
            (d.address("cuMemFreeAsync"), (ctypes.addressof(made),), stream),
        )

        def take(written: ctypes.c_uint64 = made) -> float:  # a default argument, so that it lives as long as the calls
            taken, code, _ = bench_native.time_sequence(count, calls)
            if code:
                raise NotMeasuredError(f"the driver returned CUresult {code}, address {written.value:#x}")
            d.wait()
            return taken / count / 1e3

        return take

    def to_device(self, host: np.ndarray) -> Callable[[], object]:
        memory, size = self.driver.memory(host.nbytes), ctypes.c_size_t(host.nbytes)
        address = ctypes.c_void_p(host.ctypes.data)
        return lambda: self.driver("cuMemcpyHtoD_v2", ctypes.c_uint64(memory), address, size)

    def to_host_again(self, host: np.ndarray) -> Callable[[], object]:
        memory, size = self.driver.memory(host.nbytes), ctypes.c_size_t(host.nbytes)
        out = np.empty_like(host)
        address = ctypes.c_void_p(out.ctypes.data)
        return lambda keep=out: self.driver("cuMemcpyDtoH_v2", address, ctypes.c_uint64(memory), size)


class RawPinned(Raw):
    """Asynchronous copies of pinned memory, which are as fast as the bus."""

    def pinned(self, size: int) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self.driver("cuMemHostAlloc", ctypes.byref(made), ctypes.c_size_t(size), 0)
        return made

    def to_device(self, host: np.ndarray) -> Callable[[], object]:
        d, memory, pinned = self.driver, self.driver.memory(host.nbytes), self.pinned(host.nbytes)
        size = ctypes.c_size_t(host.nbytes)
        return lambda: d("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(memory), pinned, size, d.stream)

    def to_host_again(self, host: np.ndarray) -> Callable[[], object]:
        d, memory, pinned = self.driver, self.driver.memory(host.nbytes), self.pinned(host.nbytes)
        size = ctypes.c_size_t(host.nbytes)
        return lambda: d("cuMemcpyDtoHAsync_v2", pinned, ctypes.c_uint64(memory), size, d.stream)


class BasculePinned(Bascule):
    def pinned(self, host: np.ndarray) -> Any:
        return np.asarray(bascule.pinned_array(host.size, "u1"))

    def to_device(self, host: np.ndarray) -> Callable[[], object]:
        return partial(bascule.device_array(host.size, "u1").copy_from_host, self.pinned(host))

    def to_host_again(self, host: np.ndarray) -> Callable[[], object]:
        return partial(bascule.to_device(host).copy_to_host, out=self.pinned(host))


class Cupy(Bascule):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        need("cupy")
        import cupy

        self.cupy = cupy

    def allocate(self, size: int) -> Callable[[], object]:
        return partial(self.cupy.empty, size, "u1")

    def to_new(self, host: np.ndarray) -> Callable[[], object]:
        return partial(self.cupy.asarray, host)

    def to_device(self, host: np.ndarray) -> Callable[[], object]:
        return partial(self.cupy.empty(host.size, "u1").set, host)

    def to_host(self, host: np.ndarray) -> Callable[[], object]:
        return self.cupy.asarray(host).get

    def to_host_again(self, host: np.ndarray) -> Callable[[], object]:
        return partial(self.cupy.asarray(host).get, out=np.empty_like(host))


class Torch(Bascule):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        need("torch")
        import torch

        self.torch = torch
        torch.zeros(1, device="cuda")

    def allocate(self, size: int) -> Callable[[], object]:
        return partial(self.torch.empty, size, dtype=self.torch.uint8, device="cuda")

    def to_new(self, host: np.ndarray) -> Callable[[], object]:
        return self.torch.from_numpy(host).cuda

    def to_device(self, host: np.ndarray) -> Callable[[], object]:
        return partial(self.torch.empty(host.size, dtype=self.torch.uint8, device="cuda").copy_, self.tensor(host))

    def to_host(self, host: np.ndarray) -> Callable[[], object]:
        return self.tensor(host).cuda().cpu

    def to_host_again(self, host: np.ndarray) -> Callable[[], object]:
        return partial(self.torch.empty(host.size, dtype=self.torch.uint8).copy_, self.tensor(host).cuda())

    def tensor(self, host: np.ndarray) -> Any:
        return self.torch.from_numpy(host)


class Numba(Bascule):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        need("numba.cuda")
        from numba import cuda

        self.cuda = cuda

    def allocate(self, size: int) -> Callable[[], object]:
        return partial(self.cuda.device_array, size, "u1")

    def to_new(self, host: np.ndarray) -> Callable[[], object]:
        return partial(self.cuda.to_device, host)

    def to_device(self, host: np.ndarray) -> Callable[[], object]:
        return partial(self.cuda.device_array(host.size, "u1").copy_to_device, host)

    def to_host(self, host: np.ndarray) -> Callable[[], object]:
        return self.cuda.to_device(host).copy_to_host

    def to_host_again(self, host: np.ndarray) -> Callable[[], object]:
        return partial(self.cuda.to_device(host).copy_to_host, np.empty_like(host))


class CudaCore:
    """cuda.core, which does not copy NumPy arrays."""

    def __init__(self, driver: Driver) -> None:
        need("cuda.core")
        self.device = peers.cuda_core_module().Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()

    def allocate(self, size: int) -> Callable[[], object]:
        return lambda: self.device.allocate(size, stream=self.stream).close()


KINDS: dict[str, type] = {
    "the driver": Raw,
    "the driver, pinned": RawPinned,
    "Bascule": Bascule,
    "Bascule, pinned": BasculePinned,
    "CuPy": Cupy,
    "PyTorch": Torch,
    "numba-cuda": Numba,
    "cuda.core": CudaCore,
}
OF = {
    "bascule": ["the driver", "Bascule", "the driver, pinned", "Bascule, pinned"],
    "cupy": ["Bascule", "CuPy"],
    "torch": ["Bascule", "PyTorch"],
    "numba-cuda": ["Bascule", "numba-cuda"],
    "cuda.core": ["Bascule", "cuda.core"],
    "triton": [],
}
METHODS = {
    "to_new": "NumPy to a new array",
    "to_device": "NumPy to an array",
    "to_host": "to a new NumPy array",
    "to_host_again": "to a NumPy array",
}


def has(library: str, method: str) -> bool:
    kind = library.removesuffix(", pinned")
    pinned = library != kind
    return kind != "cuda.core" and not ((pinned or kind == "the driver") and method in ("to_new", "to_host"))


def allocations(driver: Driver, libraries: list[str], size: int) -> list[Case]:
    count = ALLOCATIONS[size]

    def make(library: str) -> Timer:
        kind = KINDS[library](driver)
        if isinstance(kind, Raw):
            return kind.allocation(size, count)
        return in_a_loop(driver, kind.allocate(size), count)

    plain = [library for library in libraries if not library.endswith("pinned")]
    what = f"allocating and freeing {text_of(size)}"
    return [Case(library, f"{library}: {what}", partial(make, library)) for library in plain]


def copies(driver: Driver, libraries: list[str], size: int, method: str) -> list[Case]:
    host = np.ones(size, "u1")

    def make(library: str) -> Timer:
        return waited_for(driver, getattr(KINDS[library](driver), method)(host), COPIES[size])

    what = f"{METHODS[method]}, {text_of(size)}"
    return [Case(name, f"{name}: {what}", partial(make, name)) for name in libraries if has(name, method)]


def ratios_of(cases: list[Case]) -> list[Ratio]:
    """Ratios of Bascule to each other library; with pinned memory, to the driver with pinned memory."""
    names = [case.name for case in cases]
    found = [Ratio("G7", "Bascule", name) for name in names if not name.endswith("pinned") and name != "Bascule"]
    if "Bascule, pinned" in names:
        found.append(Ratio("G7", "Bascule, pinned", "the driver, pinned"))
    return found


def run(library: str, rounds: int | None, writer: Writer) -> None:
    libraries = OF[library]
    if not libraries:
        return
    driver = Driver()
    emulated = hasattr(driver.library, "bascule_emulated_abi")
    for size in ALLOCATIONS:
        if not emulated or size <= MOST_EMULATED:
            cases = allocations(driver, libraries, size)
            measure(cases, ratios_of(cases), "us", min(rounds or 11, 11), writer)
    for size in COPIES:
        for method in METHODS:
            cases = copies(driver, libraries, size, method)
            if len(cases) > 1 and (not emulated or size <= MOST_EMULATED):
                measure(cases, ratios_of(cases), "us", min(rounds or 9, 3 if size > 64 * MIB else 9), writer)
