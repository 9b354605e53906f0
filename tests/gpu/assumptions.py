"""Costs of driver calls, and driver behaviour that Bascule relies on: recorded, never a failure.

    python tests/gpu/assumptions.py [--out FILE] [--smoke] [--rounds N] [QUESTION...]

Each question runs in a separate process with a time limit, and FILE is rewritten after it. Exits with 1 only if a
question could not be answered.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from collect import replace
from driver_calls import LEGACY, PER_THREAD, At, Launchable, RawDriver, microseconds

import bascule

SECONDS = 20.0 * float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)  # limit for a question
MIB = 1 << 20
BUSY = 20.0  # milliseconds for which a kernel keeps its stream busy
rounds = 15
QUESTIONS: dict[str, Callable[[RawDriver], None]] = {}


def question(function: Callable[[RawDriver], None]) -> Callable[[RawDriver], None]:
    QUESTIONS[function.__name__] = function
    return function


def tell(name: str, value: Any) -> None:
    """Prints a fact at once, because the process may crash later."""
    print(json.dumps({"fact": name, "value": value}), flush=True)


def tried(name: str, work: Callable[[], Any]) -> None:
    """Records what `work` returns, or the error that it raises."""
    try:
        value = work()
    except Exception as error:
        value = f"{type(error).__name__}: {error}"
    tell(name, value)


def large(d: RawDriver, size: int) -> int:
    """Returns `size`, but at most 4 MiB on the emulated device, whose memory is the host's."""
    return min(size, 4 * MIB) if d.emulated else size


# --- costs ---


@question
def costs_of_launches(d: RawDriver) -> None:
    """In ns: cuLaunchKernelEx of 3 pointers and a float, and what Bascule's launches add."""
    it, own, other = Launchable(d), d.stream(), d.stream()
    current = ("cuCtxGetCurrent", byref(c_void_p()))
    streams: dict[str, c_void_p | int] = {"the legacy stream": LEGACY, "a thread's stream": PER_THREAD}
    streams["a non-blocking stream"] = own
    for what, function in (("CUfunction", it.function), ("CUkernel", it.kernel)):
        for where, stream in streams.items():
            call = it.on(stream, function)
            tried(f"launch of a {what} on {where}", lambda call=call: d.nanoseconds((call,), rounds=rounds))
    launch = it.on(own)
    plain = [own if isinstance(each, str) else each for each in (it.function, 4, 1, 1, 256, 1, 1, 0, own)]
    events = d.event(), d.event()
    ordered = (
        *(("cuEventRecord", events[0], other), ("cuStreamWaitEvent", own, events[0], 0), launch),
        *(("cuEventRecord", events[1], own), ("cuStreamWaitEvent", other, events[1], 0)),
    )
    is_capturing = [("cuStreamIsCapturing", stream, byref(c_int())) for stream in (own, other)]
    tried("cuCtxGetCurrent", lambda: d.nanoseconds((current,), rounds=rounds))
    sequences = {
        "cuLaunchKernel": (("cuLaunchKernel", *plain, it.parameters, 0),),
        "cuCtxGetCurrent, launch": (current, launch),
        "2 records, 2 waits, launch": ordered,
        "2 capture queries, 2 records, 2 waits, launch": (*is_capturing, *ordered),
        "launch, record": (launch, ("cuEventRecord", events[0], own)),
        "launches on two streams in turn": (launch, it.on(other)),
    }
    for name, calls in sequences.items():
        tried(name, lambda calls=calls: d.nanoseconds(calls, rounds=rounds))
    waited_for = (launch, ("cuStreamSynchronize", own))
    tried("launch, cuStreamSynchronize", lambda: d.nanoseconds(waited_for, count=64, rounds=rounds))


