"""`bascule.add_launch_hook`: functions that are called for each launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bascule import _bascule, _errors


class LaunchRecord(NamedTuple):
    """One launch, as its hooks see it.

    kernel : the function's name, with its template arguments. signature : with its parameters, as C++ writes it.
    grid, block : in blocks and in threads. shared_bytes : dynamic shared memory of a block.
    stream : a bascule.Stream that borrows the stream of the launch.
    arguments : the names of the kernel's parameters. place : "train.py:12: kernel[8, 128](x)"; empty where it is not
    known.
    """

    kernel: str
    signature: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    stream: _bascule.Stream
    arguments: tuple[str, ...]
    place: str


class LaunchHook:
    """Returned by `bascule.add_launch_hook`. As a context manager it removes the hook at the end of the block."""

    def __init__(self, number: int) -> None:
        self._number: int | None = number

    def remove(self) -> None:
        """Launches that begin from now on do not call it. Removing it again does nothing. Any thread may call this."""
        number, self._number = self._number, None
        if number is not None:
            _bascule._remove_launch_hook(number)

    def __enter__(self) -> LaunchHook:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<bascule.LaunchHook {'removed' if self._number is None else 'active'}>"


@_bascule._public
def add_launch_hook(
    *,
    before: Callable[[LaunchRecord], Any] | None = None,
    after: Callable[[LaunchRecord], Any] | None = None,
) -> LaunchHook:
    """Call functions for each launch of the process, on the thread that launches.

    All launches call them: `kernel[grid, block](...)`, bound launches, `forall`, launch rules, and launches that are
    captured into a graph (when they are captured; not when the graph is launched). Kernels of Bascule itself, which
    convert and fill arrays, do not, nor do launches that a hook makes. Several hooks are called in the order in which
    they were added, after the launch in the opposite order. A launch without hooks costs nothing more.

    Parameters
    ----------
    before : callable, optional
        Gets a LaunchRecord when all arguments were checked, before the launch's first operation. An exception refuses
        the launch: nothing was issued, and the exception is raised by the launch.
    after : callable, optional
        Gets the LaunchRecord when the kernel and its waits are enqueued; the kernel may still run. An exception is
        raised by the launch, whose work stays enqueued and ordered; the other hooks are called nevertheless. Not called
        for a launch that failed.

    Returns
    -------
    LaunchHook
        `remove()` removes the hook, and so does the end of a `with` block.

    Examples
    --------
    >>> import bascule
    >>> with bascule.add_launch_hook(before=lambda launch: print(launch.kernel, launch.grid)):
    ...     pass  # launches
    """
    for name, function in (("before", before), ("after", after)):
        if function is not None and not callable(function):
            raise _errors.ArgumentTypeError(
                f"`{name}` must be a function that takes a LaunchRecord, or None; got {type(function).__name__}."
            )
    if before is None and after is None:
        raise _errors.ArgumentTypeError("give `before`, `after` or both: functions that take a LaunchRecord.")
    return LaunchHook(_bascule._add_launch_hook(before, after, LaunchRecord))


LaunchHook.__module__ = LaunchRecord.__module__ = add_launch_hook.__module__ = "bascule"
