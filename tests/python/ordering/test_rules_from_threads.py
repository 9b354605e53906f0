"""The rules of order when eight threads launch at once: each of them issues what it would issue alone."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from conftest import traced
from plain_launches import add, array_on, issued, ordered, prepared
from scene import in_threads, searching_for_races

import bascule

THREADS = 8
LAUNCHES = 10
Steps = list[tuple[str, int]]
Made = tuple[bascule.Stream, Callable[[], object], Steps, list[int]]


def at_once(work: Callable[[int], None]) -> None:
    """Runs `work(number)` in several threads, which begin together; raises the first exception."""
    together = threading.Barrier(THREADS)

    def run(number: int) -> None:
        together.wait()
        work(number)

    in_threads([lambda number=number: run(number) for number in range(THREADS)])


GONE = 0xDEAD0  # not a stream; another thread's new stream may get the handle of a destroyed one


# --- A row for each rule: the action of one thread, with its own streams and arrays, and the expected operations


def rule_1() -> Made:
    c = bascule.stream()
    arrays = [array_on(None, stream=None) for _ in range(3)]
    return c, lambda: add()[1, 32, c](*arrays), ordered(c), []


def rule_2() -> Made:
    p, q, c = (bascule.stream() for _ in range(3))
    arrays = [array_on(p), array_on(q), array_on(c)]
    return c, lambda: add()[1, 32, c](*arrays), ordered(c, p, q), [p.handle, q.handle]


def rule_3() -> Made:
    c = bascule.stream()
    arrays = [array_on(c) for _ in range(3)]
    return c, lambda: add()[1, 32](*arrays), ordered(c), []


def rule_3_by_the_current_stream() -> Made:
    p, c = bascule.stream(), bascule.stream()
    arrays = [array_on(p), array_on(c), array_on(c)]

    def launch() -> None:
        with c:  # a context variable: every thread has its own
            add()[1, 32](*arrays)

    return c, launch, ordered(c, p), [p.handle]


def rule_4() -> Made:
    p, c = bascule.stream(), bascule.stream()
    arrays = [array_on(p) for _ in range(3)]
    return c, lambda: add()[1, 32, c](*arrays), ordered(c, p), [p.handle]


def rule_6() -> Made:
    p, c = bascule.stream(), bascule.stream()
    arrays = [bascule.as_cuda_array(array_on(p), sync=False) for _ in range(3)]
    return c, lambda: add()[1, 32, c](*arrays), ordered(c), [p.handle]


def rule_7() -> Made:
    p, c = bascule.stream(), bascule.stream()
    arrays = [array_on(p), array_on(p), array_on(p, stream=0)]

    def launch() -> None:
        with pytest.raises(ValueError, match="argument 3.*stream"):
            add()[1, 32, c](*arrays)

    return c, launch, [], [p.handle]


def rule_8() -> Made:
    p, c = bascule.stream(), bascule.stream()
    arrays = [array_on(p), array_on(None, stream=GONE), array_on(p)]

    def launch() -> None:
        with pytest.raises(bascule.CudaError, match="argument 2"):
            add()[1, 32, c](*arrays)

    return c, launch, [], [p.handle]


def rule_9() -> Made:
    c = bascule.stream()
    arrays = [array_on(None, stream=None) for _ in range(3)]

    def launch() -> None:
        with pytest.raises(bascule.CudaError):
            add()[1, 32, GONE](*arrays)

    return c, launch, [], []


def fills_and_copies() -> Made:
    p, c = bascule.stream(), bascule.stream()
    x = bascule.device_array(32, "f4", stream=p)
    out = bascule.pinned_array(32, "f4", stream=c)
    r, w = [("record", p.handle), ("wait", c.handle)], [("record", c.handle), ("wait", p.handle)]

    def work() -> None:
        x.fill(1, stream=c)
        x.copy_to_host(out=out, stream=c)

    return c, work, [*r, ("fill", c.handle), *w, *r, ("copy", c.handle), *w], [p.handle]


RULES = {
    make.__name__: make
    for make in (
        rule_1,
        rule_2,
        rule_3,
        rule_3_by_the_current_stream,
        rule_4,
        rule_6,
        rule_7,
        rule_8,
        rule_9,
        fills_and_copies,
    )
}


STALE = {"rule_8", "rule_9"}


@pytest.mark.parametrize("rule", RULES)
def test_each_of_many_threads_issues_what_the_rule_says(rule, request):
    if rule in STALE:
        request.getfixturevalue("stale_handles")
    prepared(*(array_on(None) for _ in range(3)))
    made = [RULES[rule]() for _ in range(THREADS)]
    bascule.synchronize()  # arrays that name no stream must be ready before the launches

    def work(number: int) -> None:
        for _ in range(LAUNCHES):
            made[number][1]()

    with traced() as operations:
        at_once(work)
    kinds = ("record", "wait", "launch", "copy", "fill")
    trace = [(o.kind, o.stream, o.event) for o in operations if o.kind in kinds]
    newest: dict[int, int] = {}  # the stream of an event's newest record
    for kind, stream, event in trace:
        if kind == "record":
            newest[event] = stream
        if kind == "wait":  # rule 11: no other thread recorded that event meanwhile
            mine = next(m for m in made if stream == m[0].handle or stream in m[3])
            assert newest[event] in [mine[0].handle, *mine[3]]
    for c, _, expected, others in made:
        own = [(kind, stream) for kind, stream, _ in trace if stream in (c.handle, *others)]
        assert own == expected * LAUNCHES
    bascule.synchronize()


@pytest.mark.parametrize("handle", [1, 2])
def test_rule_5_the_default_streams_are_the_launching_threads_own(handle):
    consumers = [bascule.stream() for _ in range(THREADS)]
    arrays = [[array_on(None, stream=handle) for _ in range(3)] for _ in range(THREADS)]
    prepared(*arrays[0])
    trace = issued(lambda: at_once(lambda number: add()[1, 32, consumers[number]](*arrays[number])))
    for c in consumers:
        own = [(kind, event) for kind, stream, event in trace if stream == c.handle]
        assert [kind for kind, _ in own] == ["wait", "launch", "record"]
        (waited,), (fence,) = ([e for k, e in own if k == kind] for kind in ("wait", "record"))
        position = trace.index(("wait", c.handle, waited))
        assert ("record", handle, waited) in trace[:position]
        assert ("wait", handle, fence) in trace[trace.index(("record", c.handle, fence)) :]
    assert sum(kind == "record" and stream == handle for kind, stream, _ in trace) == THREADS


def test_rule_13_every_thread_captures_a_graph_of_its_own():
    prepared(*(array_on(None) for _ in range(3)))
    producers = [bascule.stream() for _ in range(THREADS)]
    consumers = [bascule.stream() for _ in range(THREADS)]
    arrays = [[array_on(p) for _ in range(3)] for p in producers]
    graphs = [bascule.Graph() for _ in range(THREADS)]

    def capture(number: int) -> None:
        with graphs[number]:
            add()[1, 32](*arrays[number])

    captured = issued(lambda: at_once(capture))
    assert sorted(captured) == sorted(("launch", graph.stream.handle, 0) for graph in graphs)

    with traced() as operations:
        at_once(lambda number: graphs[number].launch(consumers[number]))
    trace = [(o.kind, o.stream) for o in operations if o.kind in ("record", "wait", "graph launch")]
    for p, c in zip(producers, consumers, strict=True):
        own = [step for step in trace if step[1] in (p.handle, c.handle)]
        assert own == ordered(c, p, kind="graph launch")
    bascule.synchronize()


def test_rule_13_what_one_thread_captures_does_not_concern_the_others():
    c = bascule.stream()
    arrays = [array_on(c) for _ in range(3)]
    prepared(*arrays)
    captured, launched = threading.Event(), threading.Event()
    graph = bascule.Graph()
    failures: list[BaseException] = []

    def capture() -> None:
        with graph:
            captured.set()
            if not launched.wait(60):
                failures.append(AssertionError("the other thread did not launch"))
            add()[1, 32](*arrays)

    thread = threading.Thread(target=capture)
    thread.start()
    assert captured.wait(60)
    try:
        add()[1, 32, c](*arrays)
        c.synchronize()  # another thread's capture does not forbid it
        assert bascule.as_cuda_array(arrays[0]).copy_to_host().shape == (32,)
    finally:
        launched.set()
        thread.join()
    assert failures == []
    assert len(graph) == 1


def test_rules_14_and_15_owners_of_every_thread_are_kept_until_its_stream_is_done():
    prepared(*(array_on(None) for _ in range(3)))
    streams = [bascule.stream() for _ in range(THREADS)]
    alive: list[list[weakref.ref]] = [[] for _ in range(THREADS)]

    def work(number: int) -> None:
        arrays = [array_on(streams[number]) for _ in range(3)]
        alive[number] = [weakref.ref(array) for array in arrays]
        add()[1, 32, streams[number]](*arrays)

    at_once(work)
    gc.collect()
    assert all(reference() is not None for references in alive for reference in references)
    for number, stream in enumerate(streams):
        stream.synchronize()
        gc.collect()
        held = [any(reference() is not None for reference in references) for references in alive]
        assert held == [k > number for k in range(THREADS)]


@pytest.mark.usefixtures("stale_handles")
def test_rule_8_and_what_is_left_of_it_when_every_second_launch_fails():
    """Threads whose launches fail leave the events, owners and results of the others unchanged."""
    p = [bascule.stream() for _ in range(THREADS)]
    good = [[array_on(s) for _ in range(3)] for s in p]
    prepared(*good[0])
    bad = [[*arrays[:2], array_on(None, stream=GONE)] for arrays in good]
    c = [bascule.stream() for _ in range(THREADS)]

    def work(number: int) -> None:
        for _ in range(LAUNCHES):
            add()[1, 32, c[number]](*good[number])
            with pytest.raises(bascule.CudaError):
                add()[1, 32, c[number]](*bad[number])

    with searching_for_races():
        at_once(work)
        bascule.synchronize()
    gc.collect()
    assert bascule._bascule._owners_held() == 0
    for arrays in good:
        values = [bascule.as_cuda_array(array).copy_to_host() for array in arrays]
        np.testing.assert_array_equal(values[2], values[0] + values[1])
