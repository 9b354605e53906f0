"""Rules 1 to 9 and 11 of order, as operations that launches issue; runtime/streams/ORDER.md numbers them.

For every driver call of a launch failing in turn (rules 8 to 10), see tests/runtime/ordering_failures_test.cpp.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from plain_launches import add, array_on, issued, only_order, ordered, prepared, without_events
from scene import Foreign, N, handle_of, in_a_thread, in_threads, kernels, searching_for_races

import bascule
from bascule import _bascule

Launch = Callable[[object, tuple[object, ...]], Callable[[], object]]

# Every way of launching: (stream, arguments) -> the launching callable. Preparing it issues no ordering operations.
WAYS: dict[str, Launch] = {
    "kernel[grid, block]": lambda stream, arguments: lambda: add()[1, 32, stream](*arguments),
    "launch": lambda stream, arguments: lambda: add().launch(1, 32, arguments, stream=stream),
    "forall": lambda stream, arguments: lambda: add().forall(32, stream=stream)(*arguments),
    "bind": lambda stream, arguments: add()[1, 32, stream].bind(*arguments),
}


@pytest.fixture(params=WAYS)
def launch(request) -> Launch:
    return WAYS[request.param]


def refused(action: Callable[[], object]) -> Callable[[], None]:
    """Returns a function that runs `action`, which must raise one of Bascule's errors."""

    def run() -> None:
        with pytest.raises(bascule.Error):
            action()

    return run


# --- Rule 1


def test_rule_1_without_producers_there_is_only_the_launch(launch):
    arrays = tuple(array_on(None, stream=None) for _ in range(3))
    stream = bascule.stream()
    prepared(*arrays)
    assert issued(launch(stream, arrays)) == [("launch", stream.handle, 0)]


def test_rule_1_older_versions_that_cannot_name_a_stream_name_none():
    arrays = tuple(array_on(None, version=2, stream=None) for _ in range(3))
    prepared(*arrays)
    assert issued(lambda: add()[1, 32](*arrays)) == [("launch", 1, 0)]


# --- Rule 2


def test_rule_2_every_producer_is_waited_for_and_waits_in_turn(launch):
    streams = [bascule.stream() for _ in range(3)]
    arrays = tuple(array_on(stream) for stream in streams)
    c = bascule.stream()
    prepared(*arrays)
    trace = issued(launch(c, arrays))
    at = trace.index(("launch", c.handle, 0))
    before, after = trace[:at], trace[at + 1 :]
    for stream in streams:
        records = [i for i, o in enumerate(before) if o[:2] == ("record", stream.handle)]
        assert len(records) == 1
        event = before[records[0]][2]
        assert ("wait", c.handle, event) in before[records[0] :]
    assert len(before) == 6
    assert after[0][:2] == ("record", c.handle)
    fence = after[0][2]
    assert sorted(after[1:]) == sorted(("wait", stream.handle, fence) for stream in streams)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_rule_2_holds_for_const_and_for_writable_parameters(position):
    p, c = bascule.stream(), bascule.stream()
    arrays = [array_on(None, stream=None) for _ in range(3)]
    arrays[position] = array_on(p)
    prepared(*arrays)
    assert without_events(issued(lambda: add()[1, 32, c](*arrays))) == ordered(c, p)


def test_rule_2_holds_for_templates_and_masks_too():
    p, q, c = (bascule.stream() for _ in range(3))
    x, out = (bascule.device_array(N, "i4", stream=s) for s in (p, c))
    mask = bascule.device_array(N, "u1", stream=q)
    for kernel, source, producers in [
        (lambda a: kernels().shift[1, N, c](out, a, N), x, [p]),
        (lambda a: kernels().sum_valid[1, N, c](a, out), Foreign(x, p.handle, mask=Foreign(mask, q.handle)), [p, q]),
    ]:
        kernel(source)
        kinds = Counter(without_events(issued(lambda kernel=kernel, source=source: kernel(source))))
        for producer in producers:
            assert kinds["record", producer.handle] == kinds["wait", producer.handle] == 1


