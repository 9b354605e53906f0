"""`bascule.debug`: finds the launch that caused a fault."""

from __future__ import annotations

from types import TracebackType

from bascule import _bascule

__all__ = ["Debugging", "debug"]


class Debugging:
    """Returned by `bascule.debug`. As a context manager it restores the previous setting at the end of the block."""

    def __init__(self, before: bool) -> None:
        self._before = before

    def __enter__(self) -> Debugging:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _bascule._synchronise_launches(self._before)


def debug(*, sync: bool) -> Debugging:
    """Find the launch that caused a fault: with `sync=True` every launch, in every thread, waits for its kernel.

    A kernel that faults then raises CudaError from its own launch; the error names the kernel, the line that
    launched it and its arguments. Otherwise a later call raises the error, which on a GPU names the launch that most
    likely caused it. Kernels do not overlap while this is on.

    sync : bool
        True turns it on, False off, for the whole process; in a `with` statement, until the block ends.

    >>> import bascule
    >>> with bascule.debug(sync=True):
    ...     pass  # launches
    """
    if not isinstance(sync, bool):
        raise TypeError(f"`sync` must be True or False, got {sync!r}.")
    return Debugging(_bascule._synchronise_launches(sync))
