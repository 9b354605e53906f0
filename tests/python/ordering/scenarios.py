"""Programs in which every record and every wait that Bascule issues matters.

Producers are other libraries: they order nothing themselves, write before Bascule's operation what it reads, and
afterwards at once overwrite what it read and read what it wrote. So whatever of the waiting is missing is a race.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import numpy as np
from scene import Foreign, N, Scene, handle_of, kernels, unordered

import bascule

Scenario = Callable[[Scene], None]
ALL: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    ALL[function.__name__] = function
    return function


def family(values: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """One scenario for each value, which the function takes behind the scene."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        for value in values:  # type: ignore[attr-defined]
            ALL[f"{function.__name__}_{value}"] = lambda scene, value=value: function(scene, value)
        return function

    return register


# --- One launch


@family(range(1, 9))
def const_arrays_of_as_many_producers(scene, count):
    c = scene.stream()
    producers = scene.streams(count)
    arrays = [scene.foreign(p) for p in producers]
    out = scene.array(c)
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)
    scene.sum(c, out, *arrays)
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)


@family(range(1, 5))
def arrays_of_ours_bound_to_as_many_streams(scene, count):
    c = scene.stream()
    producers = scene.streams(count)
    arrays = [scene.array(p) for p in producers]
    out = scene.array(c)
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)
    scene.sum(c, out, *arrays)
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)


@scenario
def a_written_array(scene):
    p, c = scene.streams(2)
    x = scene.foreign(p)
    scene.produce(p, x)
    scene.bump(c, x)
    scene.consume(p, x)


@scenario
def two_written_arrays(scene):
    p, q, c = scene.streams(3)
    x, y = scene.foreign(p), scene.foreign(q)
    scene.produce(p, x)
    scene.produce(q, y)
    with scene.touching(reads=[x, y], writes=[x, y]):
        kernels().swap_two[1, N, c](x, y, N)
    scene.consume(p, x)
    scene.consume(q, y)


@scenario
def a_result_that_only_its_producer_reads(scene):
    p, q, c = scene.streams(3)
    x, out = scene.foreign(p), scene.foreign(q)
    scene.produce(p, x)
    scene.produce(q, out)
    scene.sum(c, out, x)
    scene.produce(p, x)
    scene.consume(q, out)


@family([2, 4, 8])
def arrays_that_share_one_producer(scene, count):
    p, c = scene.streams(2)
    arrays = [scene.foreign(p) for _ in range(count)]
    out = scene.array(c)
    scene.produce(p, *arrays)
    scene.sum(c, out, *arrays)
    scene.produce(p, *arrays)


@scenario
def one_array_is_on_the_launch_stream(scene):
    p, c = scene.streams(2)
    x, y, out = scene.foreign(p), scene.foreign(c), scene.foreign(c)
    scene.produce(p, x)
    scene.produce(c, y)
    scene.sum(c, out, x, y)
    scene.produce(p, x)
    scene.produce(c, y)


@scenario
def without_a_stream_the_default_stream_is_taken(scene):
    p, q = scene.streams(2)
    x, out = scene.foreign(p), scene.foreign(q)
    scene.produce(p, x)
    scene.produce(q, out)
    scene.sum(None, out, x)
    scene.produce(p, x)
    scene.consume(q, out)


