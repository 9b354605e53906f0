"""Profiles of kernels on the emulated device: counts by line of the source, and limits for tests."""

import dataclasses
import json
import linecache
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bascule import _bascule, _decorator, _errors
from bascule._displayed import Displayed, drawing

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+): (?P<text>.*)")
_taking = threading.Lock()  # held while a profile is taken


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counts:
    """Counts of the instructions and requests of warps.

    A request is one instruction of a warp that accesses memory, whatever its width.

    instructions : instructions that warps executed, in the emulated device's code. thread_instructions : the active
    lanes of these, summed. branches : conditional branches. divergent_branches : those that only some of the active
    lanes took. global_loads, global_stores, global_atomics : requests to global memory. global_load_sectors,
    global_store_sectors, global_atomic_sectors : the different sectors of 32 bytes in each request, summed.
    shared_requests : loads, stores and atomics of shared memory. bank_conflicts : passes that these need beyond the
    least number for their width. local_requests : loads and stores of local memory. atomic_conflicts : lanes of atomics
    whose address an earlier lane of the same request has.
    """

    instructions: int = 0
    thread_instructions: int = 0
    branches: int = 0
    divergent_branches: int = 0
    global_loads: int = 0
    global_load_sectors: int = 0
    global_stores: int = 0
    global_store_sectors: int = 0
    global_atomics: int = 0
    global_atomic_sectors: int = 0
    shared_requests: int = 0
    bank_conflicts: int = 0
    local_requests: int = 0
    atomic_conflicts: int = 0

    @property
    def active_lanes(self) -> float:
        """The mean number of active lanes of an instruction, at most 32."""
        return self.thread_instructions / self.instructions if self.instructions else 0.0

    @property
    def sectors_per_request(self) -> float:
        """The mean number of sectors of a global request; 4 if a whole warp accesses consecutive 32-bit elements."""
        requests = self.global_loads + self.global_stores + self.global_atomics
        sectors = self.global_load_sectors + self.global_store_sectors + self.global_atomic_sectors
        return sectors / requests if requests else 0.0


_COUNTERS = tuple(field.name for field in dataclasses.fields(Counts))
_LIMITS = (*_COUNTERS, "active_lanes", "sectors_per_request")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LineProfile(Counts):
    """The counts of one line of the source.

    file, line : the place; line 0 if it is unknown. text : the line. caller : for inlined code the place that calls it,
    as 'k.cu:7', otherwise ''.
    """

    file: str
    line: int
    text: str
    caller: str

    @property
    def place(self) -> str:
        """The file and the line, as 'k.cu:7'."""
        return f"{self.file}:{self.line}" if self.line else "an unknown line"


@dataclasses.dataclass(frozen=True, kw_only=True)
class KernelProfile(Counts):
    """The counts of all launches of the kernels with one name. launches : their number. lines : the counts by line."""

    name: str
    launches: int
    lines: tuple[LineProfile, ...]


class Profile(Displayed):
    """The counts of all kernels inside a `with bascule.emulated.profile()`. Empty until the block ends.

    `str` and notebooks show a table of the kernels and the lines of their source with the counts.
    """

    def __init__(self) -> None:
        self._kernels: dict[str, KernelProfile] = {}

    @property
    def kernels(self) -> dict[str, KernelProfile]:
        """The profile of each kernel that was launched, by the kernel's name."""
        return dict(self._kernels)

    def to_json(self) -> str:
        """Return the kernels, their lines and all counts as JSON: an object by the kernels' names."""
        return json.dumps({name: dataclasses.asdict(each) for name, each in self._kernels.items()})

    def __str__(self) -> str:
        return str(drawing().text(self))

    def __repr__(self) -> str:
        launches = sum(each.launches for each in self._kernels.values())
        return f"<bascule.emulated.Profile: {len(self._kernels)} kernels, {launches} launches>"


