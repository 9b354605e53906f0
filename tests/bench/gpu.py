"""What a launch costs the host on a GPU, beside a C loop of cuLaunchKernelEx and beside other libraries' launches.

    python tests/bench/gpu.py [--rounds N] [--json FILE] [--smoke]

Unattended, without a network, in a few minutes. Libraries that are not installed are left out, and the reason is said.
A round is short and waits for the device at its end, which is not measured: a full queue would be, otherwise. Without
a GPU nothing is measured, which is not a failure; --smoke runs everything on the emulated device, where the figures
mean nothing. A goal that is not met fails nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import operator
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_device  # noqa: F401
import jit
import measuring
import peers
from launches import BLOCK, GRID, SIZE, Launches, bench_native, kernel
from measuring import Benchmark, Result, Round, Row, missing
from peers import Call

import bascule
from bascule import _bascule

DEVICE = "BASCULE_BENCH_DEVICE"  # set in the process that measures
CALLS = 256  # fewer than a device queues
PACKAGES = ["numpy", "cuda-core", "numba-cuda", "cupy-cuda13x", "cupy-cuda12x", "torch", "triton"]


class NotMeasuredError(Exception):
    """Why something is not measured."""


def need(module: str) -> None:
    if not peers.installed(module):
        raise NotMeasuredError(f"{module} is not installed")
    if os.environ[DEVICE] == "emulated" and module in ("cupy", "torch", "triton"):
        raise NotMeasuredError(f"{module} cannot use the emulated device")


class InterfaceOnly:
    """An array of which only the interface is seen, whatever else its type offers."""

    def __init__(self, array: Any) -> None:
        self.array = array

    __cuda_array_interface__ = property(operator.attrgetter("array.__cuda_array_interface__"))


class TorchInterface(InterfaceOnly):
    __module__ = "torch"  # what names no stream itself is ordered by the library that its type belongs to


class Calls:
    """One launch of three arrays and a float, by every way there is; each raises NotMeasuredError where it cannot."""

    def __init__(self) -> None:
        self.launches = Launches()
        self.launcher = self.launches.launcher(3)
        self.text = kernel(3)

    def own(self) -> Call:
        return self.launcher, self.launches.arguments("own")

    def bound(self) -> Call:
        return self.launcher.bind(*self.launches.arguments("own")), ()

    def exchange(self) -> Call:
        return self.launcher, self.launches.arguments("exchange")

    def interface(self) -> Call:
        return self.launcher, self.launches.arguments("interface")

    def cupy_arrays(self) -> list[Any]:
        need("cupy")
        import cupy

        return [cupy.zeros(SIZE, "f4") for _ in range(3)]

    def cupy_interface(self) -> Call:
        return self.launcher, (*map(InterfaceOnly, self.cupy_arrays()), 2.0)

    def cupy_own_way(self) -> Call:
        return self.launcher, (*self.cupy_arrays(), 2.0)

    def cupy_raw_kernel(self) -> Call:
        arrays = self.cupy_arrays()
        import cupy
        import numpy as np

        return cupy.RawKernel(self.text, "arrays3"), ((GRID,), (BLOCK,), (*arrays, np.float32(2.0)))

    def torch_tensors(self) -> list[Any]:
        need("torch")
        import torch

        return [torch.zeros(SIZE, device="cuda") for _ in range(3)]

    def torch_interface(self) -> Call:
        return self.launcher, (*map(TorchInterface, self.torch_tensors()), 2.0)

    def torch_exchange(self) -> Call:
        tensors = self.torch_tensors()
        if not hasattr(type(tensors[0]), "__dlpack_c_exchange_api__"):
            raise NotMeasuredError("this version of torch has no exchange table")
        return self.launcher, (*tensors, 2.0)

    def triton(self) -> Call:
        need("triton")
        arguments = (*self.torch_tensors(), 2.0)
        import torch
        from triton_kernel import arrays3

        compiled = arrays3[(GRID,)](*arguments, block=BLOCK)
        stream = torch.cuda.current_stream().cuda_stream
        fixed = (GRID, 1, 1, stream, compiled.function, compiled.packed_metadata, None, None, None)
        try:
            compiled.run(*fixed, *arguments, BLOCK)
        except TypeError:  # versions before 3.2 leave constants out
            return compiled.run, (*fixed, *arguments)
        return compiled.run, (*fixed, *arguments, BLOCK)

    def numba_cuda(self) -> Call:
        need("numba.cuda")
        return peers.numba_cuda(self.launches.arrays["interface"][:3])

    def cuda_core(self) -> Call:
        need("cuda.core")
        return peers.cuda_core(self.launches.module.arrays3.ptx, "arrays3", self.launches.pointers[:3], 1)


WHAT = {
    "raw": "cuLaunchKernelEx from a C loop",
    "bound": "Bascule, bound",
    "own": "Bascule, its own arrays",
    "exchange": "Bascule, arrays by an exchange table in C",
    "interface": "Bascule, interfaces made in C",
    "cupy_own_way": "Bascule, CuPy's arrays",
    "cupy_interface": "Bascule, the interface of CuPy's arrays",
    "torch_exchange": "Bascule, PyTorch's exchange table",
    "torch_interface": "Bascule, PyTorch's interface",
    "cuda_core": "cuda.core.launch, pointers",
    "triton": "Triton, CompiledKernel.run",
    "cupy_raw_kernel": "CuPy, RawKernel",
    "numba_cuda": "numba-cuda, the same arrays",
}
# number, what is measured, beside what, the goal
RATIOS = [
    ("G1", "exchange", "raw", "<= 1.10"),
    ("G1", "torch_exchange", "raw", "<= 1.10"),
    ("G1", "own", "raw", "<= 1.10"),
    ("G1", "bound", "raw", "<= 1.10"),
    ("G2", "interface", "raw", "<= 1.35"),
    ("G2", "cupy_interface", "raw", "<= 1.35"),
    ("G2", "cupy_own_way", "raw", "<= 1.35"),
    ("G2", "torch_interface", "raw", "<= 2.0"),
    ("G3", "own", "cupy_raw_kernel", "<= 0.8"),
    ("G3", "own", "triton", "<= 0.75"),
    ("G3", "interface", "numba_cuda", "<= 0.2"),
    ("G3", "own", "cuda_core", "<= 0.65"),
]


def launching() -> tuple[Benchmark, list[Result]]:
    """What is launched and how long that takes, and the rows that cannot be measured."""
    calls = Calls()
    pointers = calls.launches.pointers[:3]
    calls.launcher(*calls.launches.arguments("own"))
    bench_native.load_driver(_bascule._driver_info()["path"], calls.launches.module.arrays3.ptx, "arrays3")
    functions: dict[str, Callable[[], float]] = {
        "raw": lambda: bench_native.time_driver_launches(CALLS, *pointers, 2.0, 1, GRID, BLOCK)
    }
    reasons: dict[str, str] = {}
    for name in list(WHAT)[1:]:
        try:
            call, arguments = getattr(calls, name)()
            call(*arguments)  # compiles, and shows whether this library works here
        except NotMeasuredError as reason:
            reasons[name] = str(reason)
        except Exception as error:
            reasons[name] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        else:
            functions[name] = lambda call=call, arguments=arguments: bench_native.time_calls(call, arguments, CALLS)
    rows, absent = [], []
    for number, name, over, goal in RATIOS:
        what = f"{WHAT[name]} / {WHAT[over] if over != 'raw' else 'raw'}"
        if reason := reasons.get(name) or reasons.get(over):
            absent.append(missing(number, what, goal, reason))
        else:
            rows.append(Row(number, what, lambda r, name=name, over=over: r[name] / r[over], goal))
    functions |= ordering(calls)
    rows.append(Row("G4", "one foreign stream / 2 records, 2 waits from C", added, "<= 1.2"))
    what = {name: what for name, what in WHAT.items() if name in functions}
    timed = {name: lambda function=function: a_call(function) for name, function in functions.items()}
    return Benchmark(timed, rows, rounds=101, what=what, keep=calls), absent


def a_call(function: Callable[[], float]) -> float:
    taken = function() / CALLS
    bascule.synchronize()
    return taken


def ordering(calls: Calls) -> dict[str, Callable[[], float]]:
    """A launch on a stream of its own, with an array of another stream, ordered by hand and by Bascule."""
    consumer, producer = bascule.stream(), bascule.stream()
    launcher = calls.launches.module.arrays3[GRID, BLOCK, consumer]
    pointers = calls.launches.pointers[:3]

    def arguments(first: bascule.Stream) -> tuple[Any, ...]:
        streams = (first, consumer, consumer)
        return (*(calls.launches.producer(p, s.handle) for p, s in zip(pointers, streams, strict=True)), 2.0)

    here, there = arguments(consumer), arguments(producer)
    handles = producer.handle, consumer.handle
    return {
        "one stream": lambda keep=producer: bench_native.time_calls(launcher, here, CALLS),
        "two streams": lambda: bench_native.time_calls(launcher, there, CALLS),
        "two streams by hand": lambda: bench_native.time_calls(launcher, here, CALLS, *handles),
    }


def added(r: Round) -> float:
    return (r["two streams"] - r["one stream"]) / (r["two streams by hand"] - r["one stream"])


def compiling() -> Benchmark:
    nvrtc = jit.BareNvrtc()
    bascule.compile(jit.PLAIN)
    return Benchmark(
        {
            "compile": lambda: jit.milliseconds(lambda: nvrtc.compile(jit.PLAIN)),
            "disk hit and load": lambda: jit.from_disk_and_load(jit.PLAIN, "saxpy"),
        },
        [Row("G5", "NVRTC / disk hit and load", lambda r: r["compile"] / r["disk hit and load"], ">= 50")],
        rounds=31,
        what={"compile": "NVRTC, one kernel", "disk hit and load": "Bascule, from disk, loaded"},
        unit="ms",
    )


def versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def measure_in_a_process(device: str) -> int:
    os.environ[DEVICE] = device
    if device == "emulated":
        return peers.with_the_driver(__file__, *sys.argv[1:])
    return subprocess.run([sys.executable, __file__, *sys.argv[1:]]).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description="What a launch costs the host on a GPU.")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows, for plot.py too")
    parser.add_argument("--smoke", action="store_true", help="on the emulated device, to try this program")
    options = parser.parse_args()
    if DEVICE not in os.environ:
        return measure_in_a_process("emulated" if options.smoke else "cuda")
    try:
        device = bascule.current_device()
    except bascule.LibraryError as error:
        print(f"gpu: nothing is measured, there is no GPU: {error}")
        return 0

    launches, absent = launching()
    benchmarks = [launches, compiling()]
    for benchmark in benchmarks:
        benchmark.rounds = options.rounds or benchmark.rounds
    measuring.run(benchmarks)

    print(f"{device!r}, {measuring.machine()}\n")
    if device.emulated:
        print("this tries the program; the figures mean nothing\n")
    bars = [bar for benchmark in benchmarks for bar in benchmark.bars()]
    for bar in bars:
        print(f"{measuring.number(bar['median']):>10} {bar['unit']}  {bar['what']}")
    results = [result for benchmark in benchmarks for result in benchmark.results()] + absent
    results.sort(key=lambda result: result.number)
    if device.emulated:
        results = [
            dataclasses.replace(result, verdict="not judged") if result.measured else result for result in results
        ]
    print(f"\n{measuring.heading()}")
    for result in results:
        print(result)
    if options.json:
        about = {"device": device.name, "arch": device.arch, "driver": _bascule._driver_info()["version"]}
        measuring.write_json(options.json, results, **about, libraries=versions(), bars=bars)
    return 0


if __name__ == "__main__":
    sys.exit(main())