@scenario
def one_array_passed_twice(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    scene.produce(p, x)
    scene.sum(c, out, x, x)
    scene.produce(p, x)


@scenario
def halves_of_one_allocation_have_producers_of_their_own(scene):
    p, q, c = scene.streams(3)
    whole = scene.array(c, 2 * N)
    low = Foreign(whole[:N], handle_of(p))
    high = Foreign(whole[N:], handle_of(q))
    out = scene.array(c)
    scene.produce(p, low)
    scene.produce(q, high)
    scene.sum(c, out, low, high)
    scene.produce(q, high)
    scene.produce(p, low)


@scenario
def strided_views_by_array_view(scene):
    p, q, c = scene.streams(3)
    x, y = scene.array(p, 2 * N), scene.array(q, 2 * N)
    scene.produce(p, x[:N], x[N:])
    scene.produce(q, y[:N], y[N:])
    with scene.touching(reads=[x[::2]], writes=[y[1::2]]):
        kernels().copy_view[1, N, c](y[1::2], x[::2])
    scene.produce(p, x[:N], x[N:])
    scene.consume(q, y[:N], y[N:])


@scenario
def a_template_and_its_instance(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    scene.produce(p, x)
    with scene.touching(reads=[x], writes=[out]):
        kernels().shift[1, N, c](out, x, N)
    scene.produce(p, x)


@scenario
def as_many_threads_as_elements(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    scene.produce(p, x)
    with scene.touching(reads=[x], writes=[out]):
        kernels().sum1.forall(N, stream=c)(out, x, N)
    scene.produce(p, x)


@scenario
def launch_by_name(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    scene.produce(p, x)
    with scene.touching(reads=[x], writes=[out]):
        kernels().sum1.launch(1, N, (out, x, N), stream=c)
    scene.produce(p, x)


@scenario
def an_atomic_sum(scene):
    p, q, c = scene.streams(3)
    x, total = scene.foreign(p), scene.foreign(q, 1)
    scene.produce(p, x)
    scene.produce(q, total)
    with scene.touching(reads=[x, total], writes=[total]):
        kernels().accumulate[1, N, c](total, x, N)
    scene.produce(p, x)
    scene.consume(q, total)


@scenario
def an_array_and_its_mask_come_from_two_streams(scene):
    p, q, c = scene.streams(3)
    x, out = scene.foreign(p), scene.array(c)
    bits = scene.array(q, N, "u1")
    mask = Foreign(bits, handle_of(q))
    masked = Foreign(x.array, handle_of(p), mask=mask)
    flags = [bits.view("i4")]
    scene.produce(p, x)
    scene.produce(q, *flags)
    with scene.touching(reads=[x, bits], writes=[out]):
        kernels().sum_valid[1, N, c](masked, out)
    scene.produce(p, x)
    scene.produce(q, *flags)


@family(["ptr", "cuda_stream", "handle"])
def the_launch_stream_is_another_librarys(scene, attribute):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    foreign = type("Stream", (), {attribute: c.handle})()
    scene.produce(p, x)
    with scene.touching(reads=[x], writes=[out]):
        kernels().sum1[1, N, foreign](out, x, N)
    scene.produce(p, x)


@family(["pinned", "managed"])
def memory_of_this_kind(scene, kind):
    p, c = scene.streams(2)
    make = {"pinned": bascule.pinned_array, "managed": bascule.managed_array}[kind]
    x = make(N, "i4", stream=p)
    out = scene.array(c)
    scene.produce(p, x)
    scene.sum(c, out, x)
    scene.produce(p, x)
    scene.kept.append(x)


# --- Default streams


@scenario
def the_producer_is_the_legacy_default_stream(scene):
    c = scene.stream()
    x, out = scene.foreign(1), scene.array(c)
    scene.produce(1, x)
    scene.sum(c, out, x)
    scene.produce(1, x)


@scenario
def the_producer_is_the_threads_default_stream(scene):
    c = scene.stream()
    x, out = scene.foreign(2), scene.array(c)
    scene.produce(2, x)
    scene.sum(c, out, x)
    scene.produce(2, x)


@family([1, 2])
def the_launch_goes_to_the_default_stream(scene, handle):
    p = scene.stream()
    x, out = scene.foreign(p), scene.array(handle)
    scene.produce(p, x)
    scene.sum(handle, out, x)
    scene.produce(p, x)


@scenario
def both_kinds_of_default_stream_produce(scene):
    p, c = scene.streams(2)
    x, y, out = scene.foreign(p), scene.foreign(2), scene.array(c)
    scene.produce(p, x)
    scene.produce(2, y)
    scene.sum(c, out, x, y)
    scene.produce(p, x)
    scene.produce(2, y)


# --- Several launches


@family([1, 2, 3])
def a_loop_of_ten_with_as_many_producers(scene, count):
    c = scene.stream()
    producers = scene.streams(count)
    arrays = [scene.foreign(p) for p in producers]
    out = scene.array(c)
    for _ in range(10):
        for p, x in zip(producers, arrays, strict=True):
            scene.produce(p, x)
        scene.sum(c, out, *arrays)
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)


@family([1, 2, 4])
def a_bound_launch_with_as_many_producers_in_a_loop(scene, count):
    c = scene.stream()
    producers = scene.streams(count)
    arrays = [scene.foreign(p) for p in producers]
    out = scene.array(c)
    bound = kernels()[f"sum{count}"][1, N, c].bind(out, *arrays, N)
    for _ in range(5):
        for p, x in zip(producers, arrays, strict=True):
            scene.produce(p, x)
        with scene.touching(reads=arrays, writes=[out]):
            bound()
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)


@scenario
def a_bound_launch_that_is_bound_again(scene):
    p, q, c = scene.streams(3)
    x, y, out = scene.foreign(p), scene.foreign(q), scene.array(c)
    bound = kernels().sum1[1, N, c].bind(out, x, N)
    scene.produce(p, x)
    with scene.touching(reads=[x], writes=[out]):
        bound()
    scene.produce(p, x)
    bound.rebind(out, y, N)
    scene.produce(q, y)
    with scene.touching(reads=[y], writes=[out]):
        bound()
    scene.produce(q, y)


@scenario
def a_chain_over_four_streams(scene):
    streams = scene.streams(4)
    arrays = [scene.foreign(s) for s in streams]
    for k in range(1, 4):
        scene.produce(streams[k - 1], arrays[k - 1])
        scene.sum(streams[k], arrays[k], arrays[k - 1])
        scene.produce(streams[k - 1], arrays[k - 1])


@scenario
def a_fork_to_four_streams(scene):
    p, *consumers = scene.streams(5)
    x = scene.foreign(p)
    for c in consumers:
        scene.produce(p, x)
        scene.sum(c, scene.array(c), x)
    scene.produce(p, x)


@scenario
def a_join_of_four_streams(scene):
    c, *producers = scene.streams(5)
    arrays = [scene.foreign(p) for p in producers]
    out = scene.array(c)
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)
        scene.bump(c, x)
        scene.produce(p, x)
    scene.sum(c, out, *arrays)
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)


