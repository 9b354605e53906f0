"""The cache of compiled programs, in memory for the life of the process and on disk.

A program is compiled once for its text, options, architecture, NVRTC and headers; later compiles find it, in other
processes too. A program is compiled again if a header was edited, or if another file would now be included instead.

The directory is `BASCULE_CACHE_DIR`, else `bascule` in `XDG_CACHE_HOME`, else `~/.cache/bascule`; an empty
`BASCULE_CACHE_DIR` turns the cache on disk off. Its files are code that your processes run, so only you or root may be
able to write to it. A directory that cannot be used gives a `CacheWarning`; programs are then compiled in every
process. A directory that only root can write to serves every user who can read it (`chmod -R a+rX`).

limit_bytes : int or None
    Maximum total size of the programs on disk; None means no limit, and 0 keeps no program. The default is 1 GiB, or
    `BASCULE_CACHE_LIMIT`: a size such as 500MB or 2GiB, or `unlimited`. It is checked after a compile, at most once an
    hour; the least recently used programs are removed.

All functions may be called from any thread, while other processes use the directory.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from bascule import _bascule, _errors, _remembered, config
from bascule._displayed import Displayed

if TYPE_CHECKING:
    from datetime import datetime

CacheStatistics = _bascule.CacheStatistics

__all__ = [
    "CacheStatistics",
    "Entries",
    "Entry",
    "clear",
    "directory",
    "disabled",
    "export",
    "import_",
    "limit_bytes",
    "list",
    "stats",
    "trim",
    "verify",
]

limit_bytes: int | None


class Entry(NamedTuple):
    """A compiled program on disk.

    Attributes
    ----------
    name : str
        Name of its file in `directory()`.
    bytes : int
        Size of the file.
    last_used : datetime
        When a process last read or stored it, in UTC; accurate to the hour.
    kernels : tuple of str
        Its kernels, such as 'scale' or 'fill<float>'; empty if it was compiled only for types or variables.
    arch : str
        Its architecture, such as 'sm_90'.
    nvrtc : str
        Version of the NVRTC that compiled it, such as '13.0'.
    problem : str
        Why it will never be used; empty if it is intact. Such a program is compiled again, and its entry replaced.
    """

    name: str
    bytes: int
    last_used: datetime
    kernels: tuple[str, ...]
    arch: str
    nvrtc: str
    problem: str


class Entries(Displayed, builtins.list[Entry]):
    """A list of programs on disk, which IPython shows as a table."""


def stats() -> _bascule.CacheStatistics:
    """Return counts since the process started: `compiled`, `from_memory`, `from_disk` (programs) and `nvrtc_calls`.

    A compile for which `bascule.compile` returns an existing module does not use the cache and is not counted.
    """
    return _bascule._cache_statistics()


def clear(*, disk: bool = False) -> None:
    """Remove all compiled programs from memory, and with `disk` from disk too. Kernels in use stay valid.

    Raises
    ------
    CacheError
        The directory cannot be read or changed.
    """
    _remembered.forget()
    _bascule._cache_clear()
    if disk:
        remove_from_disk()


def directory() -> str:
    """Return the directory of the cache on disk; empty if the cache on disk is off."""
    return _bascule._cache_directory()


def list() -> Entries:
    """List the programs on disk, most recently used first. Each is read and verified, as when it is used.

    Raises
    ------
    CacheError
        The directory cannot be read.
    """
    from datetime import UTC, datetime  # a program that only launches kernels needs none of it

    problem, rows = _bascule._cache_list()
    _check(problem, "read")
    return Entries(Entry(**{**row, "last_used": datetime.fromtimestamp(row["last_used"] / 1e9, UTC)}) for row in rows)


def verify() -> Entries:
    """List the programs on disk that will never be used, with their `problem`: damaged, other version, not trusted.

    They do no harm, because every process verifies what it reads.

    Raises
    ------
    CacheError
        The directory cannot be read.
    """
    return Entries(entry for entry in list() if entry.problem)


def trim() -> int:
    """Remove the least recently used programs from disk until the rest is within `limit_bytes`.

    This also happens automatically after a compile, at most once an hour.

    Returns
    -------
    int
        Number of programs removed.

    Raises
    ------
    CacheError
        The directory cannot be read or changed.
    """
    removed, _, problem = _bascule._cache_sweep()
    _check(problem, "trimmed")
    return removed


@contextmanager
def disabled() -> Iterator[None]:
    """Turn the cache off for a block: all threads compile every program, and none is kept in memory or on disk.

    Existing modules keep their compiled code. Blocks may be nested.

    Examples
    --------
    >>> with bascule.cache.disabled():
    ...     module = bascule.compile(text)
    """
    token = _bascule._CacheDisabled()
    _remembered.forget()
    try:
        yield
    finally:
        del token  # the cache is used again when the last one is gone


def export(path: str | os.PathLike[str], *, key: bytes) -> int:
    """Write the intact programs on disk to an archive, signed with `key`.

    The archive is for other machines with the same NVRTC, headers and paths, such as the nodes of a cluster: an entry
    is used only if everything that its code depends on is the same.

    Parameters
    ----------
    path : path
        The archive. An existing file is replaced when the new one is complete.
    key : bytes
        At least 16 bytes, such as `secrets.token_bytes(32)`. Anyone who has the key can write archives that `import_`
        accepts.

    Returns
    -------
    int
        Number of programs in the archive.

    Raises
    ------
    CacheError
        The directory cannot be read.
    """
    from bascule import _cache_archive

    return _cache_archive.export(path, key, [entry.name for entry in list() if not entry.problem])


def import_(path: str | os.PathLike[str], *, key: bytes) -> int:
    """Add the programs of an archive to those on disk.

    The signature is checked before anything else is read from the archive, and all entries are checked before the first
    one is added. Nothing is added from an archive that is refused.

    Parameters
    ----------
    path : path
        An archive that `export` wrote with the same version of Bascule.
    key : bytes
        The key that the archive was exported with.

    Returns
    -------
    int
        Number of programs added; programs that were already there are not counted.

    Raises
    ------
    CacheError
        The key is wrong, the file was changed or is not an archive, there is no cache on disk, or it cannot be written.
    """
    if not directory():
        raise _errors.CacheError(
            "There is no cache on disk to import into. Name a directory in BASCULE_CACHE_DIR before importing bascule."
        )
    from bascule import _cache_archive

    return _cache_archive.import_(path, key)


def remove_from_disk() -> tuple[int, int]:
    """Remove all programs from disk; return their number and bytes. For `clear` and the command line."""
    removed, size, problem = _bascule._cache_remove_all()
    _check(problem, "cleared")
    return removed, size


def _check(problem: str | None, what: str) -> None:
    if problem is not None:
        raise _errors.CacheError(f"The cache in {directory()} cannot be {what}: {problem}")


_UNLIMITED = 2**64 - 1


class _Cache(config._PickledByName):
    """The module's class. Makes `limit_bytes` a property that reads and sets the limit in C++."""

    @property
    def limit_bytes(self) -> int | None:
        limit = _bascule._cache_limit()
        return None if limit == _UNLIMITED else limit

    @limit_bytes.setter
    def limit_bytes(self, limit: int | None) -> None:
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            raise _errors.ArgumentTypeError(
                f"bascule.cache.limit_bytes takes a number of bytes as an int, or None, got {type(limit).__name__}"
            )
        if limit is not None and limit < 0:
            raise _errors.ArgumentValueError(f"bascule.cache.limit_bytes must not be negative, got {limit}")
        _bascule._set_cache_limit(_UNLIMITED if limit is None else min(limit, _UNLIMITED))


sys.modules[__name__].__class__ = _Cache
