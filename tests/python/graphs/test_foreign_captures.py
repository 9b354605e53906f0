"""Rule 13 on streams that another library captures: the contents of its graph, kept owners, and refusals."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from child_process import printed_by
from conftest import ForeignArray

import bascule

from .conftest import captured_by_others, comes_true, operations


def array_on(stream: bascule.Stream | None, value: float = 1.0) -> ForeignArray:
    array = ForeignArray(bascule.to_device(np.full(32, value, "f4"), stream=stream))
    bascule.synchronize()
    return array


def is_alive(reference: weakref.ref) -> bool:
    gc.collect()
    return reference() is not None


def is_released(reference: weakref.ref, again: Callable[[], object]) -> bool:
    return comes_true(lambda: not is_alive(reference), again)


def test_arrays_of_captured_launches_are_kept_until_the_graph_is_gone(kernels):
    c, other = bascule.stream(), bascule.stream()
    x, y = array_on(c), array_on(other)
    alive = weakref.ref(x)
    with captured_by_others(c) as capture:
        kernels.shift[1, 32](x)
        del x
        for _ in range(100):  # enough for a marker on the other stream, which is then synchronized
            kernels.shift[1, 32](y)
        other.synchronize()
        assert is_alive(alive)
        quiet = bascule.as_cuda_array(y, sync=False)
        for _ in range(100):  # and enough for a marker on this one
            kernels.shift[1, 32, c](quiet)
        assert is_alive(alive)
        assert capture.intact
        assert capture.nodes == 101
        assert capture.end() == 0
        c.synchronize()
        assert is_alive(alive)
        capture.destroy()
        c.synchronize()
        assert is_released(alive, c.synchronize)


def test_arrays_are_kept_for_as_long_as_an_executable_of_their_graph_can_be_launched(kernels):
    c = bascule.stream()
    x, out = array_on(c, 3.0), array_on(c, np.nan)
    pinned = bascule.pinned_array(32, "f4", stream=c)
    alive = [weakref.ref(x), weakref.ref(out)]
    held = bascule._bascule._owners_held()
    with captured_by_others(c) as capture:
        kernels.add[1, 32](x, x, out)
        out.array.copy_to_host(out=pinned, stream=c)
        assert capture.end() == 0
        executable = capture.instantiate()
        del x, out
        c.synchronize()
        spoiled = [array_on(c, -1.0) for _ in range(4)]  # reuses the freed memory
        for _ in range(2):
            np.asarray(pinned)[:] = np.nan
            assert capture.driver.cuGraphLaunch(executable, capture.stream) == 0
            c.synchronize()
            np.testing.assert_array_equal(np.asarray(pinned), np.full(32, 6, "f4"))
        assert all((array.array.copy_to_host() == -1).all() for array in spoiled)
        capture.destroy()
        c.synchronize()
        assert all(map(is_alive, alive))
        assert capture.driver.cuGraphLaunch(executable, capture.stream) == 0
        assert capture.driver.cuGraphExecDestroy(executable) == 0  # running work continues
        c.synchronize()
        np.testing.assert_array_equal(np.asarray(pinned), np.full(32, 6, "f4"))
    kernels.shift[1, 32](spoiled[0])
    c.synchronize()
    assert all(is_released(reference, c.synchronize) for reference in alive)
    assert bascule._bascule._owners_held() == held


def test_a_launch_that_hands_owners_over_gives_up_what_ended_graphs_held(kernels):
    c, other = bascule.stream(), bascule.stream()
    x, y = array_on(c), array_on(other)
    alive = weakref.ref(x)
    with captured_by_others(c):
        kernels.shift[1, 32](x)
    del x
    kernels.shift[1, 32](y)
    assert is_released(alive, lambda: kernels.shift[1, 32](y))


def test_what_is_captured_twice_is_kept_by_each_graph(kernels):
    c = bascule.stream()
    x = array_on(c)
    alive = weakref.ref(x)
    with captured_by_others(c) as first:
        kernels.shift[1, 32](x)
        assert first.end() == 0
        with captured_by_others(c) as second:
            kernels.shift[1, 32](x)
            assert second.end() == 0
            del x
            first.destroy()
            c.synchronize()
            assert is_alive(alive)
            second.launch()
        c.synchronize()
        assert is_released(alive, c.synchronize)


def test_a_capture_needs_no_waiting_before_it(kernels):
    c = bascule.stream()
    x, y = array_on(c), array_on(c)
    with captured_by_others(c):
        kernels.shift[1, 32](x)
    alive = weakref.ref(y)
    kernels.shift[1, 32](x)  # an owner is kept for the stream when the second capture begins
    with captured_by_others(c) as capture:
        kernels.shift[1, 32](y)
        assert capture.end() == 0
        del y
        c.synchronize()
        assert is_alive(alive)
        capture.launch()


FIRST_CAPTURE = """
import ctypes, gc, time, weakref
import numpy as np
import bascule