def test_rule_2_every_call_of_a_bound_launch_is_ordered_anew():
    p, c = bascule.stream(), bascule.stream()
    arrays = [array_on(p) for _ in range(3)]
    bound = add()[1, 32, c].bind(*arrays)
    bound()
    once = without_events(issued(bound))
    assert len(once) == 5
    assert without_events(issued(lambda: [bound() for _ in range(3)])) == 3 * once


# --- Rule 3


def test_rule_3_a_producer_that_is_the_launch_stream_needs_no_event(launch):
    stream = bascule.stream()
    arrays = tuple(array_on(stream) for _ in range(3))
    prepared(*arrays)
    assert issued(launch(stream, arrays)) == [("launch", stream.handle, 0)]


def test_rule_3_without_a_stream_the_one_that_every_array_names_is_taken(launch):
    stream = bascule.stream()
    arrays = tuple(array_on(stream) for _ in range(3))
    prepared(*arrays)
    assert issued(launch(None, arrays)) == [("launch", stream.handle, 0)]


def test_rule_3_arrays_that_disagree_are_launched_on_the_default_stream(launch):
    p, q = bascule.stream(), bascule.stream()
    arrays = (array_on(p), array_on(q), array_on(p))
    prepared(*arrays)
    assert [o for o in issued(launch(None, arrays)) if o[0] == "launch"] == [("launch", 1, 0)]
    one_is_silent = (array_on(p), array_on(p), array_on(p, stream=None))
    assert [o for o in issued(launch(None, one_is_silent)) if o[0] == "launch"] == [("launch", 1, 0)]


def test_rule_3_the_order_of_the_arguments_does_not_choose_the_stream():
    p, q = bascule.stream(), bascule.stream()
    arrays = [array_on(p), array_on(q), array_on(q)]
    prepared(*arrays)
    chosen = {
        next(o for o in issued(lambda order=order: add()[1, 32](*(arrays[i] for i in order))) if o[0] == "launch")
        for order in [(0, 1, 2), (1, 0, 2), (2, 1, 0)]
    }
    assert chosen == {("launch", 1, 0)}


# --- Rule 4


def test_rule_4_arrays_on_one_stream_share_one_record_one_wait_and_one_fence(launch):
    p, c = bascule.stream(), bascule.stream()
    arrays = tuple(array_on(p) for _ in range(3))
    prepared(*arrays)
    assert without_events(issued(launch(c, arrays))) == ordered(c, p)


def test_rules_2_to_4_hold_for_random_streams_and_arguments():
    chance = random.Random(4)
    streams_kept = [bascule.stream() for _ in range(3)]
    streams = [*(s.handle for s in streams_kept), 1, 2]
    out = bascule.device_array(N, "i4")
    sources = {s: [bascule.device_array(N, "i4", stream=s) for _ in range(3)] for s in streams}
    for k in range(1, 9):  # fills the pool of events, and loads the code
        kernels()[f"sum{k}"][1, N](out, *[sources[1][0]] * k, N)
    silent = {s: Foreign(bascule.device_array(N, "i4"), None) for s in streams}
    for _ in range(60):
        c = chance.choice(streams)
        named = [chance.choice(streams) for _ in range(chance.randint(1, 8))]
        arrays = [chance.choice(sources[s]) for s in named]
        with bascule.emulated.trace() as operations:
            kernels()[f"sum{len(arrays)}"][1, N, c](silent[c], *arrays, N)
        trace = only_order(operations)
        foreign = set(named) - {c}
        at = trace.index(("launch", c, 0))
        before, after = Counter(without_events(trace[:at])), Counter(without_events(trace[at + 1 :]))
        assert before == Counter({("record", p): 1 for p in foreign}) + Counter({("wait", c): len(foreign)})
        assert after == Counter({("wait", p): 1 for p in foreign}) + Counter({("record", c): bool(foreign)})


# --- Rule 5


@pytest.mark.parametrize("handle", [1, 2])
def test_rule_5_the_default_streams_are_what_their_numbers_say(launch, handle):
    arrays = tuple(array_on(handle) for _ in range(3))
    prepared(*arrays)
    assert issued(launch(handle, arrays)) == [("launch", handle, 0)]
    c = bascule.stream()
    assert without_events(issued(launch(c, arrays))) == ordered(c, handle)


def test_rule_5_zero_given_by_the_user_is_the_default_stream(launch):
    arrays = tuple(array_on(1) for _ in range(3))
    prepared(*arrays)
    assert issued(launch(0, arrays)) == [("launch", 1, 0)]


