"""Rule 13: the effect of captures on the order of launches. runtime/streams/ORDER.md numbers the rules."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from child_process import printed_by
from conftest import ForeignArray

import bascule

from .conftest import captured_by_others, operations, order


def array_on(bound: bascule.Stream | None, values: float = 1.0, **changes: object) -> ForeignArray:
    array = ForeignArray(bascule.to_device(np.full(32, values, "f4"), stream=bound), **changes)
    bascule.synchronize()
    return array


def test_rule_13_inside_a_graph_a_launch_is_only_the_launch(kernels):
    producers = [bascule.stream() for _ in range(2)]
    arrays = [array_on(producers[0]), array_on(producers[1]), array_on(None)]
    graph = bascule.Graph()

    def capture():
        with graph:
            kernels.add[1, 32](*arrays)
            kernels.add[1, 32](*arrays)

    assert operations(capture) == [("launch", graph.stream.handle)] * 2


def test_rule_13_producers_outside_are_ordered_around_every_launch_of_the_graph(kernels):
    producers = [bascule.stream() for _ in range(2)]
    arrays = [array_on(producers[0]), array_on(producers[1]), array_on(producers[0])]
    with bascule.Graph() as graph:
        kernels.add[1, 32](*arrays)
        kernels.shift[1, 32](arrays[2])
    s = bascule.stream()
    for _ in range(2):
        trace = order(lambda: graph.launch(s))
        at = trace.index(("graph launch", s.handle, 0))
        before, after = trace[:at], trace[at + 1 :]
        assert [kind for kind, _, _ in before] == ["record", "wait", "record", "wait"]
        for i, p in enumerate(producers):
            (_, recorded, event), (_, waiting, waited) = before[2 * i : 2 * i + 2]
            assert (recorded, waiting, waited) == (p.handle, s.handle, event)
        assert after[0][:2] == ("record", s.handle)
        assert after[1:] == [("wait", p.handle, after[0][2]) for p in producers]
    bascule.synchronize()


def test_rule_13_the_stream_of_the_launch_needs_no_event(kernels):
    p = bascule.stream()
    x = array_on(p)
    with bascule.Graph() as graph:
        kernels.shift[1, 32](x)
    assert operations(lambda: graph.launch(p)) == [("graph launch", p.handle)]
    bascule.synchronize()


def test_rule_13_a_graph_waits_for_its_producers_and_they_wait_for_it(kernels):
    p, s = bascule.stream(), bascule.stream()
    x = bascule.to_device(np.ones(32, "f4"), stream=p)
    bascule.synchronize()
    with bascule.Graph() as graph:
        kernels.scale[1, 32](x, 10.0, 32)
    kernels.shift[1, 32, p](x)
    graph.launch(s)
    kernels.shift[1, 32, p](x)
    p.synchronize()
    assert x.copy_to_host()[0] == 21


def test_rule_13_all_in_one_capture_is_as_usual(kernels):
    c, q = bascule.stream(), bascule.stream()
    forked, joined = bascule.event(), bascule.event()
    x, y = array_on(c), array_on(q)
    out = array_on(None, stream=None)
    with captured_by_others(c) as capture:
        forked.record(c)
        forked.wait(q)
        kernels.shift[1, 32, q](y)
        trace = order(lambda: kernels.add[1, 32, c](x, y, out))
        assert [(kind, stream) for kind, stream, _ in trace] == [
            ("record", q.handle),
            ("wait", c.handle),
            ("launch", c.handle),
            ("record", c.handle),
            ("wait", q.handle),
        ]
        joined.record(q)
        joined.wait(c)
        assert capture.end() == 0
        capture.launch()
    assert np.array_equal(out.array.copy_to_host(), np.full(32, 3, "f4"))


def test_rule_13_a_launch_without_producers_goes_into_another_librarys_capture(kernels):
    c = bascule.stream()
    x = array_on(c)
    with captured_by_others(c) as capture:
        assert operations(lambda: kernels.shift[1, 32](x)) == [("launch", c.handle)]
        kernels.shift[1, 32, c](bascule.as_cuda_array(x, sync=False))
        assert capture.nodes == 2
        assert capture.end() == 0
        capture.launch()
    assert x.array.copy_to_host()[0] == 3


def test_rule_13_a_producer_outside_another_librarys_capture_is_refused_by_name(kernels):
    c, p = bascule.stream(), bascule.stream()
    x, out = array_on(p), array_on(None, stream=None)
    with captured_by_others(c) as capture:

        def refused():
            with pytest.raises(ValueError, match=r"argument 2 'b'.*as_cuda_array\(x, sync=False\)") as caught:
                kernels.add[1, 32, c](out, x, out)
            assert caught.value.field == "stream"
            assert hex(p.handle) in str(caught.value)

        assert operations(refused) == []
        assert capture.intact
        assert capture.nodes == 0
        kernels.add[1, 32, c](out, bascule.as_cuda_array(x, sync=False), out)
        assert capture.nodes == 1


def test_rule_13_a_launch_is_not_drawn_into_a_capture_by_a_producer(kernels):
    c, p = bascule.stream(), bascule.stream()
    x, out = array_on(p), array_on(None, stream=None)
    with captured_by_others(p) as capture:

        def refused():
            with pytest.raises(ValueError, match=r"argument 1 'a'.*is being captured into a graph"):
                kernels.add[1, 32, c](x, out, out)

        assert operations(refused) == []
        assert capture.intact
        kernels.add[1, 32, c](out, out, out)  # the refused launch left c unchanged
        c.synchronize()


def test_rule_13_two_captures_are_not_merged(kernels):
    p = bascule.stream()
    x = array_on(p)
    with captured_by_others(p) as capture:
        with bascule.Graph() as graph:
            with pytest.raises(ValueError, match="another graph"):
                kernels.shift[1, 32](x)
            kernels.shift[1, 32](bascule.as_cuda_array(x, sync=False))
        assert capture.intact
        assert len(graph) == 1


@pytest.mark.parametrize("mode", [0, 1, 2], ids=["global", "thread-local", "relaxed"])
def test_rule_13_nothing_waits_and_nothing_is_loaded_in_another_librarys_capture(kernels, mode):
    c = bascule.stream()
    x, elsewhere = array_on(c), bascule.to_device(np.ones(4, "f4"))
    bascule.synchronize()
    fresh = bascule.compile("__global__ void fresh(float* x) { x[0] = 5; }").fresh
    with captured_by_others(c, mode) as capture:
        bound = bascule.as_cuda_array(x)
        for wait in (bound.copy_to_host, c.synchronize, c.query):
            assert operations(lambda wait=wait: refused(wait)) == []
            assert capture.intact
        assert repr(bound).endswith(": its stream is being captured>")
        with pytest.raises(bascule.CudaError, match=r"'fresh' is not loaded yet"):
            fresh[1, 1, c](x)
        assert capture.intact
        del elsewhere  # neither freeing nor allocating is captured
        made = bascule.device_array(4, "f4", stream=c)
        assert made.shape == (4,)
        assert capture.intact
        for _ in range(200):  # past many markers
            kernels.shift[1, 32](x)
        assert capture.intact
        assert capture.nodes == 200


def refused(wait) -> None:
    with pytest.raises(bascule.CudaError, match="being captured into a graph") as caught:
        wait()
    assert caught.value.code == 900


def test_rule_13_the_legacy_stream_beside_a_captured_blocking_one_is_refused_without_touching_it(kernels):
    driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    handle = ctypes.c_void_p()
    assert driver.cuStreamCreate(ctypes.byref(handle), 0) == 0
    blocking = bascule.external_stream(handle.value)
    x, y = array_on(None), array_on(bascule.stream())
    with captured_by_others(blocking) as capture:
        with pytest.raises(bascule.CudaError, match="legacy default stream cannot be used"):
            kernels.add[1, 32](x, y, y)
        with pytest.raises(bascule.CudaError, match="legacy default stream"):
            bascule.as_cuda_array(x).copy_to_host()
        assert capture.intact
    assert driver.cuStreamDestroy_v2(handle) == 0


ASKED = """
import bascule

calls = bascule._bascule._driver_calls
add = bascule.compile("__global__ void add(const float* a, const float* b, float* out) {}").add


def asked(*arrays):
    names = ("cuStreamIsCapturing", "cuStreamGetCaptureInfo")
    before = sum(map(calls, names))
    add[1, 32, c](*arrays)
    return sum(map(calls, names)) - before


c, p, q = (bascule.stream() for _ in range(3))
here, there, elsewhere, quiet = (bascule.device_array(32, "f4", stream=s) for s in (c, p, q, None))
quiet = bascule.as_cuda_array(quiet, sync=False)
add[1, 32, c](here, here, here)
print(asked(here, here, here), asked(quiet, here, quiet), asked(here, there, quiet), asked(there, elsewhere, quiet))
bascule.synchronize()
"""


def test_rule_13_asks_the_driver_only_where_streams_differ_while_nobody_else_has_captured():
    assert printed_by("-c", ASKED).split() == ["0", "0", "2", "3"]