@scenario
def a_tree_of_sums(scene):
    leaves = scene.streams(4)
    nodes = scene.streams(2)
    root = scene.stream()
    arrays = [scene.foreign(s) for s in leaves]
    sums = [scene.foreign(s) for s in nodes]
    for s, x in zip(leaves, arrays, strict=True):
        scene.produce(s, x)
    for k, s in enumerate(nodes):
        scene.sum(s, sums[k], arrays[2 * k], arrays[2 * k + 1])
    for s, x in zip(leaves, arrays, strict=True):
        scene.produce(s, x)
    scene.sum(root, scene.array(root), *sums)
    for s, x in zip(nodes, sums, strict=True):
        scene.produce(s, x)


@scenario
def ping_pong_between_two_streams(scene):
    p, q = scene.streams(2)
    x, y = scene.foreign(p), scene.foreign(q)
    for _ in range(4):
        scene.produce(p, x)
        scene.sum(q, y, x)
        scene.produce(p, x)
        scene.produce(q, y)
        scene.sum(p, x, y)
        scene.produce(q, y)


@scenario
def double_buffering(scene):
    p, c = scene.streams(2)
    front, back = scene.foreign(p), scene.foreign(p)
    out = scene.array(c)
    for _ in range(3):
        scene.produce(p, front)
        scene.sum(c, out, front)
        front, back = back, front
    scene.produce(p, front, back)


@scenario
def the_producer_of_one_launch_is_the_stream_of_the_next(scene):
    p, q = scene.streams(2)
    x, y = scene.foreign(p), scene.foreign(q)
    scene.produce(p, x)
    scene.bump(q, x)
    scene.produce(p, x)
    scene.produce(q, y)
    scene.bump(p, y)
    scene.produce(q, y)