def test_rule_5_the_two_default_streams_are_two_streams():
    arrays = [array_on(2) for _ in range(3)]
    prepared(*arrays)
    assert without_events(issued(lambda: add()[1, 32, 1](*arrays))) == ordered(1, 2)


def test_rule_5_two_means_the_stream_of_the_thread_that_launches():
    x = bascule.device_array(N, "i4", stream=2)
    results = []

    def work(value):
        kernels().set[1, N](x, value, N)  # on this thread's stream: nothing to wait for
        bascule.external_stream(2).synchronize()
        results.append(x.copy_to_host(stream=2)[0])

    kernels().set.prepare(x, 0, N)
    bascule.synchronize()
    for value in (3, 4):
        trace = issued(lambda value=value: in_a_thread(lambda: work(value)))
        assert trace == [("launch", 2, 0)]
    assert results == [3, 4]


def test_rule_5_nothing_is_remembered_by_a_streams_handle():
    c = bascule.stream()
    for _ in range(3):  # handles may be reused: each stream is waited for as the first was
        p = bascule.stream()
        arrays = [array_on(p) for _ in range(3)]
        prepared(*arrays)
        assert len(issued(lambda arrays=arrays: add()[1, 32, c](*arrays))) == 5
        bascule.synchronize()
        del p, arrays


# --- Rule 6


def test_rule_6_a_view_made_with_sync_false_is_not_ordered(launch):
    p, c = bascule.stream(), bascule.stream()
    views = tuple(bascule.as_cuda_array(array_on(p), sync=False) for _ in range(3))
    prepared(*views)
    assert issued(launch(c, views)) == [("launch", c.handle, 0)]


def test_rule_6_a_process_that_ignores_streams_orders_nothing_and_still_checks_them():
    p, c = bascule.stream(), bascule.stream()
    arrays = [array_on(p) for _ in range(3)]
    prepared(*arrays)
    bascule.config.cuda_array_interface_sync = False
    try:
        assert issued(lambda: add()[1, 32, c](*arrays)) == [("launch", c.handle, 0)]
        with pytest.raises(ValueError, match="stream"):
            add()[1, 32, c](*arrays[:2], array_on(p, stream=0))
        with pytest.raises(TypeError, match="stream"):
            add()[1, 32, c](*arrays[:2], array_on(p, stream="7"))
    finally:
        bascule.config.cuda_array_interface_sync = True


# --- Rule 7


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize(
    "bad",
    [
        lambda p: array_on(p, stream=0),
        lambda p: array_on(p, typestr="<f8"),
        lambda p: array_on(p, data=(0x1000, False)),
        lambda p: 1.5,
    ],
    ids=["stream 0", "another dtype", "unknown memory", "a number"],
)
def test_rule_7_any_bad_argument_leaves_the_trace_empty(position, bad):
    p, c = bascule.stream(), bascule.stream()
    arrays = [array_on(p) for _ in range(3)]
    prepared(*arrays)
    arrays[position] = bad(p)
    trace = issued(refused(lambda: add()[1, 32, c](*arrays)))
    assert trace == []


def test_rule_7_a_bad_geometry_leaves_the_trace_empty():
    p = bascule.stream()
    arrays = [array_on(p) for _ in range(3)]
    prepared(*arrays)
    assert issued(refused(lambda: add()[1, 4096](*arrays))) == []
    assert issued(refused(lambda: add()[0, 32](*arrays))) == []


def test_rule_7_no_python_runs_between_the_first_and_the_last_operation():
    p, c = bascule.stream(), bascule.stream()
    lengths = []

    class Watching(Foreign):
        @property
        def __cuda_array_interface__(self):
            lengths.append(_bascule._trace_length())
            return dict(self._fields)

    arrays = [Watching(bascule.to_device(np.ones(32, "f4"), stream=p), p.handle) for _ in range(3)]
    prepared(*arrays)
    lengths.clear()
    assert len(issued(lambda: add()[1, 32, c](*arrays))) == 5
    assert lengths == [0, 0, 0]


# --- Rules 8 and 9, with destroyed streams


def gone() -> int:
    stream = bascule.stream()
    handle = stream.handle
    del stream
    return handle


