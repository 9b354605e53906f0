"""Functions of the emulated device: checks and profiles of kernels, recorded operations, and leaks of kernels."""

import atexit
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from bascule import _bascule, _errors

if TYPE_CHECKING:
    from bascule._findings import Finding, ThreadAction
    from bascule._profile import Counts, KernelProfile, LineProfile, Profile, assert_profile, profile

__all__ = [
    "Counts",
    "Finding",
    "KernelProfile",
    "Leak",
    "LineProfile",
    "Operation",
    "Profile",
    "RaceStatistics",
    "ThreadAction",
    "assert_profile",
    "checks",
    "install",
    "leaks",
    "profile",
    "race_statistics",
    "reset",
    "trace",
]


def __getattr__(name: str) -> Any:
    """Import findings and profiles at first use, because the modules that they need take longer than the rest."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    module = "_findings" if name in ("Finding", "ThreadAction") else "_profile"
    value = globals()[name] = getattr(importlib.import_module(f"bascule.{module}"), name)
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
def checks(*names: str, races: bool | None = None) -> Iterator[None]:
    """Turn checks of kernels on while the block runs; checks that are on already stay on.

    The next call that waits (`synchronize`, a `query` that returns True, `copy_to_host`) raises CheckError for what was
    found, and RaceError if there is a race between streams, at the latest the end of the block. If the block raises,
    the reports are added as notes, because the findings may be the cause. The host waits for all devices at the
    beginning and at the end of the block. Checks apply to all threads of the process. BASCULE_EMULATED_CHECKS turns
    them on for the whole process.

    names : str
        Names of checks, as in the table of the page "The emulated device", or 'all'. 'memory' stands for the errors
        that are always found. 'leaks' is not for a block: `leaks()` lists leaks, and BASCULE_EMULATED_CHECKS=leaks
        prints them at the end.
    races : bool, optional
        Whether to search for races between streams; True is the name 'races'.

    Raises ArgumentValueError, a ValueError, for an unknown name, and LibraryError when kernels run on a GPU.

    >>> with bascule.emulated.checks("init", "shared_races"):
    ...     kernel[8, 128](x)
    ...     print(x.copy_to_host())
    """
    if not names and races is None:
        raise TypeError('checks() needs the names of checks, such as checks("all") or checks("init", "shared_races")')
    on = _find_checks(*names, *(["races"] if races else []))
    if on & _find_checks("leaks"):
        raise _errors.ArgumentValueError(
            "'leaks' is not a check for a block, because a later kernel may free the memory: call "
            "bascule.emulated.leaks(), or set BASCULE_EMULATED_CHECKS=leaks to list leaks at the end of the process."
        )
    off = _find_checks("races") if races is False else 0
    _raise_findings()  # those from before the block
    before = _bascule._change_checks(on, off)
    try:
        with _raising_findings():
            yield
    finally:
        _bascule._change_checks(before, 0xFFFFFFFF ^ before)


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


def _find_checks(*names: str) -> int:
    return _bascule._find_checks(",".join(names))


@contextmanager
def _raising_findings() -> Iterator[None]:
    """Raise what checks found in the block's work. If the block raises, add the reports as notes: they may say why."""
    try:
        yield
    except BaseException as error:
        _bascule._finish_devices()
        for report in _bascule._take_reports():
            error.add_note(report)
        raise
    _raise_findings()


def _raise_findings() -> None:
    """Run all pending work, and raise what checks found."""
    _bascule._finish_devices()
    _bascule._raise_findings()


# The time that pending work may take at the end of the process while a check is on.
_LAST_MILLISECONDS = 2000


def _end(process: int = os.getpid()) -> None:
    """At exit, print leaks if they are asked for, and findings that no call raised. Waits for work only if needed."""
    if os.getpid() != process:
        return
    if _bascule._take_over_leaks():
        _bascule._finish_devices()
        for leak in _bascule._leaks():
            print(f"bascule: {Leak(*leak)}, and nothing has freed it", file=sys.stderr)
    if not _bascule._checks_that_raise():
        _bascule._end_program(0)
        return
    _bascule._end_program(_LAST_MILLISECONDS)
    for report in _bascule._take_reports():
        what = "a race" if report.startswith("stream race") else "an error in a kernel"
        print(f"bascule: {what} that no call raised, because the program ended before it waited.", file=sys.stderr)
        print(report, file=sys.stderr)


atexit.register(_end)
