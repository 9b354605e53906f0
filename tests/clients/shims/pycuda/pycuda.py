"""PyCUDA's names on Bascule, as far as PyCUDA's tests of its driver use them. It only maps names.

PyCUDA's own memory pool and its function bitlog2 are not mapped: Bascule has no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from shim_parts import driver_version, module

import bascule


class PointerHolderBase:
    """An object with an address, for kernels that take pointers."""

    def get_pointer(self) -> int:
        raise NotImplementedError

    def __int__(self) -> int:
        return self.get_pointer()


class DeviceAllocation(PointerHolderBase):
    """An array of bytes."""

    def __init__(self, array: bascule.DeviceArray) -> None:
        self.array = array

    def get_pointer(self) -> int:
        return self.array.__cuda_array_interface__["data"][0]


class Argument:
    """A host array that a kernel takes as an array on the device: copied there, back, or both."""

    copies_in = copies_out = False

    def __init__(self, host: np.ndarray[Any, Any]) -> None:
        self.host = host

    def enter(self, stream: Any) -> bascule.DeviceArray:
        self.array = bascule.device_array(self.host.shape, self.host.dtype, stream=stream)
        if self.copies_in:
            self.array.copy_from_host(self.host, stream=stream)
        return self.array

    def leave(self, stream: Any) -> None:
        if self.copies_out:
            self.array.copy_to_host(self.host, stream=stream)


class In(Argument):
    copies_in = True


class Out(Argument):
    copies_out = True


class InOut(Argument):
    copies_in = copies_out = True


class GPUArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A DeviceArray with NumPy's arithmetic, which is computed on host copies."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, gpudata: PointerHolderBase) -> None:
        interface = {"shape": shape, "typestr": np.dtype(dtype).str, "data": (int(gpudata), False), "version": 3}
        self.array = bascule.from_cuda_array_interface(interface, owner=gpudata)

    @classmethod
    def of(cls, array: bascule.DeviceArray) -> GPUArray:
        made = cls.__new__(cls)
        made.array = array
        return made

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        # Like PyCUDA's: names no stream, and has strides for dense arrays too.
        return {**self.array.__cuda_array_interface__, "strides": self.array.strides, "stream": None}

    def get(self) -> np.ndarray[Any, Any]:
        return self.array.copy_to_host()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> GPUArray:
        hosts = (each.get() if isinstance(each, GPUArray) else each for each in inputs)
        return to_gpu(getattr(ufunc, method)(*hosts, **options))


def to_gpu(host: np.ndarray[Any, Any]) -> GPUArray:
    return GPUArray.of(bascule.to_device(host))


class Function:
    def __init__(self, kernel: bascule.Kernel) -> None:
        self.kernel = kernel

    def __call__(
        self, *args: Any, block: Any, grid: Any = (1, 1), stream: bascule.Stream | None = None, shared: int = 0
    ) -> None:
        self.kernel.prepare()
        types = (kind for _, kind in self.kernel.parameters)
        passed = tuple(argument(arg, kind, stream) for arg, kind in zip(args, types, strict=True))
        self.kernel.launch(grid, block, passed, stream=stream, shared_bytes=shared)
        for arg in args:
            if isinstance(arg, Argument):
                arg.leave(stream)

    def prepare(self, arg_types: Any) -> None:
        """Does nothing, because Bascule knows the types of a kernel's parameters."""

    def prepared_call(self, grid: Any, block: Any, *args: Any, shared_size: int = 0) -> None:
        self(*args, grid=grid, block=block, shared=shared_size)


def argument(value: Any, kind: str, stream: Any) -> Any:
    if isinstance(value, Argument):
        return value.enter(stream)
    if isinstance(value, GPUArray):
        return value.array
    if isinstance(value, PointerHolderBase | np.intp | int) and kind.endswith("*"):
        return bascule.raw_pointer(int(value))
    return value


class SourceModule:
    def __init__(self, source: str, *, keep: bool = False, cache_dir: Any = None) -> None:
        self.module = bascule.compile(source)

    def get_function(self, name: str) -> Function:
        return Function(self.module[name])

    def get_global(self, name: str) -> tuple[DeviceAllocation, int]:
        array = self.module.get_global(name)
        return DeviceAllocation(array.view("u1")), array.nbytes


