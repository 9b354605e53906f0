"""Wall clock from the start of a fresh process to its first result on a GPU, with an empty and with a filled cache.

    python tests/bench/gpu_startup.py [--rounds N] [--rows FILE] [--seconds S]

Each library runs the same kernel from the same text; those with their own language run theirs. The first process of
each has an empty cache. Later ones find what it cached, and each is followed by one of Bascule, so that a slow moment
affects both. A library's rows are written before the next library begins; fast starters come first. No process
is started that would end after S seconds if it took as long as the last one of its library.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measuring
import peers
from gpu_part import DEVICE, NotMeasuredError, Writer, reason_of
from measuring import Row, missing
from peers import installed

TEXT = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] = 2.0f * threadIdx.x; }'
PROGRAMS = {
    "python": "pass",
    "numpy": "import numpy",
    "the driver": """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, memory, host = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.create_string_buffer(128)
assert not cuda.cuInit(0)
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
assert not cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(128))
assert not cuda.cuMemsetD8_v2(memory, ctypes.c_ubyte(0), ctypes.c_size_t(128))
assert not cuda.cuMemcpyDtoH_v2(host, memory, ctypes.c_size_t(128))
""",
    "bascule": f"""
import bascule
x = bascule.device_array(32, "f4")
bascule.compile('{TEXT}').twice[1, 32](x)
assert x.copy_to_host()[31] == 62
""",
    "cupy": f"""
import cupy
x = cupy.empty(32, "f4")
cupy.RawKernel('{TEXT}', "twice")((1,), (32,), (x,))
assert x.get()[31] == 62
""",
    "cuda.core": f"""
import numpy as np
try:
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
except ImportError:
    from cuda.core.experimental import Device, LaunchConfig, Program, ProgramOptions, launch
device = Device(0)
device.set_current()
stream = device.create_stream()
arch = "".join(map(str, device.compute_capability))
program = Program('{TEXT}', code_type="c++", options=ProgramOptions(arch="sm_" + arch))
kernel = program.compile("KIND").get_kernel("twice")
x = device.allocate(128, stream=stream)
launch(stream, LaunchConfig(grid=1, block=32), kernel, x)
stream.sync()
""",
    "numba-cuda": """
import numpy
if not hasattr(numpy, "row_stack"):
    numpy.row_stack = numpy.vstack
from numba import cuda
@cuda.jit(cache=True)
def twice(x):
    x[cuda.threadIdx.x] = 2 * cuda.threadIdx.x
x = cuda.device_array(32, "f4")
twice[1, 32](x)
assert x.copy_to_host()[31] == 62
""",
    "torch": f"""
import torch
x = torch.empty(32, device="cuda")
torch.cuda._compile_kernel('{TEXT}', "twice")((1, 1, 1), (32, 1, 1), [x])
assert x.cpu()[31] == 62
""",
    "triton": """
import torch, triton, triton.language as tl
@triton.jit
def twice(x):
    i = tl.arange(0, 32)
    tl.store(x + i, 2.0 * i)
