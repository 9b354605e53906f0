"""The cost of a compile with each library until the kernel can be launched, and what its disk cache saves.

A part of gpu_part.py. A cold compile has a new text. A hit from disk is measured in this process, without the cache in
memory. gpu_startup.py also measures libraries without a disk cache, or whose memory cache cannot be cleared.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable
from typing import Any

import jit
import peers
from gpu_part import Case, Ratio, Timer, Writer, measure, need

import bascule

TEXT = jit.PLAIN.replace("__global__", 'extern "C" __global__')


def milliseconds(action: Callable[[], object]) -> Timer:
    return lambda: jit.milliseconds(action)


def bare_nvrtc() -> Timer:
    """NVRTC compiles to PTX for compute_80, without its own cache."""
    nvrtc = jit.BareNvrtc()
    return milliseconds(lambda: nvrtc.compile(jit.unique(TEXT)))


def bare_nvrtc_to_machine_code() -> Timer:
    """NVRTC compiles to a cubin, with the options that Bascule uses on a GPU."""
    nvrtc = jit.BareNvrtc(bascule.current_device().arch)
    return milliseconds(lambda: nvrtc.compile(jit.unique(TEXT)))


def ours() -> Timer:
    return milliseconds(lambda: bascule.compile(jit.unique(TEXT)).saxpy.prepare())


def ours_from_disk() -> Timer:
    bascule.compile(TEXT)
    return lambda: jit.from_disk_and_load(TEXT, "saxpy")


def cupy_kernel(text: str) -> None:
    import cupy

    cupy.RawKernel(text, "saxpy").compile()


def cupy() -> Timer:
    need("cupy")
    return milliseconds(lambda: cupy_kernel(jit.unique(TEXT)))


def cupy_from_disk() -> Timer:
    need("cupy")
    import cupy as library

    cupy_kernel(TEXT)

    def take() -> float:
        library.clear_memo()  # clears its cache in memory
        return jit.milliseconds(lambda: cupy_kernel(TEXT))

    return take


def torch() -> Timer:
    need("torch")
    import torch as library

    library.zeros(1, device="cuda")
    return milliseconds(lambda: library.cuda._compile_kernel(jit.unique(TEXT), "saxpy"))


def cuda_core_program(text: str, **options: Any) -> Any:
    core = peers.cuda_core_module()
    device = core.Device(0)
    device.set_current()
    arch = "".join(map(str, device.compute_capability))
    made = core.ProgramOptions(std="c++17", arch=f"sm_{arch}", **options)
    kind = "ptx" if os.environ.get("BASCULE_BENCH_DEVICE") == "emulated" else "cubin"
    return core.Program(text, code_type="c++", options=made), kind


def load(kernel: Any) -> None:
    """Queries an attribute that makes the library load the kernel on the device, as its first launch would."""
    registers = kernel.attributes.num_regs
    if callable(registers):  # before 1.2
        registers()


def cuda_core() -> Timer:
    need("cuda.core")

    def compile_and_load() -> None:
        program, kind = cuda_core_program(jit.unique(TEXT))
        load(program.compile(kind).get_kernel("saxpy"))

    return milliseconds(compile_and_load)


def cuda_core_from_disk() -> Timer:
    """Uses cuda.core's cache of programs, which versions before 1.1 do not have."""
    need("cuda.core")
    from cuda.core.utils import FileStreamProgramCache

    cache = FileStreamProgramCache(tempfile.mkdtemp(prefix="bascule-bench-cuda-core-"))

    def compile_and_load() -> None:
        program, kind = cuda_core_program(TEXT)
        load(program.compile(kind, cache=cache).get_kernel("saxpy"))

    compile_and_load()
    return milliseconds(compile_and_load)


def numba_cuda() -> Timer:
    """Passes an explicit signature, for which the decorator compiles at once."""
    need("numba.cuda")
    from numba import cuda

    def compile_and_load() -> None:
        def saxpy(a, x, y, n):
            i = cuda.grid(1)
            if i < n:
                y[i] += a * x[i]

        cuda.jit("void(float32, float32[::1], float32[::1], int32)")(saxpy)

    return milliseconds(compile_and_load)


def context_of_the_driver() -> None:
    """Makes a context current for libraries that expect one."""
    bascule.device_array(1, "f4")
    driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    context = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)


CASES: dict[str, tuple[str, Callable[[], Timer]]] = {
    "NVRTC": ("NVRTC alone, one kernel, to PTX", bare_nvrtc),
    "NVRTC, cubin": ("NVRTC alone, one kernel, to a cubin", bare_nvrtc_to_machine_code),
    "ours": ("Bascule, cold, loaded", ours),
    "ours, disk": ("Bascule, from disk, loaded", ours_from_disk),
    "cupy": ("CuPy, RawKernel, cold, loaded", cupy),
    "cupy, disk": ("CuPy, RawKernel, from disk, loaded", cupy_from_disk),
    "torch": ("PyTorch, _compile_kernel, cold, loaded", torch),
    "cuda.core": ("cuda.core, Program, cold, loaded", cuda_core),
    "cuda.core, disk": ("cuda.core, Program, from disk, loaded", cuda_core_from_disk),
    "numba-cuda": ("numba-cuda, cold", numba_cuda),
}
RATIOS: dict[str, list[Ratio]] = {
    "bascule": [
        Ratio("G5", "NVRTC", "ours, disk", ">= 50"),
        Ratio("G5", "ours", "NVRTC"),
        Ratio("G5", "ours", "NVRTC, cubin"),
    ],
    "cupy": [Ratio("G5", "ours", "cupy"), Ratio("G5", "ours, disk", "cupy, disk")],
    "torch": [Ratio("G5", "ours", "torch")],
    "cuda.core": [Ratio("G5", "ours", "cuda.core"), Ratio("G5", "ours, disk", "cuda.core, disk")],
    "numba-cuda": [Ratio("G5", "ours", "numba-cuda")],
    "triton": [],
}


def run(library: str, rounds: int | None, writer: Writer) -> None:
    ratios = RATIOS[library]
    names = {name for ratio in ratios for name in (ratio.name, ratio.over)}
    cases = [Case(name, what, make) for name, (what, make) in CASES.items() if name in names]
    if cases:
        context_of_the_driver()
        measure(cases, ratios, "ms", min(rounds or 9, 9), writer)
