"""Programs of unusual order that have no race: none may be reported, and something must have been compared."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable

import numpy as np
import pytest
from planted import poll, read_on, set_on
from raw_driver import PoolArray, blocking_stream
from scenarios import in_a_thread
from scenarios_graphs import ALL
from scene import Foreign, N, Scene, kernels, unordered

import bascule

pytestmark = pytest.mark.usefixtures("emulated")

Program = Callable[[Scene], None]
FREE: dict[str, Program] = {}


def race_free(program: Program) -> Program:
    FREE[program.__name__] = program
    return program


# --- Graphs


def graph_of_two_bumps(array: bascule.DeviceArray) -> bascule.Graph:
    kernels().bump.prepare()
    with bascule.Graph() as graph:
        kernels().bump[1, N](array, N)
        kernels().bump[1, N](array, N)
    return graph


@race_free
def a_graph_that_is_replayed_between_what_its_array_s_stream_does(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    graph = graph_of_two_bumps(x)
    scene.kept.append(graph)
    for _ in range(3):
        set_on(scene, p, x)
        graph.launch(c)
        read_on(scene, p, x)


@race_free
def a_graph_that_is_launched_on_two_streams_in_turn(scene):
    p, q, c = scene.streams(3)
    x = scene.array(p)
    set_on(scene, p, x)
    graph = graph_of_two_bumps(x)
    scene.kept.append(graph)
    for stream in (q, c, q):
        graph.launch(stream)
    set_on(scene, p, x)


# --- Events


@race_free
def an_event_chain_through_three_streams(scene):
    p, q, r, c = scene.streams(4)
    x = scene.array(p)
    set_on(scene, p, x)
    for before, after in [(p, q), (q, r), (r, c)]:
        event = bascule.event()
        event.record(before)
        event.wait(after)
    set_on(scene, c, x)


@race_free
def one_event_for_the_whole_chain(scene):
    streams = scene.streams(4)
    x = scene.array(streams[0])
    event = bascule.event(timing=False)
    for before, after in itertools.pairwise(streams):
        set_on(scene, before, x)
        event.record(before)
        event.wait(after)
    set_on(scene, streams[-1], x)


@race_free
def an_event_recorded_again_after_the_wait(scene):
    p, q, c = scene.streams(3)
    x = scene.array(p)
    event = bascule.event()
    set_on(scene, p, x)
    event.record(p)
    event.wait(c)
    event.record(q)  # the wait keeps what it waited for
    set_on(scene, c, x)


@race_free
def many_streams_wait_for_one_event(scene):
    p, *readers = scene.streams(9)
    x = scene.array(p)
    event = bascule.event()
    set_on(scene, p, x)
    event.record(p)
    for c in readers:
        event.wait(c)
        read_on(scene, c, x)


@race_free
def a_diamond(scene):
    p, q, r, c = scene.streams(4)
    x = scene.array(p)
    set_on(scene, p, x)
    event = bascule.event()
    event.record(p)
    for middle in (q, r):
        event.wait(middle)
        read_on(scene, middle, x)
    for middle in (q, r):
        joined = bascule.event()
        joined.record(middle)
        joined.wait(c)
    set_on(scene, c, x)


@race_free
def a_stream_that_is_destroyed_after_its_event_was_recorded(scene):
    p, c = bascule.stream(), scene.stream()
    x = scene.array(c)
    event = bascule.event()
    set_on(scene, p, x)
    event.record(p)
    del p
    event.wait(c)
    set_on(scene, c, x)


@race_free
def an_event_that_is_destroyed_after_the_wait(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    event = bascule.event()
    set_on(scene, p, x)
    event.record(p)
    event.wait(c)
    del event
    set_on(scene, c, x)


@race_free
def streams_that_come_and_go_with_the_same_handles(scene):
    c = scene.stream()
    x = scene.array(c)
    for _ in range(5):
        p = bascule.stream()
        event = bascule.event()
        event.record(c)
        event.wait(p)
        set_on(scene, p, x)
        event.record(p)
        del p
        event.wait(c)
        set_on(scene, c, x)


@race_free
def a_stream_that_waits_for_itself(scene):
    p = scene.stream()
    x = scene.array(p)
    event = bascule.event()
    set_on(scene, p, x)
    event.record(p)
    event.wait(p)
    set_on(scene, p, x)


# --- Default streams


@race_free
def the_threads_default_stream_waits_for_the_legacy_one(scene):
    x = scene.array(1)
    set_on(scene, 1, x)
    set_on(scene, 2, x)


@race_free
def the_legacy_default_stream_waits_for_the_threads_one(scene):
    x = scene.array(2)
    set_on(scene, 2, x)
    set_on(scene, 1, x)


@race_free
def blocking_streams_and_the_legacy_default_stream(scene):
    x = scene.array(1)
    with blocking_stream() as p:
        set_on(scene, p, x)
        set_on(scene, 1, x)
        set_on(scene, p, x)


@race_free
def two_blocking_streams_with_the_legacy_default_stream_between(scene):
    x, other = scene.array(1), scene.array(1)
    with blocking_stream() as p, blocking_stream() as q:
        set_on(scene, p, x)
        set_on(scene, 1, other)
        set_on(scene, q, x)


@race_free
def the_default_streams_of_two_threads_with_the_legacy_one_between(scene):
    x, other = scene.array(1), scene.array(1)
    set_on(scene, 2, x)
    set_on(scene, 1, other)
    in_a_thread(lambda: set_on(scene, 2, x))


@race_free
def a_non_blocking_stream_beside_the_legacy_one_on_other_memory(scene):
    p = scene.stream()
    x, y = scene.array(p), scene.array(1)
    for _ in range(3):
        set_on(scene, p, x)
        set_on(scene, 1, y)


# --- Which bytes


@race_free
def halves_of_one_array(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x[: N // 2])
    set_on(scene, c, x[N // 2 :])


@race_free
def interleaved_elements(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    kernels().set_view[1, N, p](unordered(x[0::2]), 1)
    kernels().set_view[1, N, c](unordered(x[1::2]), 2)


@race_free
def neighbouring_bytes_of_one_word(scene):
    streams = scene.streams(4)
    x = scene.array(streams[0], 1)
    for k, stream in enumerate(streams):
        kernels().set_byte[1, 1, stream](unordered(x.view("u1")), k)


@race_free
def columns_of_a_matrix(scene):
    p, c = scene.streams(2)
    x = bascule.device_array((8, 8), "i4", stream=p)
    scene.kept.append(x)
    kernels().set_view[1, 8, p](unordered(x)[:, 3], 1)
    kernels().set_view[1, 8, c](unordered(x)[:, 4], 2)


@race_free
def many_readers(scene):
    streams = scene.streams(5)
    x = scene.array(streams[0])
    x.fill(0)
    streams[0].synchronize()
    for stream in streams:
        read_on(scene, stream, x)


@race_free
def atomics_on_both_streams(scene):
    streams = scene.streams(3)
    total = scene.array(streams[0], 1)
    total.fill(0)
    streams[0].synchronize()
    for stream in streams:
        kernels().count[1, N, stream](unordered(total))
    bascule.synchronize()
    assert total.copy_to_host()[0] == 3 * N


# --- The host


@race_free
def the_host_waits_for_a_stream(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    p.synchronize()
    set_on(scene, c, x)


@race_free
def the_host_waits_for_the_device(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    bascule.synchronize()
    set_on(scene, c, x)


@race_free
def the_host_waits_for_an_event(scene):
    p, c = scene.streams(2)
    x, y = scene.array(p), scene.array(p)
    event = bascule.event()
    set_on(scene, p, x)
    event.record(p)
    set_on(scene, p, y)
    event.synchronize()
    set_on(scene, c, x)


@race_free
def the_host_waits_for_a_stream_that_waited_for_another(scene):
    p, q, c = scene.streams(3)
    x = scene.array(p)
    event = bascule.event()
    set_on(scene, p, x)
    event.record(p)
    event.wait(q)
    q.synchronize()
    set_on(scene, c, x)


@race_free
def the_host_asks_a_stream_until_it_is_done(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    poll(p)
    set_on(scene, c, x)


@race_free
def the_host_asks_an_event_until_it_has_happened(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    event = bascule.event()
    set_on(scene, p, x)
    event.record(p)
    poll(event)
    set_on(scene, c, x)


@race_free
def a_copy_to_the_host_that_waits(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    x.copy_to_host()
    set_on(scene, c, x)


@race_free
def memory_that_is_freed_and_allocated_again(scene):
    for _ in range(5):
        p = bascule.stream()
        x = bascule.device_array(N, "i4", stream=p)
        set_on(scene, p, x)
        p.synchronize()
        del x


@race_free
def one_thread_waits_and_another_goes_on(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    set_on(scene, p, x)
    in_a_thread(p.synchronize)
    set_on(scene, c, x)


@race_free
def one_thread_records_and_another_waits(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    event = bascule.event()

    def produce():
        set_on(scene, p, x)
        event.record(p)

    def consume():
        event.wait(c)
        set_on(scene, c, x)

    in_a_thread(produce)
    in_a_thread(consume)


@race_free
def threads_on_streams_and_memory_of_their_own(scene):
    def work():
        s = scene.stream()
        x = scene.array(s)
        for _ in range(10):
            set_on(scene, s, x)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- Memory of other kinds


@race_free
def pinned_memory_handed_from_copy_to_copy(scene):
    p, c = scene.streams(2)
    x, y = scene.array(p), scene.array(c)
    between = bascule.pinned_array(N, "i4", stream=p)
    scene.kept.append(between)
    event = bascule.event()
    set_on(scene, p, x)
    x.copy_to_host(out=between, stream=p)
    event.record(p)
    event.wait(c)
    y.copy_from_host(np.asarray(between))


@race_free
def managed_memory_ordered_by_a_launch(scene):
    p, c = scene.streams(2)
    x = bascule.managed_array(N, "i4", stream=p)
    scene.kept.append(x)
    set_on(scene, p, x)
    scene.bump(c, x)
    set_on(scene, p, x)


@race_free
def memory_of_a_pool_used_and_freed_in_order(scene):
    p, c = scene.streams(2)
    x = PoolArray(N, p)
    set_on(scene, p, x)
    event = bascule.event()
    event.record(p)
    event.wait(c)
    read_on(scene, c, x)
    x.free(c)


@race_free
def memory_of_a_pool_reused_on_one_stream(scene):
    p = scene.stream()
    for _ in range(5):
        x = PoolArray(N, p)
        set_on(scene, p, x)
        x.free(p)


# --- What Bascule orders


@race_free
def launches_from_stream_to_stream_at_random(scene):
    chance = random.Random(7)
    streams = [*scene.streams(5), 1, 2]
    arrays = [scene.array(chance.choice(streams)) for _ in range(6)]
    for _ in range(100):
        out, *sources = chance.sample(arrays, 3)
        scene.sum(chance.choice(streams), out, *sources)


@race_free
def threads_that_launch_on_each_others_arrays(scene):
    streams = scene.streams(4)
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


@race_free
def a_mask_with_a_stream_of_its_own(scene):
    p, q, c = scene.streams(3)
    bits = scene.array(q, N, "u1")
    x = Foreign(scene.array(p), p.handle, mask=Foreign(bits, q.handle))
    set_on(scene, p, x.array)
    set_on(scene, q, bits.view("i4"))
    kernels().sum_valid[1, N, c](x, scene.array(c))
    set_on(scene, q, bits.view("i4"))


# --- The tests


def compared() -> int:
    return bascule.emulated.race_statistics().bytes


@pytest.mark.parametrize("name", FREE)
def test_a_program_without_a_race_is_not_reported(name):
    scene = Scene()
    with bascule.emulated.checks(races=True):
        before = compared()
        FREE[name](scene)
    assert compared() > before


@pytest.mark.parametrize("name", ALL)
def test_what_bascule_orders_has_no_race(name):
    scene = Scene()
    with bascule.emulated.checks(races=True):
        before = compared()
        ALL[name](scene)
    assert compared() > before


def test_at_least_twenty_programs_are_free_of_races():
    assert len(FREE) >= 20
