"""CuPy's names on Bascule, as far as CuPy's tests of RawKernel and RawModule use them. It only maps names.

Arithmetic of arrays is NumPy's, on host copies: the tests compare kernels with it.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import own_cache  # noqa: F401  before Bascule
import pytest
from numpy import complex64, complex128, float32, float64, int32, uint32  # noqa: F401
from shim_parts import driver_version, module

import bascule

# The headers that CuPy puts on the path of every compile.
HEADERS = Path(os.environ["BASCULE_CLIENTS_SOURCES"]) / "cupy" / "_core" / "include"


class CompileException(Exception):  # noqa: N818
    """Also replaces JitifyException: there is one compiler here."""


class CUDADriverError(Exception):
    pass


class Device:
    """A device, which is current within `with`."""

    compute_capability = "80"

    def __init__(self, ordinal: int) -> None:
        self.device = bascule.device(ordinal)

    def __enter__(self) -> Device:
        self.device.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.device.__exit__(*exception)


class CacheBackend:
    """CuPy's base class of caches. Making one empties Bascule's cache; `save` is called after each compile."""

    def __init__(self, path: str = "") -> None:
        bascule.cache.clear(disk=True)

    def save(self, name: str, code: bytes, source: str) -> None:
        pass


class MemoryPointer:
    """The memory of an array."""

    def __init__(self, array: bascule.DeviceArray) -> None:
        self.array = array

    @property
    def ptr(self) -> int:
        return self.array.__cuda_array_interface__["data"][0]

    def copy_from(self, other: MemoryPointer, nbytes: int) -> None:
        flat = self.array.view("u1") if self.array.dtype != np.uint8 else self.array
        flat[:nbytes] = other.array.view("u1")[:nbytes]


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):  # noqa: N801
    """A DeviceArray with NumPy's arithmetic."""

    def __init__(self, shape: tuple[int, ...], dtype: Any = float, memptr: MemoryPointer | None = None) -> None:
        if memptr is None:
            self.device_array = bascule.zeros(shape, dtype)
            return
        interface = {
            "version": 3,
            "shape": shape,
            "typestr": np.dtype(dtype).str,
            "data": (memptr.ptr, False),
            "stream": None,
        }
        self.device_array = bascule.from_cuda_array_interface(interface, owner=memptr)

    @classmethod
    def of(cls, host: Any) -> Any:
        host = np.asarray(host)
        made = cls.__new__(cls)
        made.device_array = bascule.to_device(np.ascontiguousarray(host).reshape(host.shape))
        return made

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.device_array.__cuda_array_interface__

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.device_array.dtype

    @property
    def data(self) -> MemoryPointer:
        return MemoryPointer(self.device_array)

    def get(self) -> Any:
        return self.device_array.copy_to_host()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc in COMPLEX_ARITHMETIC and self.dtype.kind == "c" and all(isinstance(x, ndarray) for x in inputs):
            return complex_arithmetic(COMPLEX_ARITHMETIC[ufunc], inputs)
        return ndarray.of(getattr(ufunc, method)(*map(to_host, inputs), **options))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.device_array[key] = getattr(value, "device_array", value)

    def all(self) -> bool:
        return bool(self.get().all())

    def astype(self, dtype: Any) -> ndarray:
        return ndarray.of(self.get().astype(dtype))

    def reshape(self, *shape: int) -> ndarray:
        return ndarray.of(self.get().reshape(*shape))

    def copy(self) -> ndarray:
        return ndarray.of(self.get())


# Quotients and magnitudes of complex numbers use CuPy's headers, because NumPy rounds differently.
COMPLEX_ARITHMETIC = {np.divide: "a[i] / b[i]", np.absolute: "abs(a[i])"}


def complex_arithmetic(expression: str, inputs: tuple[ndarray, ...]) -> ndarray:
    a, b = (each.device_array for each in (inputs[0], inputs[-1]))
    part = "float" if a.dtype == np.complex64 else "double"
    result = part if expression.startswith("abs") else f"complex<{part}>"
    out = ndarray(a.shape, a.dtype if result != part else np.dtype(a.dtype.char.lower()))
    bascule.compile(
        f"""#include <cupy/complex.cuh>
        __global__ void apply(const complex<{part}>* a, const complex<{part}>* b, {result}* out, int n) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) out[i] = {expression};
        }}""",
        options=[f"-I{HEADERS}"],
    ).apply.forall(a.size)(a, b, out.device_array, a.size)
    return out


