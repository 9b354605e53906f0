"""Kernels that are loaded before anything is captured, and a capture begun by another library."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from conftest import traced

import bascule

PROGRAM = """
__global__ void scale(float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
__global__ void add(const float* a, const float* b, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i] + b[i];
}
__global__ void shift(float* x) { x[threadIdx.x] += 1; }
__global__ void never_loaded(float* x) { x[0] = 1; }
"""


@pytest.fixture(scope="session")
def kernels() -> bascule.Module:
    module = bascule.compile(PROGRAM)
    for name in ("scale", "add", "shift"):
        module[name].prepare()
    return module


class Capture:
    """A capture that another library has begun, through the driver itself."""

    def __init__(self, stream: bascule.Stream, mode: int = 0) -> None:
        self.driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
        self.stream = ctypes.c_void_p(stream.handle)
        self.graph = ctypes.c_void_p()
        assert self.driver.cuStreamBeginCapture_v2(self.stream, mode) == 0
        self.ended = False

    @property
    def intact(self) -> bool:
        status = ctypes.c_int()
        return self.driver.cuStreamIsCapturing(self.stream, ctypes.byref(status)) == 0 and status.value == 1

    @property
    def nodes(self) -> int:
        graph, count = ctypes.c_void_p(), ctypes.c_size_t()
        status, number = ctypes.c_int(), ctypes.c_uint64()
        assert (
            self.driver.cuStreamGetCaptureInfo_v2(
                self.stream, ctypes.byref(status), ctypes.byref(number), ctypes.byref(graph), None, None
            )
            == 0
        )
        assert self.driver.cuGraphGetNodes(graph, None, ctypes.byref(count)) == 0
        return count.value

    def end(self) -> int:
        self.ended = True
        return self.driver.cuStreamEndCapture(self.stream, ctypes.byref(self.graph))

    def instantiate(self) -> ctypes.c_void_p:
        executable = ctypes.c_void_p()
        assert self.driver.cuGraphInstantiateWithFlags(ctypes.byref(executable), self.graph, ctypes.c_uint64(0)) == 0
        return executable

    def launch(self) -> None:
        executable = self.instantiate()
        assert self.driver.cuGraphLaunch(executable, self.stream) == 0
        assert self.driver.cuStreamSynchronize(self.stream) == 0
        assert self.driver.cuGraphExecDestroy(executable) == 0

    def destroy(self) -> None:
        graph, self.graph = self.graph, ctypes.c_void_p()
        assert self.driver.cuGraphDestroy(graph) == 0


@contextmanager
def captured_by_others(stream: bascule.Stream, mode: int = 0) -> Iterator[Capture]:
    capture = Capture(stream, mode)
    try:
        yield capture
    finally:
        if not capture.ended:
            capture.end()
        if capture.graph:
            capture.driver.cuGraphDestroy(capture.graph)


def comes_true(condition: Callable[[], bool], again: Callable[[], object]) -> bool:
    """Returns whether the condition becomes true after another library's graph and its user object are destroyed.

    A GPU's driver calls the destructors of user objects in its own thread, some time later. `again` calls
    Bascule, which then releases the owners that the destructors have handed back.
    """
    until = time.monotonic() + (0 if bascule.current_device().emulated else 10)
    while not condition() and time.monotonic() < until:
        time.sleep(0.001)
        again()
    return condition()


def operations(work) -> list[tuple[str, int]]:
    """The operations of `work`, without creating and destroying objects and without allocations."""
    with traced() as found:
        work()
    return [(o.kind, o.stream) for o in found if o.kind not in ("create", "destroy", "allocate", "free")]


def order(work) -> list[tuple[str, int, int]]:
    """The records, waits and launches of `work`, with their streams and events."""
    with traced() as found:
        work()
    kinds = ("record", "wait", "launch", "graph launch")
    return [(o.kind, o.stream, o.event) for o in found if o.kind in kinds]


def device_copy(values: np.ndarray, stream: bascule.Stream | None = None) -> bascule.DeviceArray:
    array = bascule.to_device(values, stream=stream)
    bascule.synchronize()
    return array
