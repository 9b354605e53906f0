"""The cost of compiling beyond NVRTC, and what the cache saves, as ratios.

    python tests/bench/jit.py [--rounds N]

NVRTC alone is called through ctypes, with the options that Bascule passes and without NVRTC's own cache, which is used
if a driver is present. The cache directory is a fresh one.
"""

import ctypes
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import bench_device
import measuring
from measuring import Benchmark, Row

import bascule
from bascule import _bascule

PLAIN = """
__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""
SEVERAL = "".join(PLAIN.replace("saxpy", f"saxpy{i}") for i in range(8))
CUB = """
#include <cub/block/block_reduce.cuh>
__global__ void block_sum(const int* x, int* sum) {
    using Reduce = cub::BlockReduce<int, 128>;
    __shared__ typename Reduce::TempStorage storage;
    int total = Reduce(storage).Sum(x[threadIdx.x]);
    if (threadIdx.x == 0) *sum = total;
}
"""
numbers = itertools.count()


def unique(text: str) -> str:
    """The same program with a comment that makes it new to a cache."""
    return f"{text}\n// {next(numbers)}\n"


def milliseconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


class BareNvrtc:
    """The NVRTC library that Bascule uses, called directly."""

    def __init__(self, architecture: str = "compute_80") -> None:
        bascule.current_device()
        info = _bascule._nvrtc_info()
        self.library = ctypes.CDLL(info["path"])
        major, minor = map(int, info["version"].split("."))
        self.options = [f"-arch={architecture}", "-std=c++17", "-lineinfo"]
        self.options += [f"-I{path}" for path in info["include_paths"]]
        if (major, minor) >= (12, 9):
            self.options.append("--no-cache")

    def compile(self, text: str, name: str | None = None) -> bytes:
        def check(code: int) -> None:
            if code != 0:
                sys.exit(f"jit: NVRTC answered {code}")

        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        options = (ctypes.c_char_p * len(self.options))(*(option.encode() for option in self.options))
        check(self.library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"bare.cu", 0, None, None))
        if name is not None:
            check(self.library.nvrtcAddNameExpression(program, name.encode()))
        check(self.library.nvrtcCompileProgram(program, len(options), options))
        check(self.library.nvrtcGetPTXSize(program, ctypes.byref(size)))
        ptx = ctypes.create_string_buffer(size.value)
        check(self.library.nvrtcGetPTX(program, ptx))
        check(self.library.nvrtcDestroyProgram(ctypes.byref(program)))
        return ptx.value


def from_disk(text: str) -> tuple[float, bascule.Module]:
    """Milliseconds and module of a compile that finds only the disk cache, almost as in a new process."""
    bascule.cache.clear()
    before = bascule.cache.stats().from_disk
    module = None

    def compile_again():
        nonlocal module
        module = bascule.compile(text)

    taken = milliseconds(compile_again)
    if bascule.cache.stats().from_disk != before + 1:
        sys.exit("jit: what should have come from disk did not")
    return taken, module


def quick(text: str) -> float:
    """Milliseconds of a hit: the median, because the first after a compile finds the processor's caches cold."""
    return statistics.median(from_disk(text)[0] for _ in range(15))


TEMPLATE = """
template <class T> __global__ void axpy(T a, bascule::array_view<const T> x, bascule::array_view<T> y) {
    for (auto i : bascule::grid_stride(y.size())) y[i] += a * x[i];
}
"""
# The text does not show where T is used, so Bascule asks the compiler first.
OPAQUE = """
#define IN(T) const T* __restrict__
template <class T> __global__ void copy(IN(T) x, T* __restrict__ y, int n) {
    for (auto i : bascule::grid_stride(n)) y[i] = x[i];
}
template <class T> __global__ void through(IN(T) x) { if (x[0] == T(1)) __trap(); }
"""
CASES = {  # for cold compiles: the text, the instance of the kernel, the goal
    "one kernel": (PLAIN, None, "<= 1.10"),
    "eight kernels": (SEVERAL, None, "<= 1.10"),
    "a template, told by its text": (TEMPLATE, "axpy<float>", "<= 1.10"),
    "a template, the compiler asked": (OPAQUE, "through<float>", "<= 2.1"),
}


def from_disk_and_load(text: str, kernel: str) -> float:
    taken, module = from_disk(text)
    return taken + milliseconds(module[kernel].prepare)


def compiling(text: str, kernel: str, arguments: tuple[Any, ...]) -> float:
    """Milliseconds until the code of the instance exists, without the driver's loading time."""
    module = bascule.compile(text)
    taken = milliseconds(lambda: module[kernel].prepare(*arguments))
    return taken - module[kernel].prepare(*arguments).load_ms


