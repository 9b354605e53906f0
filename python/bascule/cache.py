"""Compiled programs: in memory for as long as the process lives, and on disk.

A program is compiled once for its text, options, architecture, NVRTC and headers; later compiles find it, in other
processes too. A header that was edited, or that now hides another one, is noticed.

The directory is `BASCULE_CACHE_DIR`, else `bascule` in `XDG_CACHE_HOME`, else `~/.cache/bascule`; an empty
`BASCULE_CACHE_DIR` turns the cache on disk off. Its files are code that your processes run, so only you may be able to
write to it. A directory that cannot be used gives a `CacheWarning`; programs are then compiled in every process.
"""

from __future__ import annotations

from bascule import _bascule, _remembered

CacheStatistics = _bascule.CacheStatistics

__all__ = ["CacheStatistics", "clear", "directory", "stats"]


def stats() -> _bascule.CacheStatistics:
    """Counts since the process started: `compiled`, `from_memory`, `from_disk` (programs) and `nvrtc_calls`.

    A module that `bascule.compile` returns once more asks the cache for nothing, and is not counted.
    """
    return _bascule._cache_statistics()


def clear() -> None:
    """Drop every compiled program in memory. Kernels in use stay valid; the cache on disk is not changed."""
    _remembered.forget()
    _bascule._cache_clear()


def directory() -> str:
    """The directory of the cache on disk; empty if there is none."""
    return _bascule._cache_directory()