@question
def costs_of_calls(d: RawDriver) -> None:
    """In ns: the other driver calls that Bascule makes. Where several are named, their sum."""
    own, other, pool = d.stream(), d.stream(), d.pool()
    event, timed, timed_too = d.event(), d.event(0), d.event(0)
    memory, big = d.memory(4096), d.memory(4 * MIB)
    pinned = d.made("cuMemHostAlloc", c_size_t(MIB), 0)
    pageable = ctypes.create_string_buffer(MIB)
    made, out, number, two = c_void_p(), c_uint64(), c_int(), (c_uint64 * 4)()
    for each in (timed, timed_too):
        d("cuEventRecord", each, own)
    d("cuEventRecord", event, own)
    d.synchronize()
    kernel, function = d.load("nothing")
    attributes = (c_uint * 4)(2, 1, 9, 8)  # memory type, context, ordinal, is managed
    results = [c_uint(), c_void_p(), c_int(), c_uint()]
    places = (c_void_p * 4)(*(ctypes.addressof(each) for each in results))
    words = (c_uint64 * 4)()
    mode = c_int(2)
    host_function = ctypes.cast(ctypes.CDLL(None).srand48, c_void_p)  # returns at once and needs no GIL
    sequences: dict[str, tuple[tuple[Any, ...], ...]] = {
        "cuCtxGetCurrent": (("cuCtxGetCurrent", byref(made)),),
        "cuCtxSetCurrent": (("cuCtxSetCurrent", d.context),),
        "cuCtxGetDevice": (("cuCtxGetDevice", byref(number)),),
        "cuCtxGetLimit": (("cuCtxGetLimit", byref(out), 0),),
        "cuStreamGetCtx": (("cuStreamGetCtx", own, byref(made)),),
        "cuStreamIsCapturing": (("cuStreamIsCapturing", own, byref(number)),),
        "cuStreamIsCapturing of the legacy stream": (("cuStreamIsCapturing", LEGACY, byref(number)),),
        "cuStreamGetCaptureInfo": (("cuStreamGetCaptureInfo_v2", own, byref(number), two, 0, 0, 0),),
        "cuStreamGetPriority": (("cuStreamGetPriority", own, byref(number)),),
        "cuStreamGetFlags": (("cuStreamGetFlags", own, byref(number)),),
        "cuStreamGetId": (("cuStreamGetId", own, byref(out)),),
        "cuThreadExchangeStreamCaptureMode": (("cuThreadExchangeStreamCaptureMode", byref(mode)),),
        "cuPointerGetAttribute": (("cuPointerGetAttribute", byref(out), 2, memory),),
        "cuPointerGetAttributes, 4": (("cuPointerGetAttributes", 4, attributes, places, memory),),
        "cuPointerGetAttributes, 4, of pinned memory": (("cuPointerGetAttributes", 4, attributes, places, pinned),),
        "cuPointerGetAttributes, 4, of pageable memory": (("cuPointerGetAttributes", 4, attributes, places, pageable),),
        "cuKernelGetAttribute": (("cuKernelGetAttribute", byref(number), 4, kernel, 0),),
        "cuKernelGetFunction": (("cuKernelGetFunction", byref(made), kernel),),
        "cuFuncGetAttribute": (("cuFuncGetAttribute", byref(number), 4, function),),
        "cuFuncLoad": (("cuFuncLoad", function),),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor": (
            ("cuOccupancyMaxActiveBlocksPerMultiprocessor", byref(number), function, 32, 0),
        ),
        "cuEventRecord": (("cuEventRecord", event, own),),
        "cuEventRecord, with timing": (("cuEventRecord", timed, own),),
        "cuEventRecord on the legacy stream": (("cuEventRecord", event, LEGACY),),
        "cuStreamWaitEvent": (("cuStreamWaitEvent", other, event, 0),),
        "cuEventRecord, cuStreamWaitEvent": (("cuEventRecord", event, own), ("cuStreamWaitEvent", other, event, 0)),
        "cuEventQuery": (("cuEventQuery", event),),
        "cuStreamQuery": (("cuStreamQuery", own),),
        "cuStreamQuery of the legacy stream": (("cuStreamQuery", LEGACY),),
        "cuEventSynchronize": (("cuEventSynchronize", event),),
        "cuStreamSynchronize": (("cuStreamSynchronize", own),),
        "cuCtxSynchronize": (("cuCtxSynchronize",),),
        "cuCtxRecordEvent": (("cuCtxRecordEvent", d.context, event),),
        "cuCtxRecordEvent, cuEventQuery, cuCtxSynchronize": (
            *(("cuCtxRecordEvent", d.context, event), ("cuEventQuery", event), ("cuCtxSynchronize",)),
        ),
        "cuEventElapsedTime": (("cuEventElapsedTime", byref(c_float()), timed, timed_too),),
        "cuEventCreate, cuEventDestroy": (("cuEventCreate", byref(made), 2), ("cuEventDestroy_v2", At(made))),
        "cuStreamCreate, cuStreamDestroy": (
            ("cuStreamCreateWithPriority", byref(made), 1, 0),
            ("cuStreamDestroy_v2", At(made)),
        ),
        "cuLaunchHostFunc": (("cuLaunchHostFunc", own, host_function, 0),),
        "cuUserObjectCreate, cuUserObjectRelease": (
            ("cuUserObjectCreate", byref(made), 0, host_function, 1, 1),
            ("cuUserObjectRelease", At(made), 1),
        ),
        "cuMemsetD8Async": (("cuMemsetD8Async", memory, 0, 4096, own),),
        "cuMemsetD32Async": (("cuMemsetD32Async", memory, 0, 1024, own),),
        "cuMemcpyHtoDAsync, 4 KiB pinned": (("cuMemcpyHtoDAsync_v2", memory, pinned, 4096, own),),
        "cuMemcpyHtoDAsync, 4 KiB pageable": (("cuMemcpyHtoDAsync_v2", memory, pageable, 4096, own),),
        "cuMemcpyHtoDAsync, 64 KiB pageable": (("cuMemcpyHtoDAsync_v2", big, pageable, 65536, own),),
        "cuMemcpyHtoDAsync, 256 KiB pageable": (("cuMemcpyHtoDAsync_v2", big, pageable, 1 << 18, own),),
        "cuMemcpyDtoHAsync, 4 KiB pinned": (("cuMemcpyDtoHAsync_v2", pinned, memory, 4096, own),),
        "cuMemcpyDtoHAsync, 4 KiB pinned, and the wait": (
            ("cuMemcpyDtoHAsync_v2", pinned, memory, 4096, own),
            ("cuStreamSynchronize", own),
        ),
        "cuMemcpyDtoHAsync, 4 KiB pageable": (("cuMemcpyDtoHAsync_v2", pageable, memory, 4096, own),),
        "cuMemcpyDtoDAsync, 4 KiB": (("cuMemcpyDtoDAsync_v2", big, memory, 4096, own),),
        "cuMemGetInfo": (("cuMemGetInfo_v2", byref(c_size_t()), byref(c_size_t())),),
        "cuMemPoolGetAttribute": (("cuMemPoolGetAttribute", pool, 5, words),),
        "cuMemPoolTrimTo, nothing to do": (("cuMemPoolTrimTo", pool, 1 << 40),),
    }
    for size in (4096, 2 * MIB, large(d, 64 * MIB)):
        text = f"{size // MIB} MiB" if size >= MIB else "4 KiB"
        sequences[f"cuMemAllocFromPoolAsync, cuMemFreeAsync, {text}"] = (
            ("cuMemAllocFromPoolAsync", byref(out), size, pool, own),
            ("cuMemFreeAsync", At(out), own),
        )
        sequences[f"cuMemAlloc, cuMemFree, {text}"] = (
            ("cuMemAlloc_v2", byref(out), size),
            ("cuMemFree_v2", At(out)),
        )
    sequences["cuMemHostAlloc, cuMemFreeHost, 64 KiB"] = (
        ("cuMemHostAlloc", byref(made), 65536, 0),
        ("cuMemFreeHost", At(made)),
    )
    sequences["cuMemHostAlloc, cuMemFreeHost, 1 MiB"] = (
        ("cuMemHostAlloc", byref(made), MIB, 0),
        ("cuMemFreeHost", At(made)),
    )
    slow = ("cuMemAlloc,", "cuMemHostAlloc", "cuStreamCreate", "Pageable", "256 KiB")
    for name, calls in sequences.items():
        count = 16 if any(word in name for word in slow) else 256
        tried(name, lambda calls=calls, count=count: round(d.nanoseconds(calls, count, min(rounds, 7)), 1))


