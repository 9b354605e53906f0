"""Programs of unusual order on two devices that have no race: none may be reported."""

from __future__ import annotations

import ctypes
import itertools
import random
import threading
from collections.abc import Callable

import numpy as np
from planted import poll, read_on, set_on
from planted_devices import second_event, streams_of_both
from raw_driver import PoolArray, blocking_stream, call, current, peer_copy
from scene import N, Scene, kernels, unordered

import bascule

Program = Callable[[Scene], None]
FREE_ON_TWO_DEVICES: dict[str, Program] = {}

first, second = bascule.device(0), bascule.device(1)


def race_free(program: Program) -> Program:
    FREE_ON_TWO_DEVICES[program.__name__] = program
    return program


def hand_over(before: bascule.Stream, after: bascule.Stream) -> None:
    """What is issued on `after` from now on comes after everything on `before`."""
    with before.device:
        event = bascule.event()
    event.record(before)
    event.wait(after)


# --- Events


@race_free
def an_event_of_the_other_device(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    set_on(scene, p, x)
    hand_over(p, c)
    set_on(scene, c, x)


@race_free
def there_and_back_again(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    for _ in range(3):
        set_on(scene, p, x)
        hand_over(p, c)
        set_on(scene, c, x)
        hand_over(c, p)
    set_on(scene, p, x)


@race_free
def a_chain_that_changes_devices_at_every_link(scene):
    streams = [scene.stream(k % 2) for k in range(6)]
    x = scene.array(streams[0])
    for before, after in itertools.pairwise(streams):
        set_on(scene, before, x)
        hand_over(before, after)
    set_on(scene, streams[-1], x)


@race_free
def streams_of_both_devices_that_wait_for_one_event(scene):
    p = scene.stream(1)
    readers = [scene.stream(k % 2) for k in range(6)]
    x = scene.array(p)
    event = second_event()
    set_on(scene, p, x)
    event.record(p)
    for c in readers:
        event.wait(c)
        read_on(scene, c, x)


@race_free
def both_devices_join_on_a_third_stream(scene):
    p, c = streams_of_both(scene)
    joined = scene.stream(0)
    x, y = scene.array(p), scene.array(c)
    set_on(scene, p, x)
    set_on(scene, c, y)
    hand_over(p, joined)
    hand_over(c, joined)
    set_on(scene, joined, x)
    set_on(scene, joined, y)


@race_free
def a_diamond_over_both_devices(scene):
    p, q = scene.streams(2, device=1)
    c, d = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    for middle in (q, c):
        hand_over(p, middle)
        read_on(scene, middle, x)
        hand_over(middle, d)
    set_on(scene, d, x)


# --- The host


@race_free
def the_host_waits_for_the_other_device(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    set_on(scene, p, x)
    with second:
        bascule.synchronize()
    set_on(scene, c, x)


@race_free
def the_host_waits_for_a_stream_that_waited_for_the_other_device(scene):
    p, c = streams_of_both(scene)
    d = scene.stream(0)
    x = scene.array(p)
    set_on(scene, p, x)
    hand_over(p, d)
    d.synchronize()
    set_on(scene, c, x)


@race_free
def the_host_asks_the_other_devices_stream_until_it_is_done(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    set_on(scene, p, x)
    poll(p)
    set_on(scene, c, x)


@race_free
def threads_on_a_device_each_and_memory_of_their_own(scene):
    def work(device: int) -> None:
        with bascule.device(device):
            s = bascule.stream()
            x = bascule.device_array(N, "i4", stream=s)
            scene.kept.extend([s, x])
            for _ in range(10):
                set_on(scene, s, x)

    threads = [threading.Thread(target=work, args=(k % 2,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- Default streams


@race_free
def the_default_streams_of_both_devices_on_memory_of_their_own(scene):
    for device in (first, second, first, second):
        with device:
            set_on(scene, 1, scene.array(1))
            set_on(scene, 2, scene.array(2))


@race_free
def a_blocking_stream_and_the_legacy_default_stream_of_its_own_device(scene):
    with second:
        x = scene.array(1)
        with current(second), blocking_stream() as p:
            set_on(scene, p, x)
            set_on(scene, 1, x)
            set_on(scene, p, x)


# --- Memory


@race_free
def both_devices_read(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    set_on(scene, p, x)
    p.synchronize()
    read_on(scene, p, x)
    read_on(scene, c, x)


@race_free
def halves_of_one_array_on_two_devices(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    set_on(scene, p, x[: N // 2])
    set_on(scene, c, x[N // 2 :])


@race_free
def pinned_memory_handed_from_device_to_device(scene):
    p, c = streams_of_both(scene)
    x, y = scene.array(p), scene.array(c)
    between = bascule.pinned_array(N, "i4", stream=c)
    scene.kept.append(between)
    set_on(scene, p, x)
    with second:
        x.copy_to_host(out=np.asarray(between), stream=p)
    hand_over(p, c)
    y.copy_from_host(np.asarray(between), stream=c)


@race_free
def memory_of_a_pool_freed_after_the_other_device_has_read_it(scene):
    p, c = streams_of_both(scene)
    x = PoolArray(N, p)
    set_on(scene, p, x)
    hand_over(p, c)
    read_on(scene, c, x)
    hand_over(c, p)
    x.free(p)


# --- Copies


@race_free
def peer_copies_by_the_driver_in_order(scene):
    p, c = streams_of_both(scene)
    x, y = scene.array(p), scene.array(c)
    for _ in range(3):
        set_on(scene, p, x)
        hand_over(p, c)
        peer_copy(y, x, c)
        set_on(scene, c, y)
        hand_over(c, p)
        peer_copy(x, y, p)


@race_free
def assignments_from_device_to_device(scene):
    p, c = streams_of_both(scene)
    x, y = scene.array(p), scene.array(c)
    for _ in range(3):
        set_on(scene, p, x)
        y[...] = x
        set_on(scene, p, x)
        set_on(scene, c, y)
        x[::2] = y[::2]
        set_on(scene, c, y)


# --- What Bascule orders


@race_free
def peer_launches_in_the_order_of_their_arrays(scene):
    p, c = streams_of_both(scene)
    x, y = scene.foreign(p), scene.foreign(c)
    for _ in range(3):
        set_on(scene, p, x)
        set_on(scene, c, y)
        scene.sum(c, y, x)
        set_on(scene, p, x)
        scene.sum(p, x, y)
        set_on(scene, c, y)


@race_free
def launches_from_device_to_device_at_random(scene):
    chance = random.Random(11)
    streams = [*scene.streams(3), *scene.streams(3, device=1)]
    arrays = [scene.array(chance.choice(streams)) for _ in range(6)]
    for _ in range(60):
        out, *sources = chance.sample(arrays, 3)
        scene.sum(chance.choice(streams), out, *sources)


@race_free
def threads_that_launch_on_arrays_of_both_devices(scene):
    streams = [scene.stream(k % 2) for k in range(4)]
    arrays = [scene.foreign(s) for s in streams]

    def work(number):
        chance = random.Random(number)
        for _ in range(10):
            scene.sum(streams[number], scene.array(streams[number]), *chance.sample(arrays, 2))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- Graphs


@race_free
def a_graph_that_is_replayed_between_what_the_other_device_does(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    kernels().bump.prepare()
    with bascule.Graph() as graph:
        scene.launcher("bump", None)(x, N)
    scene.kept.append(graph)
    for _ in range(3):
        set_on(scene, p, x)
        graph.launch(c)
        read_on(scene, p, x)


@race_free
def a_graph_with_a_branch_on_the_other_device(scene):
    p, c = streams_of_both(scene)
    x, y = scene.array(p), scene.array(c)
    for array in (x, y):  # the code is on both devices then
        scene.bump(array.stream, array)
        array.stream.synchronize()
    with bascule.Graph() as graph:
        s = graph.stream
        scene.launcher("bump", s)(unordered(y), N)
        hand_over(s, p)
        scene.launcher("bump", p)(unordered(x), N)
        scene.launcher("bump", p)(unordered(y), N)
        hand_over(p, s)
        scene.launcher("bump", s)(unordered(x), N)
    scene.kept.append(graph)
    for _ in range(2):
        graph.launch(c)
    hand_over(c, p)
    read_on(scene, p, x)
    read_on(scene, p, y)


@race_free
def a_context_that_another_library_has_made_current(scene):
    p, c = streams_of_both(scene)
    x, y = scene.foreign(p), scene.array(c)
    with current(second):
        set_on(scene, p, x)
        scene.sum(c, y, x)
        set_on(scene, p, x)
        device = ctypes.c_int()
        call("cuCtxGetDevice", ctypes.byref(device))
        assert device.value == 1
