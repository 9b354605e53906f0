"""The launches per second of several threads together, relative to one thread.

    python tests/bench/threads.py [--rounds N]

Every thread has its own arrays and stream and launches in a Python loop, as programs do, on its own core if there are
enough: threads that share a core wait for each other in any case. For comparison, the same is measured for a function
that only releases and reacquires the GIL, and for cuda.core and numba-cuda if they are installed. These find the
emulated device in the driver's place, as in peers.py.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable

import bench_device  # noqa: F401
import measuring
import peers
from launches import BLOCK, GRID, SIZE, Launches
from measuring import Benchmark, Round, Row

import bascule

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []  # before anything is pinned
THREADS = (1, 2, 4)
LAUNCHES = 40_000  # of all threads together
NUMBAS_LAUNCHES = 1_000
OURS, GIL = "bascule", "the GIL alone"
Call = Callable[[], object]
MakeCall = Callable[[bascule.Stream, list[bascule.DeviceArray]], Call]


def bascules(launches: Launches) -> MakeCall:
    def make(stream: bascule.Stream, arrays: list[bascule.DeviceArray]) -> Call:
        launcher = launches.module.arrays3[GRID, BLOCK, stream]
        return lambda: launcher(*arrays, 2.0)

    return make


def releases_of_the_gil(stream: bascule.Stream, arrays: list[bascule.DeviceArray]) -> Call:
    """Returns a C function, around which ctypes releases and reacquires the GIL."""
    return ctypes.CDLL(None).getppid


def cuda_cores(launches: Launches) -> MakeCall:
    from cuda.core import Device

    def make(stream: bascule.Stream, arrays: list[bascule.DeviceArray]) -> Call:
        pointers = [array.__cuda_array_interface__["data"][0] for array in arrays]
        launch, arguments = peers.cuda_core(launches.module.arrays3.ptx, "arrays3", pointers, stream.handle)
        Device(0).set_current()  # a thread begins without a context
        return lambda: launch(*arguments)

    return make


def numbas() -> MakeCall:
    from numba import cuda

    kernel = peers.numba_kernel()

    def make(stream: bascule.Stream, arrays: list[bascule.DeviceArray]) -> Call:
        launcher = kernel[GRID, BLOCK, cuda.external_stream(stream.handle)]
        own = [cuda.as_cuda_array(array) for array in arrays]
        return lambda: launcher(*own, 2.0)

    return make


def nanoseconds(make: MakeCall, threads: int, launches: int) -> float:
    """Nanoseconds per launch if the launches are divided among threads: from the first start to the last end."""
    barrier = threading.Barrier(threads)
    streams = [bascule.stream() for _ in range(threads)]
    arrays = [[bascule.device_array(SIZE, "f4", stream=stream) for _ in range(3)] for stream in streams]
    times: list[int] = []

    def work(number: int) -> None:
        if CORES:
            os.sched_setaffinity(0, {CORES[number % len(CORES)]})  # of this thread
        call = make(streams[number], arrays[number])
        call()
        barrier.wait()
        start = time.perf_counter_ns()
        for _ in range(launches // threads):
            call()
        times.extend((start, time.perf_counter_ns()))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    bascule.synchronize()
    return (max(times) - min(times)) / launches


def benchmark(with_peers: bool = False) -> Benchmark:
    launches = Launches()
    makers = {OURS: bascules(launches), GIL: releases_of_the_gil}
    if with_peers:
        makers |= {"cuda.core": cuda_cores(launches), "numba-cuda": numbas()}
    return Benchmark(
        {
            f"{library} {count}": lambda library=library, make=make, count=count: nanoseconds(
                make, count, NUMBAS_LAUNCHES if library == "numba-cuda" else LAUNCHES
            )
            for library, make in makers.items()
            for count in THREADS
        },
        [row for count in THREADS[1:] for row in rows(count, list(makers))],
        rounds=15,
        what={
            f"{library} {count}": f"{library}: a launch by one of {count} threads, all together"
            for library in makers
            for count in THREADS
        },
        keep=launches,
    )


def rate(library: str, threads: int) -> Callable[[Round], float]:
    """The launches per second of several threads divided by those of one thread."""
    return lambda r: r[f"{library} 1"] / r[f"{library} {threads}"]


def rows(threads: int, libraries: list[str]) -> list[Row]:
    what = f"launches a second of {threads} threads / of one"
    made = [Row("T", f"{what}: {library}", rate(library, threads)) for library in libraries]
    ours, gil = rate(OURS, threads), rate(GIL, threads)
    made.append(Row("T", "the same: bascule / the GIL alone", lambda r: ours(r) / gil(r), ">= 0.8"))
    return made


if __name__ == "__main__":
    if not peers.missing() and peers.READY not in os.environ:
        sys.exit(peers.with_the_driver(__file__, *sys.argv[1:]))
    measuring.main(lambda: benchmark(peers.READY in os.environ), __doc__)
