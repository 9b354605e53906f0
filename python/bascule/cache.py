"""Compiled programs: in memory for as long as the process lives, and on disk.

A program is compiled once for its text, options, architecture, NVRTC and headers, and then found again, also by other
processes. A header that is edited, put back, or begins to stand before another is noticed.

The directory is `BASCULE_CACHE_DIR`, else `bascule` in `XDG_CACHE_HOME`, else `~/.cache/bascule`; set to nothing,
`BASCULE_CACHE_DIR` turns it off. Its files are code that your processes run: it must be yours alone. One that cannot
be used costs a `CacheWarning`, never a compile.
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
    """Forget every compiled program in memory. Kernels in use stay valid; what is on disk stays there."""
    _remembered.forget()
    _bascule._cache_clear()


def directory() -> str:
    """Where programs are kept on disk; empty when they are not."""
    return _bascule._cache_directory()
