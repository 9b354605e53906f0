"""What compiling costs beyond NVRTC, and what the cache saves, as ratios.

    python tests/bench/jit.py [--rounds N]

Everything compared runs in turn in one process, in rounds; ratios are of medians. NVRTC alone is called through ctypes,
with the options that Bascule gives it and without the cache that it keeps itself when a driver is present. The cache
directory is a fresh one. Goals are those of the project; a noisy machine is no failure.
"""

import argparse
import atexit
import ctypes
import itertools
import os
import shutil
import statistics
import sys
import tempfile
import time

os.environ["BASCULE_DEVICE"] = "emulated"
os.environ["BASCULE_CACHE_DIR"] = tempfile.mkdtemp(prefix="bascule-bench-")

import bascule
from bascule import _bascule

atexit.register(shutil.rmtree, os.environ["BASCULE_CACHE_DIR"], ignore_errors=True)

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


def unique(text):
    """The same program to a person, another one to a cache."""
    return f"{text}\n// {next(numbers)}\n"


def milliseconds(action):
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


class BareNvrtc:
    """The library that Bascule uses, called without it."""

    def __init__(self):
        info = _bascule._nvrtc_info()
        self.library = ctypes.CDLL(info["path"])
        major, minor = map(int, info["version"].split("."))
        self.options = ["-arch=compute_80", "-std=c++17", "-lineinfo", *(f"-I{path}" for path in info["include_paths"])]
        if (major, minor) >= (12, 9):
            self.options.append("--no-cache")

    def compile(self, text, name=None):
        def check(code):
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


def medians(rounds, **actions):
    """Milliseconds of each, all of them once a round."""
    taken = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            taken[name].append(action())
    return {name: statistics.median(times) for name, times in taken.items()}


def row(name, what, ratio, goal, detail):
    print(f"{name:4}{what:52}{ratio:10.2f}{goal:>10}   {detail}")


def from_disk(text):
    """A compile as the next process would see it, or as near as one process comes."""
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


def quick(text):
    """Of several in a row: the first after a compile finds everything of ours out of the processor's caches."""
    return statistics.median(from_disk(text)[0] for _ in range(15))


