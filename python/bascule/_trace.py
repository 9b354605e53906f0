"""`bascule.trace`: what the program called and what its streams did, for Perfetto and chrome://tracing."""

import functools
import json
import os
import sys
import threading
from typing import Any

from bascule import _bascule, _errors

# What using a trace in one of these states says.
_NOT_RECORDED = {
    "not started": "nothing was recorded: `with bascule.trace() as trace:` records what its block does.",
    "recording": "the trace is still being recorded: leave the `with` block first.",
    "interrupted": "nothing was recorded: the end of the trace was interrupted.",
    "recorded by another process": "process {process} records this trace, and this process was forked from it "
    "meanwhile: begin another trace here with bascule.trace().",
}


class Trace:
    """Made by `bascule.trace`: records while its `with` block runs, once."""

    def __init__(self, path: str | os.PathLike[str] | None, limit: int) -> None:
        self._path = None if path is None else os.fspath(path)
        self._limit = limit
        self._state = "not started"
        self._process = 0
        self._ranges = False
        self._threads: dict[int, str] = {}
        self._recorded: Any = None  # _bascule._RecordedTrace

    # Of the extension module, so that no signal handler can come between them and what they begin and end.
    __enter__ = _bascule._enter_trace
    __exit__ = _bascule._exit_trace

    def _prepare(self) -> int:
        """What comes before the recording; returns the limit."""
        if self._state != "not started":
            raise _errors.Error("this trace was recorded already: make another one with bascule.trace().")
        self._process = os.getpid()
        self._name_threads()
        return self._limit

    def _finish(self, error: BaseException | None) -> None:
        """What comes after it; `error` ended the block."""
        if self._ranges:
            from bascule import _trace_ranges

            self._ranges = False
            _trace_ranges.end_ranges()
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
        """The events as dicts in the Trace Event Format: metadata first, then by time. Times are in microseconds."""
        return list(self._content["traceEvents"])

    @property
    def metadata(self) -> dict[str, Any]:
        """What the file says about itself: the program, the devices, whether they are emulated, what is missing."""
        return dict(self._content["otherData"])

    @property
    def dropped(self) -> int:
        """How many calls were not recorded because of the limit."""
        self._require_recorded()
        return int(self._recorded.dropped)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as JSON, which https://ui.perfetto.dev and chrome://tracing open.

        Raises OSError where the file cannot be written.
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
        # Nsight Systems, and every tool that NVTX loads, names its library in this variable.
        if not os.environ.get("NVTX_INJECTION64_PATH"):
            return
        from bascule import _trace_ranges

        try:
            _trace_ranges.begin_ranges()
            self._ranges = True
        except ImportError as missing:
            _errors.warn(f"A profiler is attached, and it gets no ranges: {missing}", UserWarning)


@_bascule._public
def trace(path: str | os.PathLike[str] | None = None, *, limit: int = 1_000_000) -> Trace:
    """Record what the program calls and when its work runs, as a file for Perfetto or chrome://tracing.

    Recorded are, for all threads: reading the arguments of launches, compiles (with cache hit or miss), loads, launches
    and copies, waits of streams and of the host; and on a row per stream the kernels, copies and graphs themselves.
    Arrows lead from a launch to its kernel, and from an operation to the one on another stream that waited for it.

    On a GPU the device's times come from an event before and one after each operation, which takes some microseconds;
    on the emulated device they are a CPU's and mean nothing for a GPU, which the file says. Launches that are captured
    into a graph have no times of their own; the launch of the graph has. The end of the block waits for the work that
    was recorded. Outside of such a block tracing costs nothing.

    When a profiler is attached (the environment variable NVTX_INJECTION64_PATH is set, as Nsight Systems does) the same
    calls are NVTX ranges, "bascule: launch scale", while the block runs; BASCULE_NVTX=1 does that for the whole
    process. The package nvtx is needed for that: pip install "bascule[nvtx]".

    Parameters
    ----------
    path : str or os.PathLike, optional
        The file, such as "run.json", written when the block ends, also by an exception. Without one use `save` of the
        result.
    limit : int
        How many calls are recorded at most, some 500 bytes each. Later ones are counted, and a UserWarning says how
        many are missing.

    Returns
    -------
    Trace
        A context manager with `events` (a list of dicts), `metadata`, `dropped` and `save(path)`, after its block. A
        process records one trace at a time: entering a second one raises bascule.Error.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        For a path or limit that cannot be. OSError where the file cannot be written.

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


Trace.__module__ = trace.__module__ = "bascule"
