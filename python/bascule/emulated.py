"""Functions of the emulated device: operations, races between streams, memory that kernels leak, and profiles."""

import atexit
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from bascule import _bascule

if TYPE_CHECKING:
    from bascule._profile import Counts, KernelProfile, LineProfile, Profile, assert_profile, profile

__all__ = ["Leak", "Operation", "RaceStatistics", "checks", "install", "leaks", "race_statistics", "reset", "trace"]
__all__ += ["Counts", "KernelProfile", "LineProfile", "Profile", "assert_profile", "profile"]


def __getattr__(name: str) -> Any:
    """Import profiles at first use, because the modules that they need take longer than the rest."""
    if name not in __all__:
        raise AttributeError(f"module 'bascule.emulated' has no attribute '{name}'", name=name)
    value = globals()[name] = getattr(importlib.import_module("bascule._profile"), name)
    return value


class Operation(NamedTuple):
    """One operation that the host issued.

    kind : 'record', 'wait', 'launch', 'copy', 'fill', 'allocate', 'free', 'synchronize', 'create', 'destroy',
    'host function' or 'graph launch'. stream, event : handles, or 0. bytes : size of a copy, fill or allocation.
    name : the kernel or the driver function. device : the device's number.
    """

    kind: str
    stream: int
    event: int
    bytes: int
    name: str
    device: int = 0


@contextmanager
def trace() -> Iterator[list[Operation]]:
    """Record operations while the block runs. The list is filled when the block ends.

    On a GPU it records the driver calls that Bascule makes.
    """
    operations: list[Operation] = []
    _bascule._trace_start()
    try:
        yield operations
    finally:
        operations.extend(Operation(*fields) for fields in _bascule._trace_stop())


class RaceStatistics(NamedTuple):
    """Counts of the search for races since the start of the process.

    A result without races means something only if these counts grow. nodes : operations. edges : orders between
    operations. bytes : bytes whose accesses were compared. races : races found.
    """

    nodes: int
    edges: int
    bytes: int
    races: int


def race_statistics() -> RaceStatistics:
    """Return how much the emulated device has compared in its search for races.

    Raises LibraryError when kernels run on a GPU.
    """
    return RaceStatistics(**_bascule._race_statistics())


class Leak(NamedTuple):
    """Memory that one line of a kernel allocated, with malloc or new, and that nothing has freed.

    kernel : the kernel's name. place : the file, the line and its text. allocations : their number. bytes : their total
    size.
    """

    kernel: str
    place: str
    allocations: int
    bytes: int

    def __str__(self) -> str:
        plural = "" if self.allocations == 1 else "s"
        made = f"made by kernel '{self.kernel}' at {self.place}"
        return f"{self.bytes} bytes in {self.allocations} allocation{plural}, {made}"


def leaks() -> list[Leak]:
    """List memory that kernels allocated with malloc or new, in any context, and that no kernel has freed.

    The host waits for all devices first. A later kernel may still free such memory, so call this when none will.
    BASCULE_EMULATED_CHECKS=leaks lists the leaks on stderr at the end of the process.

    Raises LibraryError when kernels run on a GPU.

    >>> for leak in bascule.emulated.leaks():
    ...     print(leak)
    """
    _bascule._race_statistics()  # raises LibraryError on a GPU
    _bascule._finish_devices()
    return [Leak(*fields) for fields in _bascule._leaks()]


@contextmanager
def checks(*, races: bool) -> Iterator[None]:
    """Turn the search for races between streams on or off while the block runs.

    A race is two operations on different streams that access the same bytes, at least one of them writing, with no
    wait that orders them. It is found in whatever order the operations ran. The next call that waits (`synchronize`, a
    `query` that returns True, `copy_to_host`) raises RaceError, at the latest the end of the block. The host waits for
    all devices at the beginning and at the end of the block. BASCULE_EMULATED_CHECKS=races turns the search on for the
    whole process.

    races : bool, whether to search for races.

    Raises LibraryError when kernels run on a GPU.

    >>> with bascule.emulated.checks(races=True):
    ...     kernel[8, 128](x)
    ...     print(x.copy_to_host())
    """
    _bascule._raise_races(_finish())  # races from before the block
    before = _bascule._look_for_races(races)
    try:
        with _raising_races():
            yield
    finally:
        _bascule._look_for_races(before)


def reset() -> None:
    """Make the emulated device usable again after a fault, without a restart of the process.

    Pending work on all devices is discarded. Arrays in device memory are lost: using one raises CudaError, and deleting
    it frees its memory as usual. Graphs are lost too; capture them again. Everything else stays valid: kernels and
    modules with the values of their variables, streams, events, pinned and managed arrays. Other threads that are
    waiting for the device get CudaError.

    Raises LibraryError when kernels run on a GPU, where only a restart of the process helps.

    >>> try:
    ...     kernel[8, 128](x)  # out of bounds
    ... except bascule.CudaError as error:
    ...     print(error)
    ...     bascule.emulated.reset()
    >>> x = bascule.to_device(host)
    """
    _bascule.current_device()
    _bascule._reset_devices()


def install(*, schedule: str | None = None) -> None:
    """Make the emulated device the CUDA driver of this process, which other libraries find as `libcuda.so.1`.

    Call this before importing libraries that use the driver API (numba-cuda, cuda.core, PyCUDA). Bascule shares the
    device with them: races, fault reports and recorded operations cover all libraries, and `reset` resets the device
    for all. The libraries then let the driver link their PTX, because the emulated device cannot run machine code. A
    second call does nothing. `python -m bascule emulate -- COMMAND` does the same without changes to the program.

    schedule : str or None
        When enqueued work runs, as in BASCULE_EMULATED_SCHEDULE. None takes that variable, else 'threads', so that a
        kernel that waits for the host can end.

    Raises LibraryError if a CUDA driver, nvJitLink or such a library is already loaded, or if Bascule already uses a
    GPU or another schedule.

    >>> bascule.emulated.install()
    >>> from numba import cuda
    """
    from bascule import _stand_ins

    _stand_ins.load(schedule)


@contextmanager
def _raising_races() -> Iterator[None]:
    """Raise the races of the block's work. If the block raises, add them as notes, because they may be the cause."""
    try:
        yield
    except BaseException as error:
        for race in _finish():
            error.add_note(race)
        raise
    _bascule._raise_races(_finish())


def _finish() -> list[str]:
    """Run all pending work and compare its accesses."""
    _bascule._finish_devices()
    return _bascule._take_races()


# The time that pending work may take at the end of the process while the search for races is on.
_LAST_MILLISECONDS = 2000


def _end(process: int = os.getpid()) -> None:
    """At exit, print leaks if they are asked for, and races that no call raised. Waits for work only if needed."""
    if os.getpid() != process:
        return
    if _bascule._take_over_leaks():
        _bascule._finish_devices()
        for leak in _bascule._leaks():
            print(f"bascule: {Leak(*leak)}, and nothing has freed it", file=sys.stderr)
    if not _bascule._looks_for_races():
        _bascule._end_program(0)
        return
    _bascule._end_program(_LAST_MILLISECONDS)
    for race in _bascule._take_races():
        print(
            f"bascule: a race that no call raised, because the program ended before it waited.\n{race}", file=sys.stderr
        )


atexit.register(_end)