def small(nvrtc: BareNvrtc) -> Benchmark:
    """C1 and C2 for small texts: what a hit on disk saves, and the cost of a cold compile, including the store."""
    bascule.compile(unique(PLAIN))  # the first compile of a process costs more
    bascule.compile(PLAIN)
    functions = {"NVRTC": lambda: milliseconds(lambda: nvrtc.compile(PLAIN)), "disk hit": lambda: quick(PLAIN)}
    rows = [Row("C1", "NVRTC / disk hit, no headers", lambda r: r["NVRTC"] / r["disk hit"], ">= 2000")]
    prelude = _bascule._prelude()
    x = bascule.device_array(8, "f4")
    arguments: dict[str, tuple[Any, ...]] = {"axpy": (2, x, x), "through": (x,)}
    for what, (text, instance, goal) in CASES.items():

        def bare(text: str = text, instance: str | None = instance) -> float:
            whole = unique(text) if instance is None else prelude + unique(text)
            return milliseconds(lambda: nvrtc.compile(whole, instance))

        def ours(text: str = text, instance: str | None = instance) -> float:
            new = unique(text)
            if instance is None:
                return milliseconds(lambda: bascule.compile(new))
            kernel = instance.partition("<")[0]
            return compiling(new, kernel, arguments[kernel])

        functions |= {f"NVRTC, {what}": bare, f"cold, {what}": ours}
        rows.append(
            Row(
                "C2",
                f"cold compile / NVRTC, {what}",
                lambda r, what=what: r[f"cold, {what}"] / r[f"NVRTC, {what}"],
                goal,
            )
        )
    return Benchmark(functions, rows, rounds=31, what={name: name for name in functions}, unit="ms")


def heavy(nvrtc: BareNvrtc) -> Benchmark:
    """C1 and C3 for a text with 610 headers."""
    bascule.compile(CUB)

    def another(kernel: str) -> str:
        return unique(CUB.replace("block_sum", kernel))

    return Benchmark(
        {
            "NVRTC": lambda: milliseconds(lambda: nvrtc.compile(CUB)),
            "disk hit": lambda: quick(CUB),
            "disk hit and load": lambda: statistics.median(from_disk_and_load(CUB, "block_sum") for _ in range(3)),
            "second kernel": lambda: milliseconds(lambda: bascule.compile(another("another_sum"))),
        },
        [
            Row("C1", "NVRTC / disk hit, CUB", lambda r: r["NVRTC"] / r["disk hit"], ">= 1000"),
            Row("C1", "NVRTC / disk hit and load, CUB", lambda r: r["NVRTC"] / r["disk hit and load"], ">= 300"),
            Row("C3", "another kernel with CUB / NVRTC", lambda r: r["second kernel"] / r["NVRTC"], "<= 0.30"),
        ],
        rounds=5,
        what={
            "NVRTC": "NVRTC, a kernel with CUB",
            "disk hit": "the same from disk",
            "disk hit and load": "the same from disk, loaded",
            "second kernel": "bascule.compile of another kernel with CUB",
        },
        unit="ms",
    )


def again(calls: int = 100_000) -> Benchmark:
    """C5: compiling the same text again, compared with looking it up in a dict; the empty loop is subtracted."""
    bascule.compile(PLAIN)
    table = {PLAIN: bascule.compile(PLAIN)}  # the module of the second compile is kept
    names: dict[str, Any] = {"table": table, "text": PLAIN, "compile_again": bascule.compile}

    def loop(body: str) -> Callable[[], float]:
        scope = dict(names)
        exec(f"def run(n):\n    for _ in n:\n        {body}", scope)

        def nanoseconds() -> float:
            start = time.thread_time_ns()
            scope["run"](itertools.repeat(None, calls))
            return (time.thread_time_ns() - start) / calls

        return nanoseconds

    directory = tempfile.mkdtemp(dir=bench_device.CACHE)
    with open(os.path.join(directory, "value.h"), "w", encoding="ascii") as header:
        header.write("#define VALUE 1\n")
    os.utime(header.name, (1, 1))
    options = bascule.CompileOptions(include_paths=[directory])
    with_header = '#include "value.h"\n' + PLAIN
    time.sleep(2.1)  # a header that changed less than 2 s ago is read each time
    bascule.compile(with_header, options=options)

    def stat_header() -> float:
        return statistics.median(
            milliseconds(lambda: bascule.compile(with_header, options=options)) * 1e6 for _ in range(200)
        )

    return Benchmark(
        {
            "empty": loop("pass"),
            "dict": loop("table[text]"),
            "again": loop("compile_again(text)"),
            "header": stat_header,
        },
        [
            Row(
                "C5",
                "compile again / dict lookup",
                lambda r: (r["again"] - r["empty"]) / (r["dict"] - r["empty"]),
                "<= 6",
            ),
            Row("C5b", "the same with a header of the user's", lambda r: r["header"] / (r["dict"] - r["empty"])),
        ],
        rounds=21,
        what={
            "dict": "a dict lookup, in a loop",
            "again": "bascule.compile of the same text, in a loop",
            "header": "the same with a header of the user's",
        },
    )


if __name__ == "__main__":
    bare = BareNvrtc()
    print(f"NVRTC {_bascule._nvrtc_info()['version']}")
    for make in (lambda: small(bare), lambda: heavy(bare), again):
        measuring.main(make, __doc__)
        print()
