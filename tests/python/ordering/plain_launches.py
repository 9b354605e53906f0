"""One launch, and what it issued: records, waits and the launch itself."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from conftest import ForeignArray, traced

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


Issued = list[tuple[str, int, int]]


def issued(action: Callable[[], object]) -> Issued:
    """(kind, stream, event) of the records, waits and launches of an action."""
    with traced() as operations:
        action()
    return only_order(operations)


def only_order(operations: list[bascule.emulated.Operation]) -> Issued:
    return [(o.kind, o.stream, o.event) for o in operations if o.kind in ("record", "wait", "launch")]


def without_events(operations: Issued) -> list[tuple[str, int]]:
    return [(kind, stream) for kind, stream, _ in operations]


def prepared(*arguments: object) -> None:
    """Compiles, loads, and fills the pool of events; everything is done when it returns."""
    bascule.synchronize()  # arrays that are to be launched unordered are there before
    add()[1, 32](*arguments)
    bascule.synchronize()
