"""Wall clock from the start of a fresh process to its first result on a GPU, cold and with what the last one cached.

    python tests/bench/gpu_startup.py [--rounds N] [--rows FILE] [--seconds S]

Each library runs the same kernel from the same text, those with a language of their own theirs. The first process of
each has an empty cache; of the later ones the median is told. All that begins within S seconds is measured.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gpu_part import DEVICE, Writer
from measuring import Result, missing
from peers import installed

TEXT = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] = 2.0f * threadIdx.x; }'
PROGRAMS = {
    "python": "pass",
    "numpy": "import numpy",
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
    "torch": f"""
import torch
x = torch.empty(32, device="cuda")
torch.cuda._compile_kernel('{TEXT}', "twice")((1, 1, 1), (32, 1, 1), [x])
assert x.cpu()[31] == 62
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
from numba import cuda
@cuda.jit(cache=True)
def twice(x):
    x[cuda.threadIdx.x] = 2 * cuda.threadIdx.x
x = cuda.device_array(32, "f4")
twice[1, 32](x)
assert x.copy_to_host()[31] == 62
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
MODULES = {"cuda.core": "cuda.core", "numba-cuda": "numba.cuda", "python": "sys"}
CACHES = ["BASCULE_CACHE_DIR", "CUPY_CACHE_DIR", "NUMBA_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH"]
LIMIT = 40.0 * float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)


def missing_reason(name: str) -> str:
    module = MODULES.get(name, name)
    if not installed(module):
        return f"{module} is not installed"
    if os.environ.get(DEVICE) == "emulated" and name not in ("python", "numpy", "bascule", "cuda.core", "numba-cuda"):
        return f"{module} cannot use the emulated device"
    return ""


class Processes:
    """Every library's program as a file, with a directory of caches of its own."""

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


def measure(rounds: int, seconds: float, writer: Writer) -> None:
    directory = Path(tempfile.mkdtemp(prefix="bascule-bench-startup-"))
    until = time.monotonic() + seconds
    processes = Processes(directory)
    taken: dict[str, list[float]] = {}
    reasons = {name: reason for name in PROGRAMS if (reason := missing_reason(name))}
    for number in range(rounds + 1):
        for name in PROGRAMS:
            if name in reasons or time.monotonic() > until:
                continue
            try:
                taken.setdefault(name, []).append(1e3 * processes.seconds(name))
            except Exception as error:
                reasons[name] = f"{type(error).__name__}: {error}"
                continue
            if number == 0:
                writer.bar(
                    {"what": f"{name}: process with a first result, cold", "median": taken[name][0], "unit": "ms"}
                )
    shutil.rmtree(directory, ignore_errors=True)
    warm = {name: statistics.median(times[1:]) for name, times in taken.items() if len(times) > 1}
    for name, median in warm.items():
        writer.bar({"what": f"{name}: process with a first result, warm", "median": median, "unit": "ms"})
    for name in PROGRAMS:
        if name == "bascule":
            continue
        for how, figures in (("cold", {n: times[0] for n, times in taken.items()}), ("warm", warm)):
            what = f"first result of a process, {how}: Bascule / {name}"
            if "bascule" in figures and name in figures:
                writer.row(Result("G8", what, figures["bascule"] / figures[name], 0, "", "recorded"))
            else:
                writer.row(missing("G8", what, "", reasons.get(name, reasons.get("bascule", "the time was over"))))


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
