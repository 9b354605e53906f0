"""Graphs in graphs: a graph that is launched while another graph is captured becomes one of its operations."""

from __future__ import annotations

import gc
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
from conftest import ForeignArray

import bascule

from .conftest import captured_by_others, comes_true, device_copy, order


def test_a_child_runs_in_its_place_among_the_operations_of_its_parent(kernels, rng):
    host = rng.random(64, dtype="f4")
    x = device_copy(host)
    with bascule.Graph() as child:
        kernels.shift[1, 64](x)
        kernels.scale[1, 64](x, 3.0, 64)
    with bascule.Graph() as parent:
        kernels.scale[1, 64](x, 2.0, 64)
        child.launch()
        kernels.shift[1, 64](x)
        child()
    bascule.synchronize()
    np.testing.assert_array_equal(x.copy_to_host(), host)  # nothing has run
    assert len(parent) == 4
    expected = host
    one, two, three = np.float32([1, 2, 3])
    for _ in range(2):
        parent.launch()
        expected = (((expected * two + one) * three + one) + one) * three
    np.testing.assert_array_equal(x.copy_to_host(), expected)
    child.launch()  # launched alone, it is a graph as before
    np.testing.assert_array_equal(x.copy_to_host(), (expected + one) * three)


def test_children_on_streams_that_join_the_capture_are_ordered_as_those_are(kernels, rng):
    host = rng.random(32, dtype="f4")
    x, y = device_copy(host), device_copy(host)
    quiet = [bascule.as_cuda_array(each, sync=False) for each in (x, y)]
    children = []
    for array, factor in zip(quiet, (2.0, 4.0), strict=True):
        with bascule.Graph() as child:
            kernels.scale[1, 32](array, factor, 32)
        children.append(child)
    side = bascule.stream()
    forked, joined = bascule.event(), bascule.event()
    with bascule.Graph() as parent:
        forked.record()
        forked.wait(side)
        children[0].launch()
        children[1].launch(side)
        joined.record(side)
        joined.wait()
        kernels.add[1, 32](quiet[0], quiet[1], quiet[0])
    emulated = bascule.current_device().emulated
    with bascule.emulated.checks(races=True) if emulated else nullcontext():
        parent.launch()
    bascule.synchronize()
    np.testing.assert_array_equal(x.copy_to_host(), host * np.float32(2) + host * np.float32(4))


def test_the_streams_that_a_child_names_are_ordered_around_the_launches_of_the_parent(kernels):
    producers = [bascule.stream() for _ in range(2)]
    arrays = [ForeignArray(device_copy(np.ones(32, "f4"), stream=each)) for each in producers]
    with bascule.Graph() as child:
        kernels.shift[1, 32](arrays[0])
    with bascule.Graph() as parent:
        kernels.shift[1, 32](arrays[1])
        child.launch()
    stream = bascule.stream()
    trace = order(lambda: parent.launch(stream))
    at = trace.index(("graph launch", stream.handle, 0))
    assert {each for kind, each, _ in trace[:at] if kind == "record"} == {p.handle for p in producers}
    assert {each for kind, each, _ in trace[at + 1 :] if kind == "wait"} == {p.handle for p in producers}
    kernels.scale[1, 32, producers[0]](arrays[0], 10.0, 32)
    parent.launch(stream)
    kernels.scale[1, 32, producers[0]](arrays[0], 10.0, 32)
    producers[0].synchronize()
    assert arrays[0].array.copy_to_host()[0] == ((1 + 1) * 10 + 1) * 10


def test_what_a_child_was_when_it_was_added_stays(kernels):
    x = device_copy(np.zeros(8, "f4"))
    with bascule.Graph() as child:
        kernels.shift[1, 8](x)
    with bascule.Graph() as parent:
        child.launch()
    with child.update():
        kernels.shift[1, 8](x)
        kernels.shift[1, 8](x)
    parent.launch()
    assert x.copy_to_host()[0] == 1
    with parent.update():
        child.launch()
    parent.launch()
    assert x.copy_to_host()[0] == 3


def test_a_parent_keeps_what_its_children_use_and_gives_it_up(kernels):
    class Kept:
        pass

    def parent_of_children() -> tuple[bascule.Graph, weakref.ref[Kept], list[int]]:
        array = ForeignArray(device_copy(np.zeros(8, "f4")), stream=None)
        array.kept = Kept()
        calls: list[int] = []
        with bascule.Graph() as grandchild:
            kernels.shift[1, 8](array)
            grandchild.stream.launch_host_function(calls.append, 1)
        with bascule.Graph() as child:
            grandchild.launch()
        with bascule.Graph() as parent:
            child.launch()
        return parent, weakref.ref(array.kept), calls

    parent, kept, calls = parent_of_children()
    gc.collect()
    assert kept() is not None
    parent.launch()
    parent.launch()
    bascule.synchronize()
    assert calls == [1, 1]
    del parent
    bascule.synchronize()
    gc.collect()
    assert kept() is None


def test_a_parent_that_a_function_of_its_child_refers_to_is_collected():
    class Holder:
        graph: bascule.Graph | None = None

        def __call__(self) -> None: ...

    def cycle() -> weakref.ref[Holder]:
        holder = Holder()
        with bascule.Graph() as child:
            child.stream.launch_host_function(holder)
        with bascule.Graph() as parent:
            child.launch()
        holder.graph = parent
        return weakref.ref(holder)

    holder = cycle()
    gc.collect()
    bascule.synchronize()
    gc.collect()
    assert holder() is None


def test_a_graph_becomes_a_child_of_another_librarys_graph(kernels, rng):
    host = rng.random(16, dtype="f4")
    stream = bascule.stream()
    x = ForeignArray(device_copy(host, stream=stream))
    with bascule.Graph() as child:
        kernels.scale[1, 16](bascule.as_cuda_array(x, sync=False), 2.0, 16)
    kept = weakref.ref(x)
    with captured_by_others(stream) as capture:
        kernels.shift[1, 16, stream](x)
        child.launch(stream)
        del child
        assert capture.nodes == 2
        assert capture.end() == 0
        gc.collect()
        capture.launch()
    np.testing.assert_array_equal(x.array.copy_to_host(), (host + np.float32(1)) * np.float32(2))
    del x
    bascule.synchronize()
    gc.collect()
    bascule.to_device(host)  # a call of Bascule releases the graph's owners
    assert comes_true(lambda: kept() is None, lambda: bascule.to_device(host))


def test_a_child_that_names_a_stream_outside_another_librarys_capture_is_refused(kernels):
    captured, outside = bascule.stream(), bascule.stream()
    x = ForeignArray(device_copy(np.ones(16, "f4"), stream=outside))
    with bascule.Graph() as child:
        kernels.shift[1, 16](x)
    with captured_by_others(captured) as capture:
        with pytest.raises(ValueError, match="stream"):
            child.launch(captured)
        assert capture.nodes == 0
        assert capture.intact


def test_a_graph_that_is_not_captured_yet_is_refused_and_the_parents_capture_goes_on(kernels):
    x = device_copy(np.zeros(8, "f4"))
    empty = bascule.Graph()
    with bascule.Graph() as parent:
        with pytest.raises(ValueError, match="capture something first"):
            empty.launch()
        with pytest.raises(ValueError, match="being captured"):
            parent.launch()
        kernels.shift[1, 8](x)
    parent.launch()
    assert x.copy_to_host()[0] == 1
