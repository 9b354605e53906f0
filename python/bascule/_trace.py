"""`bascule.trace`: records calls and the work of streams, for Perfetto, chrome://tracing and profilers with NVTX."""

import functools
import importlib
import json
import os
import sys
import threading
from typing import Any

from bascule import _bascule, _errors

# Error messages for using a trace in one of these states.
_NOT_RECORDED = {
    "not started": "nothing was recorded: `with bascule.trace() as trace:` records what its block does.",
    "recording": "the trace is still being recorded: leave the `with` block first.",
    "interrupted": "nothing was recorded: the end of the trace was interrupted.",
    "recorded by another process": "process {process} records this trace, and this process was forked from it "
    "meanwhile: begin another trace here with bascule.trace().",
}


class Trace:
    """A trace, made by `bascule.trace`. It records while its `with` block runs; the block can run once."""

    def __init__(self, path: str | os.PathLike[str] | None, limit: int) -> None:
        self._path = None if path is None else os.fspath(path)
        self._limit = limit
        self._state = "not started"
        self._process = 0
        self._ranges = False
        self._threads: dict[int, str] = {}
        self._recorded: Any = None  # _bascule._RecordedTrace

    # These are functions in C++, so that no signal handler can run between them and the start or end of the recording.
    __enter__ = _bascule._enter_trace
    __exit__ = _bascule._exit_trace

    def _prepare(self) -> int:
        """Prepare the recording; return the limit."""
        if self._state != "not started":
            raise _errors.Error("this trace was recorded already: make another one with bascule.trace().")
        self._process = os.getpid()
        self._name_threads()
        return self._limit

    def _finish(self, error: BaseException | None) -> None:
        """Finish after the recording. `error` is the exception that ended the block, or None."""
        if self._ranges:
            self._ranges = False
            end_ranges()
        self._name_threads()
        if self.dropped:
            _errors.warn(
                f"the trace lacks {self.dropped} calls, because it records {self._limit:,} at most. "
                f"Pass a larger limit: bascule.trace(..., limit={2 * (self._limit + self.dropped)}).",
                UserWarning,
            )
        if self._path is None:
            return
        try:
            self.save(self._path)
        except OSError as problem:
            if error is None:
                raise
            error.add_note(f"The trace could not be written: {problem}")

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events as dicts in the Trace Event Format, metadata first, then by time. Times are in microseconds."""
        return list(self._content["traceEvents"])

    @property
    def metadata(self) -> dict[str, Any]:
        """Information about the trace: the program, the devices, whether they are emulated, what is missing."""
        return dict(self._content["otherData"])

    @property
    def dropped(self) -> int:
        """Number of calls that were not recorded because of the limit."""
        self._require_recorded()
        return int(self._recorded.dropped)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as JSON, which https://ui.perfetto.dev and chrome://tracing open.

        Raises OSError if the file cannot be written.
        """
        text = self._json()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def _json(self) -> str:
        self._require_recorded()
        program = os.path.basename(sys.argv[0]) or "python"
        return str(self._recorded.to_json(program, " ".join(sys.argv), self._threads))

    @functools.cached_property
    def _content(self) -> dict[str, Any]:
        return dict(json.loads(self._json()))

    def __repr__(self) -> str:
        if self._state != "recorded":
            return f"<bascule.Trace, {self._state}>"
        file = f", in {self._path}" if self._path is not None else ""
        return f"<bascule.Trace of {self._recorded.calls} calls{file}>"

    def _require_recorded(self) -> None:
        if self._state in _NOT_RECORDED:
            raise _errors.Error(_NOT_RECORDED[self._state].format(process=self._process))

    def _name_threads(self) -> None:
        for thread in threading.enumerate():
            if thread.native_id is not None:
                self._threads[thread.native_id] = thread.name

    def _begin_ranges(self) -> None:
        # Nsight Systems, like every tool that uses NVTX, sets this variable to its library.
        if not os.environ.get("NVTX_INJECTION64_PATH"):
            return
        try:
            begin_ranges()
            self._ranges = True
        except ImportError as missing:
            _errors.warn(f"A profiler is attached, and it gets no ranges: {missing}", UserWarning)


