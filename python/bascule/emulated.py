"""The emulated device's own side: what was asked of it, operation by operation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bascule import _bascule

__all__ = ["Operation", "trace"]


@dataclass(frozen=True)
class Operation:
    """One operation as the host issued it.

    kind : 'record', 'wait', 'launch', 'copy', 'fill', 'allocate', 'free', 'synchronize', 'create', 'destroy' or
    'host function'. stream, event : handles, 0 when there is none. bytes : of a copy, fill or allocation.
    name : the kernel or driver function. device : the number of the device.
    """

    kind: str
    stream: int
    event: int
    bytes: int
    name: str
    device: int = 0


@contextmanager
def trace() -> Iterator[list[Operation]]:
    """Record operations; the list is filled when the block ends.

    Raises LibraryError when kernels run on a GPU.
    """
    operations: list[Operation] = []
    _bascule._trace_start()
    try:
        yield operations
    finally:
        operations.extend(Operation(*fields) for fields in _bascule._trace_stop())
