"""The effect of each driver call on a capture in progress: recorded on a GPU, and compared with the emulated device.

    python tests/gpu/captures.py [--out FILE]        record
    python tests/gpu/captures.py --compare FILE...   run the same here; exits with 1 if something differs

Every row is one call while another stream is captured (cuStreamBeginCapture in each of its three modes): its CUresult,
and whether the capture is still `active` or was invalidated. The caller is the thread that began the capture, in its
mode or after cuThreadExchangeStreamCaptureMode to relaxed; or another thread, likewise. Calls whose name says
"of the capture" use the captured stream itself, or an event recorded in it.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from ctypes import POINTER, byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from collect import replace

import bascule

MODES = {"global": 0, "thread-local": 1, "relaxed": 2}
CALLERS = ["own", "own relaxed", "other", "other relaxed"]
SITUATIONS = [f"{mode}, {caller}" for mode in MODES for caller in CALLERS]
STATUS = {0: "none", 1: "active", 2: "invalidated"}
BYTES = 4096
KERNEL = 'extern "C" __global__ void increment(int* x) { x[threadIdx.x] += 1; }'
PTX = b""".version 7.0
.target sm_50
.address_size 64
.visible .global .u32 number;
.visible .entry nothing() { ret; }
\0"""
SECONDS = 30.0 * float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)  # a process without a new row for so long hangs


class Scene:
    """Objects that the calls use. Only `captured` and `inside` belong to the capture."""

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
        self.graph = self.captured_graph()
        self.executable = self.instance_of(self.graph)
        self.context, self.array = c_void_p(), self.new_array()
        self.ok(driver.cuCtxGetCurrent(byref(self.context)))
        self.own_pool = self.new_pool()

    def captured_graph(self) -> c_void_p:
        made = c_void_p()
        self.ok(self.d.cuStreamBeginCapture_v2(self.stream, 2))
        self.ok(self.launch_on(self.stream))
        self.ok(self.d.cuStreamEndCapture(self.stream, byref(made)))
        return made

    def instance_of(self, graph: c_void_p) -> c_void_p:
        made = c_void_p()
        self.ok(self.d.cuGraphInstantiateWithFlags(byref(made), graph, c_uint64(0)))
        return made

    def new_array(self) -> c_void_p:
        made = c_void_p()
        self.ok(self.d.cuArray3DCreate_v2(byref(made), ARRAY))
        return made

    def new_pool(self) -> c_void_p:
        made = c_void_p()
        self.ok(self.d.cuMemPoolCreate(byref(made), POOL))
        return made

    def resource(self) -> Any:
        """Returns the CUDA_RESOURCE_DESC of the array."""
        return (c_uint64 * 18)(0, self.array.value)

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


def _create_link(s: Scene, made: c_void_p) -> int:
    """Creates a linker with an error log, as Bascule does. The driver keeps the options, their values and the log."""
    log = ctypes.create_string_buffer(8192)
    options, values = (c_int * 2)(5, 6), (c_void_p * 2)(ctypes.addressof(log), len(log) - 1)
    kept.append((log, options, values))
    return s.d.cuLinkCreate_v2(2, options, values, byref(made))


def _link(s: Scene) -> c_void_p:
    made = c_void_p()
    s.ok(_create_link(s, made))
    return made


def _link_with_code(s: Scene) -> c_void_p:
    made = _link(s)
    s.ok(_add_code(s, made))
    return made


def _add_code(s: Scene, link: c_void_p) -> int:
    text, name = ctypes.create_string_buffer(PTX), ctypes.create_string_buffer(b"code")
    kept.append((text, name))  # a driver may write to the text, and read both later
    return s.d.cuLinkAddData_v2(link, 1, text, c_size_t(len(PTX)), name, 0, None, None)


def _complete_link(s: Scene, link: c_void_p) -> int:
    image, size = c_void_p(), c_size_t()
    kept.append((image, size))
    return s.d.cuLinkComplete(link, byref(image), byref(size))


def _object(s: Scene, create: str) -> c_uint64:
    made = c_uint64()
    more = () if create == "cuSurfObjectCreate" else (TEXTURE, None)
    s.ok(getattr(s.d, create)(byref(made), s.resource(), *more))
    return made


def _kernel(s: Scene) -> c_void_p:
    """A CUkernel that the context has not loaded."""
    made = c_void_p()
    s.ok(s.d.cuLibraryGetKernel(byref(made), _library(s), b"nothing"))
    return made


def _module(s: Scene) -> c_void_p:
    made = c_void_p()
    s.ok(s.d.cuModuleLoadData(byref(made), PTX))
    return made


def _function(s: Scene) -> c_void_p:
    """A CUfunction whose code is not loaded yet if the driver loads lazily."""
    made = c_void_p()
    s.ok(s.d.cuModuleGetFunction(byref(made), _module(s), b"nothing"))
    return made


def _retained(s: Scene) -> None:
    s.ok(s.d.cuDevicePrimaryCtxRetain(byref(c_void_p()), 0))


def _launch(s: Scene, function: c_void_p) -> int:
    return s.d.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, s.stream, None, None)


def _copy_3d(s: Scene, stream: c_void_p) -> int:
    """Copies 64 bytes within the memory, as CUDA_MEMCPY3D."""
    place = (0, 0, 0, 0, 2, 0, s.memory.value, 0, 0, 64, 1)
    return s.d.cuMemcpy3DAsync_v2((c_uint64 * 25)(*place, *place, 64, 1, 1), stream)


def _pointer_attributes(s: Scene) -> int:
    value = c_uint64()
    places = (c_void_p * 1)(ctypes.addressof(value))
    return s.d.cuPointerGetAttributes(1, (c_uint * 1)(2), places, s.memory)


ARRAY = (c_uint64 * 5)(16, 16, 0, 0x20 | 1 << 32, 2)  # CUDA_ARRAY3D_DESCRIPTOR: one float a texel, surfaces may write
POOL = (c_uint64 * 11)(1, 1)  # CUmemPoolProps: pinned memory of device 0
TEXTURE = (c_uint * 26)()  # CUDA_TEXTURE_DESC
ACCESS = (c_int * 3)(1, 0, 3)  # CUmemAccessDesc: device 0 reads and writes

kept: list[Any] = []  # objects that the driver may still use

# Makes the object that a call consumes or needs, before the capture begins.
PREPARED: dict[str, Callable[[Scene], Any]] = {
    "cuMemFree": lambda s: s.allocate(),
    "cuMemFreeHost": lambda s: _host(s),
    "cuMemFreeAsync": lambda s: _pooled(s),
    "cuMemFreeAsync of cuMemAlloc's": lambda s: s.allocate(),
    "cuEventDestroy": lambda s: s.new_event(),
    "cuStreamDestroy": lambda s: s.new_stream(),
    "cuLibraryUnload": lambda s: _library(s),
    "cuLibraryGetGlobal, first": lambda s: _library(s),
    "cuKernelGetFunction, first": lambda s: _kernel(s),
    "cuKernelGetAttribute, first": lambda s: _kernel(s),
    "cuLaunchKernel of an unloaded CUkernel": lambda s: _kernel(s),
    "cuFuncLoad, first": lambda s: _function(s),
    "cuLaunchKernel of an unloaded CUfunction": lambda s: _function(s),
    "cuModuleUnload": lambda s: _module(s),
    "cuGraphDestroy": lambda s: s.captured_graph(),
    "cuGraphExecDestroy": lambda s: s.instance_of(s.graph),
    "cuArrayDestroy": lambda s: s.new_array(),
    "cuTexObjectDestroy": lambda s: _object(s, "cuTexObjectCreate"),
    "cuSurfObjectDestroy": lambda s: _object(s, "cuSurfObjectCreate"),
    "cuMemPoolDestroy": lambda s: s.new_pool(),
    "cuMemFreeAsync on the capture": lambda s: _pooled(s),
    "cuLinkAddData": lambda s: _link(s),
    "cuLinkComplete": lambda s: _link_with_code(s),
    "cuLinkDestroy": lambda s: _link_with_code(s),
    "cuDevicePrimaryCtxRelease": lambda s: _retained(s),
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
    # Queries
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
    "cuCtxRecordEvent": lambda s, _: s.d.cuCtxRecordEvent(s.context, s.event),
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
    # Not recorded on 2026-11-27
    "cuMemAllocFromPoolAsync on the capture": lambda s, _: _made(
        s.d.cuMemAllocFromPoolAsync, c_uint64, c_size_t(BYTES), s.pool, s.captured
    ),
    "cuMemFreeAsync on the capture": lambda s, made: s.d.cuMemFreeAsync(made, s.captured),
    "cuMemPoolCreate": lambda s, _: s.d.cuMemPoolCreate(byref(c_void_p()), POOL),
    "cuMemPoolSetAttribute": lambda s, _: s.d.cuMemPoolSetAttribute(s.own_pool, 4, byref(c_uint64(1 << 40))),
    "cuMemPoolGetAttribute": lambda s, _: s.d.cuMemPoolGetAttribute(s.own_pool, 5, byref(c_uint64())),
    "cuMemPoolSetAccess": lambda s, _: s.d.cuMemPoolSetAccess(s.own_pool, ACCESS, c_size_t(1)),
    "cuMemPoolDestroy": lambda s, made: s.d.cuMemPoolDestroy(made),
    "cuDeviceGetDefaultMemPool": lambda s, _: _made(s.d.cuDeviceGetDefaultMemPool, c_void_p, 0),
    "cuGraphInstantiate": lambda s, _: s.d.cuGraphInstantiateWithFlags(byref(c_void_p()), s.graph, c_uint64(0)),
    "cuGraphLaunch": lambda s, _: s.d.cuGraphLaunch(s.executable, s.stream),
    "cuGraphLaunch on the capture": lambda s, _: s.d.cuGraphLaunch(s.executable, s.captured),
    "cuGraphExecUpdate": lambda s, _: s.d.cuGraphExecUpdate_v2(s.executable, s.graph, (c_uint64 * 8)()),
    "cuGraphGetNodes": lambda s, _: s.d.cuGraphGetNodes(s.graph, None, byref(c_size_t())),
    "cuGraphDestroy": lambda s, made: s.d.cuGraphDestroy(made),
    "cuGraphExecDestroy": lambda s, made: s.d.cuGraphExecDestroy(made),
    "cuFuncLoad": lambda s, _: s.d.cuFuncLoad(s.function),
    "cuFuncLoad, first": lambda s, made: s.d.cuFuncLoad(made),
    "cuKernelGetFunction": lambda s, _: _made(s.d.cuKernelGetFunction, c_void_p, s.kernel),
    "cuKernelGetFunction, first": lambda s, made: _made(s.d.cuKernelGetFunction, c_void_p, made),
    "cuKernelGetAttribute, first": lambda s, made: s.d.cuKernelGetAttribute(byref(c_int()), 4, made, 0),
    "cuLibraryGetGlobal, first": lambda s, made: s.d.cuLibraryGetGlobal(
        byref(c_uint64()), byref(c_size_t()), made, b"number"
    ),
    "cuLaunchKernel of an unloaded CUkernel": lambda s, made: _launch(s, made),
    "cuLaunchKernel of an unloaded CUfunction": lambda s, made: _launch(s, made),
    "cuLaunchKernel on the legacy stream": lambda s, _: s.launch_on(c_void_p(1)),
    "cuModuleLoadData": lambda s, _: s.d.cuModuleLoadData(byref(c_void_p()), PTX),
    "cuModuleUnload": lambda s, made: s.d.cuModuleUnload(made),
    "cuLinkCreate": lambda s, _: _create_link(s, c_void_p()),
    "cuLinkAddData": lambda s, made: _add_code(s, made),
    "cuLinkComplete": lambda s, made: _complete_link(s, made),
    "cuLinkDestroy": lambda s, made: s.d.cuLinkDestroy(made),
    "cuCtxGetLimit": lambda s, _: s.d.cuCtxGetLimit(byref(c_size_t()), 0),
    "cuCtxSetLimit": lambda s, _: s.d.cuCtxSetLimit(0, c_size_t(2048)),
    "cuCtxSetCurrent": lambda s, _: s.d.cuCtxSetCurrent(s.context),
    "cuCtxEnablePeerAccess": lambda s, _: s.d.cuCtxEnablePeerAccess(s.context, 0),
    "cuDeviceCanAccessPeer": lambda s, _: s.d.cuDeviceCanAccessPeer(byref(c_int()), 0, 0),
    "cuDeviceGetAttribute": lambda s, _: s.d.cuDeviceGetAttribute(byref(c_int()), 20, 0),
    "cuDevicePrimaryCtxRetain": lambda s, _: _made(s.d.cuDevicePrimaryCtxRetain, c_void_p, 0),
    "cuDevicePrimaryCtxRelease": lambda s, _: s.d.cuDevicePrimaryCtxRelease_v2(0),
    "cuArrayCreate": lambda s, _: s.d.cuArray3DCreate_v2(byref(c_void_p()), ARRAY),
    "cuArrayDestroy": lambda s, made: s.d.cuArrayDestroy(made),
    "cuTexObjectCreate": lambda s, _: s.d.cuTexObjectCreate(byref(c_uint64()), s.resource(), TEXTURE, None),
    "cuTexObjectDestroy": lambda s, made: s.d.cuTexObjectDestroy(made),
    "cuSurfObjectCreate": lambda s, _: s.d.cuSurfObjectCreate(byref(c_uint64()), s.resource()),
    "cuSurfObjectDestroy": lambda s, made: s.d.cuSurfObjectDestroy(made),
    "cuMemcpyDtoDAsync": lambda s, _: s.d.cuMemcpyDtoDAsync_v2(s.memory, s.memory, c_size_t(64), s.stream),
    "cuMemcpyDtoHAsync to pageable memory": lambda s, _: s.d.cuMemcpyDtoHAsync_v2(
        s.pageable, s.memory, c_size_t(64), s.stream
    ),
    "cuMemcpyHtoDAsync of pageable memory, on the capture": lambda s, _: s.d.cuMemcpyHtoDAsync_v2(
        s.memory, s.pageable, c_size_t(64), s.captured
    ),
    "cuMemcpyDtoH": lambda s, _: s.d.cuMemcpyDtoH_v2(s.pageable, s.memory, c_size_t(64)),
    "cuMemcpyDtoD": lambda s, _: s.d.cuMemcpyDtoD_v2(s.memory, s.memory, c_size_t(64)),
    "cuMemcpy3DAsync": lambda s, _: _copy_3d(s, s.stream),
    "cuMemcpy3DAsync on the capture": lambda s, _: _copy_3d(s, s.captured),
    "cuMemcpyPeerAsync": lambda s, _: s.d.cuMemcpyPeerAsync(
        s.memory, s.context, s.memory, s.context, c_size_t(64), s.stream
    ),
    "cuMemsetD32Async": lambda s, _: s.d.cuMemsetD32Async(s.memory, 1, c_size_t(16), s.stream),
    "cuPointerGetAttributes": lambda s, _: _pointer_attributes(s),
    "cuPointerSetAttribute": lambda s, _: s.d.cuPointerSetAttribute(byref(c_uint(1)), 6, s.memory),
    "cuIpcGetMemHandle": lambda s, _: s.d.cuIpcGetMemHandle((c_uint64 * 8)(), s.memory),
    "cuStreamQuery of the legacy stream": lambda s, _: s.d.cuStreamQuery(c_void_p(1)),
    "cuStreamSynchronize of the legacy stream": lambda s, _: s.d.cuStreamSynchronize(c_void_p(1)),
    "cuStreamSynchronize of the thread's stream": lambda s, _: s.d.cuStreamSynchronize(c_void_p(2)),
    "cuStreamGetCaptureInfo of the capture": lambda s, _: s.d.cuStreamGetCaptureInfo_v2(
        s.captured, byref(c_int()), byref(c_uint64()), None, None, None
    ),
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
    """Returns, for example, "0 active": the call's CUresult, and the capture's status after it."""
    made = PREPARED[name](s) if name in PREPARED else None
    s.ok(s.d.cuStreamBeginCapture_v2(s.captured, MODES[mode]))
    s.ok(s.d.cuEventRecord(s.inside, s.captured))

    def call() -> int:
        return CALLS[name](s, made)

    def relaxed() -> int:
        return in_relaxed_mode(s, call)

    work = relaxed if caller.endswith("relaxed") else call
    try:
        code: object = in_another_thread(s, work) if caller.startswith("other") else work()
    except (AttributeError, IndexError):
        code = "missing"  # this driver has no such function
    status, graph = c_int(-1), c_void_p()
    s.ok(s.d.cuStreamIsCapturing(s.captured, byref(status)))
    s.d.cuStreamEndCapture(s.captured, byref(graph))
    if graph:
        s.ok(s.d.cuGraphDestroy(graph))
    s.ok(s.d.cuCtxSynchronize())
    return f"{code} {STATUS[status.value]}"


def rows(names: list[str], situations: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the outcome of each call in this process, in these situations of SITUATIONS."""
    driver = open_driver()
    context = c_void_p()
    Scene.ok(driver.cuDevicePrimaryCtxRetain(byref(context), 0))
    Scene.ok(driver.cuCtxPushCurrent_v2(context))
    s = Scene(driver)
    for name in names:
        yield name, {situation: one(s, name, *situation.split(", ")) for situation in situations}
    Scene.ok(driver.cuCtxPopCurrent_v2(byref(context)))


