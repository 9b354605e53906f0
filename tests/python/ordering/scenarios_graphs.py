"""Launches of graphs in which every record and every wait that Bascule issues matters; see scenarios.py."""

from __future__ import annotations

from scenarios import ALL, family, scenario
from scene import N, Scene, kernels

import bascule

__all__ = ["ALL"]  # with those of scenarios.py


def graph_of_a_sum(scene: Scene, out: object, *arrays: object) -> bascule.Graph:
    kernel = kernels()[f"sum{len(arrays)}"].prepare()
    with bascule.Graph() as graph:
        kernel[1, N](out, *arrays, N)
    scene.kept.append(graph)
    return graph


@family([1, 2, 3])
def a_graph_with_as_many_producers(scene, count):
    c = scene.stream()
    producers = scene.streams(count)
    arrays = [scene.foreign(p) for p in producers]
    out = scene.array(c)
    graph = graph_of_a_sum(scene, out, *arrays)
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)
    with scene.touching(reads=arrays, writes=[out]):
        graph.launch(c)
    for p, x in zip(producers, arrays, strict=True):
        scene.produce(p, x)


@scenario
def a_graph_launched_in_a_loop(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    graph = graph_of_a_sum(scene, out, x)
    for _ in range(5):
        scene.produce(p, x)
        with scene.touching(reads=[x], writes=[out]):
            graph.launch(c)
    scene.produce(p, x)


@scenario
def a_graph_launched_on_its_producers_stream_in_between(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(p)
    graph = graph_of_a_sum(scene, out, x)
    for stream in (c, p, c):
        scene.produce(p, x)
        with scene.touching(reads=[x], writes=[out]):
            graph.launch(stream)
    scene.produce(p, x)


@scenario
def a_graph_of_a_fill_and_a_copy(scene):
    p, q, c = scene.streams(3)
    x, y = scene.array(p), scene.array(q)
    with bascule.Graph() as graph:
        x.fill(3)
        y[...] = x
    scene.kept.append(graph)
    scene.produce(p, x)
    scene.produce(q, y)
    with scene.touching(writes=[x, y]):
        graph.launch(c)
    scene.consume(p, x)
    scene.consume(q, y)


@scenario
def a_launch_behind_a_graph(scene):
    p, c = scene.streams(2)
    x, out = scene.foreign(p), scene.array(c)
    graph = graph_of_a_sum(scene, out, x)
    scene.produce(p, x)
    with scene.touching(reads=[x], writes=[out]):
        graph.launch(c)
    scene.produce(p, x)
    scene.sum(c, scene.array(c), x)
    scene.produce(p, x)
