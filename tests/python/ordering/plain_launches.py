"""One launch, and the records, waits and launches that it issued."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np
from conftest import ForeignArray, traced
from scene import Stream, handle_of

import bascule


@functools.cache
def add() -> bascule.Kernel:
    return bascule.compile(
        """
        __global__ void add(const float* a, const float* b, float* out) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            out[i] = a[i] + b[i];
        }"""
    ).add


def array_on(bound: object, **changes: object) -> ForeignArray:
    """An array of another library on a stream."""
    return ForeignArray(bascule.to_device(np.ones(32, "f4"), stream=bound), **changes)


def rule_2(c: Stream, *producers: Stream, kind: str = "launch") -> Iterator[tuple[str, Stream]]:
    """The operations that rule 2 requires for one operation on c whose arrays name the producers, if any."""
    for p in producers:
        yield from (("record", p), ("wait", c))
    yield kind, c
    if producers:
        yield "record", c
    for p in producers:
        yield "wait", p


def ordered(c: Stream, *producers: Stream, kind: str = "launch") -> list[tuple[str, int]]:
    """The operations of `rule_2`, with the streams' handles."""
    return [(what, handle_of(stream)) for what, stream in rule_2(c, *producers, kind=kind)]


Issued = list[tuple[str, int, int]]


def issued(action: Callable[[], object]) -> Issued:
    """Runs `action`, and returns (kind, stream, event) of its records, waits and launches."""
    with traced() as operations:
        action()
    return only_order(operations)


def only_order(operations: list[bascule.emulated.Operation]) -> Issued:
    return [(o.kind, o.stream, o.event) for o in operations if o.kind in ("record", "wait", "launch")]


def without_events(operations: Issued) -> list[tuple[str, int]]:
    return [(kind, stream) for kind, stream, _ in operations]


def prepared(*arguments: object) -> None:
    """Compiles, loads, and fills the pool of events; all work is complete when it returns."""
    bascule.synchronize()  # arrays without a stream must be ready
    add()[1, 32](*arguments)
    bascule.synchronize()
