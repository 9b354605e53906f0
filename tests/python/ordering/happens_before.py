"""Computes the order of recorded operations in plain Python, independently of the emulated device.

It is the reference for the race detector. Streams are first in, first out. A wait takes the newest record of its event.
Work that the host issues after a synchronisation is ordered after it. The legacy default stream waits for all blocking
streams of its device, and they wait for it; of the streams used here only the per-thread default streams are blocking.
Every device has its own default streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

LEGACY = 1
PER_THREAD = 2

Key = tuple[int, int, int]  # of a stream: its handle, its device, and the thread if the handle does not identify it


@dataclass(frozen=True)
class Step:
    """An operation, the thread that issued it, and the addresses of the bytes that it reads and writes."""

    kind: str
    stream: int
    event: int
    name: str
    thread: int
    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    device: int = 0

    def __str__(self) -> str:
        stream = {LEGACY: "legacy", PER_THREAD: f"per-thread {self.thread}"}.get(self.stream, f"{self.stream:#x}")
        if self.device:
            stream += f" of device {self.device}"
        if self.kind in ("record", "wait"):
            return f"{self.kind} e{self.event:#x} on {stream}"
        return f"{self.kind}{' ' + self.name if self.name else ''} on {stream}"


class Order:
    """The order of the steps, as if the step `dropped` had not been issued."""

    def __init__(self, steps: Sequence[Step], dropped: int | None = None) -> None:
        self.steps = steps
        self.before: list[list[int]] = []  # direct predecessors of each step
        self._ancestors: list[int] = []  # as bit sets
        self._last: dict[Key, int] = {}  # the last step of each stream
        self._recorded: dict[int, int] = {}  # the newest record of each event
        self._host: set[int] = set()  # the steps that the host has waited for
        self._told: dict[int, set[int]] = {}  # the steps that the host had waited for when it issued each step
        for number, step in enumerate(steps):
            self._add(number, step, forgotten=number == dropped)

    def _add(self, number: int, step: Step, forgotten: bool) -> None:
        before: set[int] = set()
        if not forgotten:
            if step.kind == "synchronize":
                self._host.update(self._waited_for(step))
            else:
                before = self._issue(number, step)
        self.before.append(sorted(before))
        ancestors = 0
        for earlier in before:
            ancestors |= self._ancestors[earlier] | 1 << earlier
        self._ancestors.append(ancestors)

    def _issue(self, number: int, step: Step) -> set[int]:
        stream = _key(step)
        before = {last for other, last in self._last.items() if other == stream or _blocks(stream, other)}
        if step.kind == "wait" and step.event in self._recorded:
            before.add(self._recorded[step.event])
        if step.kind == "record":
            self._recorded[step.event] = number
        self._last[stream] = number
        self._told[number] = self._host - before
        return before | self._host

    def _waited_for(self, step: Step) -> Iterator[int]:
        if step.event:
            if step.event in self._recorded:
                yield self._recorded[step.event]
        elif step.name == "cuCtxSynchronize":
            yield from (last for (_, device, _), last in self._last.items() if device == step.device)
        else:
            stream = _key(step)
            yield from (last for other, last in self._last.items() if other == stream or _blocks(stream, other))

    def comes_before(self, earlier: int, later: int) -> bool:
        return bool(self._ancestors[later] >> earlier & 1)

    def by_the_host(self, earlier: int, later: int) -> bool:
        """True if `earlier` directly precedes `later` because the host waited for it."""
        return earlier in self._told.get(later, ())

    def path(self, earlier: int, later: int) -> list[int]:
        """The steps that lead from one to the other, both included."""
        came_from = {later: later}
        todo = [later]
        for number in todo:
            for previous in self.before[number]:
                if previous not in came_from and (previous == earlier or self.comes_before(earlier, previous)):
                    came_from[previous] = number
                    todo.append(previous)
        steps = [earlier]
        while steps[-1] != later:
            steps.append(came_from[steps[-1]])
        return steps


def conflicts(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """Pairs of steps that touch the same byte, where at least one writes it."""
    touching = [i for i, step in enumerate(steps) if step.reads or step.writes]
    return [
        (a, b)
        for position, b in enumerate(touching)
        for a in touching[:position]
        if steps[a].writes & (steps[b].writes | steps[b].reads) or steps[a].reads & steps[b].writes
    ]


def races(order: Order, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The conflicting pairs that nothing orders."""
    return [(a, b) for a, b in pairs if not order.comes_before(a, b)]


def why_nothing_is_lost(full: Order, mutant: Order, pairs: Sequence[tuple[int, int]], dropped: int) -> str:
    """Explains why the dropped step of a mutant without races is redundant."""
    through = [(a, b) for a, b in pairs if full.comes_before(a, dropped) and full.comes_before(dropped, b)]
    if not through:
        return "no operation before it and operation after it touch the same bytes"
    steps = mutant.steps
    between_streams = [(a, b) for a, b in through if _key(steps[a]) != _key(steps[b])]
    path = mutant.path(*(between_streams or through)[0])
    text = str(steps[path[0]])
    for earlier, later in pairwise(path):
        text += (" -> the host -> " if mutant.by_the_host(earlier, later) else " -> ") + str(steps[later])
    return f"another path leads there: {text}"


def _key(step: Step) -> Key:
    stream = step.stream or LEGACY
    return (stream, step.device, step.thread if stream == PER_THREAD else 0)


def _blocks(one: Key, other: Key) -> bool:
    return one[1] == other[1] and {one[0], other[0]} == {LEGACY, PER_THREAD}
