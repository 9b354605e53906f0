"""Programs in which every record and every wait that Bascule issues matters.

Producers are other libraries, which order nothing themselves. They write the arrays before Bascule's operation; right
after it they overwrite what it read and read what it wrote (`Scene.between`). So there is a race if any of the records
and waits is missing. A program runs on one device and on two, unless it says otherwise.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from edges import EDGES
from operations import OPERATIONS
from scene import LEGACY, MEMORY, PER_THREAD, N, P, Scene, Stream

import bascule


@dataclass(frozen=True)
class Scenario:
    run: Callable[[Scene], object]
    devices: tuple[int, ...] = (1, 2)  # numbers of devices that it runs on


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


# Edges without destroyed streams or events, and without queries, which happens_before.py does not model.
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


# --- The kind of array, and the stream that it names

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


# --- Sequences of launches: for each, the stream, the input arrays and the output array

# An array is named after its stream, with dashes if one stream has several.
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
