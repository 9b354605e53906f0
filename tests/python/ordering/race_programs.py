"""Programs with a race between streams, which must be reported, and programs of unusual order without one.

Most are written from the tables in operations.py and edges.py; those that the tables cannot express follow by hand.
"""

from __future__ import annotations

import ctypes
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from edges import EDGES
from operations import ANY, OPERATIONS
from raw_driver import PoolArray, call, current
from scenarios_by_hand import SCENARIOS
from scene import Foreign, N, Scene, in_threads, unordered

import bascule


@dataclass(frozen=True)
class Program:
    run: Callable[[Scene], object]
    races: bool
    named: tuple[str, ...] = ()  # what the report of its race must name besides the places of both operations
    devices: tuple[int, ...] = (1, 2)  # numbers of devices that it runs on
    lethal: bool = False  # in another order than the issued one, the operations cause a fault that destroys the context


PROGRAMS: dict[str, Program] = {}

Run = Callable[[Scene], object]


def race(*named: str, devices: tuple[int, ...] = (1, 2), lethal: bool = False) -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        PROGRAMS[run.__name__] = Program(run, True, named, devices, lethal)
        return run

    return register


def race_free(*devices: int) -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        PROGRAMS[run.__name__] = Program(run, False, devices=devices or (1, 2))
        return run

    return register


# --- From the tables


def combination(first: str, edge: str, then: str, memory: str = "device") -> Program:
    """Two operations on one array, ordered only by the edge between them."""
    a, b, between = OPERATIONS[first], OPERATIONS[then], EDGES[edge]

    def run(scene: Scene) -> None:
        home = scene.default_stream(1) if b.peer else 1  # the first operation's device, if the second can reach it
        x = scene.array(home, memory=memory)
        between(
            scene,
            lambda stream: a.issue(scene, stream, a.unordered(x)),
            lambda stream: b.issue(scene, stream, b.unordered(x)),
        )

    conflict = (a.writes or b.writes) and not (a.atomic and b.atomic)
    return Program(
        run,
        races=conflict and not between.orders and not a.waits,
        named=(*(f"launch of '{kernel}" for kernel in (a.kernel, b.kernel) if kernel), *between.reported),
        devices=tuple(n for n in between.devices if n == 1 or a.peer or b.peer),
    )


def combinations() -> Iterator[tuple[str, str, str, str]]:
    """Pairs each operation with each one, unordered; and each edge with reads and writes.

    Pairs with "write" and pairs on pinned memory are also yielded with an event between the two.
    """
    for memory in ANY:
        names = [name for name, operation in OPERATIONS.items() if memory in operation.memory]
        for a, b in itertools.product(names, names):
            yield a, "nothing", b, memory
            if "write" in (a, b) or memory == "pinned":
                yield a, "an_event", b, memory
    yield from (
        (a, edge, b, "device") for edge in EDGES for a, b in [("write", "read"), ("read", "write"), ("write", "write")]
    )


COMBINATIONS = {"-".join(names): names for names in combinations()}
PROGRAMS |= {name: combination(*names) for name, names in COMBINATIONS.items()}

for name, scenario in SCENARIOS.items():
    PROGRAMS[name] = Program(scenario.run, races=False, devices=scenario.devices)

# Two parts of an array of 64 integers, each written by one stream, and the number of bytes that they share.
PARTS: dict[str, tuple[Callable, Callable, int]] = {
    "halves": (lambda x: x[:N], lambda x: x[N:], 0),
    "slices_that_overlap": (lambda x: x[:20], lambda x: x[19:], 4),
    "interleaved_elements": (lambda x: x[0::2], lambda x: x[1::2], 0),
    "strided_views_that_share_elements": (lambda x: x[1::2], lambda x: x[0::21], 8),
    "columns": (lambda x: x.reshape(8, 8)[:, 3], lambda x: x.reshape(8, 8)[:, 4], 0),
    "a_row_and_a_column": (lambda x: x.reshape(8, 8)[3], lambda x: x.reshape(8, 8)[:, 4], 4),
    "neighbouring_bytes_of_a_word": (lambda x: x.view("u1")[4:6], lambda x: x.view("u1")[6:7], 0),
    "one_byte_in_common": (lambda x: x[:8], lambda x: x.view("u1")[31:32], 1),
}


