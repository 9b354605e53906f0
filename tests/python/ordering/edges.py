"""Ways to order work of one stream before work of another, and ways that only seem to: one row each.

A row is a short program in which `first` and `then` stand for any two operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from scene import (
    BLOCKING,
    LEGACY,
    NEAR_LEGACY,
    NEAR_PER_THREAD,
    OTHER_BLOCKING,
    PER_THREAD,
    C,
    D,
    P,
    Q,
    Scene,
    in_threads,
)

import bascule

E, F = "e", "f"  # events

Work = Callable[[bascule.Stream], object]


@dataclass
class Run:
    """One run of a row; its events are made when they are first used."""

    scene: Scene
    first: Work
    then: Work
    events: dict[str, bascule.Event] = field(default_factory=dict)

    def stream(self, name: str) -> bascule.Stream:
        return self.scene.named(name)

    def event(self, name: str, stream: str) -> bascule.Event:
        if name not in self.events:
            with self.stream(stream).device:
                self.events[name] = bascule.event(timing=False)
        return self.events[name]


Step = Callable[[Run], object]


def first(stream: str) -> Step:
    return lambda run: run.first(run.stream(stream))


def then(stream: str) -> Step:
    return lambda run: run.then(run.stream(stream))


def unrelated(stream: str) -> Step:
    """Work on memory that nothing else touches."""
    return lambda run: run.scene.produce(run.stream(stream), run.scene.array(run.stream(stream)))


def record(event: str, stream: str) -> Step:
    return lambda run: run.event(event, stream).record(run.stream(stream))


def wait(event: str, stream: str) -> Step:
    return lambda run: run.event(event, stream).wait(run.stream(stream))


def link(before: str, after: str) -> Step:
    """A new event, recorded on one stream and waited for by the other."""
    return lambda run: run.scene.link(run.stream(before), run.stream(after))


def synchronize(what: str) -> Step:
    return lambda run: (run.events.get(what) or run.stream(what)).synchronize()


def poll(what: str) -> Step:
    return lambda run: poll_until_done(run.events.get(what) or run.stream(what))


def poll_until_done(what: bascule.Stream | bascule.Event) -> None:
    while not what.query():
        pass


def synchronize_device_of(stream: str) -> Step:
    def step(run: Run) -> None:
        with run.stream(stream).device:
            bascule.synchronize()

    return step


def copy_to_host(stream: str) -> Step:
    """A copy to the host, which waits until it is complete."""
    return lambda run: run.scene.array(run.stream(stream)).copy_to_host()


def destroy(what: str) -> Step:
    return lambda run: run.events.pop(what, None) or run.scene.names.pop(what)


def thread(*steps: Step) -> Step:
    return threads(steps)


def threads(*works: tuple[Step, ...]) -> Step:
    return lambda run: in_threads([lambda work=work: [step(run) for step in work] for work in works])


@dataclass(frozen=True)
class Edge:
    steps: tuple[Step, ...]
    orders: bool
    devices: tuple[int, ...] = (1, 2)  # numbers of devices that it can run on
    reported: tuple[str, ...] = ()  # what a report of the race must name besides both operations

    def __call__(self, scene: Scene, first: Work, then: Work) -> None:
        run = Run(scene, first, then)
        for step in self.steps:
            step(run)
        scene.kept += run.events.values()


def order(*steps: Step, **more: object) -> Edge:
    return Edge(steps, orders=True, **more)


def race(*steps: Step, **more: object) -> Edge:
    return Edge(steps, orders=False, **more)


OTHER_THREAD = ("for what the per-thread default stream of", "another thread was given")
OTHER_DEVICE = ("0 must wait, before the launch of", "of device 1 was given")

EDGES: dict[str, Edge] = {
    "nothing": race(first(P), then(C)),
    # Events
    "an_event": order(first(P), record(E, P), wait(E, C), then(C)),
    "an_event_recorded_too_early": race(record(E, P), first(P), wait(E, C), then(C)),
    "an_event_that_was_never_recorded": race(first(P), wait(E, C), then(C)),
    "a_wait_that_comes_too_late": race(first(P), record(E, P), then(C), wait(E, C)),
    "a_wait_of_another_stream": race(first(P), record(E, P), wait(E, D), then(C)),
    "an_event_recorded_elsewhere_after_the_wait": order(
        first(P),
        record(E, P),
        wait(E, C),
        record(E, Q),
        then(C),  # the wait refers to the earlier record
    ),
    "an_event_recorded_elsewhere_before_the_wait": race(first(P), record(E, P), record(E, Q), wait(E, C), then(C)),
    "an_event_destroyed_after_the_wait": order(first(P), record(E, P), wait(E, C), destroy(E), then(C)),
    "a_chain_of_events": order(first(P), link(P, C), link(C, Q), link(Q, D), then(D)),
    "one_event_for_a_whole_chain": order(first(P), record(E, P), wait(E, Q), record(E, Q), wait(E, C), then(C)),
    "a_chain_whose_second_link_comes_first": race(
        first(P), record(E, P), record(F, C), wait(E, C), wait(F, Q), then(Q)
    ),
    "a_diamond": order(first(P), link(P, Q), link(P, D), link(Q, C), link(D, C), then(C)),
    # Streams
    "one_stream": order(first(P), then(P)),
    "a_stream_that_waits_for_itself": order(first(P), link(P, P), then(P)),
    "a_stream_destroyed_after_the_record": order(first(P), record(E, P), destroy(P), wait(E, C), then(C)),
    "a_stream_destroyed": race(first(P), destroy(P), then(C)),  # destroying a stream waits for nothing
    # Default streams
    "a_threads_default_stream_after_the_legacy_one": order(first(LEGACY), then(PER_THREAD)),
    "the_legacy_default_stream_after_a_threads": order(first(PER_THREAD), then(LEGACY)),
    "the_legacy_default_stream_after_a_blocking_one": order(first(BLOCKING), then(LEGACY)),
    "a_blocking_stream_after_the_legacy_default_stream": order(first(LEGACY), then(BLOCKING)),
    "the_legacy_default_stream_between_two_blocking_ones": order(
        first(BLOCKING), unrelated(LEGACY), then(OTHER_BLOCKING)
    ),
    "the_legacy_default_stream_between_two_threads": order(
        first(PER_THREAD), unrelated(LEGACY), thread(then(PER_THREAD))
    ),
    "the_default_streams_of_two_threads": race(first(PER_THREAD), thread(then(PER_THREAD)), reported=OTHER_THREAD),
    "the_legacy_default_stream_and_a_non_blocking_one": race(first(LEGACY), then(C)),
    "a_threads_default_stream_and_a_non_blocking_one": race(first(PER_THREAD), then(C)),
    "a_threads_default_stream_and_a_blocking_one": race(first(PER_THREAD), then(BLOCKING)),
    "the_legacy_default_streams_of_two_devices": race(
        first(LEGACY), then(NEAR_LEGACY), devices=(2,), reported=OTHER_DEVICE
    ),
    "a_threads_default_streams_of_two_devices": race(
        first(PER_THREAD), then(NEAR_PER_THREAD), devices=(2,), reported=OTHER_DEVICE
    ),
    "a_blocking_stream_and_another_devices_legacy_one": race(first(BLOCKING), then(NEAR_LEGACY), devices=(2,)),
    # The host
    "the_host_waits_for_the_stream": order(first(P), synchronize(P), then(C)),
    "the_host_waits_for_the_device": order(first(P), synchronize_device_of(P), then(C)),
    "the_host_waits_for_an_event": order(first(P), record(E, P), unrelated(P), synchronize(E), then(C)),
    "the_host_waits_for_a_stream_that_waited": order(first(P), link(P, D), synchronize(D), then(C)),
    "the_host_polls_the_stream": order(first(P), poll(P), then(C)),
    "the_host_polls_an_event": order(first(P), record(E, P), poll(E), then(C)),
    "the_host_waits_for_a_copy": order(first(P), copy_to_host(P), then(C)),
    "the_host_waits_for_another_stream": race(first(P), synchronize(Q), then(C)),
    "the_host_waits_for_another_device": race(first(P), synchronize_device_of(C), then(C), devices=(2,)),
    "the_host_waits_too_early": race(synchronize(P), first(P), then(C)),
    # Threads of the host
    "one_thread_waits_and_another_goes_on": order(first(P), thread(synchronize(P)), then(C)),
    "one_thread_records_and_another_waits": order(thread(first(P), record(E, P)), thread(wait(E, C), then(C))),
    "two_threads_at_once": race(threads((first(P),), (then(C),))),
}
