"""`with bascule.Graph() as graph:` compared with NumPy, and what is recorded in the block."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from conftest import ForeignArray

import bascule

from .conftest import device_copy, operations


def test_what_a_block_issues_runs_at_each_launch_and_not_before(kernels, rng):
    host = rng.random(300, dtype="f4")
    x = device_copy(host)
    with bascule.Graph() as graph:
        kernels.scale[3, 100](x, 2.0, 300)
        kernels.shift[1, 100](x)
    bascule.synchronize()
    assert np.array_equal(x.copy_to_host(), host)
    expected = host.copy()
    for _ in range(3):
        graph.launch()
        expected *= 2
        expected[:100] += 1
    assert np.array_equal(x.copy_to_host(), expected)
    assert repr(graph).startswith("<bascule.Graph of 2 operations on ")
    assert len(graph) == 2


def test_copies_fills_conversions_and_events_are_captured(kernels, rng):
    host = rng.random(64, dtype="f4")
    x, y, z = device_copy(host), device_copy(host), device_copy(np.zeros(64, "f8"))
    source, target = np.asarray(bascule.pinned_array(64, "f4")), bascule.pinned_array(64, "f8")
    x.astype("f8")  # loads its kernel
    bascule.synchronize()
    source[:] = host
    event = bascule.event()
    with bascule.Graph() as graph:
        y.fill(1.5)
        x.copy_from_host(source)
        kernels.add[1, 64](x, y, x)
        event.record()
        z[...] = x.astype("f8")
        z.copy_to_host(out=target, stream=graph.stream)
    assert len(graph) >= 5
    assert not np.array_equal(y.copy_to_host(), np.full(64, 1.5, "f4"))
    graph.launch()
    bascule.synchronize()
    assert np.array_equal(np.asarray(target), (host + np.float32(1.5)).astype("f8"))
    source[:] = 2 * host  # read at the launch
    graph()
    bascule.synchronize()
    assert np.array_equal(np.asarray(target), (2 * host + np.float32(1.5)).astype("f8"))


def test_the_graph_is_launched_on_the_stream_that_is_given(kernels):
    x = ForeignArray(device_copy(np.ones(8, "f4")), stream=None)
    with bascule.Graph() as graph:
        kernels.shift[1, 8](x)
    stream = bascule.stream()
    if bascule.current_device().emulated:
        assert operations(lambda: graph.launch(stream)) == [("graph launch", stream.handle)]
        assert operations(lambda: graph(stream=stream)) == [("graph launch", stream.handle)]
        assert operations(graph.launch) == [("graph launch", 1)]
    bascule.synchronize()


def test_another_stream_joins_by_events_and_must_be_joined(kernels, rng):
    host = rng.random(32, dtype="f4")
    x, y = device_copy(host), device_copy(host)
    side = bascule.stream()
    forked, joined = bascule.event(), bascule.event()
    quiet = [bascule.as_cuda_array(each, sync=False) for each in (x, y)]
    with bascule.Graph() as graph:
        kernels.scale[1, 32](quiet[0], 3.0, 32)
        forked.record()
        forked.wait(side)
        kernels.scale[1, 32, side](quiet[1], 5.0, 32)
        joined.record(side)
        joined.wait()
        kernels.add[1, 32](quiet[0], quiet[1], quiet[0])
    graph.launch()
    bascule.synchronize()
    assert np.array_equal(x.copy_to_host(), host * np.float32(3) + host * np.float32(5))

    def forget_to_join():
        with bascule.Graph():
            forked.record()
            forked.wait(side)
            kernels.shift[1, 32, side](quiet[1])

    with pytest.raises(bascule.CudaError, match="did not wait for that stream"):
        forget_to_join()
    kernels.shift[1, 32, side](quiet[1])  # the stream is no longer captured
    side.synchronize()


def test_an_update_changes_later_launches_and_not_earlier_ones(kernels):
    x, y = device_copy(np.ones(8, "f4")), device_copy(np.ones(8, "f4"))
    stream = bascule.stream()
    with bascule.Graph() as graph:
        kernels.scale[1, 8](x, 2.0, 8)
    graph.launch(stream)
    with graph.update() as same:
        kernels.scale[1, 8](y, 10.0, 8)
    assert same is graph
    graph.launch(stream)
    graph.launch(stream)
    with graph.update():  # another shape
        kernels.shift[1, 8](x)
        y.fill(0)
        kernels.shift[1, 8](y)
    assert len(graph) == 3
    graph.launch(stream)
    stream.synchronize()
    assert np.array_equal(x.copy_to_host(), np.full(8, 3, "f4"))
    assert np.array_equal(y.copy_to_host(), np.ones(8, "f4"))


def test_an_exception_gives_up_what_was_captured(kernels):
    x = device_copy(np.ones(8, "f4"))
    with bascule.Graph() as graph:
        kernels.scale[1, 8](x, 2.0, 8)

    def fail():
        with graph.update():
            kernels.scale[1, 8](x, 5.0, 8)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    graph.launch()
    assert x.copy_to_host()[0] == 2
    empty = bascule.Graph()
    with pytest.raises(ZeroDivisionError), empty:
        raise ZeroDivisionError
    assert "of nothing" in repr(empty)
    with pytest.raises(ValueError, match="capture something first"):
        empty.launch()


def test_a_graph_captures_once_and_says_how_to_capture_anew(kernels):
    x = device_copy(np.ones(8, "f4"))
    with bascule.Graph() as graph:
        kernels.shift[1, 8](x)
        assert "being captured" in repr(graph)
        with pytest.raises(ValueError, match="launch it after"):
            graph.launch()
        with pytest.raises(ValueError, match="being captured already"), graph.update():
            pass
    with pytest.raises(ValueError, match=r"with graph\.update\(\):"), graph:
        pass
    assert len(graph) == 1


def test_what_waits_is_refused_and_the_capture_goes_on(kernels):
    x, other = device_copy(np.ones(8, "f4")), bascule.stream()
    event = bascule.event()
    with bascule.Graph() as graph:
        kernels.shift[1, 8](x)
        for wait in (
            x.copy_to_host,
            lambda: x.copy_to_host(stream=other),
            bascule.synchronize,
            other.synchronize,
            other.query,
            graph.stream.synchronize,
            event.synchronize,
            event.query,
        ):
            with pytest.raises(bascule.CudaError, match="The capture goes on"):
                wait()
        assert repr(x).endswith(": its stream is being captured>")
        kernels.shift[1, 8](x)
    graph.launch()
    assert np.array_equal(x.copy_to_host(), np.full(8, 3, "f4"))


def test_a_kernel_that_is_not_loaded_is_refused_and_says_to_prepare_it(kernels):
    x = device_copy(np.zeros(8, "f4"))
    with bascule.Graph() as graph:
        with pytest.raises(bascule.CudaError, match=r"'never_loaded' is not loaded.*kernel\.prepare\("):
            kernels.never_loaded[1, 1](x)
        kernels.shift[1, 8](x)
    graph.launch()
    assert np.array_equal(x.copy_to_host(), np.ones(8, "f4"))
    kernels.never_loaded.prepare()
    with graph.update():
        kernels.never_loaded[1, 1](x)
    graph.launch()
    assert x.copy_to_host()[0] == 1


@pytest.mark.lazy
def test_the_graph_holds_its_arrays_until_it_is_gone_and_its_last_launch_is_done(kernels):
    x = ForeignArray(device_copy(np.ones(8, "f4")))
    alive = weakref.ref(x)
    stream = bascule.stream()
    with bascule.Graph() as graph:
        kernels.shift[1, 8](x)
    del x
    bascule.synchronize()
    gc.collect()
    assert alive() is not None
    graph.launch(stream)
    stream.synchronize()
    assert alive() is not None
    graph.launch(stream)
    del graph
    gc.collect()
    if bascule.current_device().emulated:  # lazy: the launch has not run
        assert alive() is not None
    stream.synchronize()
    gc.collect()
    assert alive() is None


def test_an_update_lets_the_old_arrays_go(kernels):
    x = ForeignArray(device_copy(np.ones(8, "f4")))
    y = device_copy(np.ones(8, "f4"))
    alive = weakref.ref(x)
    stream = bascule.stream()
    with bascule.Graph() as graph:
        kernels.shift[1, 8](x)
    graph.launch(stream)
    with graph.update():
        kernels.shift[1, 8](y)
    del x
    gc.collect()
    stream.synchronize()
    gc.collect()
    assert alive() is None


def test_an_array_that_is_made_in_the_block_is_the_graphs(kernels, rng):
    host = rng.random(16, dtype="f4")
    x = device_copy(host)
    x.astype("f8")
    bascule.synchronize()
    stream = bascule.stream()
    with bascule.Graph() as graph:
        y = x.astype("f8")
    graph.launch(stream)
    assert np.array_equal(y.copy_to_host(), host.astype("f8"))  # after the launch, whatever its stream
    kernels.scale[1, 16](x, 2.0, 16)
    graph.launch(stream)
    assert np.array_equal(y.copy_to_host(), (host * np.float32(2)).astype("f8"))


def test_threads_that_launch_one_graph_lose_nothing(kernels):
    x = bascule.as_cuda_array(device_copy(np.zeros(8, "f4")), sync=False)
    with bascule.Graph() as graph:
        kernels.shift[1, 8](x)
    streams = [bascule.stream() for _ in range(4)]
    threads = [threading.Thread(target=lambda s=s: [graph.launch(s) for _ in range(25)]) for s in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bascule.synchronize()
    assert np.array_equal(x.copy_to_host(), np.full(8, 100, "f4"))
