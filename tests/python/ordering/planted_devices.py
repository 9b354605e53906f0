"""Programs on two devices with a race between them. Each must be reported; devices_child.py runs them."""

from __future__ import annotations

import threading

import numpy as np
from planted import ON_TWO_DEVICES, planted, read_on, set_on
from raw_driver import PoolArray, blocking_stream, current, peer_copy
from scene import N, Scene, kernels, unordered

import bascule

first, second = bascule.device(0), bascule.device(1)

__all__ = ["ON_TWO_DEVICES"]


def streams_of_both(scene: Scene) -> tuple[bascule.Stream, bascule.Stream]:
    """The second device's, and the first one's."""
    return scene.stream(1), scene.stream(0)


# --- Kernels in the other device's memory


@planted("set", "read", devices=2)
def a_peer_kernel_that_does_not_wait_for_the_writer(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    set_on(scene, p, x)
    read_on(scene, c, x)


@planted("read", "set", devices=2)
def a_writer_that_does_not_wait_for_a_peer_kernel(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    read_on(scene, c, x)
    set_on(scene, p, x)


@planted("set", devices=2)
def two_devices_that_write_one_array(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    set_on(scene, p, x)
    set_on(scene, c, x)


@planted("sum1", "set", devices=2)
def a_peer_array_whose_order_is_switched_off(scene):
    p, c = streams_of_both(scene)
    x = scene.foreign(p)
    set_on(scene, p, x)
    scene.sum(c, scene.array(c), bascule.as_cuda_array(x, sync=False))


@planted("sum2", "set", devices=2)
def only_the_producer_of_the_launchs_own_device_is_waited_for(scene):
    p, c = streams_of_both(scene)
    q = scene.stream(0)
    x, y = scene.foreign(p), scene.foreign(q)
    set_on(scene, p, x)
    set_on(scene, q, y)
    scene.sum(c, scene.array(c), unordered(x), y)


@planted("bump", "read", devices=2)
def another_stream_of_the_arrays_device_reads_what_a_peer_kernel_writes(scene):
    p, c = streams_of_both(scene)
    q = scene.stream(1)
    x = scene.foreign(p)
    scene.bump(c, x)
    read_on(scene, q, x)


@planted("set", devices=2)
def one_element_that_both_devices_write(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    set_on(scene, p, x[:20])
    set_on(scene, c, x[19:])


# --- Copies


@planted("set", devices=2)
def a_copy_from_device_to_device_that_does_not_wait(scene):
    p, c = streams_of_both(scene)
    x, y = scene.array(p), scene.array(c)
    set_on(scene, p, x)
    y[...] = unordered(x)


@planted("set", devices=2)
def a_peer_copy_by_the_driver_without_a_wait(scene):
    p, c = streams_of_both(scene)
    x, y = scene.array(p), scene.array(c)
    set_on(scene, p, x)
    peer_copy(y, x, c)


@planted("read", devices=2)
def a_peer_copy_into_what_the_other_device_still_reads(scene):
    p, c = streams_of_both(scene)
    x, y = scene.array(p), scene.array(c)
    read_on(scene, p, x)
    peer_copy(x, y, c)


@planted("set", devices=2)
def a_writer_that_does_not_wait_for_the_peer_copy(scene):
    p, c = streams_of_both(scene)
    x, y = scene.array(p), scene.array(c)
    peer_copy(y, x, c)
    set_on(scene, p, x)


@planted("set", devices=2)
def a_copy_to_the_host_while_a_peer_kernel_writes(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    set_on(scene, c, x)
    unordered(x).copy_to_host(stream=p)


@planted("read", devices=2)
def a_copy_from_the_host_while_a_peer_kernel_reads(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    read_on(scene, c, x)
    unordered(x).copy_from_host(np.arange(N, dtype="i4"), stream=p)


@planted("set", devices=2)
def a_fill_while_a_peer_kernel_writes(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    set_on(scene, c, x)
    unordered(x).fill(1, stream=p)


@planted(devices=2)
def pinned_memory_that_two_devices_copy_into(scene):
    p, c = streams_of_both(scene)
    x, y = scene.array(p), scene.array(c)
    between = bascule.pinned_array(N, "i4", stream=c)
    scene.kept.append(between)
    with second:
        unordered(x).copy_to_host(out=np.asarray(between), stream=p)
    unordered(y).copy_to_host(out=np.asarray(between), stream=c)


@planted("set", "read", devices=2)
def managed_memory_of_two_devices(scene):
    p, c = streams_of_both(scene)
    x = bascule.managed_array(N, "i4", stream=c)
    scene.kept.append(x)
    set_on(scene, c, x)
    read_on(scene, p, x)


@planted("read", lethal=True, devices=2)
def memory_freed_on_one_device_while_the_other_reads(scene):
    p, c = streams_of_both(scene)
    x = PoolArray(N, p)
    event = second_event()
    event.record(p)
    event.wait(c)
    read_on(scene, c, x)
    x.free(p)


def second_event() -> bascule.Event:
    with second:
        return bascule.event()


# --- Default streams


@planted("set", "read", "0 must wait, before the launch of 'read'", "of device 1 was given", devices=2)
def the_legacy_default_streams_of_two_devices(scene):
    with second:
        x = scene.array(1)
        set_on(scene, 1, x)
    with first:
        read_on(scene, 1, x)


@planted("set", "read", "0 must wait, before the launch of 'read'", "of device 1 was given", devices=2)
def a_threads_default_streams_of_two_devices(scene):
    with second:
        x = scene.array(2)
        set_on(scene, 2, x)
    with first:
        read_on(scene, 2, x)


@planted("set", "read", devices=2)
def a_blocking_stream_and_the_other_devices_legacy_default_stream(scene):
    with second:
        x = scene.array(1)
    with current(second), blocking_stream() as p:
        with second:
            set_on(scene, p, x)
        with first:
            read_on(scene, 1, x)


# --- Events and the host


@planted("set", "read", devices=2)
def an_event_of_the_other_device_recorded_too_early(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    event = second_event()
    event.record(p)
    set_on(scene, p, x)
    event.wait(c)
    read_on(scene, c, x)


@planted("set", "read", devices=2)
def an_event_that_another_stream_of_the_device_waits_for(scene):
    p, c = streams_of_both(scene)
    d = scene.stream(0)
    x = scene.array(p)
    event = second_event()
    set_on(scene, p, x)
    event.record(p)
    event.wait(d)
    read_on(scene, c, x)


@planted("set", "read", devices=2)
def a_chain_over_both_devices_with_a_link_missing(scene):
    p, c = streams_of_both(scene)
    q = scene.stream(1)
    x = scene.array(p)
    there, back = second_event(), bascule.event()
    set_on(scene, p, x)
    there.record(p)
    back.record(c)  # before c waited
    there.wait(c)
    back.wait(q)
    read_on(scene, q, x)


@planted("set", "read", devices=2)
def the_host_waits_for_the_other_device_only(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    set_on(scene, p, x)
    with first:
        bascule.synchronize()
    read_on(scene, c, x)


@planted("set", "read", devices=2)
def two_threads_on_a_device_each(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)

    def on(device, work, stream):
        with device:
            work(scene, stream, x)

    threads = [
        threading.Thread(target=on, args=(second, set_on, p)),
        threading.Thread(target=on, args=(first, read_on, c)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- Graphs


@planted("set", "bump", devices=2)
def a_graph_that_does_not_wait_for_the_other_device(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    kernels().bump.prepare()
    with bascule.Graph() as graph:
        scene.launcher("bump", None)(unordered(x), N)
    scene.kept.append(graph)
    set_on(scene, p, x)
    graph.launch(c)


@planted("read", "bump", devices=2)
def a_reader_on_the_other_device_that_does_not_wait_for_the_graph(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    kernels().bump.prepare()
    with bascule.Graph() as graph:
        scene.launcher("bump", None)(unordered(x), N)
    scene.kept.append(graph)
    graph.launch(c)
    read_on(scene, p, x)
