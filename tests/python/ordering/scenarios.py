"""Programs in which every record and every wait that Bascule issues matters.

Producers are other libraries, which order nothing themselves. They write the arrays before Bascule's operation; right
after it they overwrite what it read and read what it wrote (`Scene.between`). So without any one of the records and
waits there is a race. A program runs on one device and on two, unless it says otherwise.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from edges import EDGES
from operations import OPERATIONS
from scene import LEGACY, MEMORY, PER_THREAD, Foreign, N, P, Scene, Stream, in_a_thread

import bascule


@dataclass(frozen=True)
class Scenario:
    run: Callable[[Scene], object]
    devices: tuple[int, ...] = (1, 2)  # how many it runs on


SCENARIOS: dict[str, Scenario] = {}


def scenario(*devices: int) -> Callable[[Callable], Callable]:
    def register(function: Callable[[Scene], None]) -> Callable[[Scene], None]:
        SCENARIOS[function.__name__] = Scenario(function, devices or (1, 2))
        return function

    return register


def family(values: Iterable[object], *devices: int) -> Callable[[Callable], Callable]:
    """One scenario for each value, or tuple of values, which the function takes after the scene."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        for value in values:
            more = value if isinstance(value, tuple) else (value,)
            name = "_".join([function.__name__, *map(str, more)])
            SCENARIOS[name] = Scenario(lambda scene, more=more: function(scene, *more), devices or (1, 2))
        return function

    return register


# --- From the tables of operations and edges


def operations(*, peer: bool) -> list[str]:
    return [name for name, row in OPERATIONS.items() if row.ordered and row.peer == peer]


@family(operations(peer=False), 1)
@family(operations(peer=True))
def operation(scene, name):
    row, (p, c) = OPERATIONS[name], scene.streams(2)
    x = scene.array(p, memory=row.memory[0])
    with scene.between(writes=[x]) if row.writes else scene.between(reads=[x]):
        row.issue(scene, c, x)


# Those whose streams and events stay: happens_before.py does not know handles that are used again, nor queries.
EDGES_OF_EVENTS = [
    "an_event",
    "an_event_recorded_elsewhere_after_the_wait",
    "a_chain_of_events",
    "one_event_for_a_whole_chain",
    "a_diamond",
    "the_host_waits_for_an_event",
    "the_host_waits_for_a_stream_that_waited",
    "one_thread_records_and_another_waits",
]


@family(EDGES_OF_EVENTS)
def edge(scene, name):
    x = scene.array(scene.named(P))
    EDGES[name](scene, lambda stream: scene.produce(stream, x), lambda stream: scene.consume(stream, x))


# --- What the array is, and which stream it names

ARRAYS: dict[str, Callable[[Scene], object]] = {
    "of_another_library": lambda s: s.foreign(s.named(P)),
    "of_another_library_imported": lambda s: bascule.as_cuda_array(s.foreign(s.named(P))),
    "of_the_legacy_default_stream": lambda s: s.foreign(s.named(LEGACY)),
    "of_a_threads_default_stream": lambda s: s.foreign(s.named(PER_THREAD)),
    **{f"of_{memory}_memory": lambda s, memory=memory: s.array(s.named(P), memory=memory) for memory in MEMORY},
}


@family(itertools.product(["reading", "writing"], ARRAYS))
def launch(scene, access, kind):
    x, c = ARRAYS[kind](scene), scene.stream()
    with scene.between(writes=[x]) if access == "writing" else scene.between(reads=[x]):
        scene.bump(c, x) if access == "writing" else scene.sum(c, x)


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


# --- Sequences of launches: each on a stream, the arrays that it adds, and the array that it writes

# An array is called as the stream that it names, with dashes where one stream has several.
Sequence = list[tuple[Stream | str | None, list[str], str]]

SEQUENCES: dict[str, Sequence] = {
    "one_producer": [("c", ["p"], "c")],
    "three_producers": [("c", ["p", "d", "q"], "c")],
    "eight_producers": [("c", ["p", "d", "q", "p1", "p2", "d1", "d2", "d3"], "c")],
    "four_arrays_of_one_producer": [("c", ["p", "p'", "p''", "p'''"], "c")],
    "one_array_twice": [("c", ["p", "p"], "c")],
    "an_array_of_the_launch_stream": [("c", ["p", "c"], "c'")],
    "an_array_that_is_updated": [("c", [], "p")],
    "a_result_that_its_producer_reads": [("c", ["p"], "q")],
    "no_stream_given": [(None, ["p"], "q")],
    "the_legacy_default_stream_given": [(1, ["p", LEGACY], "c")],
    "a_threads_default_stream_given": [(2, ["p", PER_THREAD], "c")],
    "the_legacy_default_stream_produces": [("c", ["p", LEGACY], "c")],
    "a_threads_default_stream_produces": [("c", ["p", PER_THREAD], "c")],
    "a_chain": [("d", ["p"], "d"), ("q", ["d"], "q"), ("c", ["q"], "c")],
    "a_fork": [("d", ["p"], "d"), ("q", ["p"], "q"), ("c", ["p"], "c")],
    "a_join": [("c", [], "p"), ("c", [], "q"), ("c", [], "d"), ("c", ["p", "q", "d"], "c")],
    "a_tree": [("c", ["p", "d"], "c"), ("q", ["p1", "d1"], "q"), ("p", ["c", "q"], "p2")],
    "ping_pong": [("d", ["p"], "d"), ("p", ["d"], "p")],
}


def random_sequence(seed: int) -> Sequence:
    chance = random.Random(seed)
    arrays = ["p", "q", "c", "d", "p'", "d'", (LEGACY, PER_THREAD)[seed % 2]]
    chosen = [chance.sample(arrays, chance.randint(2, 4)) for _ in range(3)]
    return [(chance.choice("pqcd"), sources, out) for out, *sources in chosen]


WAYS: dict[str, Callable[..., Callable[[], object]]] = {
    "launched": lambda scene, stream, kernel, *arguments: partial(scene.launcher(kernel, stream), *arguments),
    "bound": lambda scene, stream, kernel, *arguments: scene.launcher(kernel, stream).bind(*arguments),
    "captured": lambda scene, stream, kernel, *arguments: partial(
        scene.graph(stream or 1, kernel, *arguments).launch, stream
    ),
}


@family(itertools.product(WAYS, SEQUENCES))
def twice(scene, way, name):
    run_twice(scene, way, SEQUENCES[name])


@family(range(8))
def random_program(scene, seed):
    run_twice(scene, [*WAYS][seed % len(WAYS)], random_sequence(seed))


def run_twice(scene: Scene, way: str, sequence: Sequence) -> None:
    makers = itertools.cycle([scene.foreign, scene.array])
    arrays, steps = {}, []
    for stream, reads, written in sequence:
        for name in (*reads, written):
            if name not in arrays:
                arrays[name] = next(makers)(scene.named(name.rstrip("'")))
        sources, out = [arrays[name] for name in reads], arrays[written]
        kernel = f"sum{len(sources)}" if sources else "bump"
        steps.append((WAYS[way](scene, scene.named(stream), kernel, out, *sources, N), sources, out))
    for launch, sources, out in steps * 2:
        with scene.between(reads=dict.fromkeys(sources), writes=[out]):
            launch()


# --- What a sequence cannot say


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


# --- Where something makes waits redundant: the analysis has to say what


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
