"""Tests that memory does not grow while threads launch with arrays of Bascule, PyTorch, CuPy and JAX.

    python tests/gpu/soak.py [--out FILE] [--seconds S] [--smoke]

After a warm-up of a quarter of the time, the process's memory, the device's and that of Bascule's pool are read every
second, after a wait and a garbage collection. Exits with 1 if one of them grew by more than its slack, a value was
wrong, or a thread raised or did not end.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from collect import replace

import bascule

MIB = 1 << 20
SIZE = 4096
THREADS = 4
SLACK = {"process MiB": 48, "device MiB": 96, "pool MiB": 64}
SMOKE_SLACK = {**SLACK, "process MiB": 256}  # the emulated device's memory is the process's
KERNELS = """
__global__ void add(float* out, const float* x, const float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = x[i] + y[i];
}
"""


def torch_arrays() -> tuple[Callable[[float], Any], Callable[[Any], np.ndarray]]:
    torch = importlib.import_module("torch")
    torch.zeros(1, device="cuda")
    return lambda value: torch.full((SIZE,), value, device="cuda"), lambda array: array.cpu().numpy()


def cupy_arrays() -> tuple[Callable[[float], Any], Callable[[Any], np.ndarray]]:
    cupy = importlib.import_module("cupy")
    cupy.zeros(1)
    return lambda value: cupy.full(SIZE, value, "f4"), lambda array: array.get()


def jax_arrays() -> tuple[Callable[[float], Any], Callable[[Any], np.ndarray]]:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = importlib.import_module("jax")
    if jax.devices()[0].platform not in ("gpu", "cuda"):
        raise ImportError(f"jax runs on {jax.devices()[0].platform}")
    return lambda value: jax.numpy.full((SIZE,), value, "float32"), np.asarray


def own_arrays() -> tuple[Callable[[float], Any], Callable[[Any], np.ndarray]]:
    host = np.empty(SIZE, "f4")

    def make(value: float) -> Any:
        return bascule.to_device(np.full_like(host, value))

    return make, lambda array: array.copy_to_host()


LIBRARIES = {"bascule": own_arrays, "torch": torch_arrays, "cupy": cupy_arrays, "jax": jax_arrays}


class Worker(threading.Thread):
    """Launches repeatedly on its own stream, with new arrays of every library in turn."""

    def __init__(self, number: int, makers: dict[str, Any], until: float) -> None:
        super().__init__(daemon=True)
        self.number, self.makers, self.until = number, makers, until
        self.launches, self.wrong = 0, 0
        self.error = ""
        self.pause, self.paused = threading.Event(), threading.Event()

    def run(self) -> None:
        try:
            stream = bascule.stream()
            kernel = bascule.compile(KERNELS).add
            while time.monotonic() < self.until:
                for name, (make, to_host) in self.makers.items():
                    self.one(kernel, stream, name, make, to_host)
                if self.pause.is_set():
                    stream.synchronize()
                    self.paused.set()
                    while self.pause.is_set():
                        time.sleep(0.001)
                    self.paused.clear()
        except Exception:
            self.error = traceback.format_exc()[-3000:]
        self.paused.set()

    def one(self, kernel: Any, stream: Any, name: str, make: Callable[..., Any], to_host: Callable[..., Any]) -> None:
        x, y = make(1.0), make(float(self.launches % 100))
        out = bascule.device_array(SIZE, "f4", stream=stream)
        launcher = kernel[16, 256, stream]
        for _ in range(8):
            launcher(out, x, y, SIZE)
            kernel[16, 256](out, out, x, SIZE)  # on the stream of the arrays
            self.launches += 2
        value = 2.0 + float((self.launches - 16) % 100)
        large = out.astype("f8")
        if self.launches % 320 == 16 and not (large.copy_to_host() == value).all():
            self.wrong += 1
        if name != "jax":
            launcher(x, y, y, SIZE)  # writes an array of another library
        if self.launches % 640 == 16:
            to_host(y)


def used(driver: Any) -> dict[str, float]:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    pool = bascule.memory_pool()
    return {
        "process MiB": round(pages * os.sysconf("SC_PAGESIZE") / MIB, 1),
        "device MiB": round((total.value - free.value) / MIB, 1),
        "pool MiB": round(pool.reserved_bytes / MIB, 1) if pool is not None else 0,
    }


def available(smoke: bool) -> tuple[dict[str, Any], dict[str, str]]:
    makers, missing = {}, {}
    for name, make in LIBRARIES.items():
        if smoke and name != "bascule":
            continue
        try:
            makers[name] = make()
        except Exception as error:
            missing[name] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:200]
    return makers, missing


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--smoke", action="store_true", help="a few seconds, with Bascule's arrays alone")
    options = parser.parse_args()
    seconds = 6.0 if options.smoke else options.seconds
    bascule.device_array(1, "f4")
    driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    context = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    makers, missing = available(options.smoke)
    until = time.monotonic() + seconds
    workers = [Worker(number, makers, until) for number in range(THREADS)]
    samples: list[dict[str, float]] = []
    for worker in workers:
        worker.start()
    time.sleep(seconds / 4)
    while time.monotonic() < until - 0.5:
        samples.append(sample(driver, workers))
        time.sleep(1)
    for worker in workers:
        worker.join(30)
    grown = {name: round(max(s[name] for s in samples[-3:]) - samples[0][name], 1) for name in SLACK}
    found = {
        "libraries": list(makers),
        "missing": missing,
        "launches": sum(worker.launches for worker in workers),
        "wrong": sum(worker.wrong for worker in workers),
        "errors": [worker.error for worker in workers if worker.error],
        "not ended": sum(worker.is_alive() for worker in workers),
        "grown": grown,
        "samples": samples,
    }
    print(json.dumps(found, indent=1), flush=True)
    if options.out:
        replace(options.out, json.dumps(found, indent=1) + "\n")
    slack = SMOKE_SLACK if options.smoke else SLACK
    flat = all(grown[name] <= slack[name] for name in grown)
    well = flat and not found["wrong"] and not found["errors"] and not found["not ended"]
    sys.stdout.flush()
    os._exit(int(not well))  # a hanging thread would keep the process alive


def sample(driver: Any, workers: list[Worker]) -> dict[str, float]:
    """Memory use while no thread launches and no memory waits to be freed."""
    for worker in workers:
        worker.pause.set()
    for worker in workers:
        worker.paused.wait(10)
    gc.collect()
    bascule.synchronize()
    found = used(driver)
    for worker in workers:
        worker.pause.clear()
    return found


if __name__ == "__main__":
    main()
