"""Streams and events as objects: other libraries', the protocol, what arrays say of theirs."""

from __future__ import annotations

import pytest
from plain_launches import add, array_on, issued, prepared

import bascule


@pytest.mark.parametrize("attribute", ["ptr", "cuda_stream", "handle"])
def test_streams_of_other_libraries_are_taken(attribute):
    stream = bascule.stream()

    class Foreign:
        pass

    foreign = Foreign()
    setattr(foreign, attribute, stream.handle)
    arrays = [array_on(stream) for _ in range(3)]
    prepared(*arrays)
    assert issued(lambda: add()[1, 32, foreign](*arrays)) == [("launch", stream.handle, 0)]


def test_the_stream_protocol_is_taken_and_offered():
    stream = bascule.stream()

    class Foreign:
        def __cuda_stream__(self):
            return (0, stream.handle)

    assert bascule.external_stream(Foreign()).handle == stream.handle
    assert stream.__cuda_stream__() == (0, stream.handle)


def test_events_order_streams_and_tell_time():
    p, c = bascule.stream(), bascule.stream()
    start, end = bascule.event(), bascule.event()
    assert start.query()
    start.record(p)
    arrays = [array_on(p) for _ in range(3)]
    add()[1, 32, p](*arrays)
    end.record(p)
    end.wait(c)
    c.wait(end)
    end.synchronize()
    assert end.query()
    assert 0 <= start.elapsed(end) < 60_000
    assert p.query()


def test_preparing_and_empty_work_check_everything_and_launch_nothing():
    arrays = [array_on(None) for _ in range(3)]
    prepared(*arrays)
    assert issued(lambda: add().prepare(*arrays)) == []
    assert issued(lambda: add().forall(0)(*arrays)) == []
    with pytest.raises(TypeError, match="argument 3 'out'"):
        add().forall(0)(arrays[0], arrays[1], 5)
    with pytest.raises(TypeError, match="argument 1 'a'"):
        add().prepare(1.5, *arrays[1:])
    assert issued(lambda: add().launch(1, 32, tuple(arrays), stream=1, shared_bytes=0)) == [("launch", 1, 0)]
