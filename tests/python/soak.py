"""Launches for a long time, and fails if memory, reference counts or the number of held owners grow.

    python tests/python/soak.py [--launches N]

Nine tenths of the launches only reach the driver (BASCULE_EMULATED_EXECUTE=0), in one process; the rest run their
kernels, in another. Both launch with Bascule's arrays, other libraries' arrays, new arrays each time and bound ones, in
several threads and streams, with conversions and refused arguments in between.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

SOURCE = """
__global__ void increment(float* p, const float* q, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += q[i];
}
template <typename T> __global__ void set(T* p, T value) { p[threadIdx.x] = value; }
"""
THREADS = 2
SLACK = 8 << 20  # bytes that the allocators of C and Python may vary by after the warm-up


class Foreign:
    """An array of another library: a Python object with `__cuda_array_interface__`."""

    def __init__(self, array) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict:
        return self.array.__cuda_array_interface__


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


class Round:
    """The loop body of one thread: 16 launches and other calls between them."""

    launches = 16

    def __init__(self, bascule, np) -> None:
        self.bascule, self.np = bascule, np
        module = bascule.compile(SOURCE)
        self.increment, self.set = module.increment, module.set
        self.stream, self.other = bascule.stream(), bascule.stream()
        self.x = bascule.to_device(np.zeros(256, "f4"), stream=self.stream)
        self.q = bascule.to_device(np.ones(256, "f4"), stream=self.other)
        self.launcher = self.increment[1, 256, self.stream]
        self.bound = self.launcher.bind(self.x, self.q, 256)

    def run(self) -> None:
        for _ in range(5):
            self.launcher(self.x, self.q, 256)
            self.launcher(Foreign(self.x), self.q, 256)
            self.bound()
        new = self.bascule.device_array(256, "f4", stream=self.stream)
        self.set[1, 256, self.stream](new, 3.0)
        converted = new.astype("f8")
        converted[::2].fill(1)
        self.bound.rebind(self.x, Foreign(self.q), 256)
        try:
            self.launcher(self.x, "no array", 256)
        except TypeError:
            pass
        else:
            raise AssertionError("a str went through as an array")

    def counts(self) -> list[int]:
        kept = (self.x, self.q, self.stream, self.other, self.increment, self.set, self.launcher, self.bound)
        return [sys.getrefcount(each) for each in kept]


def soak(launches: int, executes: bool) -> None:
    """The main function of each process. Raises SystemExit that names the problems: what grew, or wrong sums."""
    import numpy as np

    import bascule

    held = bascule._bascule._owners_held
    rounds = [Round(bascule, np) for _ in range(THREADS)]

    def each_thread(count: int) -> None:
        def work(each: Round) -> None:
            for number in range(count):
                each.run()
                if executes or number % 8 == 7:
                    each.stream.synchronize()

        threads = [threading.Thread(target=work, args=(each,)) for each in rounds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def measure() -> tuple[int, list[int], int]:
        bascule.synchronize()
        gc.collect()
        return resident_bytes(), [count for each in rounds for count in each.counts()], held()

    total = max(launches // (THREADS * Round.launches), 8)
    warm = max(total // 4, 4)
    each_thread(warm)
    first = measure()
    each_thread(total - warm)
    last = measure()

    values = {round(float(each.x.copy_to_host()[0])) for each in rounds}
    expected = {15 * total if executes else 0}
    name = "kernels run" if executes else "kernels do not run"
    print(f"{name}: {total * THREADS * Round.launches} launches by {THREADS} threads")
    print(f"  resident bytes: first {first[0]}, last {last[0]}, grew by {last[0] - first[0]}")
    print(f"  reference counts: first {first[1]}, last {last[1]}")
    print(f"  owners held after a synchronisation: first {first[2]}, last {last[2]}")
    problems = [
        what
        for what, wrong in (
            ("memory grows", last[0] - first[0] > SLACK),
            ("references leak", first[1] != last[1]),
            ("owners are not let go", (first[2], last[2]) != (0, 0)),
            (f"the sums are {values}, not {expected}", values != expected),
        )
        if wrong
    ]
    if problems:
        sys.exit(f"soak: {name}: {'; '.join(problems)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Launches with flat memory and flat reference counts.")
    parser.add_argument("--launches", type=int, default=1_000_000)
    parser.add_argument("--part", choices=["null", "executing"], help="one of the two processes")
    options = parser.parse_args()
    if options.part is not None:
        soak(options.launches, options.part == "executing")
        return
    os.environ.setdefault("BASCULE_DEVICE", "emulated")
    parts = {"executing": options.launches // 10, "null": options.launches - options.launches // 10}
    for part, launches in parts.items():
        environment = {**os.environ, "BASCULE_EMULATED_EXECUTE": "1" if part == "executing" else "0"}
        command = [sys.executable, __file__, "--launches", str(launches), "--part", part]
        code = subprocess.run(command, env=environment, check=False).returncode
        if code != 0:
            sys.exit(code)
    print("soak: flat")


if __name__ == "__main__":
    main()
