"""Bascule: CUDA C++ kernels from strings, launched on any array with `__cuda_array_interface__`.

>>> import numpy as np, bascule
>>> module = bascule.compile('''
... __global__ void scale(float* p, float f, int n) {
...     int i = blockIdx.x * blockDim.x + threadIdx.x;
...     if (i < n) p[i] *= f;
... }''')
>>> x = bascule.to_device(np.arange(1000, dtype="f4"))
>>> module.scale[8, 128](x, 2, 1000)
>>> x.copy_to_host()
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from bascule import _classes, _environment, _errors, cache, config, emulated
from bascule._bascule import *
from bascule._bascule import __version__
from bascule._compile import compile
from bascule._debug import debug
from bascule._decorator import LaunchRule, kernel
from bascule._errors import *
from bascule._producers import register_producer

if TYPE_CHECKING:
    from bascule._benchmark import BenchmarkResult, benchmark
    from bascule._explain import ArgumentExplanation, Explanation
    from bascule._launch_hooks import LaunchHook, LaunchRecord, add_launch_hook
    from bascule._link import link, load_module
    from bascule._trace import Trace, trace
    from bascule._trace_plot import plot_timeline

__all__ = [
    "ArgumentExplanation",
    "BenchmarkResult",
    "BitMask",
    "BoundLaunch",
    "CompileOptions",
    "CudaArray",
    "Device",
    "DeviceArray",
    "Diagnostic",
    "Event",
    "Explanation",
    "ExportedArray",
    "Graph",
    "Kernel",
    "LaunchConfig",
    "LaunchHook",
    "LaunchRecord",
    "LaunchRule",
    "Launcher",
    "MemoryPool",
    "Module",
    "PointerAttributes",
    "Stream",
    "Surface",
    "TensorMap",
    "Texture",
    "Trace",
    "__version__",
    "add_launch_hook",
    "as_cuda_array",
    "benchmark",
    "cache",
    "compile",
    "config",
    "cuda_array",
    "current_device",
    "current_stream",
    "debug",
    "default_stream",
    "device",
    "device_array",
    "device_array_like",
    "device_count",
    "devices",
    "emulated",
    "event",
    "external_stream",
    "from_cuda_array_interface",
    "from_dlpack",
    "full",
    "get_allocator",
    "is_cuda_array",
    "kernel",
    "legacy_default_stream",
    "link",
    "load_module",
    "managed_array",
    "memory_pool",
    "ones",
    "per_thread_default_stream",
    "pinned_array",
    "plot_timeline",
    "pointer_attributes",
    "raw_bytes",
    "raw_pointer",
    "register_producer",
    "require_gpu",
    "set_allocator",
    "stream",
    "struct",
    "surface",
    "synchronize",
    "tensor_map",
    "texture",
    "to_device",
    "trace",
    "zeros",
    "zeros_like",
]
__all__ += _errors.__all__

# Types of results. Users need not name them, so the package does not export them.
del CacheStatistics, GraphUpdate, KernelAttributes, Occupancy, RawBytes, RawPointer  # noqa: F821 - of the star

_environment.check()
_classes.complete()

# Modules that are imported at first use: their imports take as long as the rest of Bascule.
_LAZY = {
    "_benchmark": ("BenchmarkResult", "benchmark"),
    "_explain": ("ArgumentExplanation", "Explanation"),
    "_launch_hooks": ("LaunchHook", "LaunchRecord", "add_launch_hook"),
    "_link": ("link", "load_module"),
    "_notebook": ("load_ipython_extension", "unload_ipython_extension"),
    "_trace": ("Trace", "trace"),
    "_trace_plot": ("plot_timeline",),
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f"bascule.{module}"), name)
            return value
    if name in _errors.NAMED_IN_TRACEBACKS:
        return getattr(_errors, name)
    from bascule._porting import HINTS

    hint = f": {HINTS[name]}." if name in HINTS else ""
    raise AttributeError(f"module 'bascule' has no attribute '{name}'{hint}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return __all__
