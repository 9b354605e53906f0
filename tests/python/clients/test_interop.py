"""Arrays and streams of numba-cuda and cuda.core in Bascule's kernels, and vice versa; with the search for races."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

from .libraries import BLOCK, LIBRARIES, UPDATE, grid_of, updated

pytestmark = pytest.mark.usefixtures("compared")
COUNT = 3000


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request, other_libraries):
    return LIBRARIES[request.param]()


@pytest.fixture(scope="module")
def update(other_libraries):
    """The update as a kernel of Bascule."""
    return bascule.compile(UPDATE).update


@pytest.fixture
def hosts(rng) -> tuple[np.ndarray, np.ndarray]:
    x, y = rng.random((2, COUNT), dtype=np.float32)
    return x, y


def launch(update: bascule.Kernel, stream: bascule.Stream, x: object, y: object) -> None:
    update[grid_of(COUNT), BLOCK, stream](x, y, COUNT)


def test_arrays_that_name_their_stream_need_no_events(library, update, hosts):
    """Takes the library's stream and Bascule's in turn: each kernel reads the previous result; the host never waits."""
    x, y = hosts
    theirs, ours = library.stream(), bascule.stream()
    their_x, their_y = library.to_device(x, theirs), library.to_device(y, theirs)
    expected = y
    for _ in range(2):
        library.update(theirs, their_x, their_y)
        launch(update, ours, their_x, their_y)
        expected = updated(x, updated(x, expected))
    np.testing.assert_allclose(library.to_host(their_y, theirs), expected, rtol=1e-6)


def test_arrays_on_two_of_their_streams_meet_in_one_launch(library, update, hosts):
    x, y = hosts
    first, second, ours = library.stream(), library.stream(), bascule.stream()
    their_x, their_y = library.to_device(x, first), library.to_device(y, second)
    launch(update, ours, their_x, their_y)
    library.update(second, their_y, their_y)  # work enqueued from now on runs after Bascule's kernel
    expected = updated(x, y)
    np.testing.assert_allclose(library.to_host(their_y, second), updated(expected, expected), rtol=1e-6)


def test_arrays_of_bascule_are_ordered_by_events_of_both_libraries(library, update, hosts):
    x, y = hosts
    theirs, ours = library.stream(), bascule.stream()
    our_x, our_y = (bascule.to_device(each, stream=ours) for each in (x, y))
    expected = y
    for _ in range(2):
        launch(update, ours, our_x, our_y)
        library.wait_for(theirs, ours)  # with an event of the other library
        library.update(theirs, our_x, our_y)
        event = bascule.event(timing=False)  # and with one of Bascule
        event.record(theirs)
        ours.wait(event)
        expected = updated(x, updated(x, expected))
    np.testing.assert_allclose(our_y.copy_to_host(), expected, rtol=1e-6)


def test_an_array_of_bascule_and_one_of_theirs_in_one_launch_of_each(library, update, hosts):
    x, y = hosts
    theirs, ours = library.stream(), bascule.stream()
    their_x = library.to_device(x, theirs)
    our_y = bascule.to_device(y, stream=ours)
    launch(update, ours, their_x, our_y)
    library.wait_for(theirs, ours)
    library.update(theirs, our_y, their_x)
    np.testing.assert_allclose(library.to_host(their_x, theirs), updated(updated(x, y), x), rtol=1e-6)


@pytest.mark.parametrize("missing", ["theirs after ours", "ours after theirs"])
def test_a_missing_event_is_a_race_in_either_direction(library, update, hosts, missing):
    x, y = hosts
    theirs, ours = library.stream(), bascule.stream()
    our_x, our_y = (bascule.to_device(each, stream=ours) for each in (x, y))
    bascule.synchronize()
    launches = [lambda: launch(update, ours, our_x, our_y), lambda: library.update(theirs, our_x, our_y)]
    if missing == "ours after theirs":
        launches.reverse()
    with pytest.raises(bascule.RaceError) as raised, bascule.emulated.checks(races=True):
        [each() for each in launches]
    report = str(raised.value)
    assert "launch of 'update'" in report
    assert f"{handle_of(theirs):#x}" in report
    assert f"{ours.handle:#x}" in report


def handle_of(stream: object) -> int:
    return stream.__cuda_stream__()[1]


def test_their_stream_can_be_the_one_of_our_launches(library, update, hosts):
    x, y = hosts
    theirs = library.stream()
    their_x, their_y = library.to_device(x, theirs), library.to_device(y, theirs)
    with bascule.emulated.trace() as operations:
        update[grid_of(COUNT), BLOCK, theirs](their_x, their_y, COUNT)
    assert [each.kind for each in operations] == ["launch"]  # no wait is needed
    np.testing.assert_allclose(library.to_host(their_y, theirs), updated(x, y), rtol=1e-6)
