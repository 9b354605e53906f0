"""`bascule.debug`: finds the launch that caused a fault."""

from contextlib import ExitStack

from bascule import _bascule


def debug(*, sync: bool) -> ExitStack:
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
    block = ExitStack()
    block.callback(_bascule._synchronise_launches, _bascule._synchronise_launches(sync))
    return block