def to_host(value: Any) -> Any:
    return value.get() if isinstance(value, ndarray) else value


def of_numpy(function: Any) -> Any:
    """Wraps a NumPy function, so that its result is a device array."""
    return lambda *args, **options: ndarray.of(function(*map(to_host, args), **options))


arange, ones, zeros, conj, empty_like = map(of_numpy, (np.arange, np.ones, np.zeros, np.conj, np.zeros_like))
abs = np.abs  # calls __array_ufunc__
generator = np.random.default_rng(20261124)


def allclose(a: Any, b: Any) -> bool:
    return bool(np.allclose(to_host(a), to_host(b)))


class RawModule:
    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | None = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Any = None,
        jitify: bool | None = None,
    ) -> None:
        if (code is None) == (path is None):
            raise TypeError("either code or path")
        if backend == "nvcc" and name_expressions:
            raise ValueError("only nvrtc has name expressions")
        self.options = [*options, f"-I{HEADERS}"]
        if translate_cucomplex and code is not None:  # CuPy's own headers give cuComplex's names to its complex<T>
            bridge = "#include <cupy/complex.cuh>\n#include <cupy/cuComplex_bridge.h>"
            code = code.replace("#include <cuComplex.h>", bridge)
        self.code = code
        self.path = path
        self.name_expressions = name_expressions
        self.enable_cooperative_groups = enable_cooperative_groups

    @functools.cached_property
    def module(self) -> bascule.Module:
        try:
            if self.path is not None:
                return bascule.load_module(self.path)
            more = {"name_expressions": list(self.name_expressions)} if self.name_expressions else {}
            return bascule.compile(self.code, options=self.options, **more)
        except bascule.CompileError as error:
            raise CompileException(str(error)) from error
        except bascule.FileError as error:
            raise CUDADriverError("CUDA_ERROR_FILE_NOT_FOUND") from error

    def get_function(self, name: str) -> RawKernel:
        compiled = bascule.cache.stats().compiled
        module = self.module
        try:
            if name not in module.kernels and not self.name_expressions:
                raise KeyError(name)
            kernel = module[name]
            if not kernel.is_template:
                kernel.prepare()
        except bascule.CompileError as error:
            raise CompileException(str(error)) from error
        except (bascule.Error, KeyError, AttributeError) as error:
            raise CUDADriverError("CUDA_ERROR_NOT_FOUND: named symbol not found") from error
        if compiler._kernel_cache_backend is not None and bascule.cache.stats().compiled > compiled:
            compiler._kernel_cache_backend.save(name, kernel.ptx.encode(), self.code)
        return RawKernel.of(kernel, self.enable_cooperative_groups)

    def get_global(self, name: str) -> MemoryPointer:
        return MemoryPointer(self.module.get_global(name))

    def compile(self, log_stream: Any = None) -> None:
        for name in self.module.kernels:
            log_stream.write(self.module[name].prepare().log)


class RawKernel:
    def __init__(self, code: str, name: str, options: tuple[str, ...] = (), **more: Any) -> None:
        self.module = RawModule(code=code, options=options, **more)
        self.enable_cooperative_groups = self.module.enable_cooperative_groups
        self.name = name
        self._kernel: bascule.Kernel | None = None

    @classmethod
    def of(cls, kernel: bascule.Kernel, cooperative: bool) -> RawKernel:
        made = cls.__new__(cls)
        made._kernel = kernel
        made.enable_cooperative_groups = cooperative
        return made

    @property
    def kernel(self) -> bascule.Kernel:
        if self._kernel is None:
            self._kernel = self.module.get_function(self.name)._kernel
        return self._kernel

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
        passed = tuple(bascule.raw_pointer(arg.ptr) if isinstance(arg, MemoryPointer) else arg for arg in args)
        try:
            self.kernel.launch(
                grid,
                block,
                passed,
                shared_bytes=shared_mem,
                stream=stream,
                cooperative=self.enable_cooperative_groups,
            )
        except bascule.CompileError as error:
            raise CompileException(str(error)) from error

    def compile(self, log_stream: Any = None) -> None:
        log_stream.write(self.kernel.prepare().log)

    @property
    def attributes(self) -> dict[str, Any]:
        found = self.kernel.prepare().attributes
        return {
            "binary_version": found.binary_version,
            "const_size_bytes": found.constant_bytes,
            "local_size_bytes": found.local_bytes,
            "max_dynamic_shared_size_bytes": found.max_dynamic_shared_bytes,
            "max_threads_per_block": found.max_threads_per_block,
            "num_regs": found.registers,
            "preferred_shared_memory_carveout": found.shared_carveout,
            "ptx_version": found.ptx_version,
            "shared_size_bytes": found.static_shared_bytes,
            "cache_mode_ca": int(found.caches_globals_in_l1),
        }

    num_regs = property(lambda self: self.attributes["num_regs"])
    max_threads_per_block = property(lambda self: self.attributes["max_threads_per_block"])
    shared_size_bytes = property(lambda self: self.attributes["shared_size_bytes"])


