"""How many launches a second several threads make together, beside one thread.

    python tests/bench/threads.py [--rounds N]

Every thread has its own arrays and stream and launches in a Python loop, as programs do: with a GIL the threads take
turns, and what is asked is that they lose little by it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import bench_device  # noqa: F401
import measuring
from launches import BLOCK, GRID, SIZE, Launches
from measuring import Benchmark, Row

import bascule

ALL_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()  # before anything is pinned
THREADS = (1, 2, 4)
LAUNCHES = 40_000  # of all threads together


def benchmark() -> Benchmark:
    launches = Launches()
    kernel = launches.module.arrays3
    pinned = os.sched_getaffinity(0) if ALL_CORES else set()
    calls: list[tuple[bascule.Launcher, tuple[Any, ...]]] = []
    for _ in range(max(THREADS)):
        stream = bascule.stream()
        arrays = [bascule.device_array(SIZE, "f4", stream=stream) for _ in range(3)]
        calls.append((kernel[GRID, BLOCK, stream], (*arrays, 2.0)))
        calls[-1][0](*calls[-1][1])

    def nanoseconds(threads: int) -> float:
        barrier = threading.Barrier(threads + 1)

        def launch(call: Callable[..., object], arguments: tuple[Any, ...]) -> None:
            a, b, c, factor = arguments
            barrier.wait()
            for _ in range(LAUNCHES // threads):
                call(a, b, c, factor)
            barrier.wait()

        workers = [threading.Thread(target=launch, args=calls[i]) for i in range(threads)]
        if ALL_CORES:
            os.sched_setaffinity(0, ALL_CORES)  # threads inherit it
        for worker in workers:
            worker.start()
        barrier.wait()
        start = time.perf_counter_ns()
        barrier.wait()
        taken = time.perf_counter_ns() - start
        for worker in workers:
            worker.join()
        if ALL_CORES:
            os.sched_setaffinity(0, pinned)
        bascule.synchronize()
        return taken / LAUNCHES

    return Benchmark(
        {f"{count} threads": lambda count=count: nanoseconds(count) for count in THREADS},
        [
            Row(
                "T",
                f"launches a second of {count} threads / of one",
                lambda r, count=count: r["1 threads"] / r[f"{count} threads"],
                ">= 0.8",
            )
            for count in THREADS[1:]
        ],
        rounds=15,
        what={f"{count} threads": f"a launch by one of {count} threads, all together" for count in THREADS},
        keep=calls,
    )


if __name__ == "__main__":
    measuring.main(benchmark, __doc__)
