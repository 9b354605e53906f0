"""Host functions among a stream's work, and as nodes of a graph."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import bascule

ADD = "__global__ void add(int* x) { *x += 1; }"


@pytest.fixture
def add() -> bascule.Kernel:
    return bascule.compile(ADD).add.prepare()


def test_a_function_is_called_between_the_kernels_around_it(add: bascule.Kernel) -> None:
    stream = bascule.stream()
    pinned = bascule.pinned_array(1, "i4", stream=stream)
    pinned[...] = 0
    stream.synchronize()
    seen: list[int] = []
    view = np.asarray(pinned)
    with stream:
        add[1, 1](pinned)
        stream.launch_host_function(lambda: seen.append(int(view[0])))
        add[1, 1](pinned)
        stream.launch_host_function(lambda *given: seen.extend(given), 7, 8)
        stream.synchronize()
    assert seen == [1, 7, 8]
    assert view[0] == 2


def test_each_launch_of_a_graph_calls_its_functions(add: bascule.Kernel) -> None:
    x = bascule.zeros(1, "i4")
    bascule.synchronize()
    calls: list[str] = []
    with bascule.Graph() as graph:
        add[1, 1, graph.stream](x)
        graph.stream.launch_host_function(calls.append, "called")
        add[1, 1, graph.stream](x)
    assert calls == []
    assert len(graph) == 3
    for times in (1, 2, 3):
        graph.launch()
        bascule.synchronize()
        assert calls == ["called"] * times
        assert x.copy_to_host()[0] == 2 * times


def test_a_graph_keeps_its_functions_and_gives_them_up() -> None:
    class Function:
        calls = 0

        def __call__(self) -> None:
            Function.calls += 1

    function = Function()
    alive = weakref.ref(function)
    with bascule.Graph() as graph:
        graph.stream.launch_host_function(function)
    del function
    gc.collect()
    graph.launch()
    bascule.synchronize()
    assert Function.calls == 1
    assert alive() is not None
    del graph
    bascule.synchronize()
    gc.collect()
    assert alive() is None


def test_a_stream_gives_up_a_function_that_was_called() -> None:
    class Function:
        def __call__(self) -> None:
            pass

    function = Function()
    alive = weakref.ref(function)
    stream = bascule.stream()
    stream.launch_host_function(function)
    del function
    stream.synchronize()
    gc.collect()
    assert alive() is None


def test_what_a_function_raises_is_reported_and_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reported.append(report.exc_value))
    stream = bascule.stream()
    stream.launch_host_function(lambda: 1 // 0)
    stream.synchronize()
    assert [type(each) for each in reported] == [ZeroDivisionError]
    done = threading.Event()
    stream.launch_host_function(done.set)
    stream.synchronize()
    assert done.is_set()


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(bascule.ArgumentTypeError, match="takes a function, and its arguments behind it; got 3"):
        bascule.stream().launch_host_function(3)  # type: ignore[arg-type]