class DynamicModule(SourceModule):
    """Links texts. Ignores cudadevrt, the library for kernels that launch kernels, which is not a text."""

    def __init__(self) -> None:
        self.sources: list[str] = []

    def add_source(self, source: str, *, nvcc_options: Any) -> None:
        self.sources.append(source)

    def add_stdlib(self, name: str) -> None:
        pass

    def link(self) -> None:
        self.module = bascule.link(self.sources)


class Device:
    def __init__(self, device: bascule.Device) -> None:
        self.device = device

    def compute_capability(self) -> tuple[int, int]:
        number = int("".join(filter(str.isdigit, self.device.arch)))
        return number // 10, number % 10

    def retain_primary_context(self) -> Context:
        return Context(self.device)


class Context:
    """The primary context of a device, the only one in which Bascule allocates itself."""

    def __init__(self, device: bascule.Device) -> None:
        self.device = device

    def push(self) -> None:
        self.device.__enter__()

    def detach(self) -> None:
        self.device.__exit__(None, None, None)

    @staticmethod
    def get_device() -> Device:
        return Device(bascule.current_device())

    @staticmethod
    def synchronize() -> None:
        bascule.synchronize()


def mem_alloc(nbytes: int) -> DeviceAllocation:
    return DeviceAllocation(bascule.device_array(nbytes, "u1"))


def memcpy_htod(target: DeviceAllocation, host: np.ndarray[Any, Any], stream: Any = None) -> None:
    target.array[: host.nbytes].copy_from_host(host.reshape(-1).view("u1"), stream=stream)


def memcpy_dtoh(host: np.ndarray[Any, Any], source: DeviceAllocation, stream: Any = None) -> None:
    source.array[: host.nbytes].copy_to_host(host.reshape(-1).view("u1"), stream=stream)


def to_device(host: np.ndarray[Any, Any]) -> DeviceAllocation:
    allocation = mem_alloc(host.nbytes)
    memcpy_htod(allocation, host)
    return allocation


def from_device_like(source: DeviceAllocation, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    host = np.empty_like(like)
    memcpy_dtoh(host, source)
    return host


def pagelocked_zeros(shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    host = np.asarray(bascule.pinned_array(shape, dtype))
    host[...] = 0
    return host


FLOAT3 = np.dtype([(axis, np.float32) for axis in "xyz"])

__path__: list[str] = []  # a package, for `import pycuda.driver`
driver = module(
    "pycuda.driver",
    Context=Context,
    DeviceAllocation=DeviceAllocation,
    In=In,
    InOut=InOut,
    Out=Out,
    PointerHolderBase=PointerHolderBase,
    Stream=bascule.stream,
    from_device_like=from_device_like,
    get_driver_version=driver_version,
    get_version=lambda: (driver_version() // 1000, driver_version() % 1000 // 10, 0),
    mem_alloc=mem_alloc,
    mem_alloc_like=lambda host: mem_alloc(host.nbytes),
    memcpy_dtoh=memcpy_dtoh,
    memcpy_dtoh_async=memcpy_dtoh,
    memcpy_htod=memcpy_htod,
    memcpy_htod_async=memcpy_htod,
    pagelocked_empty_like=lambda like: np.asarray(bascule.pinned_array(like.shape, like.dtype)),
    pagelocked_zeros=pagelocked_zeros,
    to_device=to_device,
)
vec = module("pycuda.gpuarray.vec", float3=FLOAT3, make_float3=lambda *values: np.array(values, FLOAT3)[()])
gpuarray = module(
    "pycuda.gpuarray",
    GPUArray=GPUArray,
    to_gpu=to_gpu,
    vec=vec,
    zeros=lambda shape, dtype: GPUArray.of(bascule.zeros(shape, dtype)),
    __path__=[],
)
compiler = module(
    "pycuda.compiler",
    DEFAULT_NVCC_FLAGS=[],
    DynamicModule=DynamicModule,
    DynamicSourceModule=SourceModule,
    SourceModule=SourceModule,
)


def mark_cuda_test(test: Callable[..., None]) -> Callable[..., None]:
    """Returns the test. PyCUDA makes a context before each test; Bascule makes one when it is needed."""
    return test


tools = module(
    "pycuda.tools",
    dtype_to_ctype=None,  # only for tests of texture references, which CUDA 12 no longer has
    mark_cuda_test=mark_cuda_test,
)
