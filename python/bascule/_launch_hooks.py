"""`bascule.add_launch_hook`: functions that are called for each launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bascule import _bascule, _errors


class LaunchRecord(NamedTuple):
    """Describes one launch for its hooks.

    kernel : the function's name, with its template arguments. signature : its declaration in C++.
    grid, block : in blocks and in threads. shared_bytes : dynamic shared memory per block.
    stream : a bascule.Stream that borrows the stream of the launch.
    arguments : the names of the kernel's parameters. place : the launching line, such as
    "train.py:12: kernel[8, 128](x)"; empty if it is not known.
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
        """Remove the hook from all launches that begin later. A second call does nothing. Any thread may call this."""
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
    captured into a graph (at the capture, not when the graph is launched). Bascule's own kernels, which convert and
    fill arrays, do not call them, nor do launches that a hook makes. `before` functions are called in the order in
    which the hooks were added, `after` functions in the reverse order. Launches cost nothing more without hooks.

    Parameters
    ----------
    before : callable, optional
        Called with a LaunchRecord after all arguments were checked, before the launch's first operation. If it raises,
        nothing is enqueued, and the launch raises the exception.
    after : callable, optional
        Called with the LaunchRecord after the kernel and its waits were enqueued; the kernel may still run. If it
        raises, the launch raises the exception; its work stays enqueued and ordered, and the other hooks are still
        called. Not called for a launch that failed.

    Returns
    -------
    LaunchHook
        `remove()` removes the hook, as does the end of a `with` block.

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
