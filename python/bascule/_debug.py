"""`bascule.debug`: finds the launch that a fault belongs to."""

from __future__ import annotations

from types import TracebackType

from bascule import _bascule

__all__ = ["Debugging", "debug"]


class Debugging:
    """What `bascule.debug` returns: as a context manager, its end puts back what was set before."""

    def __init__(self, before: bool) -> None:
        self._before = before

    def __enter__(self) -> Debugging:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _bascule._synchronise_launches(self._before)


def debug(*, sync: bool) -> Debugging:
    """Find the launch that a fault belongs to: with `sync=True` each launch is waited for, in every thread.

    A kernel that faults then raises CudaError from its own launch; the error names the kernel, the line that
    launched it and its arguments. Without it a later call meets the fault, and its error names the launch that most
    likely caused it. Kernels do not overlap while it is on.

    sync : bool
        True turns it on, False off, for the whole process. In a `with` statement, until the block ends.

    >>> import bascule
    >>> with bascule.debug(sync=True):
    ...     pass  # launches
    """
    if not isinstance(sync, bool):
        raise TypeError(f"`sync` must be True or False, got {sync!r}.")
    return Debugging(_bascule._synchronise_launches(sync))