@_bascule._public
def trace(path: str | os.PathLike[str] | None = None, *, limit: int = 1_000_000) -> Trace:
    """Record what the program calls and when its work runs, as a file for Perfetto or chrome://tracing.

    The trace has, for each thread, a row with the reading of launch arguments, compiles (with cache hit or miss),
    loads, launches, copies, and waits of streams and of the host; and for each stream a row with its kernels, copies
    and graphs. Arrows lead from a launch to its kernel, and from an operation to the one on another stream that waited
    for it.

    On a GPU the device's times come from an event before and one after each operation, which takes some microseconds.
    On the emulated device they are times of the CPU, which the file says; they mean nothing for a GPU. Launches that
    are captured into a graph have no times of their own; the launch of the graph has. The end of the block waits for
    the recorded work. Tracing costs nothing outside of such a block.

    When a profiler is attached (the environment variable NVTX_INJECTION64_PATH is set, as Nsight Systems does) the same
    calls are NVTX ranges, such as "bascule: launch scale", while the block runs. BASCULE_NVTX=1 does that for the whole
    process. Both need the package nvtx: pip install "bascule[nvtx]".

    Parameters
    ----------
    path : str or os.PathLike, optional
        The file, such as "run.json". It is written when the block ends, even with an exception. Without a path, call
        `save` of the result.
    limit : int
        Maximum number of recorded calls, some 500 bytes each. A UserWarning says how many calls are missing.

    Returns
    -------
    Trace
        A context manager. After its block it has `events` (a list of dicts), `metadata`, `dropped` and `save(path)`. A
        process records one trace at a time: entering a second one raises bascule.Error.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        The path or the limit is not valid.
    OSError
        The file cannot be written.

    Examples
    --------
    >>> with bascule.trace("run.json"):
    ...     module.scale[8, 128](x, 2, 1000)
    """
    if path is not None and not isinstance(path, str | os.PathLike):
        raise _errors.ArgumentTypeError(
            f"`path` must be the name of a file, such as 'run.json', or None; got {type(path).__name__}."
        )
    if path is not None and not os.path.isdir(directory := os.path.dirname(os.fspath(path)) or "."):
        raise _errors.ArgumentValueError(
            f"`path` is {os.fspath(path)!r}, and there is no directory {directory!r}: make it first."
        )
    if not isinstance(limit, int) or limit < 1:
        raise _errors.ArgumentValueError(f"`limit` must be an integer of at least 1, got {limit!r}.")
    return Trace(path, limit)


# --- Ranges of a profiler, such as Nsight Systems, through the package nvtx

_lock = threading.Lock()  # protects _wanted
_wanted = 0  # number of users of NVTX ranges: the environment variable and traces


def begin_ranges() -> None:
    """Emit a range for each call from now on, such as "bascule: launch scale".

    Raises ImportError, with the pip command, if the package nvtx is missing.
    """
    global _wanted
    try:
        # The package has no types: an import statement would be an error of mypy for users.
        nvtx = importlib.import_module("nvtx")
    except ImportError:
        raise ImportError(
            'ranges for a profiler need the package nvtx: pip install "bascule[nvtx]"', name="nvtx"
        ) from None
    with _lock:
        if _wanted == 0:
            _bascule._emit_ranges(nvtx.push_range, nvtx.pop_range)
        _wanted += 1


def end_ranges() -> None:
    """Undo one call of `begin_ranges`."""
    global _wanted
    with _lock:
        _wanted -= 1
        if _wanted == 0:
            _bascule._stop_ranges()


def start_ranges_of_process(value: str) -> None:
    """Apply BASCULE_NVTX when the package is imported."""
    if value not in ("0", "1"):
        raise _errors.ArgumentValueError(
            f"BASCULE_NVTX is {value!r}: set it to 1 (calls are ranges for a profiler) or 0 (only those in "
            "bascule.trace are), or unset it."
        )
    if value == "1":
        begin_ranges()


Trace.__module__ = trace.__module__ = "bascule"
