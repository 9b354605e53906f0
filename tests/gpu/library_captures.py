"""Records which of Bascule's public operations end a capture that PyTorch or CuPy has begun; never fails.

    python tests/gpu/library_captures.py [--out FILE] [--jobs N] [--only TEXT]

A case is a library, a capture mode and an operation: the library begins a capture, Bascule does the operation in the
same thread or in another, and the library ends its capture and replays the graph. `driver` stands for a program that
captures with the driver's own calls. FILE is written after every case. A case that hangs is stopped. After the first
case that invalidates a capture or raises, its process runs no other case.

Processes are forked from one that has imported the library and not touched the device, since imports take seconds.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from collect import replace

import bascule

LIBRARIES = ["torch", "cupy", "driver"]
MODES = {"global": 0, "thread_local": 1, "relaxed": 2}
# CuPy captures in relaxed mode by default, PyTorch in global mode.
MODES_OF = {
    "torch": ["global", "thread_local", "relaxed"],
    "cupy": ["relaxed", "global", "thread_local"],
    "driver": ["global", "thread_local", "relaxed"],
}
LATE = "BASCULE_IMPORT_LATE"  # set if a forked process must import the library itself
BATCH = 13  # operations that a process starts with
SECONDS = 12.0 * float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)  # limit for a case
MIB = 1 << 20
KERNELS = """
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
__global__ void sum(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }
"""


class Scene:
    """The objects that operations use, made and used once before the capture begins."""

    def __init__(self) -> None:
        self.host = np.arange(32, dtype="f4")
        self.out = np.empty(32, "f4")
        self.large = np.zeros(2 * MIB, "u1")
        self.x, self.y = bascule.to_device(self.host), bascule.to_device(self.host)
        self.big = bascule.device_array(4 * MIB, "u1")
        self.stream, self.event = bascule.stream(), bascule.event()
        self.kernels = bascule.compile(KERNELS)
        self.twice = self.kernels.twice.prepare()
        self.launcher = self.twice[1, 32]
        self.bound = self.launcher.bind(self.x)
        self.graph, self.new_graph = bascule.Graph(), bascule.Graph()
        for graph in (self.graph, self.new_graph):
            with graph:
                self.launcher(self.y)
        self.graph.launch()
        self.launcher(self.x)
        self.x.astype("i4")
        self.x[::2].copy()
        self.event.record(self.stream)
        self.exported: list[Any] = [bascule.device_array(64 * 1024, "u1") for _ in range(80)]
        self.interfaces = [array.__cuda_array_interface__ for array in self.exported]
        self.pinned = bascule.pinned_array(32, "f4")
        self.dropped: list[Any] = [bascule.device_array(MIB, "u1") for _ in range(80)]
        self.other_module = bascule.compile(KERNELS + "// unused")
        bascule.synchronize()


OPERATIONS: dict[str, Callable[[Scene], object]] = {
    "nothing": lambda s: None,
    "repr": lambda s: repr(s.x),
    "item": lambda s: s.x[0].item(),
    "copy_to_host": lambda s: s.x.copy_to_host(),
    "copy_to_host(out=)": lambda s: s.x.copy_to_host(out=s.out),
    "copy_from_host": lambda s: s.x.copy_from_host(s.host),
    "to_device of 128 bytes": lambda s: bascule.to_device(s.host),
    "to_device of 2 MiB": lambda s: bascule.to_device(s.large),
    "device_array": lambda s: bascule.device_array(1000, "f4"),
    "device_array of 256 MiB": lambda s: bascule.device_array(256 * MIB, "u1"),
    "zeros": lambda s: bascule.zeros(1000, "f4"),
    "pinned_array": lambda s: bascule.pinned_array(1000, "f4"),
    "managed_array": lambda s: bascule.managed_array(1000, "f4"),
    "drop an array": lambda s: s.dropped.__delitem__(0),
    "drop 80 arrays": lambda s: s.dropped.clear(),
    "drop 80 exported arrays": lambda s: (s.exported.clear(), s.interfaces.clear()),
    "drop 80 exported arrays, synchronize": lambda s: (
        s.exported.clear(),
        s.interfaces.clear(),
        s.stream.synchronize(),
    ),
    "drop pinned memory": lambda s: delattr(s, "pinned"),
    "drop code": lambda s: delattr(s, "other_module"),
    "collect garbage": lambda s: gc.collect(),
    "astype": lambda s: s.x.astype("i4"),
    "strided copy": lambda s: s.x[::2].copy(),
    "fill": lambda s: s.x.fill(1),
    "launch": lambda s: s.launcher(s.x),
    "launch on a stream": lambda s: s.twice[1, 32, s.stream](s.x),
    "100 launches": lambda s: [s.twice[1, 32, s.stream](s.x) for _ in range(100)],
    "bound launch": lambda s: s.bound(),
    "first launch of a kernel": lambda s: s.kernels["sum"][1, 32](s.x, s.y),
    "compile and launch": lambda s: bascule.compile(KERNELS + f"// {os.getpid()}").twice[1, 32](s.x),
    "launch with interfaces": lambda s: s.launcher(Foreign(s.y)),
    "explain": lambda s: s.launcher.explain(s.x),
    "graph launch": lambda s: s.graph.launch(),
    "first graph launch": lambda s: s.new_graph.launch(),
    "capture of a graph": lambda s: capture(s),
    "new stream": lambda s: bascule.stream(),
    "new event": lambda s: bascule.event(),
    "event.record": lambda s: s.event.record(s.stream),
    "event.query": lambda s: s.event.query(),
    "event.synchronize": lambda s: s.event.synchronize(),
    "stream.query": lambda s: s.stream.query(),
    "stream.synchronize": lambda s: s.stream.synchronize(),
    "synchronize": lambda s: bascule.synchronize(),
    "cuda_array": lambda s: bascule.cuda_array(np.zeros((4, 4), "f4")),
    "texture": lambda s: bascule.texture(s.x),
    "memory_pool": lambda s: bascule.memory_pool().used_bytes,
    "memory_pool.trim": lambda s: bascule.memory_pool().trim(),
    "stack_bytes": lambda s: bascule.current_device().stack_bytes,
    "stack_bytes = 2048": lambda s: setattr(bascule.current_device(), "stack_bytes", 2048),
    "benchmark": lambda s: bascule.benchmark(s.launcher, s.x),
    "plain allocator": lambda s: bascule.pointer_attributes(s.x),
    "as_cuda_array": lambda s: bascule.as_cuda_array(Foreign(s.y)),
    "dlpack": lambda s: bascule.from_dlpack(s.x),
}


class Foreign:
    def __init__(self, array: bascule.DeviceArray) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def capture(s: Scene) -> None:
    with bascule.Graph():
        s.launcher(s.x)


# --- the capturing libraries: each function yields inside the capture, and checks the graph after it ---


def captured_by_driver(mode: str) -> Iterator[None]:
    d = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    stream, graph, executable, memory = (ctypes.c_void_p() for _ in range(4))

    def ok(name: str, *arguments: Any) -> None:
        if code := getattr(d, name)(*arguments):
            raise RuntimeError(f"{name} returned CUresult {code}")

    context, restored = ctypes.c_void_p(), ctypes.c_void_p()
    ok("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    ok("cuCtxPushCurrent_v2", context)
    try:
        ok("cuStreamCreateWithPriority", ctypes.byref(stream), 1, 0)
        ok("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4096))
        ok("cuStreamBeginCapture_v2", stream, MODES[mode])
        try:
            ok("cuMemsetD8Async", memory, 1, ctypes.c_size_t(4096), stream)
            yield
        finally:
            ok("cuStreamEndCapture", stream, ctypes.byref(graph))
        ok("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0))
        ok("cuGraphLaunch", executable, stream)
        ok("cuStreamSynchronize", stream)
    finally:
        ok("cuCtxPopCurrent_v2", ctypes.byref(restored))


def captured_by_cupy(mode: str) -> Iterator[None]:
    cupy = importlib.import_module("cupy")
    x = cupy.zeros(32, "f4")
    x += 1  # compiles
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture(MODES[mode])
        try:
            x += 1
            yield
        finally:
            graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
    assert (x.get() == 2).all(), "the graph gave wrong values"


def captured_by_torch(mode: str) -> Iterator[None]:
    torch = importlib.import_module("torch")
    x = torch.zeros(32, device="cuda")
    x += 1
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode=mode):
        x += 1
        yield
    graph.replay()
    torch.cuda.synchronize()
    assert (x.cpu() == 2).all(), "the graph gave wrong values"


CAPTURES = {"driver": captured_by_driver, "cupy": captured_by_cupy, "torch": captured_by_torch}


# --- one case ---


def first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"[:200]


def in_thread(thread: str, work: Callable[[], object]) -> None:
    """Runs `work` here or in another thread, and raises its exceptions here."""
    if thread == "own":
        work()
        return
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    other = threading.Thread(target=run)
    other.start()
    other.join()
    if raised:
        raise raised[0]


def one(library: str, mode: str, operation: str, thread: str) -> dict[str, Any]:
    scene = Scene()
    said, capture = "ok", "kept"
    steps = CAPTURES[library](mode)
    next(steps)
    start = time.perf_counter()
    try:
        in_thread(thread, lambda: OPERATIONS[operation](scene))
    except Exception as error:
        said = first_line(error)
    taken = (time.perf_counter() - start) * 1e3
    try:
        next(steps, None)
    except Exception as error:
        capture = f"lost: {first_line(error)}"
    return {"operation": said, "capture": capture, "ms": round(taken, 2)}


def run_cases(library: str, mode: str, operations: list[str], result: int) -> None:
    """Runs in the forked process; writes a line of JSON for each thread."""
    for operation in operations:
        clean = True
        for thread in ("own", "other"):
            try:
                found = one(library, mode, operation, thread)
            except BaseException:
                found = {"operation": "not tried", "capture": traceback.format_exc()[-600:], "ms": 0}
            clean = clean and (found["operation"], found["capture"]) == ("ok", "kept")
            os.write(result, json.dumps([operation, thread, found]).encode() + b"\n")
        if not clean:
            return


# --- processes ---


class Child:
    """A process that runs operations until one is not clean."""

    def __init__(self, library: str, mode: str, operations: list[str]) -> None:
        self.where, self.mode, self.operations = f"{library}, {mode}", mode, operations
        self.until = time.monotonic() + SECONDS
        self.read, write = os.pipe()
        self.stderr, errors = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            code = 1
            try:
                os.dup2(errors, 2)
                run_cases(library, mode, operations, write)
                code = 0
            finally:
                os._exit(code)  # the driver may be unable to shut down after these operations
        os.close(write)
        os.close(errors)
        self.text = b""

    def has_ended(self) -> bool:
        while select.select([self.read], [], [], 0)[0]:
            data = os.read(self.read, 65536)
            if not data:
                return True
            self.text += data
            self.until = time.monotonic() + SECONDS
        if time.monotonic() > self.until:
            os.kill(self.process, signal.SIGKILL)
            return True
        return False

    def results(self) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """The outcomes of the operations, and the operations that remain."""
        hung = time.monotonic() > self.until
        _, status = os.waitpid(self.process, 0)
        errors = b""
        while select.select([self.stderr], [], [], 0)[0] and (data := os.read(self.stderr, 65536)):
            errors += data
        os.close(self.read)
        os.close(self.stderr)
        found: dict[str, dict[str, Any]] = {}
        for line in self.text.splitlines():
            operation, thread, row = json.loads(line)
            found.setdefault(operation, {})[thread] = row
        last = list(found)[-1] if found else ""
        if status:  # failed in the last operation, or in the next, which has no line yet
            if not last or len(found[last]) == 2:
                last = next(name for name in self.operations if name not in found)
                found[last] = {}
            how = f"did not end within {SECONDS:.0f} s" if hung else f"ended its process with status {status}"
            for thread in ("own", "other"):
                found[last].setdefault(thread, {"operation": how, "capture": "unknown", "ms": 0})
        if errors.strip() and last:
            found[last]["stderr"] = errors.decode(errors="replace")[-500:]
        return found, [name for name in self.operations if name not in found]


def works_in_a_fork(library: str) -> bool:
    child = Child(library, MODES_OF[library][0], ["nothing"])
    while not child.has_ended():
        time.sleep(0.02)
    found, _ = child.results()
    return found["nothing"]["own"]["capture"] == "kept"


def run_library(library: str, operations: list[str], jobs: int, note: Callable[..., None]) -> None:
    """Imports the library in this process, and runs the cases in processes forked from it."""
    if library != "driver" and LATE not in os.environ:
        if importlib.util.find_spec(library) is None:
            note((library, "all"), {"skipped": f"{library} is not installed"})
            return
        try:
            importlib.import_module(library)
        except Exception as error:
            note((library, "all"), {"skipped": first_line(error)})
            return
    waiting = [
        (mode, operations[i : i + BATCH]) for mode in MODES_OF[library] for i in range(0, len(operations), BATCH)
    ]
    running: list[Child] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            mode, names = waiting.pop(0)
            running.append(Child(library, mode, names))
        time.sleep(0.02)
        for child in [each for each in running if each.has_ended()]:
            running.remove(child)
            found, left = child.results()
            for operation, row in found.items():
                note((child.where, operation), row)
            if left:
                waiting.insert(0, (child.mode, left))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--jobs", type=int, default=max(2, min(8, (os.cpu_count() or 1) // 2)))
    parser.add_argument("--only", default="", help="operations whose name contains this")
    parser.add_argument("--library", choices=LIBRARIES, help="this one alone, in this process")
    options = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    operations = [name for name in OPERATIONS if options.only in name]

    def note(key: tuple[str, str], found: dict[str, Any]) -> None:
        print(json.dumps([*key, found]), flush=True)

    if options.library:
        run_library(options.library, operations, options.jobs, note)
        return 0
    command = [sys.executable, str(Path(__file__).resolve()), "--only", options.only, "--jobs", str(options.jobs)]
    for library in LIBRARIES:
        for line in lines_of([*command, "--library", library]):
            where, operation, found = json.loads(line)
            results.setdefault(where, {})[operation] = found
            if options.out:
                replace(options.out, json.dumps(results, indent=1) + "\n")
    print_table(results)
    return 0


def lines_of(command: list[str]) -> Iterator[str]:
    import subprocess

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        yield from (line for line in child.stdout if line.startswith("["))


def print_table(results: dict[str, dict[str, Any]]) -> None:
    """Prints invalidated captures and refused operations; the rest as a count."""
    for where, operations in results.items():
        kept = 0
        for operation, found in operations.items():
            if "skipped" in found:
                print(f"{where}: {found['skipped']}")
                continue
            for thread in ("own", "other"):
                row = found[thread]
                if row["capture"] == "kept" and row["operation"] == "ok":
                    kept += 1
                else:
                    print(f"{where}, {thread} thread, {operation}: {row['operation']}; capture {row['capture']}")
        print(f"{where}: {kept} operations left the capture as it was")


if __name__ == "__main__":
    sys.exit(main())