@question
def costs_of_graphs(d: RawDriver) -> None:
    """In us: capturing, instantiating, launching and updating graphs of 1 and of 100 kernel nodes."""
    own, it = d.stream(), Launchable(d)
    launch = it.on(own)
    for nodes in (1, 100):

        def build(nodes: int = nodes) -> c_void_p:
            d("cuStreamBeginCapture_v2", own, 1)
            d.native.time_sequence(nodes, d.prepared((launch,)))
            return end_capture(d, own)

        graph = c_void_p()

        def capture() -> None:
            nonlocal graph
            graph = build()

        tell(f"capture of {nodes}", microseconds(capture))
        executable = c_void_p()
        instantiate = ("cuGraphInstantiateWithFlags", byref(executable), graph, c_uint64(0))
        tell(f"cuGraphInstantiate of {nodes}", microseconds(partial(d, *instantiate)))
        tell(f"first cuGraphLaunch of {nodes}", microseconds(lambda e=executable: d("cuGraphLaunch", e, own)))
        d.synchronize()
        calls = (("cuGraphLaunch", executable, own),)
        tried(f"cuGraphLaunch of {nodes}", lambda calls=calls: d.nanoseconds(calls, 32, min(rounds, 7)) / 1e3)
        info = (c_uint64 * 8)()
        tried(
            f"cuGraphExecUpdate of {nodes}",
            partial(microseconds, partial(d, "cuGraphExecUpdate_v2", executable, graph, info)),
        )
        tried(f"cuGraphExecDestroy of {nodes}", lambda e=executable: microseconds(lambda: d("cuGraphExecDestroy", e)))
        d("cuGraphDestroy", graph)


def end_capture(d: RawDriver, stream: c_void_p) -> c_void_p:
    graph = c_void_p()
    d("cuStreamEndCapture", stream, byref(graph))
    return graph


