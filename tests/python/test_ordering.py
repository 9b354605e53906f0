"""Which streams wait for which, as operations that the emulated device recorded; DESIGN.md numbers the rules."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from conftest import ForeignArray, traced

import bascule

pytestmark = pytest.mark.usefixtures("emulated")


@pytest.fixture(scope="module")
def add() -> bascule.Kernel:
    return bascule.compile(
        """
        __global__ void add(const float* a, const float* b, float* out) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            out[i] = a[i] + b[i];
        }"""
    ).add


def array_on(bound: object, **changes: object) -> ForeignArray:
    return ForeignArray(bascule.to_device(np.ones(32, "f4"), stream=bound), **changes)


def ordering(launch) -> list[tuple[str, int, int]]:
    """(kind, stream, event) of records, waits and launches."""
    with traced() as operations:
        launch()
    return [(o.kind, o.stream, o.event) for o in operations if o.kind in ("record", "wait", "launch")]


def prepared(kernel, *arguments):
    kernel[1, 32](*arguments)
    bascule.synchronize()


def test_rule_1_without_producers_there_is_only_the_launch(add):
    arrays = [array_on(None, stream=None) for _ in range(3)]
    stream = bascule.stream()
    prepared(add, *arrays)
    assert ordering(lambda: add[1, 32, stream](*arrays)) == [("launch", stream.handle, 0)]


def test_rule_2_every_producer_is_waited_for_and_waits_in_turn(add):
    streams = [bascule.stream() for _ in range(3)]
    arrays = [array_on(stream) for stream in streams]
    c = bascule.stream()
    prepared(add, *arrays)
    trace = ordering(lambda: add[1, 32, c](*arrays))
    launch = trace.index(("launch", c.handle, 0))
    before, after = trace[:launch], trace[launch + 1 :]
    for stream in streams:
        records = [i for i, o in enumerate(before) if o[:2] == ("record", stream.handle)]
        assert len(records) == 1
        event = before[records[0]][2]
        assert ("wait", c.handle, event) in before[records[0] :]
    assert len(before) == 6
    assert after[0][:2] == ("record", c.handle)
    fence = after[0][2]
    assert sorted(after[1:]) == sorted(("wait", stream.handle, fence) for stream in streams)


def test_rule_3_a_producer_that_is_the_launch_stream_needs_no_event(add):
    stream = bascule.stream()
    arrays = [array_on(stream) for _ in range(3)]
    prepared(add, *arrays)
    assert ordering(lambda: add[1, 32, stream](*arrays)) == [("launch", stream.handle, 0)]


def test_rule_3_without_a_stream_the_one_that_every_array_names_is_taken(add):
    stream = bascule.stream()
    arrays = [array_on(stream) for _ in range(3)]
    prepared(add, *arrays)
    assert ordering(lambda: add[1, 32](*arrays)) == [("launch", stream.handle, 0)]


def test_without_agreement_the_default_stream_is_taken(add):
    p, q = bascule.stream(), bascule.stream()
    arrays = [array_on(p), array_on(q), array_on(p)]
    prepared(add, *arrays)
    launches = [o for o in ordering(lambda: add[1, 32](*arrays)) if o[0] == "launch"]
    assert launches == [("launch", 1, 0)]
    one_is_silent = [array_on(p), array_on(p), array_on(p, stream=None)]
    launches = [o for o in ordering(lambda: add[1, 32](*one_is_silent)) if o[0] == "launch"]
    assert launches == [("launch", 1, 0)]


def test_rule_4_arrays_on_one_stream_share_one_record_one_wait_and_one_fence(add):
    p, c = bascule.stream(), bascule.stream()
    arrays = [array_on(p) for _ in range(3)]
    prepared(add, *arrays)
    trace = ordering(lambda: add[1, 32, c](*arrays))
    assert [(kind, stream) for kind, stream, _ in trace] == [
        ("record", p.handle),
        ("wait", c.handle),
        ("launch", c.handle),
        ("record", c.handle),
        ("wait", p.handle),
    ]


@pytest.mark.parametrize("handle", [1, 2])
def test_rule_5_the_default_streams_are_what_their_numbers_say(add, handle):
    arrays = [array_on(handle) for _ in range(3)]
    prepared(add, *arrays)
    assert ordering(lambda: add[1, 32, handle](*arrays)) == [("launch", handle, 0)]
    c = bascule.stream()
    kinds = [(kind, stream) for kind, stream, _ in ordering(lambda: add[1, 32, c](*arrays))]
    assert kinds == [
        ("record", handle),
        ("wait", c.handle),
        ("launch", c.handle),
        ("record", c.handle),
        ("wait", handle),
    ]


def test_rule_5_zero_given_by_the_user_is_the_default_stream(add):
    arrays = [array_on(1) for _ in range(3)]
    prepared(add, *arrays)
    assert ordering(lambda: add[1, 32, 0](*arrays)) == [("launch", 1, 0)]


def test_rule_6_a_view_made_with_sync_false_is_not_ordered(add):
    p, c = bascule.stream(), bascule.stream()
    views = [bascule.as_cuda_array(array_on(p), sync=False) for _ in range(3)]
    prepared(add, *views)
    assert ordering(lambda: add[1, 32, c](*views)) == [("launch", c.handle, 0)]


def test_rule_7_a_bad_last_argument_leaves_the_trace_empty(add):
    p, c = bascule.stream(), bascule.stream()
    arrays = [array_on(p), array_on(p), array_on(p, stream=0)]
    with traced() as operations, pytest.raises(ValueError, match="stream"):
        add[1, 32, c](*arrays)
    assert operations == []


def test_rule_14_the_object_is_kept_until_the_stream_is_synchronised(add):
    stream = bascule.stream()
    arrays = [array_on(stream) for _ in range(3)]
    alive = [weakref.ref(array) for array in arrays]
    add[1, 32, stream](*arrays)
    del arrays
    gc.collect()
    assert all(reference() is not None for reference in alive)
    stream.synchronize()
    gc.collect()
    assert all(reference() is None for reference in alive)


def test_owners_do_not_pile_up_over_many_launches(add):
    stream = bascule.stream()
    arrays = [array_on(stream) for _ in range(3)]
    first = array_on(stream)
    alive = weakref.ref(first)
    add[1, 32, stream](first, *arrays[1:])
    del first
    for _ in range(300):
        add[1, 32, stream](*arrays)
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("attribute", ["ptr", "cuda_stream", "handle"])
def test_streams_of_other_libraries_are_taken(add, attribute):
    stream = bascule.stream()

    class Foreign:
        pass

    foreign = Foreign()
    setattr(foreign, attribute, stream.handle)
    arrays = [array_on(stream) for _ in range(3)]
    prepared(add, *arrays)
    assert ordering(lambda: add[1, 32, foreign](*arrays)) == [("launch", stream.handle, 0)]


def test_the_stream_protocol_is_taken_and_offered(add):
    stream = bascule.stream()

    class Foreign:
        def __cuda_stream__(self):
            return (0, stream.handle)

    assert bascule.external_stream(Foreign()).handle == stream.handle
    assert stream.__cuda_stream__() == (0, stream.handle)


def test_a_copy_waits_for_the_bound_stream(add):
    p, c = bascule.stream(), bascule.stream()
    array = bascule.to_device(np.ones(32, "f4"), stream=p)
    with traced() as operations:
        array.copy_to_host(stream=c)
    kinds = [(o.kind, o.stream) for o in operations if o.kind in ("record", "wait", "copy")]
    assert kinds[:3] == [("record", p.handle), ("wait", c.handle), ("copy", c.handle)]


def test_events_order_streams_and_tell_time(add):
    p, c = bascule.stream(), bascule.stream()
    start, end = bascule.event(), bascule.event()
    assert start.query()
    start.record(p)
    arrays = [array_on(p) for _ in range(3)]
    add[1, 32, p](*arrays)
    end.record(p)
    end.wait(c)
    c.wait(end)
    end.synchronize()
    assert end.query()
    assert 0 <= start.elapsed(end) < 60_000
    assert p.query()


def test_an_exported_array_names_its_stream():
    stream = bascule.stream()
    assert bascule.device_array(3, stream=stream).__cuda_array_interface__["stream"] == stream.handle
    assert bascule.device_array(3).__cuda_array_interface__["stream"] == 1
    assert bascule.device_array(3, stream=2).__cuda_array_interface__["stream"] == 2
    array = bascule.device_array(3, stream=stream)
    handle = stream.handle
    del stream
    assert array.stream.handle == handle


def test_preparing_and_empty_work_check_everything_and_launch_nothing(add):
    arrays = [array_on(None) for _ in range(3)]
    prepared(add, *arrays)
    assert ordering(lambda: add.prepare(*arrays)) == []
    assert ordering(lambda: add.forall(0)(*arrays)) == []
    with pytest.raises(TypeError, match="argument 3 'out'"):
        add.forall(0)(arrays[0], arrays[1], 5)
    with pytest.raises(TypeError, match="argument 1 'a'"):
        add.prepare(1.5, *arrays[1:])
    assert ordering(lambda: add.launch(1, 32, tuple(arrays), stream=1, shared_bytes=0)) == [("launch", 1, 0)]
