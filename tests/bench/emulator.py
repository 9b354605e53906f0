"""Processor time of the emulated device, as ratios to plain scalar C++ of the same arithmetic.

    python tests/bench/emulator.py [--rounds N] [NAME...]

Memory checks are on. One process uses one worker thread, another uses two. The C++ is compiled here by g++ -O2 without
vectorisation and runs on one thread. Both run in turn, in N rounds (9); ratios are of medians. With one worker the
time is processor time of the process, which other programs on the machine hardly affect; with two it is wall time,
which shows the gain of the second worker. Every result is compared with that of the C++ before anything is timed. Goals
are for one worker.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["BASCULE_DEVICE"] = "emulated"
os.environ.setdefault("BASCULE_EMULATED_WORKERS", "1")
os.environ["BASCULE_EMULATED_SCHEDULE"] = "eager"

from emulator_cases import compile_scalar, make_cases

import bascule

# Goals for the ratios. The other cases are watched: no change may make one slower.
GOALS = {"saxpy": 3, "reduce": 3, "matmul": 1.2, "gemm": 0.4, "tensor": 0.4, "mandelbrot": 0.6, "nbody": 0.6}
WATCHED = [
    *("transpose", "histogram", "scan", "stencil", "softmax", "layer_norm", "bitonic", "spmv", "convolve"),
    *("black_scholes", "warp_reduce", "dot_int8"),
]


def milliseconds(function, clock):
    start = clock()
    function()
    return 1e3 * (clock() - start)


def measure(case, rounds):
    def emulated():
        case.run()
        bascule.synchronize()

    one_worker = os.environ["BASCULE_EMULATED_WORKERS"] == "1"
    clock = time.process_time if one_worker else time.perf_counter
    pairs = [(milliseconds(emulated, clock), milliseconds(case.run_scalar, clock)) for _ in range(rounds)]
    return [statistics.median(times) for times in zip(*pairs, strict=True)]


def run_cases(names, rounds):
    """Prints one line of JSON for each case: [title, emulated ms, C++ ms], or [name, why it does not run]."""
    with tempfile.TemporaryDirectory() as directory:
        cases = make_cases(compile_scalar(Path(directory)))
        for name in names:
            try:
                case = cases[name]()
                case.check()
            except (bascule.Error, AssertionError) as error:
                print(json.dumps([name, str(error).splitlines()[0]]))
                continue
            print(json.dumps([case.title, *measure(case, rounds)]), flush=True)


def run_with(workers, names, rounds):
    environment = {**os.environ, "BASCULE_EMULATED_WORKERS": str(workers)}
    command = [sys.executable, __file__, "--here", f"--rounds={rounds}", *names]
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description="Ratios of the emulated device to plain C++.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    known = [*GOALS, *WATCHED]
    names = options.names or known
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"emulator: no kernel is called {', '.join(unknown)}; there are {', '.join(known)}")
    if options.here:
        return run_cases(names, options.rounds)
    print(f"{bascule.current_device()!r}, memory checks on; median of {options.rounds}")
    print(f"{'':31}{'emulated ms':>12}{'C++ ms':>8}{'ratio':>7}{'goal':>7}{'two workers':>14}")
    failed = False
    for name, one, two in zip(
        names, run_with(1, names, options.rounds), run_with(2, names, options.rounds), strict=True
    ):
        if len(one) == 2:
            failed = True
            print(f"{name:31}does not run: {one[1]}")
            continue
        title, emulated, scalar = one
        numbers = f"{emulated:12.2f}{scalar:8.2f}{emulated / scalar:7.2f}{GOALS.get(name, ''):>7}"
        print(f"{title:31}{numbers}{two[1] / two[2]:14.2f}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