@question
def costs_of_code(d: RawDriver) -> None:
    """In us: loading PTX and a cubin, and the first use of a kernel."""
    kernel = bascule.compile(KERNEL_TO_LOAD).fresh
    own = d.stream()
    images = {"PTX": kernel.ptx.encode() + b"\0", "cubin": bytes(kernel.cubin or b"")}
    for what, image in images.items():
        if not image:
            tell(f"cuLibraryLoadData of {what}", "there is none")
            continue
        library = c_void_p()

        def load(library: c_void_p = library, image: bytes = image) -> None:
            d("cuLibraryLoadData", byref(library), image, None, None, 0, None, None, 0)

        tried(f"cuLibraryLoadData of {what}", lambda load=load: microseconds(load))
        if not library:
            continue
        found = d.made("cuLibraryGetKernel", library, b"fresh")
        function = c_void_p()
        first = partial(d, "cuKernelGetFunction", byref(function), found)
        tried(f"first cuKernelGetFunction, {what}", partial(microseconds, first))
        tried(f"first launch, {what}", lambda f=function: microseconds(lambda: d.launch(f, own)))
        tried(f"second launch, {what}", lambda f=function: microseconds(lambda: d.launch(f, own)))
        d.synchronize()
        tried(f"cuLibraryUnload, {what}", lambda library=library: microseconds(lambda: d("cuLibraryUnload", library)))


KERNEL_TO_LOAD = 'extern "C" __global__ void fresh() {}'


# --- calls that wait ---


@question
def what_waits_for_a_busy_stream(d: RawDriver) -> None:
    """In us: a call during a 20 ms kernel on another stream (or on the same, if named so); if the kernel still runs."""
    busy, own, pool = d.stream(), d.stream(), d.pool()
    pageable = ctypes.create_string_buffer(4 * MIB)
    pinned = d.made("cuMemHostAlloc", c_size_t(4 * MIB), 0)
    target = d.memory(4 * MIB)
    kernel = bascule.compile(KERNEL_TO_LOAD).fresh.ptx.encode() + b"\0"
    event = d.event()
    d("cuEventRecord", event, own)
    warm = d.pooled(2 * MIB, pool, own)
    d("cuMemFreeAsync", warm, own)
    d.spin(busy, 1)
    d.synchronize()
    out, pointer = c_uint64(), c_void_p()

    def library() -> c_void_p:
        return d.made("cuLibraryLoadData", kernel, None, None, 0, None, None, 0)

    def loaded() -> c_void_p:
        made = library()
        function = d.made("cuKernelGetFunction", d.made("cuLibraryGetKernel", made, b"fresh"))
        d.launch(function, own)
        d("cuStreamSynchronize", own)
        return made

    def unused() -> c_void_p:
        return d.made("cuLibraryGetKernel", library(), b"fresh")

    def free_async(made: c_uint64) -> None:
        d("cuMemFreeAsync", made, own)

    def nothing() -> None:
        pass

    # Each name has a setup that runs before the kernel, and the call that is timed.
    calls: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
        "nothing": (nothing, lambda _: None),
        "cuMemFree of 4 KiB": (lambda: d.memory(4096), lambda m: d("cuMemFree_v2", m)),
        "cuMemFree of 1 MiB": (lambda: d.memory(MIB), lambda m: d("cuMemFree_v2", m)),
        "cuMemFree of 256 MiB": (lambda: d.memory(256 * MIB), lambda m: d("cuMemFree_v2", m)),
        "cuMemFree of the pool's memory": (lambda: d.pooled(2 * MIB, pool, own), lambda m: d("cuMemFree_v2", m)),
        "cuMemFree of managed memory": (
            lambda: d.made("cuMemAllocManaged", c_size_t(4096), 1, kind=c_uint64),
            lambda m: d("cuMemFree_v2", m),
        ),
        "cuMemFreeAsync on an idle stream": (lambda: d.pooled(2 * MIB, pool, own), free_async),
        "cuMemFreeAsync of cuMemAlloc's": (lambda: d.memory(4096), free_async),
        "cuMemFreeHost of 1 MiB": (
            lambda: d.made("cuMemHostAlloc", c_size_t(MIB), 0),
            lambda m: d("cuMemFreeHost", m),
        ),
        "cuMemAlloc of 4 KiB": (nothing, lambda _: d("cuMemAlloc_v2", byref(out), c_size_t(4096))),
        "cuMemAlloc of 256 MiB": (nothing, lambda _: d("cuMemAlloc_v2", byref(out), c_size_t(256 * MIB))),
        "cuMemHostAlloc of 1 MiB": (nothing, lambda _: d("cuMemHostAlloc", byref(pointer), c_size_t(MIB), 0)),
        "cuMemAllocManaged": (nothing, lambda _: d("cuMemAllocManaged", byref(out), c_size_t(4096), 1)),
        "cuMemAllocFromPoolAsync, warm": (nothing, lambda _: d.pooled(2 * MIB, pool, own)),
        "cuMemAllocFromPoolAsync, grows by 256 MiB": (nothing, lambda _: d.pooled(256 * MIB, pool, own)),
        "cuMemPoolTrimTo 0": (nothing, lambda _: d("cuMemPoolTrimTo", pool, c_size_t(0))),
        "cuEventDestroy": (lambda: d.event(), lambda m: d("cuEventDestroy_v2", m)),
        "cuStreamCreate": (nothing, lambda _: d.stream()),
        "cuStreamDestroy of an idle stream": (lambda: d.stream(), lambda m: d("cuStreamDestroy_v2", m)),
        "cuStreamDestroy of the busy stream": (None, lambda m: d("cuStreamDestroy_v2", m)),  # type: ignore[dict-item]
        "cuEventSynchronize of a past event": (nothing, lambda _: d("cuEventSynchronize", event)),
        "cuStreamSynchronize of an idle stream": (nothing, lambda _: d("cuStreamSynchronize", own)),
        "cuLibraryLoadData": (nothing, lambda _: library()),
        "first cuKernelGetFunction": (unused, lambda k: d("cuKernelGetFunction", byref(pointer), k)),
        "cuLibraryUnload of loaded code": (loaded, lambda m: d("cuLibraryUnload", m)),
        "cuLibraryUnload of unused code": (library, lambda m: d("cuLibraryUnload", m)),
        "cuCtxSetLimit of the stack": (nothing, lambda _: d("cuCtxSetLimit", 0, c_size_t(2048))),
        "cuMemGetInfo": (nothing, lambda _: d("cuMemGetInfo_v2", byref(c_size_t()), byref(c_size_t()))),
    }
    for size in (4096, 65536, 131072, MIB, 4 * MIB):
        for what, host in (("pageable", pageable), ("pinned", pinned)):
            text = f"{size >> 10} KiB {what}"
            calls[f"cuMemcpyHtoDAsync, {text}, idle stream"] = (
                nothing,
                lambda _, s=size, h=host: d("cuMemcpyHtoDAsync_v2", target, h, c_size_t(s), own),
            )
            calls[f"cuMemcpyHtoDAsync, {text}, busy stream"] = (
                None,  # type: ignore[assignment]
                lambda b, s=size, h=host: d("cuMemcpyHtoDAsync_v2", target, h, c_size_t(s), b),
            )
    calls["cuMemcpyDtoHAsync, 4 KiB pageable, idle stream"] = (
        nothing,
        lambda _: d("cuMemcpyDtoHAsync_v2", pageable, target, c_size_t(4096), own),
    )
    for name, (prepare, call) in calls.items():

        def ask(prepare: Any = prepare, call: Any = call) -> dict[str, Any]:
            stream = d.stream() if prepare is None else busy
            made = stream if prepare is None else prepare()
            d.synchronize()
            marker = d.event()
            d.spin(stream, BUSY)
            d("cuEventRecord", marker, stream)
            taken = microseconds(lambda: call(made))
            runs = d.code("cuEventQuery", marker) == 600
            d.synchronize()
            return {"us": taken, "the kernel still runs": runs}

        tried(name, ask)


