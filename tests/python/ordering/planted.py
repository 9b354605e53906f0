"""Programs with a race. Each must be reported, whatever order its operations happen to run in."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from raw_driver import PoolArray, blocking_stream
from scenarios import in_a_thread
from scene import Foreign, N, Scene, kernels, unordered

import bascule

Program = Callable[[Scene], None]
PLANTED: dict[str, tuple[Program, tuple[str, ...]]] = {}
# Those that are faults where the operations happen to run in another order, and lose the context then.
LETHAL: dict[str, tuple[Program, tuple[str, ...]]] = {}
# The same in a process that has two devices: planted_devices.py has them.
ON_TWO_DEVICES: dict[str, tuple[Program, tuple[str, ...]]] = {}
LETHAL_ON_TWO_DEVICES: dict[str, tuple[Program, tuple[str, ...]]] = {}


def planted(*named: str, lethal: bool = False, devices: int = 1) -> Callable[[Program], Program]:
    """A program with a race; `named`: what its report must name beside the places of both operations."""
    tables = {1: (PLANTED, LETHAL), 2: (ON_TWO_DEVICES, LETHAL_ON_TWO_DEVICES)}

    def register(program: Program) -> Program:
        tables[devices][lethal][program.__name__] = (program, named)
        return program

    return register


def set_on(scene: Scene, stream: object, array: object) -> None:
    scene.produce(stream, array)


def read_on(scene: Scene, stream: object, array: object) -> None:
    scene.consume(stream, array)


def poll(what: bascule.Stream | bascule.Event) -> None:
    while not what.query():
        pass


# --- Graphs


@planted("set", "bump")
def a_graph_whose_launch_does_not_wait_for_the_writer(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    kernels().bump.prepare()
    with bascule.Graph() as graph:
        kernels().bump[1, N](unordered(x), N)
    scene.kept.append(graph)
    set_on(scene, p, x)
    graph.launch(c)


@planted("read", "bump")
def a_replay_that_does_not_wait_for_the_reader_of_the_one_before(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    kernels().bump.prepare()
    with bascule.Graph() as graph:
        kernels().bump[1, N](unordered(x), N)
    scene.kept.append(graph)
    graph.launch(c)
    event = bascule.event()
    event.record(c)
    event.wait(p)
    read_on(scene, p, x)
    graph.launch(c)


# --- Between launches


@planted("set", "read")
def a_launch_that_does_not_wait_for_the_writer(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    read_on(scene, c, x)


@planted("set", "read")
def a_writer_that_does_not_wait_for_the_launch(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    read_on(scene, c, x)
    set_on(scene, p, x)


@planted("set")
def two_writers(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    set_on(scene, c, x)


@planted("sum1", "set")
def an_array_whose_order_is_switched_off(scene):
    p, c = scene.streams(2)
    x = scene.foreign(p)
    set_on(scene, p, x)
    scene.sum(c, scene.array(c), bascule.as_cuda_array(x, sync=False))


@planted("sum1", "set")
def a_producer_that_names_no_stream(scene):
    p, c = scene.streams(2)
    x = Foreign(scene.array(p), None)
    set_on(scene, p, x)
    scene.sum(c, scene.array(c), x)


@planted("sum1", "set")
def a_producer_that_names_the_wrong_stream(scene):
    p, q, c = scene.streams(3)
    x = scene.foreign(q)
    set_on(scene, p, x)
    scene.sum(c, scene.array(c), x)


@planted("sum1", "set")
def a_producer_that_writes_on_another_stream_afterwards(scene):
    p, q, c = scene.streams(3)
    x = scene.foreign(p)
    set_on(scene, p, x)
    scene.sum(c, scene.array(c), x)
    set_on(scene, q, x)


@planted("sum1", "set")
def a_bound_launch_whose_producer_moved_to_another_stream(scene):
    p, q, c = scene.streams(3)
    x = scene.foreign(p)
    bound = kernels().sum1[1, N, c].bind(scene.array(c), x, N)
    bound()
    set_on(scene, q, x)
    bound()


@planted("sum2", "set")
def one_of_two_producers_is_not_waited_for(scene):
    p, q, c = scene.streams(3)
    x, y = scene.foreign(p), scene.foreign(q)
    set_on(scene, p, x)
    set_on(scene, q, y)
    scene.sum(c, scene.array(c), x, unordered(y))


@planted("bump", "read")
def a_reader_that_comes_too_late_to_be_waited_for(scene):
    p, c, d = scene.streams(3)
    x = scene.foreign(p)
    scene.bump(c, x)
    read_on(scene, d, x)


# --- Which bytes


@planted("set")
def slices_that_overlap(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x[:20])
    set_on(scene, c, x[19:])


@planted("set_view")
def strided_views_that_share_an_element(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    kernels().set_view[1, N, p](unordered(x[1::2]), 1)
    kernels().set_view[1, N, c](unordered(x[0::3]), 2)


@planted("set", "set_byte")
def one_byte_in_common(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x[:8])
    kernels().set_byte[1, 1, c](unordered(x.view("u1")), 31)


@planted("sum_valid", "set")
def a_mask_that_is_still_written(scene):
    p, q, c = scene.streams(3)
    bits = scene.array(q, N, "u1")
    x = Foreign(scene.array(p), p.handle, mask=Foreign(bits, None))
    set_on(scene, q, bits.view("i4"))
    kernels().sum_valid[1, N, c](x, scene.array(c))


# --- Atomics


@planted("count", "read")
def an_atomic_sum_that_is_read(scene):
    p, c = scene.streams(2)
    total = scene.array(p, 1)
    kernels().count[1, N, p](unordered(total))
    read_on(scene, c, total)


@planted("count", "set")
def an_atomic_sum_that_is_overwritten(scene):
    p, c = scene.streams(2)
    total = scene.array(p, 1)
    kernels().count[1, N, p](unordered(total))
    set_on(scene, c, total)


# --- Copies and fills


@planted("set")
def a_copy_to_the_host_while_a_kernel_writes(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    unordered(x).copy_to_host(stream=c)


@planted("set")
def a_copy_to_pinned_memory_that_the_writer_does_not_wait_for(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    out = bascule.pinned_array(N, "i4", stream=c)
    unordered(x).copy_to_host(out=out, stream=c)
    set_on(scene, p, x)
    scene.kept.append(out)


@planted("read")
def a_copy_from_the_host_while_a_kernel_reads(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    read_on(scene, p, x)
    unordered(x).copy_from_host(np.arange(N, dtype="i4"), stream=c)


@planted("set")
def a_fill_while_a_kernel_writes(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    unordered(x).fill(1, stream=c)


@planted()
def a_copy_on_the_device_while_the_host_copies_there(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    x.copy_from_host(np.arange(N, dtype="i4"))
    scene.kept.append(unordered(x).copy(stream=c))


@planted("set")
def a_conversion_while_a_kernel_writes(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    scene.kept.append(unordered(x).astype("f4", stream=c))


@planted("set")
def an_assignment_while_a_kernel_writes(scene):
    p, c = scene.streams(2)
    x, y = scene.array(p), scene.array(c)
    set_on(scene, p, x)
    y[...] = unordered(x)


@planted()
def pinned_memory_that_one_copy_fills_while_another_reads_it(scene):
    p, c = scene.streams(2)
    x, y = scene.array(p), scene.array(c)
    between = bascule.pinned_array(N, "i4", stream=p)
    x.copy_to_host(out=between, stream=p)
    y.copy_from_host(np.asarray(between))
    scene.kept.append(between)


@planted("set", "read")
def managed_memory(scene):
    p, c = scene.streams(2)
    x = bascule.managed_array(N, "i4", stream=p)
    scene.kept.append(x)
    set_on(scene, p, x)
    read_on(scene, c, x)


@planted("read", lethal=True)
def memory_freed_in_the_order_of_a_stream_while_another_reads_it(scene):
    p, c = scene.streams(2)
    x = PoolArray(N, p)
    event = bascule.event()
    event.record(p)
    event.wait(c)
    read_on(scene, c, x)
    x.free(p)


@planted("set", lethal=True)
def memory_used_on_another_stream_before_it_is_allocated(scene):
    p, c = scene.streams(2)
    x = PoolArray(N, p)
    set_on(scene, c, x)
    event = bascule.event()
    event.record(c)
    event.wait(p)
    x.free(p)


@planted("set")
def a_consumer_by_dlpack_that_wants_no_order(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    y = bascule.from_dlpack(Unordered(x), stream=c)
    scene.bump(c, y)


class Unordered:
    """A producer that does not do what it is asked: it orders nothing."""

    def __init__(self, array: bascule.DeviceArray) -> None:
        self._array = array

    def __dlpack__(self, *, stream: object = None, **options: object) -> object:
        return self._array.__dlpack__(stream=-1, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


# --- Default streams


@planted("set", "read")
def the_legacy_default_stream_and_a_non_blocking_one(scene):
    c = scene.stream()
    x = scene.array(1)
    set_on(scene, 1, x)
    read_on(scene, c, x)


@planted("set", "read")
def a_threads_default_stream_and_a_non_blocking_one(scene):
    c = scene.stream()
    x = scene.array(2)
    set_on(scene, 2, x)
    read_on(scene, c, x)


@planted("set", "read")
def a_threads_default_stream_and_a_blocking_one(scene):
    x = scene.array(2)
    with blocking_stream() as c:
        set_on(scene, 2, x)
        read_on(scene, c, x)


@planted("set", "read", "for what the per-thread default stream of another thread was given")
def the_default_streams_of_two_threads(scene):
    x = scene.array(2)
    set_on(scene, 2, x)
    in_a_thread(lambda: read_on(scene, 2, x))


# --- Events


@planted("set", "read")
def an_event_recorded_too_early(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    event = bascule.event()
    event.record(p)
    set_on(scene, p, x)
    event.wait(c)
    read_on(scene, c, x)


@planted("set", "read")
def an_event_that_was_never_recorded(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    event = bascule.event()
    set_on(scene, p, x)
    event.wait(c)
    read_on(scene, c, x)


@planted("set", "read")
def an_event_recorded_again_elsewhere_before_the_wait(scene):
    p, q, c = scene.streams(3)
    x = scene.array(p)
    event = bascule.event()
    set_on(scene, p, x)
    event.record(p)
    event.record(q)
    event.wait(c)
    read_on(scene, c, x)


@planted("set", "read")
def the_wrong_stream_waits(scene):
    p, q, c = scene.streams(3)
    x = scene.array(p)
    event = bascule.event()
    set_on(scene, p, x)
    event.record(p)
    event.wait(q)
    read_on(scene, c, x)


@planted("set", "read")
def a_wait_behind_the_launch(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    event = bascule.event()
    set_on(scene, p, x)
    event.record(p)
    read_on(scene, c, x)
    event.wait(c)


@planted("set", "read")
def a_chain_with_a_link_missing(scene):
    p, q, c = scene.streams(3)
    x = scene.array(p)
    first, second = bascule.event(), bascule.event()
    set_on(scene, p, x)
    first.record(p)
    second.record(q)  # before q waited
    first.wait(q)
    second.wait(c)
    read_on(scene, c, x)


# --- The host


@planted("set", "read")
def the_host_waits_for_another_stream(scene):
    p, q, c = scene.streams(3)
    x = scene.array(p)
    set_on(scene, p, x)
    q.synchronize()
    read_on(scene, c, x)


@planted("set", "read")
def the_host_waits_too_early(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    p.synchronize()
    set_on(scene, p, x)
    read_on(scene, c, x)


@planted("set", "read")
def two_threads_on_streams_of_their_own(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_first = threading.Thread(target=lambda: set_on(scene, p, x))
    read_then = threading.Thread(target=lambda: read_on(scene, c, x))
    for thread in (set_first, read_then):
        thread.start()
    for thread in (set_first, read_then):
        thread.join()


@planted("set", "read")
def a_stream_that_is_destroyed_does_not_wait(scene):
    p, c = bascule.stream(), scene.stream()
    x = scene.array(c)
    set_on(scene, p, x)
    del p
    read_on(scene, c, x)
