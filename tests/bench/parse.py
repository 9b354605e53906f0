"""What reading an array's interface costs beyond reading the attribute, as a ratio.

    python tests/bench/parse.py [--rounds N]

A producer in C makes its dict at each read, as CuPy's and Numba's do. What is measured is the whole parse with every
check, of such a dict, over one bare read of the attribute. Both run in loops of C, in turn, and the ratio is the median
over the rounds: a noisy machine then disturbs both sides.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import bascule

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build" / "dev" / "tests" / "bench"))
try:
    import bench_native
except ImportError:
    sys.exit("parse: build it first with `bash tests/run.sh`, or `cmake --build build/dev --target bench_native`")

CALLS = 5000
GOAL = 0.5
parse = bascule._bascule._parse


def time_parse(descriptor):
    """Nanoseconds a parse: what one more call of many costs, so that the call itself cancels out."""
    start = time.thread_time_ns()
    parse(descriptor, 1)
    middle = time.thread_time_ns()
    parse(descriptor, CALLS + 1)
    return (time.thread_time_ns() - middle - (middle - start)) / CALLS


def descriptors():
    """Of one axis as the C producer makes it; of others as other libraries do."""
    made = bench_native.Producer(0x7F0000000000, 1024, "<f4").__cuda_array_interface__
    return {
        "the C producer's dict": made,
        "the same with descr": {**made, "descr": [("", "<f4")]},
        "two axes with strides": {**made, "shape": (32, 32), "strides": (128, 4)},
        "eight axes with strides": {**made, "shape": (2,) * 8, "strides": tuple(4 << d for d in range(7, -1, -1))},
    }


def main():
    parser = argparse.ArgumentParser(description="Ratio of parsing an interface to reading it.")
    parser.add_argument("--rounds", type=int, default=41)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core: no migration between the two sides

    producer = bench_native.Producer(0x7F0000000000, 1024, "<f4")
    functions = {"read": lambda: bench_native.time_reads(producer, CALLS) / CALLS}
    for name, descriptor in descriptors().items():
        functions[name] = lambda descriptor=descriptor: time_parse(descriptor)
    for function in functions.values():
        function()  # warm
    rounds = [{name: function() for name, function in functions.items()} for _ in range(options.rounds)]

    print(f"Python {sys.version.split()[0]}, {options.rounds} rounds of {CALLS} calls")
    print(f"{'ns':>8}{'/ read':>9}{'goal':>8}  what")
    for name in functions:
        ns = statistics.median(r[name] for r in rounds)
        ratio = statistics.median(r[name] / r["read"] for r in rounds)
        if name == "read":
            print(f"{ns:8.1f}{'':17}  one read of __cuda_array_interface__ from a C producer")
        else:
            goal = f"<= {GOAL}" if name == "the C producer's dict" else ""
            print(f"{ns:8.1f}{ratio:9.2f}{goal:>8}  parse and checks: {name}")


if __name__ == "__main__":
    main()