@question
def when_a_queue_is_full(d: RawDriver) -> None:
    """Launches after a kernel of 100 ms until one takes over 5 ms, and whether another stream can still launch then."""
    busy, other = d.stream(), d.stream()
    _, function = d.load("nothing")
    d.launch(function, busy)
    d.spin(busy, 0.1)
    d.synchronize()
    d.spin(busy, 100)
    taken: list[float] = []
    elsewhere = None
    for _ in range(20_000):
        taken.append(microseconds(lambda: d.launch(function, busy)))
        if len(taken) % 64 == 0:
            elsewhere = microseconds(lambda: d.launch(function, other))
        if max(taken[-1], elsewhere or 0) > 5000 or not d.is_busy(busy):
            break
    tell("launches until one waits", len(taken))
    tell("us of the longest, and of the median", [max(taken), sorted(taken)[len(taken) // 2]])
    tell("us of the last launch on another stream", elsewhere)
    d.synchronize()


# --- memory ---


@question
def growth_of_pools(d: RawDriver) -> None:
    """Reserved MiB of a pool after 10, 50, 150 allocations of 2 and 64 MiB, each freed at once; us per allocation."""

    def run(loop: Callable[[c_void_p], None], attributes: dict[int, int]) -> dict[str, Any]:
        pool = d.pool()
        for attribute, value in attributes.items():
            d.set_pool(pool, attribute, c_int(value))
        reserved, start, steps = [], time.perf_counter(), 0
        for goal in (10, 50, 150):
            while steps < goal and d.reserved(pool) < 24 << 30:
                loop(pool)
                steps += 1
            reserved.append(d.reserved(pool) // MIB)
        taken = round((time.perf_counter() - start) / max(steps, 1) * 1e6, 1)
        d.synchronize()
        after = d.reserved(pool) // MIB
        d("cuMemPoolTrimTo", pool, c_size_t(0))
        trimmed = d.reserved(pool) // MIB
        d("cuMemPoolDestroy", pool)
        return {"MiB": reserved, "us": taken, "after the wait": after, "trimmed": trimmed}

    own, use = d.stream(), d.stream()
    event, event_too = d.event(), d.event()
    for size in (2 * MIB, large(d, 64 * MIB)):

        def on_one_stream(pool: c_void_p, size: int = size) -> None:
            memory = d.pooled(size, pool, use)
            d("cuMemsetD8Async", memory, 1, c_size_t(size), use)
            d("cuMemFreeAsync", memory, use)

        def on_two_streams(pool: c_void_p, size: int = size) -> None:
            """Allocates and frees on one stream and uses the memory on another, ordered by events both ways."""
            memory = d.pooled(size, pool, own)
            d("cuEventRecord", event, own)
            d("cuStreamWaitEvent", use, event, 0)
            d("cuMemsetD8Async", memory, 1, c_size_t(size), use)
            d("cuEventRecord", event_too, use)
            d("cuStreamWaitEvent", own, event_too, 0)
            d("cuMemFreeAsync", memory, own)

        def freed_elsewhere(pool: c_void_p, size: int = size) -> None:
            """Allocates and uses on one stream, and frees on another that waits for it."""
            memory = d.pooled(size, pool, use)
            d("cuMemsetD8Async", memory, 1, c_size_t(size), use)
            d("cuEventRecord", event, use)
            d("cuStreamWaitEvent", own, event, 0)
            d("cuMemFreeAsync", memory, own)

        def kept_until_done(pool: c_void_p, size: int = size) -> None:
            """Frees after the host has seen the event, as Bascule does without stream-ordered memory."""
            memory = d.pooled(size, pool, own)
            d("cuEventRecord", event, own)
            d("cuStreamWaitEvent", use, event, 0)
            d("cuMemsetD8Async", memory, 1, c_size_t(size), use)
            d("cuEventRecord", event_too, use)
            d("cuEventSynchronize", event_too)
            d("cuMemFreeAsync", memory, own)

        text = f"{size // MIB} MiB"
        tried(f"one stream, {text}", partial(run, on_one_stream, {}))
        for name, loop in (
            ("two streams", on_two_streams),
            ("freed on another stream", freed_elsewhere),
            ("freed after a wait", kept_until_done),
        ):
            for setting, attributes in {
                "as it comes": {},
                "no internal dependencies": {3: 0},
                "no opportunistic reuse": {2: 0},
                "no event dependencies": {1: 0},
            }.items():
                tried(f"{name}, {text}, {setting}", partial(run, loop, attributes))
    x = bascule.to_device(np.zeros(1 << 18, "f4"))
    x.astype("f8")
    bascule.synchronize()
    pool, reserved = bascule.memory_pool(), []
    start = time.perf_counter()
    for count in (10, 50, 100):
        for _ in range(count):
            x.astype("f8")
        reserved.append(pool.reserved_bytes // MIB)
    taken = round((time.perf_counter() - start) / 160 * 1e6, 1)
    bascule.synchronize()
    tell("Bascule, results of 2 MiB", {"MiB": reserved, "us": taken, "after the wait": pool.reserved_bytes // MIB})


@question
def first_allocations(d: RawDriver) -> None:
    """In us: an allocation that grows a pool, cuMemAlloc, and pinned memory allocated and freed."""
    pool, own = d.pool(), d.stream()
    for size in (2 * MIB, 32 * MIB, large(d, 256 * MIB), large(d, 1024 * MIB)):
        text = f"{size // MIB} MiB"
        tried(f"pool grows by {text}", lambda size=size: microseconds(lambda: d.pooled(size, pool, own)))
        tried(f"cuMemAlloc, {text}", lambda size=size: microseconds(lambda: d.memory(size)))
    for size in (65536, MIB, 16 * MIB, 256 * MIB):
        made = c_void_p()
        allocate = partial(d, "cuMemHostAlloc", byref(made), c_size_t(size), 0)
        tried(f"cuMemHostAlloc, {size >> 10} KiB", partial(microseconds, allocate))
        if made:
            tried(f"cuMemFreeHost, {size >> 10} KiB", partial(microseconds, partial(d, "cuMemFreeHost", made)))


@question
def handles_to_memory(d: RawDriver) -> None:
    """CUresults of sharing each kind of memory, and of CU_POINTER_ATTRIBUTE_SYNC_MEMOPS; the memory's access flags."""
    own = d.stream()
    default = d.made("cuDeviceGetDefaultMemPool", 0)
    sources: dict[str, Callable[[], c_uint64]] = {
        "cuMemAlloc": lambda: d.memory(4 * MIB),
        "a pool without handle types": lambda: d.pooled(4 * MIB, d.pool(), own),
        "a pool with file descriptors": lambda: d.pooled(4 * MIB, d.pool(handle_types=1), own),
        "the default pool": lambda: d.pooled(4 * MIB, default, own),
        "managed memory": lambda: d.made("cuMemAllocManaged", c_size_t(4 * MIB), 1, kind=c_uint64),
        "bascule.device_array": lambda: c_uint64(
            keep(bascule.device_array(MIB, "f4")).__cuda_array_interface__["data"][0]
        ),
    }
    for name, make in sources.items():

        def ask(make: Callable[[], c_uint64] = make) -> dict[str, int]:
            memory = make()
            d.synchronize()
            handle, one, descriptor = (ctypes.c_char * 64)(), c_uint(1), c_int(-1)
            exported = (ctypes.c_char * 64)()
            access = c_uint64()
            dma_buf = (byref(descriptor), memory, c_size_t(4 * MIB), 1, c_uint64(0))
            calls = {
                "cuIpcGetMemHandle": (handle, memory),
                "cuPointerSetAttribute": (byref(one), 6, memory),  # SYNC_MEMOPS
                "cuMemPoolExportPointer": (exported, memory),
                "cuMemGetHandleForAddressRange": dma_buf,
                "cuPointerGetAttribute": (byref(access), 16, memory),  # ACCESS_FLAGS
            }
            codes = {name: d.code(name, *arguments) for name, arguments in calls.items() if hasattr(d.library, name)}
            return codes | {"access flags": access.value}

        tried(name, ask)


kept: list[Any] = []


def keep(value: Any) -> Any:
    kept.append(value)
    return value


# --- streams, threads, waits ---


@question
def reuse_of_handles(d: RawDriver) -> None:
    """How often a new stream gets the handle of a destroyed one, idle or busy; the same for events."""

    def handles(make: Callable[[], c_void_p], destroy: str, busy: bool) -> dict[str, Any]:
        old, ids, times = [], [], 64
        again = 0
        for _ in range(times):
            made = make()
            again += made.value in old
            old.append(made.value)
            if destroy.startswith("cuStream"):
                ids.append(stream_id(d, made))
                if busy:
                    d.spin(made, 2)
            d(destroy, made)
        d.synchronize()
        return {"again": again, "of": times, "different ids": len(set(ids))}

    tried("idle streams", lambda: handles(d.stream, "cuStreamDestroy_v2", False))
    tried("busy streams", lambda: handles(d.stream, "cuStreamDestroy_v2", True))
    tried("events", lambda: handles(d.event, "cuEventDestroy_v2", False))
    # cuStreamQuery of a destroyed stream is omitted: it ended the process (SIGSEGV) on an H100 with CUDA 13.0.


def stream_id(d: RawDriver, stream: c_void_p) -> int:
    found = c_uint64()
    d("cuStreamGetId", stream, byref(found))
    return found.value


@question
def costs_of_waits(d: RawDriver) -> None:
    """In us, median and 90th percentile: waits of the driver and of Bascule for the device, idle and after a launch."""
    x, stream, kernel = bascule.zeros(8, "f4"), bascule.stream(), bascule.compile(PLUS_ONE).plus_one.prepare()
    launcher = kernel[1, 8]
    bascule.synchronize()
    helper_asked, helper_done = threading.Event(), threading.Event()

    def helper() -> None:
        d.enter()
        while True:
            helper_asked.wait()
            helper_asked.clear()
            d.synchronize()
            helper_done.set()

    threading.Thread(target=helper, daemon=True).start()

    def by_a_python_thread() -> None:
        helper_done.clear()
        helper_asked.set()
        helper_done.wait()

    def measured(work: Callable[[], object], before: Callable[[], object] | None = None) -> list[float]:
        taken = []
        for _ in range(200):
            if before is not None:
                before()
            taken.append(microseconds(work))
        taken.sort()
        return [taken[100], taken[180]]

    waits: dict[str, Callable[[], object]] = {
        "cuCtxSynchronize by ctypes": d.synchronize,
        "cuCtxSynchronize in another Python thread": by_a_python_thread,
        "bascule.synchronize()": bascule.synchronize,
        "stream.synchronize()": stream.synchronize,
        "copy_to_host of 32 bytes": x.copy_to_host,
    }

    def all_of_them(where: str) -> None:
        for name, work in waits.items():
            tried(f"{name}, idle{where}", lambda work=work: measured(work))
            tried(f"{name}, after a launch{where}", lambda work=work: measured(work, lambda: launcher(x)))

    all_of_them("")

    def elsewhere() -> None:
        d.enter()
        all_of_them(", in another thread")

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()


PLUS_ONE = "__global__ void plus_one(float* x) { x[threadIdx.x] += 1; }"


@question
def pending_work_of_an_ended_thread(d: RawDriver) -> None:
    """In ms: until join() of a thread with a busy default stream returns, and if its kernel still runs then."""
    event = d.event()
    spin_first = d.stream()
    d.spin(spin_first, 0.1)
    d.synchronize()

    step = ["nothing"]

    def work() -> None:
        step[0] = "cuCtxSetCurrent"
        d.enter()
        step[0] = "cuLaunchKernel"
        d.spin(PER_THREAD, 100)
        step[0] = "cuEventRecord"
        d("cuEventRecord", event, c_void_p(PER_THREAD))
        step[0] = "the thread's end"

    def watch() -> None:
        d.enter()
        for number in (1, 2, 3):
            thread = threading.Thread(target=work, daemon=True)
            start = time.perf_counter()
            thread.start()
            thread.join()
            joined = (time.perf_counter() - start) * 1e3
            step[0] = "cuEventQuery after the thread's end"
            code = d.code("cuEventQuery", event)
            native_gone = time.perf_counter()
            while d.code("cuEventQuery", event) == 600 and time.perf_counter() - native_gone < 2:
                time.sleep(0.001)
            tell(
                f"thread {number}: ms until join() returned, CUresult of the event then, ms until it was done",
                [round(joined, 2), code, round((time.perf_counter() - start) * 1e3, 2)],
            )

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    watching.join(SECONDS / 2)
    if watching.is_alive():
        tell(f"did not end within {SECONDS / 2:.0f} s, in", step[0])
    # thread_exit.py tests whether the process can end after this.
    sys.stdout.flush()
    os._exit(0)


@question
def attributes_of_the_device(d: RawDriver) -> None:
    """Device attributes and environment variables that matter for Bascule or for this run."""
    wanted = {
        "integrated": 18, "compute mode": 20, "concurrent kernels": 31, "asynchronous engines": 40,
        "unified addressing": 41, "managed memory": 83, "pageable memory access": 88,
        "concurrent managed access": 89, "cooperative launch": 95, "shared memory opt-in": 97,
        "pageable memory uses the host's page tables": 100, "memory pools": 115, "GPUDirect RDMA": 116,
        "handle types of pools": 119, "cluster launch": 120, "dma_buf": 124,
    }  # fmt: skip
    for name, number in wanted.items():
        found = c_int(-1)
        code = d.code("cuDeviceGetAttribute", byref(found), number, 0)
        tell(name, found.value if code == 0 else f"CUresult {code}")
    names = ("CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_VISIBLE_DEVICES")
    tell("environment", {name: os.environ[name] for name in names if name in os.environ})


# --- running ---


def answer(name: str) -> dict[str, Any]:
    """Returns the facts of one question, from a separate process."""
    command = [sys.executable, "-X", "faulthandler", str(Path(__file__).resolve()), "--here", name]
    start, ended = time.monotonic(), "ended"
    with subprocess.Popen(
        [*command, "--rounds", str(rounds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            out, err = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            ended = f"did not end within {SECONDS:.0f} s"
    if ended == "ended" and child.returncode:
        ended = f"failed with status {child.returncode}"
    facts: dict[str, Any] = {}
    for line in out.splitlines():
        try:
            fact = json.loads(line)
        except ValueError:
            continue
        facts[fact["fact"]] = fact["value"]
    found = {
        "what": QUESTIONS[name].__doc__,
        "how": ended,
        "seconds": round(time.monotonic() - start, 1),
        "facts": facts,
    }
    return found | ({"stderr": err[-2000:]} if err and ended != "ended" else {})


def main() -> int:
    global rounds
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("questions", nargs="*", metavar="QUESTION")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--smoke", action="store_true", help="tries the program; the figures mean nothing")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    if unknown := [name for name in options.questions if name not in QUESTIONS]:
        parser.error(f"no question is called {unknown[0]}; there are {', '.join(QUESTIONS)}")
    rounds = options.rounds
    if options.here:
        QUESTIONS[options.questions[0]](RawDriver())
        return 0
    results: dict[str, Any] = {}
    for name in options.questions or QUESTIONS:
        results[name] = found = answer(name)
        print(f"{name}: {found['how']}, {found['seconds']} s. {found['what']}", flush=True)
        for fact, value in found["facts"].items():
            print(f"    {fact}: {value}", flush=True)
        if options.out:
            replace(options.out, json.dumps(results, indent=1) + "\n")
    return int(any(found["how"] != "ended" for found in results.values()))


if __name__ == "__main__":
    sys.exit(main())