@pytest.mark.usefixtures("stale_handles")
def test_rule_8_a_producer_that_is_gone_stops_the_launch_and_is_named():
    p, c = bascule.stream(), bascule.stream()
    arrays = [array_on(p), array_on(None, stream=gone()), array_on(p)]
    prepared(array_on(p), array_on(p), array_on(p))
    with pytest.raises(bascule.CudaError, match="argument 2") as caught:
        add()[1, 32, c](*arrays)
    assert caught.value.call == "cuStreamIsCapturing"  # rule 13 checks before anything is issued
    assert issued(refused(lambda: add()[1, 32, c](*arrays))) == []


@pytest.mark.usefixtures("stale_handles")
def test_rule_8_a_launch_stream_that_is_gone_launches_nothing():
    p = bascule.stream()
    arrays = [array_on(p) for _ in range(3)]
    prepared(*arrays)
    assert issued(refused(lambda: add()[1, 32, gone()](*arrays))) == []


@pytest.mark.usefixtures("stale_handles")
def test_rule_8_the_events_of_failed_launches_are_used_again():
    p, c = bascule.stream(), bascule.stream()
    arrays = [array_on(p) for _ in range(3)]
    prepared(*arrays)
    add()[1, 32, c](*arrays)
    bad = [*arrays[:2], array_on(None, stream=gone())]
    before = _bascule._driver_calls("cuEventCreate")
    for _ in range(20):
        with pytest.raises(bascule.CudaError):
            add()[1, 32, c](*bad)
    add()[1, 32, c](*arrays)
    assert _bascule._driver_calls("cuEventCreate") == before


@pytest.mark.usefixtures("stale_handles")
def test_rule_9_a_launch_that_fails_is_not_followed_by_a_fence():
    arrays = [array_on(None, stream=None) for _ in range(3)]
    prepared(*arrays)
    stream = bascule.stream()
    launch = add()[1, 32, stream.handle]  # its device is queried here
    del stream
    with pytest.raises(bascule.CudaError) as caught:
        launch(*arrays)
    assert caught.value.call == "cuLaunchKernelEx"
    assert issued(refused(lambda: launch(*arrays))) == []


# --- Rule 11


def test_rule_11_an_event_is_never_shared_between_launches_in_flight():
    threads, launches = 8, 25
    producers = [bascule.stream() for _ in range(threads)]
    consumers = [bascule.stream() for _ in range(threads)]
    sets = [[array_on(p) for _ in range(3)] for p in producers]
    prepared(*sets[0])
    together = threading.Barrier(threads)

    def work(number):
        together.wait()
        for _ in range(launches):
            add()[1, 32, consumers[number]](*sets[number])

    def run():
        in_threads([lambda number=number: work(number) for number in range(threads)])

    trace = issued(run)
    partner = {p.handle: c.handle for p, c in zip(producers, consumers, strict=True)}
    partner |= {c: p for p, c in partner.items()}
    newest: dict[int, int] = {}  # the stream of an event's newest record
    for kind, stream, event in trace:
        if kind == "record":
            newest[event] = stream
        elif kind == "wait":
            # The event's newest record is that of the same launch, whatever the other threads did meanwhile.
            assert newest[event] == partner[stream]
    counted = Counter(without_events(trace))
    for p, c in zip(producers, consumers, strict=True):
        for stream in (p, c):
            assert counted["record", handle_of(stream)] == counted["wait", handle_of(stream)] == launches
        assert counted["launch", c.handle] == launches


def test_rule_11_threads_that_take_turns_with_an_array_need_no_waits_of_their_own():
    arrays = [bascule.to_device(np.zeros(N, "i4"), stream=bascule.stream()) for _ in range(4)]
    turns = [threading.Lock() for _ in arrays]  # these order calls on the host, not the end of kernels
    kernels().bump.prepare(arrays[0], N)

    def work(number):
        stream = bascule.stream()
        for k in range(10):
            chosen = (number + k) % 4
            with turns[chosen]:
                kernels().bump[1, N, stream](arrays[chosen], N)

    with searching_for_races():
        in_threads([lambda number=number: work(number) for number in range(8)])
    assert [array.copy_to_host().tolist() for array in arrays] == [[20] * N] * 4