@contextmanager
def profile() -> Iterator[Profile]:
    """Count what kernels execute while the block runs, by line of their source.

    The counts are the same in each run: they depend on the kernels, their arguments and the addresses of arrays. They
    are no times and predict none: nothing is known of caches, latencies and occupancy. The host waits for all devices
    at the beginning and at the end of the block. Launches of all threads count, those in graphs when they run.
    Profiles cannot be nested.

    Raises LibraryError when kernels run on a GPU.

    >>> with bascule.emulated.profile() as p:
    ...     kernel[8, 128](x)
    >>> print(p)
    """
    if not _taking.acquire(blocking=False):
        raise _errors.Error(
            "a profile is being taken already, and profiles cannot be nested: end the other block first."
        )
    try:
        _bascule._profile(False)  # raises LibraryError on a GPU
        _bascule._finish_devices()
        taken = Profile()
        _bascule._profile(True)
        try:
            yield taken
            _bascule._finish_devices()
            _bascule.synchronize()  # raises the error of a kernel
        finally:
            _bascule._profile(False)
        taken._kernels = {each["kernel"]: _kernel(each) for each in json.loads(_bascule._profile_so_far())}
    finally:
        _taking.release()


@contextmanager
def assert_profile(kernel: str | _bascule.Kernel | _decorator.LaunchRule, **limits: float) -> Iterator[Profile]:
    """Take a profile of the block, and raise AssertionError if a kernel exceeds its limits: a test of performance.

    kernel : the kernel, or its name. All instances of a template are tested.
    limits : counters with the most that each may be, summed over all launches in the block: the attributes of `Counts`,
    such as `bank_conflicts=0` or `sectors_per_request=4`. `active_lanes` is the least number.

    The error names the line with the worst count. A kernel that the block does not launch is an error too.

    >>> with bascule.emulated.assert_profile(transpose, bank_conflicts=0, sectors_per_request=4):
    ...     transpose[8, (32, 8)](y, x)
    """
    unknown = [name for name in limits if name not in _LIMITS]
    if unknown or not limits:
        what = f"there is no counter '{unknown[0]}'" if unknown else "no counter has a limit"
        raise _errors.ArgumentValueError(f"{what}: choose from {', '.join(_LIMITS)}.")
    with profile() as taken:
        yield taken
    name = kernel if isinstance(kernel, str) else kernel.name
    profiles = [each for known, each in taken.kernels.items() if name in (known, known.partition("<")[0])]
    if not profiles:
        launched = ", ".join(taken.kernels) or "none"
        raise AssertionError(f"kernel '{name}' was not launched in the block. Launched kernels: {launched}.")
    failures = [_failure(each, counter, limit) for each in profiles for counter, limit in limits.items()]
    if any(failures):
        raise AssertionError("\n".join(filter(None, failures)))


def _failure(kernel: KernelProfile, counter: str, limit: float) -> str:
    """Say how the kernel exceeds the limit; empty if it does not."""
    value, is_least = getattr(kernel, counter), counter == "active_lanes"
    if value >= limit if is_least else value <= limit:
        return ""
    line = (min if is_least else max)(kernel.lines, key=lambda line: getattr(line, counter))
    caller = f" (called from {line.caller})" if line.caller else ""
    bound = f"at {'least' if is_least else 'most'} {limit:.10g}"
    return (
        f"kernel '{kernel.name}': {counter} is {value:.10g}, and must be {bound}"
        f"\n  the worst line has {getattr(line, counter):.10g}, {line.place}{caller}: {line.text.strip()}"
    )


def _kernel(record: dict[str, Any]) -> KernelProfile:
    lines = sorted(map(_line, record["lines"]), key=lambda line: (line.file, line.line, line.caller))
    totals = {name: sum(getattr(line, name) for line in lines) for name in _COUNTERS}
    return KernelProfile(name=record["kernel"], launches=record["launches"], lines=tuple(lines), **totals)


def _line(record: dict[str, Any]) -> LineProfile:
    file, line, text = _source_line(record["file"], record["line"])
    caller_file, caller_line, _ = _source_line(record["caller_file"], record["caller_line"])
    caller = f"{caller_file}:{caller_line}" if caller_line else ""
    return LineProfile(file=file, line=line, text=text, caller=caller, **record["counts"])


def _source_line(file: str, line: int) -> tuple[str, int, str]:
    """Return a line's place in the user's files and its text, with its indentation if the file can be read."""
    found = _PLACE.fullmatch(_bascule._with_user_places(f"line {line} of {file}")) if line else None
    if found is None:
        return file, line, linecache.getline(file, line).rstrip() if line else ""
    file, line, text = found["file"], int(found["line"]), found["text"]
    whole = linecache.getline(file, line).rstrip()
    return file, line, whole if whole.strip() == text.strip() else text