def run_compiler(command: list[str], cwd: str | None, backend: str, *_: Any) -> str:
    """Does what the tests need nvcc for: tells its version, or writes PTX or machine code."""
    if "--version" in command:
        return "release {}.{}".format(*nvrtc_version())
    source, target = Path(command[command.index("-o") - 1]), Path(command[command.index("-o") + 1])
    module = bascule.compile(source.read_text(), options=["-arch=sm_80"])
    kernel = module[next(iter(module.kernels))]
    target.write_bytes(kernel.ptx.encode() if "-ptx" in command else kernel.cubin)
    return ""


def nvrtc_version() -> tuple[int, int]:
    version = re.findall(r"\d+", str(bascule._bascule._nvrtc_info()["version"]))
    return int(version[0]), int(version[1])


__path__: list[str] = []  # a package, for `from cupy.cuda import compiler`
_accelerator = module("cupy._core._accelerator", ACCELERATOR_CUB=1, get_reduction_accelerators=list)
_core = module("cupy._core", _accelerator=_accelerator, __path__=[])
_util = module("cupy._util", clear_memo=bascule.cache.clear)
testing = module(
    "cupy.testing",
    multi_gpu=lambda count: pytest.mark.skipif(bascule.device_count() < count, reason=f"needs {count} GPUs"),
    slow=pytest.mark.slow,
    shaped_random=lambda shape, dtype: ndarray.of((10 * generator.random(shape)).astype(dtype)),
)
random = module(
    "cupy.random",
    random=lambda size, dtype=float: ndarray.of(generator.random(size).astype(dtype)),
    random_integers=lambda low, high, size: ndarray.of(generator.integers(low, high + 1, size)),
)
driver = module(
    "cupy.cuda.driver", CUDADriverError=CUDADriverError, _is_cuda_python=lambda: False, get_build_version=lambda: 13000
)
compiler = module(
    "cupy.cuda.compiler",
    CompileException=CompileException,
    JitifyException=CompileException,
    _get_arch=lambda: "80",
    _run_cc=run_compiler,
    _kernel_cache_backend=None,
    _empty_file_preprocess_cache={},
    _get_bool_env_variable=lambda name, default: bool(int(os.environ.get(name, default))),
)
_compiler_cache = module(
    "cupy.cuda._compiler_cache", DiskKernelCacheBackend=CacheBackend, KernelCacheBackend=CacheBackend
)
memory = module("cupy.cuda.memory", alloc=lambda nbytes: MemoryPointer(bascule.zeros(nbytes, "u1")))
runtime = module(
    "cupy.cuda.runtime",
    is_hip=False,
    getDevice=lambda: 0,
    driverGetVersion=driver_version,
    runtimeGetVersion=driver_version,
)
device = module("cupy.cuda.device", get_compute_capability=lambda: "80", Device=Device)
cuda = module(
    "cupy.cuda",
    compiler=compiler,
    _compiler_cache=_compiler_cache,
    memory=memory,
    runtime=runtime,
    driver=driver,
    device=device,
    Device=Device,
    get_nvcc_path=lambda: "nvcc",
    __path__=[],
)
nvrtc = module("cupy_backends.cuda.libs.nvrtc", getVersion=nvrtc_version)
module("cupy_backends.cuda.libs", nvrtc=nvrtc, __path__=[])
module("cupy_backends.cuda", __path__=[])
module("cupy_backends", __path__=[])
