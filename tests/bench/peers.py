"""The same launch through cuda.core and numba-cuda on the same emulated driver. Row L6 compares Bascule with them.

    python tests/bench/peers.py [--rounds N]

The libraries find the emulated device as libcuda.so.1, in a separate process. cuda.core takes pointers and checks
nothing; Numba takes the same arrays as Bascule.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import bench_device  # noqa: F401
import measuring
from launches import BLOCK, GRID, Launches, bench_native
from measuring import Benchmark, Row

import bascule

CALLS = 500
Call = tuple[Callable[..., object], tuple[Any, ...]]  # a callable and its arguments
READY = "BASCULE_BENCH_DRIVER"  # set in the process whose libcuda.so.1 is the emulated device
NEEDED = {"cuda.core": "cuda-core", "numba.cuda": "numba-cuda"}


def installed(module: str) -> bool:
    return all(importlib.util.find_spec(name) for name in (module.partition(".")[0], module))


def missing() -> list[str]:
    """The packages that are not installed."""
    return [package for module, package in NEEDED.items() if not installed(module)]


def cuda_core_module() -> Any:
    """cuda.core; in its first versions everything is in cuda.core.experimental."""
    core = importlib.import_module("cuda.core")
    return core if hasattr(core, "launch") else importlib.import_module("cuda.core.experimental")


def cuda_core(ptx: str, name: str, pointers: list[int], stream: int) -> Call:
    import numpy as np

    core = cuda_core_module()
    core.Device(0).set_current()
    kernel = core.ObjectCode.from_ptx(ptx.encode()).get_kernel(name)
    config = core.LaunchConfig(grid=GRID, block=BLOCK)
    return core.launch, (core.Stream.from_handle(stream), config, kernel, *pointers, np.float32(2.0))


def complete_numpy_for_numba() -> str:
    """Gives NumPy the name that numba-cuda 0.30 looks up when it compiles; returns a note if NumPy lacked it.

    NumPy 2.5 removed `row_stack`, a second name of `vstack`. Call this before numba.cuda compiles anything.
    """
    import numpy as np

    if hasattr(np, "row_stack"):
        return ""
    np.row_stack = np.vstack
    return f"with numpy.row_stack = numpy.vstack, which numba-cuda needs with NumPy {np.__version__}"


def numba_kernel() -> Any:
    from numba import cuda

    @cuda.jit
    def arrays3(x, y, out, a):
        i = cuda.grid(1)
        out[i] = a + x[i] + y[i]

    return arrays3


def numba_cuda(arrays: list[Any]) -> Call:
    launcher = numba_kernel()[GRID, BLOCK]
    launcher(*arrays, 2.0)
    return launcher, (*arrays, 2.0)


def numba_arrays(launches: Launches) -> list[Any]:
    """Numba's arrays on the same memory as the others'."""
    from numba import cuda

    return [cuda.as_cuda_array(array) for array in launches.arrays["own"][:3]]


def benchmark() -> Benchmark:
    launches = Launches()
    stream = bascule.stream()
    arrays = launches.arrays["interface"][:3]
    calls: dict[str, Call] = {
        "own": (launches.launcher(3), launches.arguments("own")),
        "interface": (launches.launcher(3), launches.arguments("interface")),
        "cuda.core": cuda_core(launches.module.arrays3.ptx, "arrays3", launches.pointers[:3], stream.handle),
        "numba-cuda": numba_cuda(arrays),
        "of Numba": (launches.launcher(3), (*numba_arrays(launches), 2.0)),
        "numba-cuda with its own": numba_cuda(numba_arrays(launches)),
    }
    return Benchmark(
        {
            name: lambda call=call, passed=passed: bench_native.time_calls(call, passed, CALLS) / CALLS
            for name, (call, passed) in calls.items()
        },
        [
            Row("L6", "own arrays / cuda.core with pointers", lambda r: r["own"] / r["cuda.core"], "<= 0.35"),
            Row("L6", "interface / numba-cuda, same arrays", lambda r: r["interface"] / r["numba-cuda"], "<= 0.05"),
            Row(
                "L6",
                "Numba's arrays / numba-cuda with them",
                lambda r: r["of Numba"] / r["numba-cuda with its own"],
                "<= 0.08",
            ),
        ],
        rounds=41,
        what={
            "own": "kernel[grid, block](3 arrays of bascule, 1 float)",
            "interface": "kernel[grid, block](3 arrays of a C producer, 1 float)",
            "cuda.core": "cuda.core.launch with pointers",
            "numba-cuda": "numba-cuda's launcher, 3 arrays of that C producer",
            "of Numba": "kernel[grid, block](3 arrays of Numba, 1 float)",
            "numba-cuda with its own": "numba-cuda's launcher, 3 arrays of Numba",
        },
        keep=(launches, stream),
    )


def with_the_driver(script: str, *arguments: str) -> int:
    """Runs the script with the emulated device's library as libcuda.so.1, and with READY set."""
    environment = os.environ | {READY: "1", "PYTHONWARNINGS": "ignore"}
    emulate = [sys.executable, "-m", "bascule", "emulate", "--schedule", "eager", "--"]
    return subprocess.run([*emulate, sys.executable, script, *arguments], env=environment).returncode


if __name__ == "__main__":
    if absent := missing():
        sys.exit(f"peers: not installed: {', '.join(absent)}")
    if READY not in os.environ:
        sys.exit(with_the_driver(__file__, *sys.argv[1:]))
    measuring.main(benchmark, __doc__)