kernel = bascule.compile("__global__ void shift(float* x) { x[threadIdx.x] += 1; }").shift
c = bascule.stream()
x, y = (bascule.to_device(np.zeros(32, "f4"), stream=c) for _ in range(2))
c.synchronize()
kernel[1, 32, c](x)
calls = bascule._bascule._driver_calls
before = calls("cuStreamIsCapturing")
for _ in range(20):
    kernel[1, 32, c](x)
assert calls("cuStreamIsCapturing") == before, "asked though the handle was never given out"
c.synchronize()
driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
stream, graph = ctypes.c_void_p(c.handle), ctypes.c_void_p()
assert driver.cuStreamBeginCapture_v2(stream, 0) == 0
kernel[1, 32, c](y)
assert driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
alive = weakref.ref(y)
del y
c.synchronize()
gc.collect()
assert alive() is not None, "released"
before = calls("cuStreamIsCapturing")
kernel[1, 32, c](x)
kernel[1, 32, c](x)
assert calls("cuStreamIsCapturing") == before + 2, "not asked"
assert driver.cuGraphDestroy(graph) == 0
until = time.monotonic() + 10  # a driver gives it back in a thread of its own
while alive() is not None and time.monotonic() < until:
    c.synchronize()
    gc.collect()
assert alive() is None, "kept"
print("as promised")
"""


def test_a_stream_is_asked_at_every_launch_from_the_moment_on_when_its_handle_is_given_out():
    assert printed_by("-c", FIRST_CAPTURE).strip() == "as promised"


def test_bound_launches_keep_their_arrays_with_the_graph(kernels):
    c = bascule.stream()
    x, y = array_on(c), array_on(c)
    alive = weakref.ref(y)
    with captured_by_others(c):
        kernels.shift[1, 32](x)
    bound = kernels.shift[1, 32].bind(y)
    with captured_by_others(c) as capture:
        bound()
        assert capture.nodes == 1
        assert capture.end() == 0
        del bound, y
        c.synchronize()
        assert is_alive(alive)
        capture.launch()
    c.synchronize()
    assert is_released(alive, c.synchronize)


def test_a_capture_that_was_invalidated_keeps_nothing(kernels):
    c = bascule.stream()
    x = array_on(c)
    alive = weakref.ref(x)
    with captured_by_others(c) as capture:
        kernels.shift[1, 32](x)
        del x
        assert capture.driver.cuStreamSynchronize(capture.stream) == 900
        assert is_alive(alive)
        assert capture.end() == 901
    c.synchronize()
    assert is_released(alive, c.synchronize)


def test_a_capture_that_is_given_up_leaves_nothing_behind(kernels):
    c = bascule.stream()
    x = array_on(c)
    alive = weakref.ref(x)
    with captured_by_others(c):
        for _ in range(10):
            kernels.shift[1, 32](x)
    del x
    c.synchronize()
    assert is_released(alive, c.synchronize)
    assert bascule._bascule._owners_held() == 0
    fresh = array_on(c)
    kernels.shift[1, 32](fresh)  # the stream is unchanged
    assert fresh.array.copy_to_host()[0] == 2


def test_copies_and_fills_become_part_of_their_graph(kernels, rng):
    c = bascule.stream()
    values = rng.random(32, dtype="f4")
    x, y = (bascule.to_device(np.zeros(32, "f4"), stream=c) for _ in range(2))
    z = bascule.device_array(32, "f8", stream=c)
    source, out = (bascule.pinned_array(32, "f4", stream=c) for _ in range(2))
    np.asarray(source)[:] = values
    np.asarray(out)[:] = np.nan
    c.synchronize()
    with captured_by_others(c) as capture:

        def work() -> None:
            x.copy_from_host(np.asarray(source))
            y[...] = x
            kernels.scale[1, 32](y, 2.0, 32)
            y.copy_to_host(out=out, stream=c)
            z.fill(0)

        kinds = ["copy", "copy", "launch", "copy", "fill"]
        assert operations(work) == [(kind, c.handle) for kind in kinds]
        assert capture.intact
        assert capture.nodes == 5
        assert np.isnan(np.asarray(out)).all()  # nothing has run
        assert capture.end() == 0
        capture.launch()
    np.testing.assert_array_equal(np.asarray(out), 2 * values)
    np.testing.assert_array_equal(z.copy_to_host(), np.zeros(32))


def test_what_an_array_made_in_their_capture_holds_is_filled_by_their_graph():
    c = bascule.stream()
    x = bascule.to_device(np.arange(32, dtype="f4"), stream=c)
    x.astype("i4")
    c.synchronize()
    with captured_by_others(c) as capture:
        converted = x.astype("i4")
        copied = x.copy()
        assert capture.nodes == 2
        assert capture.end() == 0
        capture.launch()
    np.testing.assert_array_equal(converted.copy_to_host(), np.arange(32))
    np.testing.assert_array_equal(copied.copy_to_host(), np.arange(32))


@pytest.mark.parametrize(
    "work",
    [
        lambda x, c: x.fill(1, stream=c),
        lambda x, c: x.copy(stream=c),
        lambda x, c: x.astype("f8", stream=c),
        lambda x, c: x.copy_to_host(out=bascule.pinned_array(32, "f4"), stream=c),
        lambda x, c: x.copy_from_host(np.ones(32, "f4"), stream=c),
    ],
    ids=["fill", "copy", "astype", "copy_to_host", "copy_from_host"],
)
def test_whatever_touches_an_array_outside_their_capture_is_refused_and_says_what_to_do(work):
    c, p = bascule.stream(), bascule.stream()
    x = bascule.to_device(np.ones(32, "f4"), stream=p)
    x.astype("f8")
    bascule.synchronize()
    with captured_by_others(c) as capture:

        def refused() -> None:
            with pytest.raises(ValueError, match=r"not part of the capture that stream 0x[0-9a-f]+ is in") as caught:
                work(x, c)
            text = str(caught.value)
            assert hex(p.handle) in text
            assert "as_cuda_array(x, sync=False)" in text
            assert text.endswith("The capture goes on.")

        assert operations(refused) == []
        assert capture.intact
        assert capture.nodes == 0


def test_a_capture_that_was_invalidated_is_told_and_ends():
    c, p = bascule.stream(), bascule.stream()
    x = bascule.to_device(np.ones(32, "f4"), stream=p)
    bascule.synchronize()
    with captured_by_others(c) as capture:
        assert capture.driver.cuStreamSynchronize(capture.stream) == 900  # which invalidates it
        with pytest.raises(bascule.CudaError, match="was invalidated.*End it, and begin again") as caught:
            x.fill(1, stream=c)
        assert caught.value.code == 901
        assert capture.end() == 901
    x.fill(2, stream=c)  # after the capture it is a usual stream
    assert (x.copy_to_host() == 2).all()


def test_nobody_asks_or_records_anything_on_a_stream_that_others_capture(kernels):
    """130 launches would need markers; the capture is still active, so no call that it forbids was made."""
    c = bascule.stream()
    x = array_on(c)
    with captured_by_others(c) as capture:
        assert operations(lambda: [kernels.shift[1, 32](x) for _ in range(130)]) == [("launch", c.handle)] * 130
        assert capture.nodes == 130
        status = ctypes.c_int()
        assert capture.driver.cuStreamIsCapturing(capture.stream, ctypes.byref(status)) == 0
        assert status.value == 1
