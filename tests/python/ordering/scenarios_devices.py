"""Programs on two devices in which every record and every wait that Bascule issues matters; see scenarios.py."""

from __future__ import annotations

import random

import numpy as np
from scenarios import Scenario, in_a_thread
from scene import N, Scene, kernels, unordered

import bascule

SCENARIOS_ON_TWO_DEVICES: dict[str, Scenario] = {}

first, second = bascule.device(0), bascule.device(1)


def scenario(function: Scenario) -> Scenario:
    SCENARIOS_ON_TWO_DEVICES[function.__name__] = function
    return function


def streams_of_both(scene: Scene) -> tuple[bascule.Stream, bascule.Stream]:
    """The second device's, and the first one's."""
    return scene.stream(1), scene.stream(0)


# --- Launches


@scenario
def a_launch_that_reads_the_other_devices_array(scene):
    p, c = streams_of_both(scene)
    x, out = scene.foreign(p), scene.array(c)
    scene.produce(p, x)
    scene.sum(c, out, x)
    scene.produce(p, x)


@scenario
def a_launch_that_writes_the_other_devices_array(scene):
    p, c = streams_of_both(scene)
    x = scene.foreign(p)
    scene.produce(p, x)
    scene.bump(c, x)
    scene.consume(p, x)


@scenario
def producers_on_both_devices(scene):
    c = scene.stream(0)
    producers = [scene.stream(k % 2) for k in range(5)]
    arrays = [scene.foreign(p) for p in producers]
    out = scene.array(c)
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)
    scene.sum(c, out, *arrays)
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)


@scenario
def the_legacy_default_streams_of_two_devices(scene):
    with second:
        x = scene.array(1)
        y = scene.array(1)
        scene.produce(1, x)
    with first:
        out = scene.array(1)
        scene.sum(1, out, x)
    with second:
        scene.produce(1, x)
        scene.produce(1, y)


@scenario
def a_threads_default_streams_of_two_devices(scene):
    with second:
        x = scene.array(2)
        scene.produce(2, x)
    with first:
        out = scene.array(2)
        scene.sum(2, out, x)
    with second:
        scene.produce(2, x)


@scenario
def ping_pong_between_two_devices(scene):
    p, c = streams_of_both(scene)
    x, y = scene.foreign(p), scene.foreign(c)
    for _ in range(3):
        scene.produce(p, x)
        scene.sum(c, y, x)
        scene.produce(p, x)
        scene.produce(c, y)
        scene.sum(p, x, y)
        scene.produce(c, y)


@scenario
def a_fork_to_streams_of_both_devices(scene):
    p = scene.stream(1)
    x = scene.foreign(p)
    for k in range(4):
        scene.produce(p, x)
        c = scene.stream(k % 2)
        scene.sum(c, scene.array(c), x)
    scene.produce(p, x)


@scenario
def a_join_of_streams_of_both_devices(scene):
    c = scene.stream(0)
    producers = [scene.stream(k % 2) for k in range(4)]
    arrays = [scene.foreign(p) for p in producers]
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)
        scene.bump(c, x)
        scene.produce(p, x)
    scene.sum(c, scene.array(c), *arrays)
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)


@scenario
def a_bound_launch_over_both_devices_in_a_loop(scene):
    p, c = streams_of_both(scene)
    x, out = scene.foreign(p), scene.array(c)
    bound = scene.launcher("sum1", c).bind(out, x, N)
    for _ in range(4):
        scene.produce(p, x)
        with scene.touching(reads=[x], writes=[out]):
            bound()
    scene.produce(p, x)


@scenario
def one_array_passed_twice_from_the_other_device(scene):
    p, c = streams_of_both(scene)
    x, out = scene.foreign(p), scene.array(c)
    scene.produce(p, x)
    scene.sum(c, out, x, x)
    scene.produce(p, x)


# --- Copies


@scenario
def an_assignment_from_the_other_device(scene):
    p, c = streams_of_both(scene)
    x, y = scene.array(p), scene.array(c)
    scene.produce(p, x)
    scene.produce(c, y)
    with scene.touching(reads=[x], writes=[y]):
        y[...] = x
    scene.produce(p, x)
    scene.consume(c, y)


@scenario
def assignments_there_and_back(scene):
    p, c = streams_of_both(scene)
    x, y = scene.array(p), scene.array(c)
    scene.produce(c, y)
    for _ in range(2):
        scene.produce(p, x)
        with scene.touching(reads=[x], writes=[y]):
            y[...] = x
        scene.produce(p, x)
        scene.produce(c, y)
        with scene.touching(reads=[y], writes=[x]):
            x[...] = y
        scene.produce(c, y)
    scene.produce(p, x)


@scenario
def a_copy_to_pinned_memory_of_what_the_other_device_wrote(scene):
    p, c = streams_of_both(scene)
    q = scene.stream(1)
    x = scene.foreign(p)
    out = bascule.pinned_array(N, "i4", stream=c)
    scene.kept.append(out)
    scene.produce(p, x)
    scene.bump(c, x)
    scene.consume(p, x)
    scene.produce(p, x)
    with second, scene.touching(reads=[x], writes=[out]):
        bascule.as_cuda_array(x).copy_to_host(out=np.asarray(out), stream=q)
    scene.produce(p, x)


# --- The user's own events, and threads


@scenario
def an_event_chain_over_both_devices(scene):
    p, c = streams_of_both(scene)
    q = scene.stream(1)
    x = scene.array(p)
    with second:
        there = bascule.event()
    back = bascule.event(timing=False)
    scene.produce(p, x)
    there.record(p)
    c.wait(there)
    back.record(c)
    q.wait(back)
    scene.consume(q, x)


@scenario
def an_event_after_a_peer_launch(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    event = bascule.event()
    scene.bump(c, unordered(x))
    event.record(c)
    event.wait(p)
    scene.consume(p, x)


@scenario
def threads_that_launch_over_both_devices_in_turn(scene):
    p = scene.stream(1)
    x = scene.foreign(p)
    for k in range(4):

        def work(k=k):
            c = scene.stream(k % 2)
            scene.produce(p, x)
            scene.sum(c, scene.array(c), x)

        in_a_thread(work)
    scene.produce(p, x)


# --- Graphs


@scenario
def a_graph_whose_producer_is_on_the_other_device(scene):
    p, c = streams_of_both(scene)
    x = scene.array(p)
    kernels().bump.prepare()
    with bascule.Graph() as graph:
        scene.launcher("bump", None)(x, N)
    scene.kept.append(graph)
    for _ in range(2):
        scene.produce(p, x)
        with scene.touching(reads=[x], writes=[x]):
            graph.launch(c)
        scene.consume(p, x)


# --- Programs that nobody wrote


def random_program(seed: int) -> Scenario:
    def program(scene: Scene) -> None:
        chance = random.Random(seed)
        streams = [scene.stream(k % 2) for k in range(4)]
        homes = [chance.choice(streams) for _ in range(5)]
        arrays = [scene.foreign(home) if chance.random() < 0.5 else scene.array(home) for home in homes]
        for _ in range(4):
            chosen = chance.sample(range(len(arrays)), chance.randint(2, 4))
            for k in chosen:
                scene.produce(homes[k], arrays[k])
            out, *sources = (arrays[k] for k in chosen)
            scene.sum(chance.choice(streams), out, *sources)
            for k in chosen:
                scene.produce(homes[k], arrays[k])

    return program


for _seed in range(4):
    SCENARIOS_ON_TWO_DEVICES[f"random_program_on_two_devices_{_seed}"] = random_program(_seed)
