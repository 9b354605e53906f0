"""Scenarios that the tables of scenarios.py cannot express."""

from __future__ import annotations

import numpy as np
from scenarios import SCENARIOS, family, scenario
from scene import Foreign, N, in_a_thread

import bascule

__all__ = ["SCENARIOS"]  # includes those of scenarios.py


# --- One operation


@scenario()
def an_assignment_of_another_librarys_array(scene):
    p, c = scene.streams(2)
    x, y = scene.foreign(p), scene.array(c)
    with scene.between(reads=[x]), c:
        y[...] = x


@scenario(1)
def a_fill_of_a_view_of_an_imported_array(scene):
    p, c = scene.streams(2)
    x = bascule.as_cuda_array(scene.foreign(p))
    with scene.between(writes=[x]):
        x[: N // 2].fill(0, stream=c)


@scenario()
def two_arrays_that_are_both_written(scene):
    p, q, c = scene.streams(3)
    x, y = scene.foreign(p), scene.foreign(q)
    with scene.between(writes=[x, y]):
        scene.launcher("swap_two", c)(x, y, N)


@scenario()
def halves_of_one_allocation_have_producers_of_their_own(scene):
    p, c, q = scene.streams(3)
    whole = scene.array(p, 2 * N)
    low, high = Foreign(whole[:N], p), Foreign(whole[N:], q)
    with scene.between(reads=[low, high]):
        scene.sum(c, low, high)


@scenario(1)
def an_array_and_its_mask_come_from_two_streams(scene):
    p, c, q = scene.streams(3)
    x, mask = scene.foreign(p), Foreign(scene.array(q, N, "u1"), q)
    masked = Foreign(x.array, p, mask=mask)
    with scene.between(reads=[x, mask]):
        scene.launcher("sum_valid", c)(masked, scene.array(c))


@family(["ptr", "cuda_stream", "handle"])
def the_launch_stream_is_another_librarys(scene, attribute):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    with scene.between(reads=[x]):
        scene.launcher("sum1", type("Stream", (), {attribute: c.handle})())(out, x, N)


# --- Several operations


@scenario()
def a_bound_launch_that_is_bound_again(scene):
    p, c, q = scene.streams(3)
    out = scene.array(c)
    arrays = [scene.foreign(p), scene.foreign(q)]
    bound = scene.launcher("sum1", c).bind(out, arrays[0], N)
    for x in arrays:
        bound.rebind(out, x, N)
        with scene.between(reads=[x]):
            bound()


@scenario()
def double_buffering(scene):
    p, c = scene.streams(2)
    buffers = [scene.foreign(p), scene.foreign(p)]
    for x in (*buffers, buffers[0]):
        scene.produce(p, x)
        scene.sum(c, x)
    scene.produce(p, *buffers)


@scenario()
def copies_and_a_launch(scene):
    p, c, q = scene.streams(3)
    x = scene.array(p)
    out = scene.array(q, memory="pinned")
    for _ in range(3):
        with scene.touching(writes=[x]):
            x.copy_from_host(np.arange(N, dtype="i4"))
        scene.bump(c, x)
        with scene.between(reads=[x]), q.device:
            x.copy_to_host(out=np.asarray(out), stream=q)


@scenario()
def assignments_there_and_back(scene):
    p, c = scene.streams(2)
    x, y = scene.array(p), scene.array(c)
    for _ in range(4):
        with scene.between(reads=[x], writes=[y]):
            y[...] = x
        x, y = y, x


@family(["__dlpack__", "from_dlpack"], 1)
def a_consumer_comes_after_what_was_enqueued_before(scene, exchange):
    p, c = scene.streams(2)
    x = scene.array(p)
    scene.produce(p, x)
    if exchange == "__dlpack__":
        x.__dlpack__(stream=c.handle)
        scene.consume(c, x)
    else:
        scene.bump(c, bascule.from_dlpack(x, stream=c))


@scenario()
def events_beside_a_launch(scene):
    p, c, q = scene.streams(3)
    x, out = scene.foreign(p), scene.foreign(c)
    with scene.between(reads=[x]):
        scene.sum(c, x, out=out)
    scene.link(c, q)
    scene.consume(q, out)


@scenario()
def one_event_recorded_again_and_again(scene):
    p, _, c = scene.streams(3)  # an event is recorded on streams of its own device
    x = scene.array(p)
    with p.device:
        event = bascule.event(timing=False)
    for before, after in [(p, c), (c, p)] * 3:
        scene.produce(before, x)
        event.record(before)
        after.wait(event)
        scene.consume(after, x)


# --- Graphs


@scenario()
def a_graph_launched_on_several_streams_in_turn(scene):
    p, c, _, d = scene.streams(4)
    x = scene.foreign(p)
    graph = scene.graph(c, "bump", x, N)
    for stream in (c, d, c):
        with scene.between(writes=[x]):
            graph.launch(stream)


@scenario(1)
def a_graph_launched_on_its_producers_stream_in_between(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(p)
    graph = scene.graph(c, "sum1", out, x, N)
    for stream in (c, p, c):
        with scene.between(reads=[x]), scene.touching(reads=[x], writes=[out]):
            graph.launch(stream)


@scenario(1)
def a_graph_of_a_fill_and_a_copy(scene):
    p, q, c = scene.streams(3)
    x, y = scene.array(p), scene.array(q)
    with bascule.Graph() as graph:
        x.fill(3)
        y[...] = x
    scene.kept.append(graph)
    with scene.between(writes=[x, y]):
        graph.launch(c)


@scenario()
def a_launch_behind_a_graph(scene):
    p, c = scene.streams(2)
    x = scene.foreign(p)
    graph = scene.graph(c, "sum1", scene.array(c), x, N)
    with scene.between(reads=[x]):
        graph.launch(c)
    with scene.between(reads=[x]):
        scene.sum(c, x)


# --- Threads, one at a time


@scenario()
def threads_that_launch_in_turn(scene):
    p, *consumers = scene.streams(4)
    x = scene.foreign(p)

    def work(c):
        with scene.between(reads=[x]):
            scene.sum(c, x)

    for c in consumers:
        in_a_thread(lambda c=c: work(c))


@scenario()
def threads_with_default_streams_of_their_own(scene):
    c = scene.stream()

    def work():
        x = scene.foreign(scene.default_stream(2))
        with scene.between(reads=[x]):
            scene.sum(c, x)

    for _ in range(3):
        in_a_thread(work)


@scenario()
def one_thread_produces_and_another_launches(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    for _ in range(3):
        in_a_thread(lambda: scene.produce(p, x))
        in_a_thread(lambda: scene.sum(c, x, out=out))
    in_a_thread(lambda: scene.produce(p, x))


@scenario()
def one_bound_launch_called_by_many_threads(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    bound = scene.launcher("sum1", c).bind(out, x, N)

    def work():
        with scene.between(reads=[x]):
            bound()

    for _ in range(4):
        in_a_thread(work)


# --- Redundant waits: the analysis must explain why


@scenario(1)
def a_second_reader_without_a_write_between(scene):
    p, c, d = scene.streams(3)
    x = scene.foreign(p)
    with scene.between(reads=[x]):
        scene.sum(c, x)
        scene.sum(d, x)


@scenario(1)
def the_host_waits_before_the_array_is_used_again(scene):
    p, c = scene.streams(2)
    x = scene.foreign(p)
    with scene.between(reads=[x]):
        scene.sum(c, x)
        c.synchronize()


@scenario(1)
def the_default_streams_wait_for_each_other_anyway(scene):
    x = scene.foreign(2)
    with scene.between(reads=[x]):
        scene.sum(1, x)
