"""The most informative checks of a driver in the shortest time: each step in a separate process, with a time limit.

    python tests/gpu/first.py [--result FILE] [STEP...]

Prints a line for each step as it ends and writes FILE after each. Exits with 1 if a step failed or hung.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import ctypes
import gc
import importlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from collect import replace

import bascule

# Limit in seconds for a step: many times the time that each takes.
LIMIT = 25.0 * float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)
COUNT = 1 << 20
Facts = dict[str, Any]
STEPS: dict[str, Callable[[], Facts]] = {}

SAXPY = """
__global__ void saxpy(float a, bascule::array_view<const float> x, bascule::array_view<float> y) {
    for (auto i : bascule::grid_stride(y.size())) y[i] += a * x[i];
}
__global__ void twice(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
__global__ void spin(float* x, long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {}
    x[threadIdx.x] += 1;
}
"""


class UnavailableError(Exception):
    """The reason why a step cannot run here."""


def step(function: Callable[[], Facts]) -> Callable[[], Facts]:
    STEPS[function.__name__] = function
    return function


def driver() -> ctypes.CDLL:
    return ctypes.CDLL(bascule._bascule._driver_info()["path"])


def succeeds(code: int) -> None:
    assert code == 0, f"the driver returned CUresult {code}"


def cycles(milliseconds: float) -> int:
    """Cycles for a kernel that spins; the emulated device's clock counts instructions."""
    return 1000 if is_emulated() else int(milliseconds * 1.5e6)


def is_emulated() -> bool:
    return bascule.current_device().emulated or hasattr(driver(), "bascule_emulated_abi")


@step
def info() -> Facts:
    """The driver, device and compiler, and what `bascule info` says about them."""
    start = time.perf_counter()
    device = bascule.current_device()
    seconds = time.perf_counter() - start
    text = subprocess.run([sys.executable, "-m", "bascule", "info"], capture_output=True, text=True, check=False).stdout
    return {
        "device": device.name,
        "arch": device.arch,
        "driver": bascule._bascule._driver_info(),
        "nvrtc": bascule._bascule._nvrtc_info(),
        "seconds to the first use": round(seconds, 3),
        "info": text,
    }


@step
def saxpy() -> Facts:
    start = time.perf_counter()
    kernel = bascule.compile(SAXPY).saxpy
    x, y = np.arange(COUNT, dtype="f4"), np.ones(COUNT, "f4")
    on_device = bascule.to_device(y)
    kernel.forall(COUNT)(2.0, bascule.to_device(x), on_device)
    np.testing.assert_array_equal(on_device.copy_to_host(), y + 2 * x)
    return {"seconds": round(time.perf_counter() - start, 3), "ptx": len(kernel.ptx), "cubin": len(kernel.cubin or b"")}


@step
def cost_of_a_launch() -> Facts:
    """In us: a launch with three arrays and a float by Bascule, and by cuLaunchKernelEx in a C loop."""
    from driver_calls import KERNELS, LEGACY, Launchable, RawDriver

    d = RawDriver()
    it, stream = Launchable(d), bascule.stream()
    kernel = bascule.compile(KERNELS).arrays3.prepare()
    x, y, out = (bascule.device_array(1024, "f4") for _ in range(3))
    mine = [bascule.device_array(1024, "f4", stream=stream) for _ in range(3)]

    def launches(launcher: bascule.Launcher, *arguments: Any) -> float:
        for _ in range(8):  # the first warms up
            start = time.perf_counter()
            for _ in range(256):
                launcher(*arguments)
            taken.append(time.perf_counter() - start)
            bascule.synchronize()
        return round(min(taken[-7:]) / 256 * 1e6, 3)

    taken: list[float] = []
    facts = {
        "own arrays": launches(kernel[4, 256], x, y, out, 2.0),
        "own arrays on a stream of theirs": launches(kernel[4, 256], *mine, 2.0),
        "one array of another stream": launches(kernel[4, 256, stream], x, mine[0], mine[1], 2.0),
        "bound": launches(kernel[4, 256].bind(x, y, out, 2.0)),
    }
    for what, function in (("CUfunction", it.function), ("CUkernel", it.kernel)):
        for where, handle in (("legacy", LEGACY), ("non-blocking", ctypes.c_void_p(stream.handle))):
            facts[f"raw, {what}, {where}"] = round(d.nanoseconds((it.on(handle, function),)) / 1e3, 3)
    facts["own arrays / raw"] = round(facts["own arrays"] / facts["raw, CUfunction, legacy"], 3)
    return facts


@step
def cost_of_memory() -> Facts:
    """In us per operation, warm: the pool and the staging buffers have already grown."""
    host, facts = np.zeros(1 << 16, "f4"), {}
    x, small = bascule.to_device(host), bascule.to_device(host[:1024])
    works: dict[str, Callable[[], object]] = {
        "device_array of 256 KiB": lambda: bascule.device_array(1 << 16, "f4"),
        "device_array of 64 MiB": lambda: bascule.device_array(1 << 24, "f4"),
        "to_device of 4 KiB": lambda: bascule.to_device(host[:1024]),
        "to_device of 256 KiB": lambda: bascule.to_device(host),
        "copy_to_host of 4 KiB": lambda: small.copy_to_host(),
        "copy_to_host of 256 KiB": lambda: x.copy_to_host(),
        "copy of 256 KiB": x.copy,
        "astype of 256 KiB": lambda: x.astype("f8"),
        "fill of 256 KiB": lambda: x.fill(1),
        "pinned_array of 256 KiB": lambda: bascule.pinned_array(1 << 16, "f4"),
        "item": lambda: small[0].item(),
        "synchronize": bascule.synchronize,
    }
    for name, work in works.items():
        try:
            for _ in range(2):  # the first round warms up
                bascule.synchronize()
                start = time.perf_counter()
                for _ in range(100):
                    work()
                facts[name] = round((time.perf_counter() - start) / 100 * 1e6, 2)
        except Exception as error:
            facts[name] = f"{type(error).__name__}: {error}"
    return facts


def launch_with(name: str, make: Callable[[Any], Any], to_host: Callable[[Any], np.ndarray]) -> Facts:
    """A kernel doubles an array of another library, which then reads it with its own functions."""
    try:
        library = importlib.import_module(name)
    except ImportError as error:
        raise UnavailableError(f"{name} is not installed ({error})") from None
    try:
        array = make(library)
    except Exception as error:
        raise UnavailableError(f"{name} makes no array on the device: {type(error).__name__}: {error}") from None
    kernel = bascule.compile(SAXPY).twice
    before = to_host(array).copy()
    for _ in range(3):
        kernel[(before.size + 255) // 256, 256](array, before.size)
    np.testing.assert_array_equal(to_host(array), 8 * before)
    return {"version": getattr(library, "__version__", "?"), "type": str(type(array))}


@step
def cupy() -> Facts:
    return launch_with("cupy", lambda cupy: cupy.arange(1000, dtype="f4"), lambda array: array.get())


@step
def torch() -> Facts:
    return launch_with(
        "torch", lambda torch: torch.arange(1000, dtype=torch.float32, device="cuda"), lambda array: array.cpu().numpy()
    )


@step
def numba() -> Facts:
    return launch_with(
        "numba.cuda", lambda cuda: cuda.to_device(np.arange(1000, dtype="f4")), lambda array: array.copy_to_host()
    )


@step
def jax() -> Facts:
    """A kernel reads an array of JAX, which no kernel may write, and writes one of Bascule."""
    try:
        import jax
        import jax.numpy
    except ImportError as error:
        raise UnavailableError(f"jax is not installed ({error})") from None
    if jax.devices()[0].platform not in ("gpu", "cuda"):
        raise UnavailableError(f"jax runs on {jax.devices()[0].platform}")
    x = jax.numpy.arange(1000, dtype="float32")
    y = bascule.to_device(np.ones(1000, "f4"))
    bascule.compile(SAXPY).saxpy.forall(1000)(2.0, x, y)
    np.testing.assert_array_equal(y.copy_to_host(), 1 + 2 * np.arange(1000, dtype="f4"))
    return {"version": jax.__version__}


@step
def order() -> Facts:
    """A launch waits for a slow producer, and the producer's next write for the launch."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    race = importlib.import_module("race")
    programs = race.Programs(15 if is_emulated() else 7500)  # cycles: 5 us
    facts = {}
    for name in ("slow_producer", "array_stream_and_kernel_stream"):
        wrong = programs.wrong_values(name, 1000, ordered=True)
        facts[name] = {"wrong": wrong, "wrong with sync=False": programs.wrong_values(name, 1000, ordered=False)}
        assert wrong == 0, facts
    return facts


@step
def events() -> Facts:
    kernel = bascule.compile(SAXPY).spin.prepare()
    p, c = bascule.stream(), bascule.stream()
    x = bascule.to_device(np.zeros(32, "f4"), stream=p)
    start, end = bascule.event(), bascule.event()
    start.record(p)
    kernel[1, 32, p](x, cycles(20))
    end.record(p)
    end.wait(c)
    pending = not end.query()
    c.synchronize()
    assert end.query()
    elapsed = start.elapsed(end)
    assert is_emulated() or (pending and 5 < elapsed < 200), (pending, elapsed)
    return {"pending while the kernel spun": pending, "ms for 20 ms at 1.5 GHz": round(elapsed, 3)}


@step
def capture_of_ours() -> Facts:
    kernel = bascule.compile(SAXPY).twice.prepare()
    p, c = bascule.stream(), bascule.stream()
    x = bascule.to_device(np.ones(32, "f4"), stream=p)
    with bascule.Graph() as graph:
        kernel[1, 32](x, 32)
        kernel[1, 32](x, 32)
    for _ in range(5):
        graph.launch(c)
    np.testing.assert_array_equal(x.copy_to_host(), np.full(32, 2.0**10, "f4"))
    return {"nodes": len(graph)}


@step
def capture_of_others() -> Facts:
    """The driver's own calls capture a launch of Bascule's; the array is deleted, and the graph is replayed."""
    cuda, kernel = driver(), bascule.compile(SAXPY).twice.prepare()
    stream = bascule.stream()
    x = bascule.to_device(np.ones(32, "f4"), stream=stream)
    out = bascule.pinned_array(32, "f4", stream=stream)
    kernel[1, 32, stream](x, 32)
    succeeds(cuda.cuStreamSynchronize(ctypes.c_void_p(stream.handle)))
    native, graph, executable = ctypes.c_void_p(stream.handle), ctypes.c_void_p(), ctypes.c_void_p()
    succeeds(cuda.cuStreamBeginCapture_v2(native, 0))
    kernel[1, 32, stream](x, 32)
    x.copy_to_host(out=out, stream=stream)
    succeeds(cuda.cuStreamEndCapture(native, ctypes.byref(graph)))
    del x
    gc.collect()
    others = [bascule.to_device(np.full(32, -1, "f4"), stream=stream) for _ in range(8)]
    succeeds(cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_uint64(0)))
    for _ in range(3):
        succeeds(cuda.cuGraphLaunch(executable, native))
    succeeds(cuda.cuStreamSynchronize(native))
    np.testing.assert_array_equal(np.asarray(out), np.full(32, 16, "f4"))
    assert all((array.copy_to_host() == -1).all() for array in others)
    succeeds(cuda.cuGraphExecDestroy(executable))
    succeeds(cuda.cuGraphDestroy(graph))
    return {}


@step
def a_python_host_function() -> Facts:
    """While a host function in Python holds up a stream, this thread frees, allocates and launches on another one."""
    cuda, stream, busy = driver(), bascule.stream(), bascule.stream()
    module = bascule.compile(SAXPY)
    x = bascule.to_device(np.ones(1024, "f4"), stream=busy)
    module.twice[4, 256, busy](x, 1024)
    bascule.synchronize()
    let_go, ran = threading.Event(), []

    def wait(_: object) -> None:
        let_go.wait(10)
        ran.append(True)

    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(wait)
    threading.Timer(1.0, let_go.set).start()
    facts = {}
    succeeds(cuda.cuLaunchHostFunc(ctypes.c_void_p(stream.handle), function, None))

    def timed(name: str, work: Callable[[], object]) -> None:
        start = time.perf_counter()
        work()
        facts[f"{name}, ms"] = round((time.perf_counter() - start) * 1e3, 3)

    held = {
        "device": bascule.device_array(1 << 20, "f4"),
        "pinned": bascule.pinned_array(1 << 16, "f4"),
        "managed": bascule.managed_array(1 << 16, "f4"),
        "code": bascule.compile(SAXPY.replace("*= 2", "*= 3")).twice.prepare(),
    }
    for name in list(held):
        timed(f"drop {name}", lambda name=name: held.pop(name))
    timed("launch", lambda: module.twice[4, 256, busy](x, 1024))
    timed("allocate", lambda: bascule.device_array(1 << 16, "f4"))
    timed("100 launches", lambda: [module.twice[4, 256, busy](x, 1024) for _ in range(100)])
    stream.synchronize()
    assert ran == [True]
    return facts


FAULT = """
import bascule
kernel = bascule.compile("__global__ void writes_far_away(int* p) { p[1ll << 40] = 1; }").writes_far_away
x = bascule.zeros(1, "i4")
kernel[1, 1](x)
try:
    bascule.synchronize()
except bascule.CudaError as error:
    print(error.code, "writes_far_away" in str(error))
    try:
        x.copy_to_host()
    except bascule.CudaError as error:
        print(error.code)
"""


@step
def a_fault_in_a_child() -> Facts:
    """The fault is reported, the process ends, and the next one works."""
    done = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, timeout=LIMIT / 2, check=False)
    words = done.stdout.split()
    assert words[1:2] == ["True"], done.stdout + done.stderr
    assert words[0] in ("700", "719"), words
    x = bascule.to_device(np.ones(4, "f4"))
    assert (x.copy_to_host() == 1).all()
    return {"codes": words, "status": done.returncode, "stderr": done.stderr[-500:]}


def outcome_of(name: str) -> Facts:
    """Runs a step in a separate process."""
    start = time.monotonic()
    command = [sys.executable, "-X", "faulthandler", str(Path(__file__).resolve()), "--here", name]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        try:
            out, err = child.communicate(timeout=LIMIT + 5)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            err += "\nstopped: it did not end\n"
    seconds = round(time.monotonic() - start, 1)
    try:
        found = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        found = {"outcome": "failed", "text": f"status {child.returncode}\n{out[-1000:]}\n{err[-3000:]}"}
    return {**found, "seconds": seconds} | ({"stderr": err[-2000:]} if err and found["outcome"] != "failed" else {})


def take(name: str) -> int:
    """Runs one step in this process: prints its outcome as a line of JSON."""
    import faulthandler
    import traceback

    faulthandler.dump_traceback_later(LIMIT, exit=True)
    try:
        found = {"outcome": "passed", "facts": STEPS[name]()}
    except UnavailableError as reason:
        found = {"outcome": "skipped", "reason": str(reason)}
    except BaseException:
        found = {"outcome": "failed", "text": traceback.format_exc()[-3000:]}
    print(json.dumps(found), flush=True)
    return found["outcome"] == "failed"


def main() -> int:
    parser = argparse.ArgumentParser(description="What tells the most of a driver in the shortest time.")
    parser.add_argument("steps", nargs="*", metavar="STEP")
    parser.add_argument("--result", type=Path)
    parser.add_argument("--here", action="store_true", help="take the step in this process")
    options = parser.parse_args()
    if unknown := [name for name in options.steps if name not in STEPS]:
        parser.error(f"no step is called {unknown[0]}; there are {', '.join(STEPS)}")
    if options.here:
        return take(options.steps[0])
    os.environ.setdefault("BASCULE_EMULATED_SCHEDULE", "threads")  # as on a GPU
    results: dict[str, Facts] = {}
    # `info`, `saxpy` and the costs run alone, so that nothing else affects what they measure.
    names = options.steps or list(STEPS)
    apart = [name for name in names if name.startswith(("info", "saxpy", "cost"))]

    def note(name: str, outcome: Facts) -> None:
        results[name] = outcome
        said = outcome.get("facts") or outcome.get("reason") or outcome.get("text") or ""
        print(f"{name}: {outcome['outcome']} ({outcome['seconds']} s) {str(said)[:700]}", flush=True)
        if options.result:
            replace(options.result, json.dumps(results, indent=2) + "\n")

    for name in apart:
        note(name, outcome_of(name))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        together = {pool.submit(outcome_of, name): name for name in names if name not in apart}
        for done in concurrent.futures.as_completed(together):
            note(together[done], done.result())
    return int(any(outcome["outcome"] == "failed" for outcome in results.values()))


if __name__ == "__main__":
    sys.exit(main())
