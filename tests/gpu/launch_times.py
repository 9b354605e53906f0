"""What a launch costs the host on this device, beside the driver's own calls in a C loop in the same rounds.

    python tests/gpu/launch_times.py [--rounds N] [--result FILE]

tests/bench measures the same with an emulated device that executes nothing; here the driver is the real one where there
is a GPU. Rounds are short and end with a synchronisation, which is not measured: a full queue would be, otherwise.
Prints ratios with their goals; a goal that is missed fails nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import bascule
from bascule import _bascule

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build" / "dev" / "tests" / "bench"))
try:
    import bench_native
except ImportError:
    sys.exit("launch_times: build it first: cmake --build build/dev --target bench_native")

TEXT = """
extern "C" __global__ void touch(float* a, const float* b, const float* c, float f) {
    if (f > 1e30f) a[threadIdx.x] = b[threadIdx.x] + c[threadIdx.x];
}
"""
CALLS = 256  # fewer than a device queues
BLOCK = 32
# what: (measured, beside what, goal)
RATIOS = {
    "own arrays / raw": ("own", "raw", 1.10),
    "bound / raw": ("bound", "raw", 1.10),
    "the interface of a C library / raw": ("interface", "raw", 1.35),
    "one foreign stream / 2 records, 2 waits": ("added", "ordering", 1.2),
}


def measured() -> dict[str, Callable[[], float]]:
    """What is timed: nanoseconds for CALLS calls."""
    kernel = bascule.compile(TEXT).touch
    c, p = bascule.stream(), bascule.stream()
    arrays = [bascule.to_device(np.zeros(BLOCK, "f4"), stream=c) for _ in range(3)]
    pointers = [array.__cuda_array_interface__["data"][0] for array in arrays]
    launcher = kernel[1, BLOCK, c]
    launcher(*arrays, 1.0)
    bench_native.load_driver(_bascule._driver_info()["path"], kernel.ptx, "touch")

    def producers(stream: bascule.Stream) -> list[object]:
        return [bench_native.Producer(pointer, BLOCK, "<f4", stream.handle) for pointer in pointers]

    here, there = producers(c), [*producers(p)[:1], *producers(c)[1:]]
    bound = launcher.bind(*arrays, 1.0)
    keep = (arrays, here, there)
    return {
        "raw": lambda: bench_native.time_driver_launches(CALLS, *pointers, 1.0, c.handle, 1, BLOCK),
        "ordering": lambda: bench_native.time_driver_ordering(CALLS, p.handle, c.handle),
        "own": lambda: bench_native.time_calls(launcher, (*keep[0], 1.0), CALLS),
        "bound": lambda: bench_native.time_calls(bound, (), CALLS),
        "interface": lambda: bench_native.time_calls(launcher, (*keep[1], 1.0), CALLS),
        "foreign": lambda: bench_native.time_calls(launcher, (*keep[2], 1.0), CALLS),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="What a launch costs the host.")
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--result", type=Path, help="where to write what was found, as JSON")
    options = parser.parse_args()

    functions = measured()
    rounds: list[dict[str, float]] = []
    for number in range(options.rounds + 5):
        times = {}
        for name, function in functions.items():
            times[name] = function() / CALLS
            bascule.synchronize()
        times["added"] = times["foreign"] - times["interface"]
        if number >= 5:  # the first ones warm everything up
            rounds.append(times)
    median = {name: statistics.median(times[name] for times in rounds) for name in rounds[0]}
    ratios = {what: statistics.median(r[a] / r[b] for r in rounds) for what, (a, b, _) in RATIOS.items()}

    print(f"{bascule.current_device()!r}, Python {sys.version.split()[0]}, {options.rounds} rounds of {CALLS} calls\n")
    for name, nanoseconds in median.items():
        print(f"{nanoseconds:10.1f} ns  {name}")
    print(f"\n    {'ratio':44}{'here':>8}{'goal':>10}")
    for what, ratio in ratios.items():
        print(f"    {what:44}{ratio:8.2f}{f'<= {RATIOS[what][2]}':>10}")
    if options.result:
        text = json.dumps({"nanoseconds": median, "ratios": ratios}, indent=2)
        options.result.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
