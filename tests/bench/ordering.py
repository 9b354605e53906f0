"""The driver calls that order a launch with other streams, counted exactly, and the cost beyond them.

    python tests/bench/ordering.py [--rounds N]

L5 counts the driver calls of warm launches, and the operations in the emulated device's trace: N foreign streams need N
records and N waits before the launch, one record and N waits after it; streams that are the launch's own need none. A
number that differs fails the run. The time that one foreign stream adds to a launch is then compared with that of two
records and two waits which C code calls around the same launch, as in a program that orders it by hand. The same four
calls in a separate loop are shown too: they are faster there, because nothing between them evicts their code from the
processor's first-level cache, as a launch from Python does. The kernels do not run (the emulated device's null mode):
only the way to the driver is measured.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator

import bench_device  # noqa: F401
import measuring
from measuring import Benchmark, Result, Row, exact, native

import bascule
from bascule import _bascule

(bench_native,) = native("bench_native")

MOST = 8
PARAMETERS = ", ".join(f"float* x{i}" for i in range(MOST))
KERNELS = f"""
extern "C" __global__ void one(float* x) {{ x[threadIdx.x] += 1; }}
extern "C" __global__ void many({PARAMETERS}) {{ x0[threadIdx.x] += x{MOST - 1}[threadIdx.x]; }}
"""
CALLS = 2000
TRACED = {"record": "records", "wait": "waits", "launch": "launches"}
REPEATED = 16  # counted launches: too few for the lifetime queue to record a marker
BLOCK = 32
COUNTED = {
    "records": ["cuEventRecord"],
    "waits": ["cuStreamWaitEvent"],
    "launches": ["cuLaunchKernelEx", "cuLaunchKernel"],
    "cuCtxGetCurrent": ["cuCtxGetCurrent"],
    "capture": ["cuStreamIsCapturing", "cuStreamGetCaptureInfo"],
    "cuStreamGetCtx": ["cuStreamGetCtx"],
    "pointers": ["cuPointerGetAttributes", "cuPointerGetAttribute"],
    "allocations": ["cuMemAlloc", "cuMemAllocAsync", "cuMemHostAlloc"],
    "events made": ["cuEventCreate"],
    "host waits": ["cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"],
}


Counts = dict[str, float]


def calls() -> Counts:
    return {what: sum(map(_bascule._driver_calls, names)) for what, names in COUNTED.items()}


def calls_a_launch(launch: Callable[[], None]) -> Counts:
    """The driver calls of one warm launch: those of several, divided by their number."""
    for _ in range(4):
        launch()
    bascule.synchronize()  # releases the owners of earlier launches, so that no marker is counted
    launch()  # finds no kept owners for the stream, and queries whether another library is capturing it
    before = calls()
    with bascule.emulated.trace() as operations:
        for _ in range(REPEATED):
            launch()
    after = calls()
    counts = {what: (after[what] - before[what]) / REPEATED for what in COUNTED}
    kinds = Counter(operation.kind for operation in operations)
    counts["others"] = sum(kinds.values()) / REPEATED
    for kind, what in TRACED.items():
        counts["others"] -= kinds[kind] / REPEATED
        if kinds[kind] / REPEATED != counts[what]:
            sys.exit(f"ordering: the trace has {kinds[kind]} {what} where {counts[what] * REPEATED:g} were called")
    return counts


def producers(pointers: list[int], streams: list[int]) -> list[object]:
    return [bench_native.Producer(p, BLOCK, "<f4", s) for p, s in zip(pointers, streams, strict=True)]


class Scene:
    """A consumer stream, foreign streams, and arrays in memory of Bascule."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bascule.EmulatedDeviceWarning)
            self.module = bascule.compile(KERNELS)
            self.owners = [bascule.device_array(BLOCK, "f4") for _ in range(MOST)]
        self.pointers = [array.__cuda_array_interface__["data"][0] for array in self.owners]
        self.consumer, *self.foreign = [bascule.stream() for _ in range(MOST + 1)]
        self.streams = [stream.handle for stream in self.foreign]