def record(names: list[str]) -> dict[str, Any]:
    device = bascule.current_device()
    calls = dict(rows(names, SITUATIONS))
    return {"device": device.name, "driver": bascule._bascule._driver_info()["version"], "calls": calls}


def in_a_process(names: list[str], situations: list[str]) -> Generator[tuple[str, dict[str, str]], None, str]:
    """Yields the rows of a new process as they arrive; returns how it ended."""
    command = [sys.executable, "-X", "faulthandler", str(Path(__file__).resolve()), "--here", *names]
    command += ["--situations", *situations]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        while select.select([child.stdout], [], [], SECONDS)[0] and (line := child.stdout.readline()):
            yield tuple(json.loads(line))
        hung = child.poll() is None and not select.select([child.stdout], [], [], 0)[0]
        child.kill()
        if hung:
            return "did not end"
        return f"ended with {child.wait()}: {child.stderr.read()[-1500:].decode(errors='replace')}"


def record_in_processes(out: Path) -> int:
    """Records every call in new processes, and rewrites `out` after each row.

    A call that ends its process, fails or hangs is retried in each situation separately, and a new process continues.
    """
    device = bascule.current_device()
    about = {"device": device.name, "driver": bascule._bascule._driver_info()["version"]}
    calls: dict[str, Any] = {}
    lost: dict[str, str] = {}

    def keep(found: Generator[tuple[str, dict[str, str]], None, str]) -> str:
        """Adds rows to the record, and returns how their process ended."""
        while True:
            try:
                name, row = next(found)
            except StopIteration as end:
                return end.value
            calls.setdefault(name, {}).update(row)
            text = {**about, "calls": calls} | ({"lost": lost} if lost else {})
            replace(out, json.dumps(text, indent=1) + "\n")

    tried: set[str] = set()
    while left := [name for name in CALLS if name not in calls and name not in tried]:
        how = keep(in_a_process(left, SITUATIONS))
        current = next((name for name in left if name not in calls), None)
        if current is None:
            continue
        tried.add(current)
        print(f"{current}: {how}", flush=True)
        for situation in SITUATIONS:
            how = keep(in_a_process([current], [situation]))
            if situation not in calls.get(current, {}):
                lost[f"{current} ({situation})"] = how
                print(f"{current} ({situation}): {how}", flush=True)
    text = {**about, "calls": calls} | ({"lost": lost} if lost else {})
    replace(out, json.dumps(text, indent=1) + "\n")
    print(f"{len(calls)} calls recorded, {len(lost)} situations lost")
    return int(bool(lost))


def compare(recorded: dict[str, Any]) -> list[str]:
    """Returns a line for each call and situation in which the current device differs from the record."""
    here = record(list(recorded["calls"]))["calls"]
    complaints = []
    for name, situations in recorded["calls"].items():
        complaints += [
            f"{name} ({situation}): recorded {found}, here {here[name][situation]}"
            for situation, found in situations.items()
            if here[name][situation] != found
        ]
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(description="Records what calls of the driver do to a capture.")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path, nargs="+")
    parser.add_argument("--here", nargs="+", metavar="CALL", help="a line of JSON for each, in this process")
    parser.add_argument("--situations", nargs="+", default=SITUATIONS, choices=SITUATIONS, help="for --here")
    options = parser.parse_args()
    if options.compare:
        complaints = [line for file in options.compare for line in compare(json.loads(file.read_text()))]
        print("\n".join(complaints) or "no call differs")
        return 1 if complaints else 0
    if options.here:
        for row in rows(options.here, options.situations):
            print(json.dumps(row), flush=True)
        os._exit(0)  # skips destructors: the calls may have left the driver in any state
    if options.out:
        return record_in_processes(options.out)
    print(json.dumps(record(list(CALLS)), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
