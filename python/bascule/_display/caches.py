"""The cache: what it did in this process, and the programs on disk."""

from __future__ import annotations

from collections.abc import Sequence

from bascule import _bascule, cache
from bascule._display.document import Document, Table, bytes_text


def statistics(counts: _bascule.CacheStatistics) -> Document:
    """Programs by where they came from, since the process started."""
    return Document(
        "CacheStatistics",
        "",
        [
            ("compiled", f"{counts.compiled:,}"),
            ("from memory", f"{counts.from_memory:,}"),
            ("from disk", f"{counts.from_disk:,}"),
            ("calls of NVRTC", f"{counts.nvrtc_calls:,}"),
        ],
    )


def entries(entries: Sequence[cache.Entry]) -> Document:
    """A row for each program, with its problem where it has one."""
    count = f"{len(entries):,} compiled program{'' if len(entries) == 1 else 's'}"
    facts = [("together", bytes_text(sum(entry.bytes for entry in entries)))]
    rows = [
        (
            ", ".join(entry.kernels) or "no kernels",
            entry.arch,
            entry.nvrtc,
            bytes_text(entry.bytes),
            f"{entry.last_used:%Y-%m-%d %H:%M} UTC",
            entry.problem or "intact",
        )
        for entry in entries
    ]
    head = ("kernels", "architecture", "NVRTC", "size", "last used", "state")
    parts: list[Table] = [Table(head, rows, code=(0,))] if rows else []
    return Document("cache", count, facts, list(parts))
