"""The emulated device's own side: what was asked of it, operation by operation, and the races that it finds."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bascule import _bascule

__all__ = ["Operation", "RaceStatistics", "checks", "race_statistics", "trace"]


@dataclass(frozen=True)
class Operation:
    """One operation as the host issued it.

    kind : 'record', 'wait', 'launch', 'copy', 'fill', 'allocate', 'free', 'synchronize', 'create', 'destroy',
    'host function' or 'graph launch'. stream, event : handles, 0 when there is none. bytes : of a copy, fill or
    allocation. name : the kernel or driver function. device : the number of the device.
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


@dataclass(frozen=True)
class RaceStatistics:
    """What the search for races did since the process started; no race means something only where these grow.

    nodes : operations watched. edges : orders between them. bytes : accessed, and compared with the accesses of
    other operations. races : found.
    """

    nodes: int
    edges: int
    bytes: int
    races: int


def race_statistics() -> RaceStatistics:
    """How much the emulated device has looked at for races.

    Raises LibraryError when kernels run on a GPU.
    """
    return RaceStatistics(**_bascule._race_statistics())


@contextmanager
def checks(*, races: bool) -> Iterator[None]:
    """Look for races between streams (or do not) while the block runs.

    A race is two operations on different streams that touch the same bytes, one of them writing, with no wait
    that puts one before the other; it is found however the two happened to run. It raises RaceError at the next
    call that waits: `synchronize`, a `query` that says True, `copy_to_host`; at the latest when the block ends.
    The host waits for every device when the block begins and when it ends. BASCULE_EMULATED_CHECKS=races does
    the same for a whole process.

    races : whether to look.

    Raises LibraryError when kernels run on a GPU.

    >>> with bascule.emulated.checks(races=True):
    ...     kernel[8, 128](x)
    ...     print(x.copy_to_host())
    """
    _bascule._raise_races(_finish())  # of before the block
    before = _bascule._look_for_races(races)
    try:
        yield
    except BaseException as error:
        # What the block raised is what its caller waits for; the races may be why.
        for race in _finish():
            error.add_note(race)
        raise
    else:
        _bascule._raise_races(_finish())
    finally:
        _bascule._look_for_races(before)


def _finish() -> list[str]:
    """Everything pending is run, and what it touched is compared."""
    _bascule._finish_devices()
    return _bascule._take_races()


def _print_what_nobody_took(process: int = os.getpid()) -> None:
    """At exit: a race that no synchronising call raised must not be lost."""
    if os.getpid() != process or not _bascule._looks_for_races():
        return
    for race in _finish():
        print(f"bascule: a race that no call raised: the program ended before it waited.\n{race}", file=sys.stderr)


atexit.register(_print_what_nobody_took)
