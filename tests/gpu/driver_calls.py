"""The driver without Bascule: its functions by ctypes, and the costs of call sequences without the overhead of ctypes.

assumptions.py, first.py and Python tests use it. A sequence is a tuple of calls; a call is a tuple of a
function's name and its arguments: numbers, or objects of ctypes. `At(object)` is the value that the object has when
the call is made, because an earlier call of the sequence may have written it.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import bascule

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

LEGACY, PER_THREAD = 1, 2
NOT_READY = 600
KERNELS = """
extern "C" __global__ void arrays3(const float* x0, const float* x1, float* out, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a + x0[i] + x1[i];
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void spin(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {}
}
"""


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        *((name, c_uint) for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared")),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("attribute_count", c_uint),
    )


class PoolProperties(ctypes.Structure):
    """CUmemPoolProps: pinned memory of device 0."""

    _fields_ = (
        *((name, c_int) for name in ("kind", "handle_types", "location_kind", "location")),
        ("security", c_void_p),
        ("most", c_size_t),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 54),
    )


class At:
    def __init__(self, value: Any) -> None:
        self.value = value


class DriverError(Exception):
    """A driver function returned a value other than 0."""


class RawDriver:
    """The driver that Bascule uses. Makes the primary context of device 0 current in the constructing thread."""

    def __init__(self) -> None:
        from measuring import native

        (self.native,) = native("bench_native")
        self.native.use_wall_clock()
        device = bascule.current_device()
        bascule.device_array(1, "f4")
        self.library = ctypes.CDLL(bascule._bascule._driver_info()["path"])
        self.emulated = device.emulated or hasattr(self.library, "bascule_emulated_abi")
        self.context = c_void_p()
        self("cuDevicePrimaryCtxRetain", byref(self.context), 0)
        self.enter()

    def enter(self) -> None:
        self("cuCtxSetCurrent", self.context)

    def code(self, name: str, *arguments: Any) -> int:
        return getattr(self.library, name)(*arguments)

    def __call__(self, name: str, *arguments: Any) -> None:
        if code := self.code(name, *arguments):
            raise DriverError(f"{name} returned CUresult {code}")

    def made(self, name: str, *arguments: Any, kind: type = c_void_p) -> Any:
        """Returns what a function writes through its first argument."""
        result = kind()
        self(name, byref(result), *arguments)
        return result

    def stream(self) -> c_void_p:
        return self.made("cuStreamCreateWithPriority", 1, 0)

    def event(self, flags: int = 2) -> c_void_p:
        return self.made("cuEventCreate", flags)

    def memory(self, size: int) -> c_uint64:
        return self.made("cuMemAlloc_v2", c_size_t(size), kind=c_uint64)

    def pool(self, handle_types: int = 0) -> c_void_p:
        properties = PoolProperties(kind=1, handle_types=handle_types, location_kind=1, location=0)
        pool = self.made("cuMemPoolCreate", byref(properties))
        self.set_pool(pool, 4, c_uint64(2**64 - 1))  # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        return pool

    def set_pool(self, pool: c_void_p, attribute: int, value: Any) -> None:
        self("cuMemPoolSetAttribute", pool, attribute, byref(value))

    def reserved(self, pool: c_void_p) -> int:
        """Bytes of device memory that the pool holds."""
        found = c_uint64()
        self("cuMemPoolGetAttribute", pool, 5, byref(found))
        return found.value

    def pooled(self, size: int, pool: c_void_p, stream: c_void_p) -> c_uint64:
        return self.made("cuMemAllocFromPoolAsync", c_size_t(size), pool, stream, kind=c_uint64)

    def load(self, name: str) -> tuple[c_void_p, c_void_p]:
        """A kernel of KERNELS as a CUkernel and as a CUfunction, loaded on the device."""
        image = bascule.compile(KERNELS)[name].ptx.encode() + b"\0"
        library = self.made("cuLibraryLoadData", image, None, None, 0, None, None, 0)
        kernel = self.made("cuLibraryGetKernel", library, name.encode())
        return kernel, self.made("cuKernelGetFunction", kernel)

    def launch(self, function: c_void_p, stream: c_void_p | int, *arguments: Any, grid: int = 1, block: int = 1) -> int:
        pointers = (c_void_p * max(1, len(arguments)))(*(ctypes.addressof(each) for each in arguments))
        handle = stream if isinstance(stream, c_void_p) else c_void_p(stream)
        return self.code("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, 0, handle, pointers, None)

    def spin(self, stream: c_void_p | int, milliseconds: float) -> None:
        """Launches a kernel that keeps the stream busy for at least this time on a GPU of up to 2 GHz."""
        if not hasattr(self, "spinning"):
            self.spinning = self.load("spin")[1]
        cycles = 1000 if self.emulated else int(milliseconds * 2e6)
        if code := self.launch(self.spinning, stream, ctypes.c_longlong(cycles)):
            raise DriverError(f"cuLaunchKernel returned CUresult {code}")

    def synchronize(self) -> None:
        self("cuCtxSynchronize")

    def is_busy(self, stream: c_void_p | int) -> bool:
        return self.code("cuStreamQuery", stream if isinstance(stream, c_void_p) else c_void_p(stream)) == NOT_READY

    def prepared(self, calls: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Any, ...], ...]:
        return tuple((self.address(name), *map(word_of, arguments)) for name, *arguments in calls)

    def address(self, name: str) -> int:
        found = ctypes.cast(getattr(self.library, name), c_void_p).value
        assert found is not None
        return found

    def nanoseconds(self, calls: tuple[tuple[Any, ...], ...], count: int = 256, rounds: int = 15) -> float:
        """Nanoseconds per sequence: the median over rounds of `count` repetitions, without the waits after rounds."""
        prepared = self.prepared(calls)
        taken = []
        for _ in range(rounds + 1):  # the first warms up
            total, code, index = self.native.time_sequence(count, prepared)
            if code:
                raise DriverError(f"{calls[index][0]} returned CUresult {code}")
            taken.append(total / count)
            self.synchronize()
        return statistics.median(taken[1:])


class Launchable:
    """The kernel `arrays3` with its arguments: three pointers and a float, 4 blocks of 256 threads."""

    def __init__(self, d: RawDriver) -> None:
        self.kernel, self.function = d.load("arrays3")
        self.arrays = [d.memory(4096) for _ in range(3)]
        self.scalar = c_float(2.0)
        arguments = [*self.arrays, self.scalar]
        self.parameters = (c_void_p * 4)(*(ctypes.addressof(each) for each in arguments))
        self.configs: list[LaunchConfig] = []

    def on(self, stream: c_void_p | int, function: c_void_p | None = None) -> tuple[Any, ...]:
        """The call that launches it, as a part of a sequence; `function` may also be the CUkernel."""
        handle = stream if isinstance(stream, int) else stream.value
        self.configs.append(LaunchConfig(4, 1, 1, 256, 1, 1, 0, handle, None, 0))
        return ("cuLaunchKernelEx", self.configs[-1], function or self.function, self.parameters, 0)


def word_of(argument: Any) -> Any:
    """Converts an argument for time_sequence."""
    if isinstance(argument, At):
        return (ctypes.addressof(argument.value),)
    if argument is None or isinstance(argument, int):
        return argument or 0
    if isinstance(argument, (c_void_p, c_uint64, c_size_t, c_int, c_uint)):
        return argument.value or 0
    if isinstance(argument, (ctypes.Array, ctypes.Structure)):
        return ctypes.addressof(argument)
    return ctypes.cast(argument, c_void_p).value or 0  # byref and pointers


def microseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return round((time.perf_counter() - start) * 1e6, 2)
