"""The two programs with which the array interface's documentation explains streams need no events of the user."""

from __future__ import annotations

import numpy as np
import pytest
from plain_launches import issued, without_events
from scene import Foreign, searching_for_races, unordered

import bascule

TEXT = """
__global__ void add(const long long* x, const long long* y, long long* out, int n) {
    int start = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = start; i < n; i += gridDim.x * blockDim.x) out[i] = x[i] + y[i];
}
__global__ void initialize_array(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i;
}
__global__ void consume(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * x[i];
}
"""
COUNT = 16384


@pytest.fixture(scope="module")
def program() -> bascule.Module:
    return bascule.compile(TEXT)


@pytest.mark.parametrize("current", ["legacy", "per-thread", "a stream of its own"])
def test_arrays_of_another_library_are_added_on_its_current_stream(program, current):
    """When `add[1, 32](a, b, out)` is launched, a and b are still being computed on that stream."""
    stream = {"legacy": 1, "per-thread": 2}.get(current) or bascule.stream()
    ours = [bascule.to_device(np.zeros(10, "i8"), stream=stream) for _ in range(3)]
    a, b, out = (Foreign(array, array.stream.handle) for array in ours)
    program.add.prepare(a, b, out, 10)
    with searching_for_races():
        unordered(ours[0]).copy_from_host(np.arange(10), stream=stream)
        program.add[1, 32, stream](unordered(ours[0]), unordered(ours[0]), unordered(ours[1]), 10)  # b = a * 2
        trace = issued(lambda: program.add[1, 32](a, b, out, 10))
        assert without_events(trace) == [("launch", a.array.stream.handle)]
        unordered(ours[0]).fill(-1, stream=stream)  # the other library continues computing
        np.testing.assert_array_equal(out.array.copy_to_host(), 3 * np.arange(10))


def run(program, manual_event: bool, ordered: bool) -> np.ndarray:
    """x is bound to array_stream, filled on kernel_stream, and read by another library on array_stream."""
    array_stream, kernel_stream = bascule.stream(), bascule.stream()
    x = bascule.device_array(COUNT, "f4", stream=array_stream)
    result = bascule.device_array(COUNT, "f4", stream=array_stream)
    blocks, threads = COUNT // 256, 256
    program.initialize_array[blocks, threads, kernel_stream](x if ordered else unordered(x), COUNT)
    if manual_event:
        evt = bascule.event()
        evt.record(kernel_stream)
        evt.wait(array_stream)
    # Plays the other library: launches on the stream that x names, and makes no stream wait.
    program.consume[blocks, threads, array_stream](unordered(x), unordered(result), COUNT)
    return result.copy_to_host()


@pytest.mark.parametrize("manual_event", [True, False])
def test_an_array_filled_on_another_stream_is_ready_on_its_own(program, manual_event):
    with searching_for_races():
        found = run(program, manual_event, ordered=True)
    np.testing.assert_array_equal(found, 2 * np.arange(COUNT, dtype="f4"))


def test_where_streams_are_ignored_the_manual_event_is_what_orders(program):
    with searching_for_races():
        found = run(program, manual_event=True, ordered=False)
    np.testing.assert_array_equal(found, 2 * np.arange(COUNT, dtype="f4"))


@pytest.mark.usefixtures("emulated")
def test_where_streams_are_ignored_and_the_event_is_forgotten_there_is_a_race(program):
    with pytest.raises(bascule.RaceError, match="initialize_array"), bascule.emulated.checks(races=True):
        run(program, manual_event=False, ordered=False)
