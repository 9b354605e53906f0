"""Compiled programs, kept for as long as the process lives."""

from __future__ import annotations

from bascule import _bascule

CacheStatistics = _bascule.CacheStatistics

__all__ = ["CacheStatistics", "clear", "stats"]


def stats() -> _bascule.CacheStatistics:
    """Counts since the process started: `compiled`, `from_memory`, `from_disk` (programs) and `nvrtc_calls`."""
    return _bascule._cache_statistics()


def clear() -> None:
    """Forget every compiled program in memory. Kernels in use stay valid."""
    _bascule._cache_clear()