def measure_disk(nvrtc, rounds):
    """C1: what a hit on disk costs, next to the compile that it saves."""
    bascule.compile(PLAIN)
    one = medians(rounds, compile=lambda: milliseconds(lambda: nvrtc.compile(PLAIN)), hit=lambda: quick(PLAIN))
    row("C1", "NVRTC / disk hit, no headers", one["compile"] / one["hit"], ">= 2000", told(one))

    bascule.compile(CUB)

    def hit_and_load():
        hit, module = from_disk(CUB)
        return hit + milliseconds(module.block_sum.prepare)

    cub = medians(
        max(rounds // 6, 3),
        compile=lambda: milliseconds(lambda: nvrtc.compile(CUB)),
        hit=lambda: quick(CUB),
        load=lambda: statistics.median(hit_and_load() for _ in range(3)),
    )
    row("C1", "NVRTC / disk hit, CUB, its headers tracked", cub["compile"] / cub["hit"], ">= 1000", told(cub))
    row("C1", "NVRTC / disk hit and load, CUB", cub["compile"] / cub["load"], ">= 300", "")


def told(times):
    return ", ".join(f"{name} {time:.3f} ms" for name, time in times.items())


def measure_cold(nvrtc, rounds):
    """C2: our cold compile, reflection and the store on disk included, next to NVRTC's own."""
    for what, text in (("one kernel", PLAIN), ("eight kernels", SEVERAL)):
        texts = [unique(text) for _ in range(2 * rounds)]
        ours, bare = iter(texts), iter(texts)
        times = medians(
            rounds,
            bare=lambda bare=bare: milliseconds(lambda: nvrtc.compile(next(bare))),
            ours=lambda ours=ours: milliseconds(lambda: bascule.compile(next(ours))),
        )
        row("C2", f"cold compile / NVRTC, {what}", times["ours"] / times["bare"], "<= 1.10", told(times))


TEMPLATE = """
template <class T> __global__ void axpy(T a, bascule::array_view<const T> x, bascule::array_view<T> y) {
    for (auto i : bascule::grid_stride(y.size())) y[i] += a * x[i];
}
"""
# The text does not tell where T stands: the compiler is asked first.
OPAQUE = """
#define IN(T) const T* __restrict__
template <class T> __global__ void copy(IN(T) x, T* __restrict__ y, int n) {
    for (auto i : bascule::grid_stride(n)) y[i] = x[i];
}
template <class T> __global__ void through(IN(T) x) { if (x[0] == T(1)) __trap(); }
"""


def measure_templates(nvrtc, rounds):
    """C2 for templates: the instance that the arguments choose, compiled, next to NVRTC told its name."""
    x = bascule.device_array(8, "f4")
    cases = (
        ("a template, told by its text", TEMPLATE, "axpy", "<= 1.10", (2, x, x)),
        ("a template, the compiler asked", OPAQUE, "through", "<= 2.1", (x,)),
    )
    prelude = _bascule._prelude()
    for what, text, kernel, goal, arguments in cases:
        texts = [unique(text) for _ in range(2 * rounds)]
        ours, bare = iter(texts), iter(texts)
        times = medians(
            rounds,
            bare=lambda bare=bare, kernel=kernel: milliseconds(
                lambda: nvrtc.compile(prelude + next(bare), f"{kernel}<float>")
            ),
            ours=lambda ours=ours, kernel=kernel, arguments=arguments: compiling(next(ours), kernel, arguments),
        )
        row("C2", f"cold compile / NVRTC, {what}", times["ours"] / times["bare"], goal, told(times))


def compiling(text, kernel, arguments):
    """Milliseconds up to the code of the instance; what the driver takes to load it is left out."""
    module = bascule.compile(text)
    taken = milliseconds(lambda: module[kernel].prepare(*arguments))
    return taken - module[kernel].prepare(*arguments).load_ms


def measure_again(calls=100_000):
    """C5: compiling the same text again, next to looking it up in a dict; the empty loop is subtracted."""
    bascule.compile(PLAIN)
    module = bascule.compile(PLAIN)  # the second is the one that is remembered
    table, text, again = {PLAIN: module}, PLAIN, bascule.compile

    def loop(body):
        names = {"table": table, "text": text, "again": again}
        exec(f"def run(n):\n    for _ in n:\n        {body}", names)
        return lambda: milliseconds(lambda: names["run"](itertools.repeat(None, calls))) / calls * 1e6

    times = medians(21, empty=loop("pass"), dict=loop("table[text]"), again=loop("again(text)"))
    lookup, compiled = times["dict"] - times["empty"], times["again"] - times["empty"]
    row("C5", "compile again / dict lookup", compiled / lookup, "<= 6", f"{compiled:.0f} ns, lookup {lookup:.0f} ns")

    directory = tempfile.mkdtemp(dir=os.environ["BASCULE_CACHE_DIR"])
    with open(os.path.join(directory, "value.h"), "w", encoding="ascii") as header:
        header.write("#define VALUE 1\n")
    os.utime(header.name, (1, 1))
    options = bascule.CompileOptions(include_paths=[directory])
    with_header = '#include "value.h"\n' + PLAIN
    time.sleep(2.1)  # a younger header is read again, not only looked at
    bascule.compile(with_header, options=options)
    taken = statistics.median(
        milliseconds(lambda: bascule.compile(with_header, options=options)) * 1e6 for _ in range(2000)
    )
    row("C5b", "the same with a header of the user's", taken / lookup, "recorded", f"{taken / 1e3:.1f} us")


def main():
    parser = argparse.ArgumentParser(description="Ratios of compiling to NVRTC, and of the cache to compiling.")
    parser.add_argument("--rounds", type=int, default=31)
    options = parser.parse_args()
    bascule.current_device()
    nvrtc = BareNvrtc()
    nvrtc.compile(PLAIN)
    bascule.compile(unique(PLAIN))  # the first of a process costs more

    info = _bascule._nvrtc_info()
    print(f"NVRTC {info['version']}, Python {sys.version.split()[0]}, {options.rounds} rounds\n")
    print(f"{'':56}{'today':>10}{'goal':>10}")
    measure_disk(nvrtc, options.rounds)
    measure_cold(nvrtc, options.rounds)
    measure_templates(nvrtc, options.rounds)
    measure_again()


if __name__ == "__main__":
    main()