def counted(scene: Scene) -> Iterator[tuple[str, int, int, Counts]]:
    """Yields a launch's description, its numbers of foreign streams and of handles given out, and its driver calls.

    Other code may capture a stream whose handle it has. Bascule asks the driver at each launch whether it does.
    """
    many, pointers, streams, consumer = scene.module.many, scene.pointers, scene.streams, scene.consumer
    launcher, unordered = many[1, BLOCK, consumer], many[1, BLOCK]
    for foreign in (0, 1, 2, 4, 8):
        arrays = producers(pointers, streams[:foreign] + [consumer.handle] * (MOST - foreign))
        counts = calls_a_launch(lambda arrays=arrays: launcher(*arrays))
        yield f"{foreign} foreign streams", foreign, foreign + 1, counts  # the producers have the consumer's handle
    arrays = producers(pointers, [streams[0]] * MOST)
    yield "8 arrays on one foreign stream", 1, 2, calls_a_launch(lambda: launcher(*arrays))
    yield "8 arrays on one stream, none given", 0, 1, calls_a_launch(lambda: unordered(*arrays))
    yield "8 arrays of bascule", 0, 0, calls_a_launch(lambda: unordered(*scene.owners))


def differences(foreign: int, given_out: int, counts: Counts) -> list[str]:
    """Returns how a row differs from L5."""
    expected = dict.fromkeys(counts, 0) | {
        "records": foreign + (1 if foreign else 0),
        "waits": 2 * foreign,
        "launches": 1,
        "cuCtxGetCurrent": 1,
        "capture": given_out,
    }
    return [f"{what} {counts[what]:g}, not {value}" for what, value in expected.items() if counts[what] != value]


def count() -> tuple[Result, list[str]]:
    """Returns the row L5, the number of wrong counts, and the lines of the table and the differences."""
    lines, wrong = [f"{'L5  driver calls a launch':36}" + "".join(f"{what:>16}" for what in [*COUNTED, "others"])], []
    for what, foreign, given_out, counts in counted(Scene()):
        lines.append(f"    {what:32}" + "".join(f"{counts[name]:16g}" for name in counts))
        wrong += [f"{what}: {difference}" for difference in differences(foreign, given_out, counts)]
    return exact("L5", "driver calls a launch that are not exact", len(wrong), "<= 0"), lines + wrong


def benchmark() -> Benchmark:
    scene = Scene()
    one, consumer, streams = scene.module.one, scene.consumer, scene.streams
    launcher = one[1, BLOCK, consumer]
    launcher(scene.owners[0])
    bench_native.load_driver(_bascule._driver_info()["path"], one.ptx, "one")
    (own,) = producers(scene.pointers[:1], [consumer.handle])
    (foreign,) = producers(scene.pointers[:1], streams[:1])
    return Benchmark(
        {
            "driver": lambda: bench_native.time_driver_ordering(CALLS, streams[0], consumer.handle) / CALLS,
            "own": lambda: bench_native.time_calls(launcher, (own,), CALLS) / CALLS,
            "by hand": lambda: bench_native.time_calls(launcher, (own,), CALLS, streams[0], consumer.handle) / CALLS,
            "foreign": lambda: bench_native.time_calls(launcher, (foreign,), CALLS) / CALLS,
        },
        [
            Row(
                "L5",
                "one foreign stream / 2 records, 2 waits by hand",
                lambda r: (r["foreign"] - r["own"]) / (r["by hand"] - r["own"]),
                "<= 1.3",
            ),
            Row("L5", "the same four calls in a loop", lambda r: (r["foreign"] - r["own"]) / r["driver"]),
        ],
        rounds=201,
        what={
            "driver": "two records and two waits from a C loop",
            "own": "kernel[grid, block, stream](1 array on that stream)",
            "by hand": "record, wait; that launch; record, wait: from C",
            "foreign": "kernel[grid, block, stream](1 array on another stream)",
        },
        keep=scene,
    )


if __name__ == "__main__":
    exactness, table = count()
    print("\n".join(table), end="\n\n")
    measuring.main(benchmark, __doc__)
    if exactness.verdict != "met":
        sys.exit("ordering: L5 is exact, and some counts above are not")
