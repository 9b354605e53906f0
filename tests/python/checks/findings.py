"""Runs kernels with checks, and compares what was found with comments in their text."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import bascule
from bascule import _bascule

ALL = 0xFFFFFFFF


@functools.cache
def compiled(text: str, **options: Any) -> bascule.Module:
    return bascule.compile(text, options=bascule.CompileOptions(lineinfo=True, **options))


def bits_of(check: str) -> int:
    return 1 << _bascule._check_names().split(",").index(check)


@contextmanager
def checking(bits: int) -> Iterator[list[dict[str, Any]]]:
    """Turns exactly these checks on. The list is filled at the end; nothing is raised. A fault resets the device."""
    found: list[dict[str, Any]] = []
    _bascule._take_findings()
    before = _bascule._change_checks(bits, ALL ^ bits)
    try:
        yield found
        _bascule._finish_devices()
    except bascule.CudaError:
        pass
    finally:
        if _bascule._is_context_lost():
            bascule.emulated.reset()
        found += json.loads(_bascule._take_findings())
        _bascule._change_checks(before, ALL ^ before)


def found_by(check: str, launcher: Any, *arguments: Any) -> list[dict[str, Any]]:
    """Calls a launcher, waits for it and returns what the check found. A fault resets the device."""
    with checking(bits_of(check)) as found:
        launcher(*arguments)
    return found


def line_of(text: str, comment: str) -> int:
    """The number of the line that ends with this comment."""
    lines = [number for number, line in enumerate(text.split("\n"), 1) if line.endswith("// " + comment)]
    assert len(lines) == 1, (comment, lines)
    return lines[0]


def line_in(side: dict[str, Any]) -> int:
    """The line of the kernel; for a function of a header the line that calls it."""
    return side["caller_line"] or side["line"]


def require_one(found: list[dict[str, Any]], check: str, text: str, words: str) -> dict[str, Any]:
    """There is one finding, of this check, at the line `// here`; its other side is at `// other`, if there is one."""
    assert len(found) == 1, [each["report"] for each in found]
    finding = found[0]
    lines = [line_in(finding)] + ([line_in(finding["other"])] if finding["other"] else [])
    wanted = [line_of(text, comment) for comment in ("here", "other") if f"// {comment}\n" in text]
    assert (finding["kind"], lines) == (check, wanted), finding["report"]
    assert words in finding["report"]
    return finding