def two_parts(one: Callable, other: Callable) -> Run:
    def run(scene: Scene) -> None:
        p, c = scene.streams(2)
        x = unordered(scene.array(p, 2 * N))
        scene.launcher("set_view", p)(one(x), 1)
        scene.launcher("set_view", c)(other(x), 2)

    return run


for name, (one, other, shared) in PARTS.items():
    PROGRAMS[name] = Program(two_parts(one, other), shared > 0, named=(f"both touch {shared} ",))


# --- Arrays that name no stream: (the array on p, another stream q) -> the argument of the launch


class Unordered:
    """A producer that ignores the stream passed to `__dlpack__`: it orders nothing."""

    def __init__(self, array: bascule.DeviceArray) -> None:
        self._array = array

    def __dlpack__(self, *, stream: object = None, **options: object) -> object:
        return self._array.__dlpack__(stream=-1, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


MISLEADING: dict[str, Callable[[bascule.DeviceArray, bascule.Stream], object]] = {
    "an_array_whose_order_is_switched_off": lambda x, q: unordered(x),
    "a_producer_that_names_no_stream": lambda x, q: Foreign(x, None),
    "a_producer_that_names_another_stream": lambda x, q: Foreign(x, q),
}


def launch_with(shown: Callable) -> Run:
    def run(scene: Scene) -> None:
        p, c, q = scene.streams(3)
        x = scene.array(p)
        scene.produce(p, x)
        scene.sum(c, shown(x, q))

    return run


for name, shown in MISLEADING.items():
    PROGRAMS[name] = Program(launch_with(shown), True, named=("set", "sum1"))


@race("set", "bump", devices=(1,))
def a_producer_that_orders_nothing_for_dlpack(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    scene.produce(p, x)
    scene.bump(c, bascule.from_dlpack(Unordered(x), stream=c))


@race("sum_valid", "set", devices=(1,))
def a_mask_that_names_no_stream(scene):
    p, c, q = scene.streams(3)
    bits = scene.array(q, N, "u1")
    x = Foreign(scene.array(p), p, mask=Foreign(bits, None))
    scene.produce(q, bits)
    scene.launcher("sum_valid", c)(x, scene.array(c))


# --- Other users than those that a launch orders


@race("sum1", "set")
def a_producer_that_writes_on_another_stream_afterwards(scene):
    p, c, q = scene.streams(3)
    x = scene.foreign(p)
    scene.produce(p, x)
    scene.sum(c, x)
    scene.produce(q, x)


@race("bump", "read")
def a_reader_that_comes_too_late_to_be_waited_for(scene):
    p, c, q = scene.streams(3)
    x = scene.foreign(p)
    scene.bump(c, x)
    scene.consume(q, x)


@race("sum1", "set")
def a_bound_launch_whose_producer_moved_to_another_stream(scene):
    p, c, q = scene.streams(3)
    x = scene.foreign(p)
    bound = scene.launcher("sum1", c).bind(scene.array(c), x, N)
    bound()
    scene.produce(q, x)
    bound()


@race("sum2", "set")
def one_of_two_producers_is_not_waited_for(scene):
    p, q, c = scene.streams(3)
    x, y = scene.foreign(p), scene.foreign(q)
    scene.produce(p, x)
    scene.produce(q, y)
    scene.sum(c, unordered(x), y)


@race("read", "bump")
def a_replay_that_does_not_wait_for_the_reader_of_the_one_before(scene):
    p, c = scene.streams(2)
    x = scene.array(p)
    graph = scene.graph(c, "bump", unordered(x), N)
    graph.launch(c)
    scene.link(c, p)
    scene.consume(p, x)
    graph.launch(c)


# --- Several streams, events and threads


@race_free()
def readers_that_wait_for_one_event(scene):
    p, *readers, last = scene.streams(9)
    x = scene.array(p)
    with p.device:
        event = bascule.event()
    scene.produce(p, x)
    event.record(p)
    for c in readers:
        event.wait(c)
        scene.consume(c, x)
        scene.link(c, last)
    scene.produce(last, x)


@race_free()
def streams_that_come_and_go_with_the_same_handles(scene):
    c = scene.stream()
    x = scene.array(c)
    for _ in range(5):
        with scene.far:
            p = bascule.stream()
        scene.link(c, p)
        scene.produce(p, x)
        scene.link(p, c)
        del p
        scene.produce(c, x)


@race_free()
def streams_on_memory_of_their_own(scene):
    (p,) = scene.streams(1)
    for _ in range(3):
        for stream in (p, scene.default_stream(1), scene.default_stream(2), 1, 2):
            scene.produce(stream, scene.array(stream))


@race_free()
def threads_on_streams_and_memory_of_their_own(scene):
    def work(stream):
        x = scene.array(stream)
        for _ in range(10):
            scene.produce(stream, x)

    in_threads([lambda s=stream: work(s) for stream in scene.streams(4)])


@race_free()
def launches_from_stream_to_stream_at_random(scene):
    chance = random.Random(7)
    streams = [*scene.streams(5), scene.default_stream(1), scene.default_stream(2)]
    arrays = [scene.array(chance.choice(streams)) for _ in range(6)]
    for _ in range(100):
        out, *sources = chance.sample(arrays, 3)
        scene.sum(chance.choice(streams), *sources, out=out)


@race_free()
def threads_that_launch_on_each_others_arrays(scene):
    streams = scene.streams(4)
    arrays = [scene.foreign(stream) for stream in streams]

    def work(number):
        chance = random.Random(number)
        for _ in range(10):
            scene.sum(streams[number], *chance.sample(arrays, 2))

    in_threads([lambda k=k: work(k) for k in range(4)])


@race_free()
def atomic_sums_on_three_streams(scene):
    streams = scene.streams(3)
    total = scene.array(streams[0], 1)
    total.fill(0)
    streams[0].synchronize()
    for stream in streams:
        scene.launcher("count", stream)(unordered(total))
    for stream in streams:
        stream.synchronize()
    assert total.copy_to_host()[0] == 3 * N


# --- Memory that is allocated and freed


@race_free()
def memory_that_is_freed_and_allocated_again(scene):
    for _ in range(5):
        with scene.far:
            p = bascule.stream()
            x = bascule.device_array(N, "i4", stream=p)
        scene.produce(p, x)
        p.synchronize()
        del x


@race_free()
def memory_of_a_pool_reused_on_one_stream(scene):
    (p,) = scene.streams(1)
    for _ in range(5):
        x = PoolArray(N, p)
        scene.produce(p, x)
        x.free(p)


def use_of_a_pool(scene: Scene, *, allocated: bool, freed: bool) -> None:
    """c uses memory of p's pool, ordered after it was `allocated` and before it is `freed`, if these are true."""
    p, c = scene.streams(2)
    x = PoolArray(N, p)
    if allocated:
        scene.link(p, c)
    scene.produce(c, x)
    if freed:
        scene.link(c, p)
    x.free(p)


PROGRAMS |= {
    "memory_of_a_pool_used_in_order": Program(lambda s: use_of_a_pool(s, allocated=True, freed=True), False),
    "memory_of_a_pool_used_before_it_is_allocated": Program(
        lambda s: use_of_a_pool(s, allocated=False, freed=True), True, ("set",), lethal=True
    ),
    "memory_of_a_pool_freed_while_it_is_used": Program(
        lambda s: use_of_a_pool(s, allocated=True, freed=False), True, ("set",), lethal=True
    ),
}


# --- Two devices


@race_free(2)
def assignments_of_strided_views_from_device_to_device(scene):
    x, y = (scene.array(stream) for stream in scene.streams(2))
    for _ in range(4):
        with scene.between(reads=[x], writes=[y]):
            y[::2] = x[::2]
        x, y = y, x


@race_free(2)
def a_graph_with_a_branch_on_the_other_device(scene):
    p, c = scene.streams(2)
    x, y = scene.array(p), scene.array(c)
    for array in (x, y):  # loads the code on both devices
        scene.bump(array.stream, array)
        array.stream.synchronize()
    with bascule.Graph() as graph:
        s = graph.stream
        scene.launcher("bump", s)(unordered(y), N)
        scene.link(s, p)
        scene.launcher("bump", p)(unordered(x), N)
        scene.launcher("bump", p)(unordered(y), N)
        scene.link(p, s)
        scene.launcher("bump", s)(unordered(x), N)
    scene.kept.append(graph)
    for _ in range(2):
        graph.launch(c)
    scene.link(c, p)
    scene.consume(p, x, y)


@race_free(2)
def a_context_that_another_library_has_made_current(scene):
    p, c = scene.streams(2)
    x = scene.foreign(p)
    with current(scene.far):
        with scene.between(reads=[x]):
            scene.sum(c, x)
        device = ctypes.c_int()
        call("cuCtxGetDevice", ctypes.byref(device))
        assert device.value == 1
