"""What a launch costs beyond the driver's own calls, as ratios.

    python tests/bench/launch.py [--rounds N]

The kernels do not run (the emulated device's null mode), so only the way to the driver is measured. Ratios are medians
over rounds in which everything compared runs once, in turn: a noisy machine then disturbs both sides. The driver's
share, cuCtxGetCurrent and cuLaunchKernelEx called from a C loop, is measured too and subtracted.
"""

import argparse
import os
import statistics
import sys
import warnings
from pathlib import Path

os.environ["BASCULE_DEVICE"] = "emulated"
os.environ["BASCULE_EMULATED_EXECUTE"] = "0"

import numpy as np

import bascule

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "dev" / "tests"
sys.path[:0] = [str(BUILD / "bench"), str(BUILD / "python" / "dlpack")]
try:
    import bench_native
    import exchange_native
except ImportError:
    sys.exit(
        "launch: build it first with `bash tests/run.sh`, or `cmake --build build/dev --target bench_native "
        "exchange_native`"
    )

KERNEL = """
extern "C" __global__ void axpby(const float* x, const float* y, float* out, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a * x[i] + y[i];
}
"""
MORE = 8  # arrays that the second kernel has beyond the first
WIDE = f"""
extern "C" __global__ void wide({", ".join(f"const float* x{i}" for i in range(2 + MORE))}, float* out, float a) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a * ({" + ".join(f"x{i}[i]" for i in range(2 + MORE))});
}}
"""
CALLS = 2000
GRID, BLOCK = 4, 256


def measures():
    """Names and functions that return nanoseconds an operation."""
    module = bascule.compile(KERNEL + WIDE)
    kernel = module.axpby
    owners = [bascule.to_device(np.zeros(GRID * BLOCK, "f4")) for _ in range(3)]
    pointers = [array.__cuda_array_interface__["data"][0] for array in owners]
    foreign = tuple(bench_native.Producer(pointer, GRID * BLOCK, "<f4") for pointer in pointers)
    exchanged = tuple(exchange_native.Tensor(pointer, (GRID * BLOCK,)) for pointer in pointers)
    launcher, wide = kernel[GRID, BLOCK], module.wide[GRID, BLOCK]
    arguments = {"foreign": foreign, "own": tuple(owners), "exchange": exchanged}
    for arrays in arguments.values():
        launcher(*arrays, 2.0)
        wide(*arrays[:1] * MORE, *arrays, 2.0)
    library = Path(bascule.__file__).parent / "libbascule_emulator.so"
    bench_native.load_driver(str(library), kernel.ptx, "axpby")

    def per_call(total):
        return total / CALLS

    return {
        "driver": lambda: per_call(bench_native.time_driver_launches(CALLS, *pointers, 2.0, 1, GRID, BLOCK)),
        "read": lambda: per_call(bench_native.time_reads(foreign[0], CALLS)),
        "noop": lambda: per_call(bench_native.time_calls(bench_native.noop, (*foreign, 2.0), CALLS)),
    } | {
        name + suffix: lambda call=call, passed=(*arrays[:1] * more, *arrays, 2.0): per_call(
            bench_native.time_calls(call, passed, CALLS)
        )
        for name, arrays in arguments.items()
        for suffix, call, more in (("", launcher, 0), (" wide", wide, MORE))
    }


def main():
    parser = argparse.ArgumentParser(description="Ratios of launching to what it cannot avoid.")
    parser.add_argument("--rounds", type=int, default=41)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core: no migration between the two sides

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bascule.EmulatedDeviceWarning)
        functions = measures()
    for function in functions.values():
        function()  # warm
    rounds = [{name: function() for name, function in functions.items()} for _ in range(options.rounds)]
    median = {name: statistics.median(r[name] for r in rounds) for name in functions}

    print(f"{bascule.current_device()!r}, Python {sys.version.split()[0]}, {options.rounds} rounds of {CALLS} calls")
    print(f"{'ns':>8}  what")
    for name, what in (
        ("noop", "a function of C that does nothing, 4 arguments"),
        ("read", "one read of __cuda_array_interface__ from a C producer"),
        ("driver", "cuCtxGetCurrent and cuLaunchKernelEx from a C loop"),
        ("foreign", "kernel[grid, block](3 arrays of that producer, 1 float)"),
        ("own", "kernel[grid, block](3 arrays of bascule, 1 float)"),
        ("exchange", "kernel[grid, block](3 arrays by an exchange table, 1 float)"),
    ):
        print(f"{median[name]:8.1f}  {what}")

    def ratio(over):
        return statistics.median(over(r) for r in rounds)

    def one_more(r, name):
        return (r[name + " wide"] - r[name]) / MORE

    rows = [
        (
            "L1",
            "launch beyond the driver / 3 reads",
            ratio(lambda r: (r["foreign"] - r["driver"]) / (3 * r["read"])),
            "1.6",
        ),
        ("L2", "own arrays beyond the driver / no-op", ratio(lambda r: (r["own"] - r["driver"]) / r["noop"]), "4.5"),
        ("L2", "exchange beyond the driver / no-op", ratio(lambda r: (r["exchange"] - r["driver"]) / r["noop"]), "4.5"),
        ("L3", "one more array: own / interface", ratio(lambda r: one_more(r, "own") / one_more(r, "foreign")), "0.12"),
        (
            "L3",
            "one more array: exchange / interface",
            ratio(lambda r: one_more(r, "exchange") / one_more(r, "foreign")),
            "0.12",
        ),
    ]
    print(f"\n{'':4}{'ratio':38}{'today':>8}{'goal':>8}")
    for number, what, value, goal in rows:
        print(f"{number:4}{what:38}{value:8.2f}{'<= ' + goal:>8}")


if __name__ == "__main__":
    main()