# --- Copies, fills, conversions, assignments


@scenario
def a_copy_into_pinned_memory(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    out = bascule.pinned_array(N, "i4", stream=c)
    scene.kept.append(out)
    scene.produce(p, x)
    with scene.touching(reads=[x], writes=[out]):
        x.copy_to_host(out=out, stream=c)
    scene.produce(p, x)


@scenario
def a_copy_from_the_host(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    values = np.arange(N, dtype="i4")
    scene.produce(p, x)
    with scene.touching(writes=[x]):
        x.copy_from_host(values, stream=c)
    scene.consume(p, x)


@scenario
def a_copy_from_pinned_memory(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    values = bascule.pinned_array(N, "i4", stream=c)
    scene.kept.append(values)
    scene.produce(p, x)
    with scene.touching(reads=[values], writes=[x]):
        x.copy_from_host(np.asarray(values), stream=c)
    scene.consume(p, x)


@scenario
def a_fill(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    scene.produce(p, x)
    with scene.touching(writes=[x]):
        x.fill(5, stream=c)
    scene.consume(p, x)


@scenario
def a_fill_of_every_second_element(scene):
    p, c = scene.streams(2)
    x = scene.array(p, 2 * N)
    scene.produce(p, x[:N], x[N:])
    with scene.touching(writes=[x[::2]]):
        x[::2].fill(5, stream=c)
    scene.consume(p, x[:N], x[N:])


@scenario
def a_copy_on_the_device(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    scene.produce(p, x)
    with scene.touching(reads=[x]):
        scene.kept.append(x.copy(stream=c))
    scene.produce(p, x)


@scenario
def a_conversion(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    scene.produce(p, x)
    with scene.touching(reads=[x]):
        scene.kept.append(x.astype("f8", stream=c))
    scene.produce(p, x)


@scenario
def an_assignment_of_an_array(scene):
    p, q = scene.streams(2)
    x, y = scene.array(p), scene.array(q)
    scene.produce(p, x)
    with scene.touching(reads=[x], writes=[y]):
        y[...] = x
    scene.produce(p, x)


@scenario
def an_assignment_to_every_second_element(scene):
    p, q = scene.streams(2)
    x, y = scene.array(p), scene.array(q, 2 * N)
    scene.produce(p, x)
    with scene.touching(reads=[x], writes=[y[::2]]):
        y[::2] = x
    scene.produce(p, x)


@scenario
def an_assignment_of_another_librarys_array(scene):
    p, q = scene.streams(2)
    x, y = scene.foreign(p), scene.array(q)
    scene.produce(p, x)
    with scene.touching(reads=[x], writes=[y]):
        y[...] = x
    scene.produce(p, x)


@scenario
def copies_and_a_launch(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    out = bascule.pinned_array(N, "i4", stream=c)
    scene.kept.append(out)
    for _ in range(3):
        with scene.touching(writes=[x]):
            x.copy_from_host(np.arange(N, dtype="i4"))
        scene.bump(c, x)
        scene.produce(p, x)
        with scene.touching(reads=[x], writes=[out]):
            x.copy_to_host(out=out, stream=c)
    scene.produce(p, x)


# --- Exchange


@scenario
def an_imported_array_is_launched(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    ours = bascule.as_cuda_array(x)
    scene.produce(p, x)
    scene.sum(c, out, ours)
    scene.produce(p, x)


@scenario
def a_view_of_an_imported_array_is_filled(scene):
    p, c = scene.streams(2)
    x = scene.foreign(p)
    ours = bascule.as_cuda_array(x)[: N // 2]
    scene.produce(p, x)
    with scene.touching(writes=[ours]):
        ours.fill(0, stream=c)
    scene.consume(p, x)


@scenario
def a_consumer_by_dlpack_reads_what_was_enqueued(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    scene.produce(p, x)
    x.__dlpack__(stream=c.handle)
    scene.consume(c, x)


@scenario
def an_array_taken_by_dlpack(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    scene.produce(p, x)
    ours = bascule.from_dlpack(x, stream=c)
    scene.kept.append(ours)
    scene.bump(c, ours)


# --- The user's own events


@scenario
def an_event_after_a_launch(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    event = bascule.event()
    scene.bump(c, unordered(x))
    event.record(c)
    event.wait(p)
    scene.consume(p, x)


@scenario
def an_event_chain_over_three_streams(scene):
    p, q, c = scene.streams(3)
    x = scene.array(p)
    first, second = bascule.event(), bascule.event(timing=False)
    scene.produce(p, x)
    first.record(p)
    q.wait(first)
    second.record(q)
    c.wait(second)
    scene.consume(c, x)


@scenario
def one_event_recorded_again_and_again(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    event = bascule.event(timing=False)
    for _ in range(5):
        scene.produce(p, x)
        event.record(p)
        c.wait(event)
        scene.consume(c, x)
        event.record(c)
        p.wait(event)
    scene.produce(p, x)


@scenario
def events_beside_a_launch(scene):
    p, q, c = scene.streams(3)
    x, out = scene.foreign(p), scene.foreign(c)
    event = bascule.event()
    scene.produce(p, x)
    scene.sum(c, out, x)
    event.record(c)
    q.wait(event)
    scene.consume(q, out)
    scene.produce(p, x)


# --- Threads


def in_a_thread(work: Callable[[], None]) -> None:
    """One thread at a time, so that operations have the same number in every run."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


@family([2, 4])
def as_many_threads_that_launch_in_turn(scene, count):
    p = scene.stream()
    x = scene.foreign(p)
    for _ in range(count):

        def work():
            c = scene.stream()
            scene.produce(p, x)
            scene.sum(c, scene.array(c), x)

        in_a_thread(work)
    scene.produce(p, x)


@scenario
def threads_with_default_streams_of_their_own(scene):
    c = scene.stream()
    out = scene.array(c)

    def work():
        x = scene.foreign(2)
        scene.produce(2, x)
        scene.sum(c, out, x)
        scene.produce(2, x)

    for _ in range(3):
        in_a_thread(work)


@scenario
def one_thread_produces_and_another_launches(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    for _ in range(3):
        in_a_thread(lambda: scene.produce(p, x))
        in_a_thread(lambda: scene.sum(c, out, x))
    in_a_thread(lambda: scene.produce(p, x))


@scenario
def one_bound_launch_called_by_many_threads(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    bound = kernels().sum1[1, N, c].bind(out, x, N)

    def work():
        scene.produce(p, x)
        with scene.touching(reads=[x], writes=[out]):
            bound()

    for _ in range(4):
        in_a_thread(work)
    scene.produce(p, x)


# --- Where something makes waits redundant: the analysis has to say what


@scenario
def a_second_reader_without_a_write_between(scene):
    p, c, d = scene.streams(3)
    x = scene.foreign(p)
    scene.produce(p, x)
    scene.sum(c, scene.array(c), x)
    scene.sum(d, scene.array(d), x)
    scene.produce(p, x)


@scenario
def the_host_waits_before_the_array_is_used_again(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    scene.produce(p, x)
    scene.sum(c, out, x)
    c.synchronize()
    scene.produce(p, x)


@scenario
def the_default_streams_wait_for_each_other_anyway(scene):
    x, out = scene.foreign(2), scene.array(1)
    scene.produce(2, x)
    scene.sum(1, out, x)
    scene.produce(2, x)


# --- Programs that nobody wrote


@family(range(12))
def random_program(scene, seed):
    chance = random.Random(seed)
    streams = [*scene.streams(4), 1 + seed % 2]
    homes = [chance.choice(streams) for _ in range(5)]
    arrays = [scene.foreign(home) if chance.random() < 0.5 else scene.array(home) for home in homes]
    for _ in range(5):
        chosen = chance.sample(range(len(arrays)), chance.randint(2, 4))
        for k in chosen:
            scene.produce(homes[k], arrays[k])
        out, *sources = (arrays[k] for k in chosen)
        scene.sum(chance.choice(streams[:4]), out, *sources)
        for k in chosen:
            scene.produce(homes[k], arrays[k])