x = torch.empty(32, device="cuda")
twice[(1,)](x)
assert x.cpu()[31] == 62
""",
}
WHAT = {
    "python": "python -c pass",
    "numpy": "import numpy",
    "the driver": "the driver alone, by ctypes: a context and a copy",
    "bascule": "Bascule",
}  # the others' title is the library's name
MODULES = {"numba-cuda": "numba.cuda", "python": "sys", "the driver": "ctypes"}
ALONE = ("python", "numpy", "the driver", "bascule", "cuda.core", "numba-cuda")  # need no real GPU
CACHES = ["BASCULE_CACHE_DIR", "CUPY_CACHE_DIR", "NUMBA_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH"]
SLOW = 3.0 * float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)  # seconds; slower libraries have one warm round
LIMIT = 40.0 * float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)


def missing_reason(name: str) -> str:
    module = MODULES.get(name, name)
    if not installed(module):
        return f"{module} is not installed"
    if os.environ.get(DEVICE) == "emulated" and name not in ALONE:
        return f"{module} cannot use the emulated device"
    return ""


class Processes:
    """Every library's program as a file, with separate cache directories."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        kind = "ptx" if os.environ.get(DEVICE) == "emulated" else "cubin"
        for number, text in enumerate(PROGRAMS.values()):
            (directory / f"program{number}.py").write_text(text.replace("KIND", kind))

    def seconds(self, name: str) -> float:
        number = list(PROGRAMS).index(name)
        caches = {variable: str(self.directory / f"caches{number}" / variable) for variable in CACHES}
        environment = {**os.environ, **caches, "BASCULE_EMULATED_EXECUTE": "1", "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, str(self.directory / f"program{number}.py")]
        start = time.perf_counter()
        done = subprocess.run(
            command, env=environment, cwd=self.directory, capture_output=True, text=True, timeout=LIMIT
        )
        taken = time.perf_counter() - start
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or f"status {done.returncode}").splitlines()[-1][:300])
        return taken


class Startup:
    """Measures one library after the other. No process is started that would end after `until` (time.monotonic)."""

    def __init__(self, processes: Processes, writer: Writer, rounds: int, until: float) -> None:
        self.processes, self.writer, self.rounds, self.until = processes, writer, rounds, until
        self.cold: dict[str, float] = {}
        self.last: dict[str, float] = {}  # seconds that a library's last process took

    def run(self, *names: str) -> list[float]:
        """Milliseconds of one process for each name, one after the other. Raises if one fails or would end too late."""
        if time.monotonic() + sum(self.last.get(name, 0) for name in names) > self.until:
            raise NotMeasuredError("the time was over")
        taken = []
        for name in names:
            self.last[name] = self.processes.seconds(name)
            taken.append(1e3 * self.last[name])
        return taken

    def library(self, name: str, note: str = "") -> None:
        reason = missing_reason(name)
        pairs: list[list[float]] = []
        try:
            if reason:
                raise NotMeasuredError(reason)
            (self.cold[name],) = self.run(name)
            self.bar(name, "cold", self.cold[name])
            beside = (name, "bascule") if name != "bascule" else (name,)
            rounds = self.rounds if self.last[name] < SLOW else 1
            while len(pairs) < rounds:
                pairs.append(self.run(*beside))
        except Exception as error:
            reason = reason_of(error)
        if pairs:
            self.bar(name, "warm", statistics.median(pair[0] for pair in pairs))
        if name == "bascule":
            return
        cold = [self.cold["bascule"] / self.cold[name]] if {"bascule", name} <= self.cold.keys() else []
        self.row(name, "cold", cold, reason, note)
        self.row(name, "warm", [ours / theirs for theirs, ours in pairs], reason, note)

    def bar(self, name: str, how: str, median: float) -> None:
        what = f"{WHAT.get(name, name)}: process with a first result, {how}"
        self.writer.bar({"what": what, "median": median, "unit": "ms"})

    def row(self, name: str, how: str, ratios: list[float], reason: str, note: str) -> None:
        what = f"first result of a process, {how}: Bascule / {WHAT.get(name, name)}"
        row = Row("G8", what, lambda _: 0)
        result = measuring.result(row, ratios) if ratios else missing("G8", what, "", reason or "Bascule's failed")
        self.writer.row(dataclasses.replace(result, note=note))


def measure(rounds: int, seconds: float, writer: Writer) -> None:
    directory = Path(tempfile.mkdtemp(prefix="bascule-bench-startup-"))
    note = peers.complete_numpy_for_numba() if installed("numpy") else ""
    startup = Startup(Processes(directory), writer, rounds, time.monotonic() + seconds)
    for name in ["bascule", *(name for name in PROGRAMS if name != "bascule")]:
        startup.library(name, note if name == "numba-cuda" else "")
    shutil.rmtree(directory, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rows", type=Path)
    options = parser.parse_args()
    measure(options.rounds, options.seconds, Writer(options.rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
