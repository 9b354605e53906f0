"""What each call of the driver does to a capture that is going on: recorded on a GPU, and the emulated device compared.

    python tests/gpu/captures.py [--out FILE]        record
    python tests/gpu/captures.py --compare FILE...   run the same here; exits with 1 where something differs

Every row is one call while another stream is captured (cuStreamBeginCapture in each of its three modes): its CUresult,
and whether the capture goes on (`active`) or was invalidated. Who calls: the thread that began the capture, in its own
mode or after cuThreadExchangeStreamCaptureMode to relaxed; or another thread, likewise. Calls whose name says
"of the capture" use the captured stream itself, or an event recorded in it.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import threading
from collections.abc import Callable
from ctypes import POINTER, byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import bascule

MODES = {"global": 0, "thread-local": 1, "relaxed": 2}
CALLERS = ["own", "own relaxed", "other", "other relaxed"]
STATUS = {0: "none", 1: "active", 2: "invalidated"}
BYTES = 4096
KERNEL = 'extern "C" __global__ void increment(int* x) { x[threadIdx.x] += 1; }'
PTX = b".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n\0"


class Scene:
    """Objects that the calls use, none of them a part of the capture but those that are named so."""

    def __init__(self, driver: ctypes.CDLL) -> None:
        self.d = driver
        self.captured, self.stream = self.new_stream(), self.new_stream()
        self.event, self.recorded, self.inside = self.new_event(), self.new_event(), self.new_event()
        self.ok(driver.cuEventRecord(self.recorded, self.stream))
        self.pool = c_void_p()
        self.ok(driver.cuDeviceGetDefaultMemPool(byref(self.pool), 0))
        self.memory, self.host = self.allocate(), c_void_p()
        self.ok(driver.cuMemHostAlloc(byref(self.host), c_size_t(BYTES), 0))
        self.pageable = ctypes.create_string_buffer(BYTES)
        self.library, self.kernel, self.function = c_void_p(), c_void_p(), c_void_p()
        image = bascule.compile(KERNEL).increment.ptx.encode() + b"\0"
        self.ok(driver.cuLibraryLoadData(byref(self.library), image, None, None, 0, None, None, 0))
        self.ok(driver.cuLibraryGetKernel(byref(self.kernel), self.library, b"increment"))
        self.ok(driver.cuKernelGetFunction(byref(self.function), self.kernel))
        self.launch_on(self.stream)
        self.ok(driver.cuCtxSynchronize())

    @staticmethod
    def ok(code: int) -> None:
        assert code == 0, f"the driver returned CUresult {code}"

    def new_stream(self) -> c_void_p:
        made = c_void_p()
        self.ok(self.d.cuStreamCreateWithPriority(byref(made), 1, 0))
        return made

    def new_event(self) -> c_void_p:
        made = c_void_p()
        self.ok(self.d.cuEventCreate(byref(made), 0))
        return made

    def allocate(self) -> c_uint64:
        made = c_uint64()
        self.ok(self.d.cuMemAlloc_v2(byref(made), c_size_t(BYTES)))
        return made

    def launch_on(self, stream: c_void_p) -> int:
        argument = c_uint64(self.memory.value)
        parameters = (c_void_p * 1)(ctypes.cast(byref(argument), c_void_p))
        return self.d.cuLaunchKernel(self.function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, None)


def _made(call: Callable[..., int], kind: Any, *arguments: Any) -> int:
    return call(byref(kind()), *arguments)


def _load(s: Scene) -> int:
    made = c_void_p()
    return s.d.cuLibraryLoadData(byref(made), PTX, None, None, 0, None, None, 0)


def _graph(s: Scene) -> int:
    graph = c_void_p()
    return s.d.cuGraphCreate(byref(graph), 0) or s.d.cuGraphDestroy(graph)


def _user_object(s: Scene) -> int:
    made, destroy = c_void_p(), ctypes.CFUNCTYPE(None, c_void_p)(lambda _: None)
    kept.append(destroy)
    return s.d.cuUserObjectCreate(byref(made), None, destroy, 1, 1)


kept: list[Any] = []  # what the driver may still call

# Made before the capture begins, for the call to use up.
PREPARED: dict[str, Callable[[Scene], Any]] = {
    "cuMemFree": lambda s: s.allocate(),
    "cuMemFreeHost": lambda s: _host(s),
    "cuMemFreeAsync": lambda s: _pooled(s),
    "cuMemFreeAsync of cuMemAlloc's": lambda s: s.allocate(),
    "cuEventDestroy": lambda s: s.new_event(),
    "cuStreamDestroy": lambda s: s.new_stream(),
    "cuLibraryUnload": lambda s: _library(s),
}


def _host(s: Scene) -> c_void_p:
    made = c_void_p()
    s.ok(s.d.cuMemHostAlloc(byref(made), c_size_t(BYTES), 0))
    return made


def _pooled(s: Scene) -> c_uint64:
    made = c_uint64()
    s.ok(s.d.cuMemAllocAsync(byref(made), c_size_t(BYTES), s.stream))
    s.ok(s.d.cuStreamSynchronize(s.stream))
    return made


def _library(s: Scene) -> c_void_p:
    made = c_void_p()
    s.ok(s.d.cuLibraryLoadData(byref(made), PTX, None, None, 0, None, None, 0))
    return made


CALLS: dict[str, Callable[[Scene, Any], int]] = {
    # Questions
    "cuCtxGetCurrent": lambda s, _: _made(s.d.cuCtxGetCurrent, c_void_p),
    "cuStreamIsCapturing of the capture": lambda s, _: s.d.cuStreamIsCapturing(s.captured, byref(c_int())),
    "cuStreamIsCapturing": lambda s, _: s.d.cuStreamIsCapturing(s.stream, byref(c_int())),
    "cuStreamIsCapturing of the legacy stream": lambda s, _: s.d.cuStreamIsCapturing(c_void_p(1), byref(c_int())),
    "cuStreamGetCtx of the capture": lambda s, _: s.d.cuStreamGetCtx(s.captured, byref(c_void_p())),
    "cuStreamGetFlags of the capture": lambda s, _: s.d.cuStreamGetFlags(s.captured, byref(c_uint())),
    "cuStreamGetPriority of the capture": lambda s, _: s.d.cuStreamGetPriority(s.captured, byref(c_int())),
    "cuPointerGetAttribute": lambda s, _: s.d.cuPointerGetAttribute(byref(c_uint()), 2, s.memory),
    "cuMemGetInfo": lambda s, _: s.d.cuMemGetInfo_v2(byref(c_size_t()), byref(c_size_t())),
    "cuFuncGetAttribute": lambda s, _: s.d.cuFuncGetAttribute(byref(c_int()), 4, s.function),
    "cuKernelGetAttribute": lambda s, _: s.d.cuKernelGetAttribute(byref(c_int()), 4, s.kernel, 0),
    "cuKernelSetAttribute": lambda s, _: s.d.cuKernelSetAttribute(9, 50, s.kernel, 0),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": lambda s, _: s.d.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        byref(c_int()), s.function, 32, c_size_t(0)
    ),
    "cuStreamQuery": lambda s, _: s.d.cuStreamQuery(s.stream),
    "cuStreamQuery of the capture": lambda s, _: s.d.cuStreamQuery(s.captured),
    "cuEventQuery": lambda s, _: s.d.cuEventQuery(s.recorded),
    "cuEventQuery of the capture": lambda s, _: s.d.cuEventQuery(s.inside),
    "cuEventElapsedTime": lambda s, _: s.d.cuEventElapsedTime(byref(c_float()), s.recorded, s.recorded),
    # Waits
    "cuStreamSynchronize": lambda s, _: s.d.cuStreamSynchronize(s.stream),
    "cuStreamSynchronize of the capture": lambda s, _: s.d.cuStreamSynchronize(s.captured),
    "cuEventSynchronize": lambda s, _: s.d.cuEventSynchronize(s.recorded),
    "cuEventSynchronize of the capture": lambda s, _: s.d.cuEventSynchronize(s.inside),
    "cuCtxSynchronize": lambda s, _: s.d.cuCtxSynchronize(),
    # Order
    "cuEventRecord": lambda s, _: s.d.cuEventRecord(s.event, s.stream),
    "cuStreamWaitEvent": lambda s, _: s.d.cuStreamWaitEvent(s.stream, s.recorded, 0),
    "cuStreamWaitEvent of the capture": lambda s, _: s.d.cuStreamWaitEvent(s.captured, s.recorded, 0),
    "cuEventRecord on the legacy stream": lambda s, _: s.d.cuEventRecord(s.event, c_void_p(1)),
    "cuEventRecord on the thread's stream": lambda s, _: s.d.cuEventRecord(s.event, c_void_p(2)),
    # Work on another stream
    "cuLaunchKernel": lambda s, _: s.launch_on(s.stream),
    "cuMemcpyHtoDAsync": lambda s, _: s.d.cuMemcpyHtoDAsync_v2(s.memory, s.host, c_size_t(64), s.stream),
    "cuMemcpyHtoDAsync of pageable memory": lambda s, _: s.d.cuMemcpyHtoDAsync_v2(
        s.memory, s.pageable, c_size_t(64), s.stream
    ),
    "cuMemcpyDtoHAsync": lambda s, _: s.d.cuMemcpyDtoHAsync_v2(s.host, s.memory, c_size_t(64), s.stream),
    "cuMemsetD8Async": lambda s, _: s.d.cuMemsetD8Async(s.memory, 1, c_size_t(64), s.stream),
    "cuMemcpyHtoD": lambda s, _: s.d.cuMemcpyHtoD_v2(s.memory, s.host, c_size_t(64)),
    "cuMemsetD8": lambda s, _: s.d.cuMemsetD8_v2(s.memory, 1, c_size_t(64)),
    "cuLaunchHostFunc": lambda s, _: s.d.cuLaunchHostFunc(s.stream, HOST_FUNCTION, None),
    # Making and freeing
    "cuStreamCreateWithPriority": lambda s, _: _made(s.d.cuStreamCreateWithPriority, c_void_p, 1, 0),
    "cuEventCreate": lambda s, _: _made(s.d.cuEventCreate, c_void_p, 0),
    "cuMemAlloc": lambda s, _: _made(s.d.cuMemAlloc_v2, c_uint64, c_size_t(BYTES)),
    "cuMemAllocManaged": lambda s, _: _made(s.d.cuMemAllocManaged, c_uint64, c_size_t(BYTES), 1),
    "cuMemHostAlloc": lambda s, _: _made(s.d.cuMemHostAlloc, c_void_p, c_size_t(BYTES), 0),
    "cuMemAllocAsync": lambda s, _: _made(s.d.cuMemAllocAsync, c_uint64, c_size_t(BYTES), s.stream),
    "cuMemAllocFromPoolAsync": lambda s, _: _made(
        s.d.cuMemAllocFromPoolAsync, c_uint64, c_size_t(BYTES), s.pool, s.stream
    ),
    "cuMemAllocFromPoolAsync, 64 MiB": lambda s, _: _made(
        s.d.cuMemAllocFromPoolAsync, c_uint64, c_size_t(1 << 26), s.pool, s.stream
    ),
    "cuMemPoolTrimTo": lambda s, _: s.d.cuMemPoolTrimTo(s.pool, c_size_t(1 << 30)),
    "cuMemFree": lambda s, made: s.d.cuMemFree_v2(made),
    "cuMemFreeHost": lambda s, made: s.d.cuMemFreeHost(made),
    "cuMemFreeAsync": lambda s, made: s.d.cuMemFreeAsync(made, s.stream),
    "cuMemFreeAsync of cuMemAlloc's": lambda s, made: s.d.cuMemFreeAsync(made, s.stream),
    "cuEventDestroy": lambda s, made: s.d.cuEventDestroy_v2(made),
    "cuStreamDestroy": lambda s, made: s.d.cuStreamDestroy_v2(made),
    "cuLibraryLoadData": lambda s, _: _load(s),
    "cuLibraryUnload": lambda s, made: s.d.cuLibraryUnload(made),
    "cuGraphCreate": lambda s, _: _graph(s),
    "cuUserObjectCreate": lambda s, _: _user_object(s),
}

HOST_FUNCTION = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: None)


def open_driver() -> ctypes.CDLL:
    bascule.synchronize()
    library = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    library.cuStreamBeginCapture_v2.argtypes = [c_void_p, c_int]
    library.cuStreamEndCapture.argtypes = [c_void_p, POINTER(c_void_p)]
    return library


def in_relaxed_mode(s: Scene, work: Callable[[], int]) -> int:
    mode = c_int(MODES["relaxed"])
    s.ok(s.d.cuThreadExchangeStreamCaptureMode(byref(mode)))
    try:
        return work()
    finally:
        s.ok(s.d.cuThreadExchangeStreamCaptureMode(byref(mode)))


def in_another_thread(s: Scene, work: Callable[[], int]) -> int:
    context, found = c_void_p(), []
    s.ok(s.d.cuCtxGetCurrent(byref(context)))

    def run() -> None:
        s.ok(s.d.cuCtxSetCurrent(context))
        found.append(work())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def one(s: Scene, name: str, mode: str, caller: str) -> str:
    """ "0 active": the call's CUresult, and the capture's status after it."""
    made = PREPARED[name](s) if name in PREPARED else None
    s.ok(s.d.cuStreamBeginCapture_v2(s.captured, MODES[mode]))
    s.ok(s.d.cuEventRecord(s.inside, s.captured))

    def call() -> int:
        return CALLS[name](s, made)

    def relaxed() -> int:
        return in_relaxed_mode(s, call)

    work = relaxed if caller.endswith("relaxed") else call
    code = in_another_thread(s, work) if caller.startswith("other") else work()
    status, graph = c_int(-1), c_void_p()
    s.ok(s.d.cuStreamIsCapturing(s.captured, byref(status)))
    s.d.cuStreamEndCapture(s.captured, byref(graph))
    if graph:
        s.ok(s.d.cuGraphDestroy(graph))
    s.ok(s.d.cuCtxSynchronize())
    return f"{code} {STATUS[status.value]}"


def record() -> dict[str, Any]:
    device = bascule.current_device()
    driver = open_driver()
    context = c_void_p()
    Scene.ok(driver.cuDevicePrimaryCtxRetain(byref(context), 0))
    Scene.ok(driver.cuCtxPushCurrent_v2(context))
    s = Scene(driver)
    calls = {
        name: {f"{mode}, {caller}": one(s, name, mode, caller) for mode in MODES for caller in CALLERS}
        for name in CALLS
    }
    Scene.ok(driver.cuCtxPopCurrent_v2(byref(context)))
    return {"device": device.name, "driver": bascule._bascule._driver_info()["version"], "calls": calls}


# The documentation counts these among what captures forbid, and older drivers may; that of CUDA 13.0 allows them. The
# emulated device is as strict as the documentation.
FORBIDDEN_BY_DOCUMENTATION = {"cuEventElapsedTime", "cuMemcpyHtoD", "cuMemsetD8", "cuLibraryLoadData"}


def compare(recorded: dict[str, Any]) -> list[str]:
    """How the current device differs from a record: a line for each call and situation."""
    here = record()["calls"]
    complaints = []
    for name, situations in recorded["calls"].items():
        allowed = {"0 active", "900 invalidated"} if name in FORBIDDEN_BY_DOCUMENTATION else set()
        complaints += [
            f"{name} ({situation}): recorded {found}, here {here[name][situation]}"
            for situation, found in situations.items()
            if here[name][situation] not in {found, *allowed}
        ]
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(description="Records what calls of the driver do to a capture.")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path, nargs="+")
    options = parser.parse_args()
    if options.compare:
        complaints = [line for file in options.compare for line in compare(json.loads(file.read_text()))]
        print("\n".join(complaints) or "no call differs")
        return 1 if complaints else 0
    text = json.dumps(record(), indent=1)
    if options.out:
        options.out.write_text(text + "\n")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
