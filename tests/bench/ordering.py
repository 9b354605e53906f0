"""What ordering a launch with other streams asks of the driver, exactly, and what it costs beyond that.

    python tests/bench/ordering.py [--rounds N]

L5 counts the driver's calls of launches that are warm: N foreign streams are N records and N waits before the launch,
one record and N waits after it; streams that are the launch's own are nothing. A number that differs fails the run. The
time that one foreign stream adds to a launch is then compared with what two records and two waits add that C code calls
around the same launch, as a program would that orders it by hand. The same four calls in a loop of their own are shown
beside it: they are faster there, because nothing between them drives their code out of the processor's first cache, as
a launch from Python does. The kernels do not run (the emulated device's null mode): only the way to the driver is
measured.
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
from bascule import _bascule

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build" / "dev" / "tests" / "bench"))
try:
    import bench_native
except ImportError:
    sys.exit("ordering: build it first with `bash tests/run.sh`, or `cmake --build build/dev --target bench_native`")

MOST = 8
PARAMETERS = ", ".join(f"float* x{i}" for i in range(MOST))
KERNELS = f"""
extern "C" __global__ void one(float* x) {{ x[threadIdx.x] += 1; }}
extern "C" __global__ void many({PARAMETERS}) {{ x0[threadIdx.x] += x{MOST - 1}[threadIdx.x]; }}
"""
CALLS = 2000
REPEATED = 16  # launches that are counted: fewer than lie between two markers of the lifetime queue
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


def calls():
    return {what: sum(map(_bascule._driver_calls, names)) for what, names in COUNTED.items()}


def calls_a_launch(launch):
    """The driver's calls of one warm launch: what many of them call, divided by their number."""
    for _ in range(4):
        launch()
    bascule.synchronize()  # lets go of what earlier launches hold, so that no marker falls among those counted
    launch()  # finds the stream with nothing kept for it, and asks whether others are capturing it
    before = calls()
    for _ in range(REPEATED):
        launch()
    after = calls()
    return {what: (after[what] - before[what]) / REPEATED for what in COUNTED}


def producers(pointers, streams):
    return [bench_native.Producer(p, BLOCK, "<f4", s) for p, s in zip(pointers, streams, strict=True)]


def exact(many, pointers, streams, consumer):
    """Rows of L5: what is launched, how many foreign streams that has, and the driver's calls."""
    launcher, unordered = many[1, BLOCK, consumer], many[1, BLOCK]
    for foreign in (0, 1, 2, 4, 8):
        arrays = producers(pointers, streams[:foreign] + [consumer.handle] * (MOST - foreign))
        yield f"{foreign} foreign streams", foreign, calls_a_launch(lambda arrays=arrays: launcher(*arrays))
    arrays = producers(pointers, [streams[0]] * MOST)
    yield "8 arrays on one foreign stream", 1, calls_a_launch(lambda: launcher(*arrays))
    yield "8 arrays on one stream, none given", 0, calls_a_launch(lambda: unordered(*arrays))
    owned = [bascule.to_device(np.zeros(BLOCK, "f4")) for _ in range(MOST)]
    yield "8 arrays of bascule", 0, calls_a_launch(lambda: unordered(*owned))


def differences(foreign, counts):
    """What of a row is not as L5 says. Capture may be asked for foreign streams."""
    expected = dict.fromkeys(COUNTED, 0) | {
        "records": foreign + (1 if foreign else 0),
        "waits": 2 * foreign,
        "launches": 1,
        "cuCtxGetCurrent": 1,
    }
    if foreign:
        del expected["capture"], expected["cuStreamGetCtx"]
    return [f"{what} {counts[what]:g}, not {value}" for what, value in expected.items() if counts[what] != value]


def main():
    parser = argparse.ArgumentParser(description="What ordering a launch costs.")
    parser.add_argument("--rounds", type=int, default=201)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core: no migration between the two sides

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bascule.EmulatedDeviceWarning)
        module = bascule.compile(KERNELS)
        owners = [bascule.to_device(np.zeros(BLOCK, "f4")) for _ in range(MOST)]
    pointers = [array.__cuda_array_interface__["data"][0] for array in owners]
    made = [bascule.stream() for _ in range(MOST + 1)]
    consumer, streams = made[0], [stream.handle for stream in made[1:]]
    print(f"{bascule.current_device()!r}, Python {sys.version.split()[0]}, {options.rounds} rounds of {CALLS} calls\n")

    wrong = []
    print(f"{'L5  driver calls a launch':36}" + "".join(f"{what:>16}" for what in COUNTED))
    for what, foreign, counts in exact(module.many, pointers, streams, consumer):
        print(f"    {what:32}" + "".join(f"{counts[name]:16g}" for name in COUNTED))
        wrong += [f"{what}: {difference}" for difference in differences(foreign, counts)]

    launcher = module.one[1, BLOCK, consumer]
    launcher(owners[0])
    bench_native.load_driver(str(Path(bascule.__file__).parent / "libbascule_emulator.so"), module.one.ptx, "one")
    (own,) = producers(pointers[:1], [consumer.handle])
    (foreign,) = producers(pointers[:1], streams[:1])
    functions = {
        "driver": lambda: bench_native.time_driver_ordering(CALLS, streams[0], consumer.handle) / CALLS,
        "own": lambda: bench_native.time_calls(launcher, (own,), CALLS) / CALLS,
        "by hand": lambda: bench_native.time_calls(launcher, (own,), CALLS, streams[0], consumer.handle) / CALLS,
        "foreign": lambda: bench_native.time_calls(launcher, (foreign,), CALLS) / CALLS,
    }
    for function in functions.values():
        function()  # warm
    rounds = [{name: function() for name, function in functions.items()} for _ in range(options.rounds)]
    median = {name: statistics.median(r[name] for r in rounds) for name in functions}
    added = statistics.median((r["foreign"] - r["own"]) / (r["by hand"] - r["own"]) for r in rounds)
    in_a_loop = statistics.median((r["foreign"] - r["own"]) / r["driver"] for r in rounds)
    print(f"\n{'ns':>8}  what")
    for name, what in (
        ("driver", "two records and two waits from a C loop"),
        ("own", "kernel[grid, block, stream](1 array on that stream)"),
        ("by hand", "record, wait; that launch; record, wait: from C"),
        ("foreign", "kernel[grid, block, stream](1 array on another stream)"),
    ):
        print(f"{median[name]:8.1f}  {what}")
    print(f"\n    {'what one foreign stream adds':48}{'today':>8}{'goal':>8}")
    print(f"    {'/ two records and two waits around the launch':48}{added:8.2f}{'<= 1.3':>8}")
    print(f"    {'/ two records and two waits in a loop':48}{in_a_loop:8.2f}")
    if wrong:
        sys.exit("ordering: L5 is exact, and this is not:\n  " + "\n  ".join(wrong))


if __name__ == "__main__":
    main()
