"""Streams and events as objects: other libraries', the protocol, and the streams that arrays report."""

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
