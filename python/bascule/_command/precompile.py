"""`bascule precompile`: compile the kernels of modules and scripts into the cache, before they are launched."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from types import TracebackType
from typing import TYPE_CHECKING, Any

import bascule
from bascule import _terminal
from bascule._command.parser import Commands, UsageError, add_command, number_of, print_json

if TYPE_CHECKING:
    from bascule._compile_team import Event
    from bascule._precompile import Summary

_EXAMPLES = """\
  bascule precompile samples/edges.py
  bascule precompile my_package.kernels my_package.more --workers 4
  BASCULE_CACHE_DIR=/opt/kernels bascule precompile my_package.kernels --json"""

_DETAILS = """\
Imports each module, or runs a script without what stands below `if __name__ == "__main__":`, and compiles the kernels
that its top level defines, several at once. A bar shows how far it is where rich is installed and stderr is a terminal.
Exits with 1 if a kernel does not compile; all others are in the cache then."""


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands,
        "precompile",
        "compile the kernels of Python modules and scripts into the cache on disk",
        details=_DETAILS,
        examples=_EXAMPLES,
    )
    parser.add_argument(
        "targets", nargs="+", metavar="MODULE-OR-SCRIPT", help="a module as in `import`, or the path of a Python file"
    )
    workers = number_of("processes, at least 1", 1)
    parser.add_argument("--workers", type=workers, metavar="N", help="processes that compile (default: one per core)")
    parser.add_argument("--json", action="store_true", help="what was done as JSON; the keys do not change")
    parser.set_defaults(run=_precompile)


def _precompile(arguments: argparse.Namespace) -> int:
    reports = [_report(target, arguments) for target in arguments.targets]
    if arguments.json:
        print_json(reports)
    return 1 if any(report["failed"] for report in reports) else 0


def _report(target: str, arguments: argparse.Namespace) -> dict[str, Any]:
    from bascule._precompile import precompile_target

    events: list[Event] = []
    try:
        summary = precompile_target(target, workers=arguments.workers, on_event=events.append)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # If the target's own code raised the error, show its frames.
        frames = _frames_of_target(error.__traceback__)
        # Python up to 3.11.3 raises a ValueError for a file with null bytes.
        of_text = isinstance(error, SyntaxError) or (type(error) is ValueError and "null bytes" in str(error))
        if frames is None and not of_text:
            if isinstance(error, bascule.ArgumentError):
                raise UsageError(str(error)) from None
            raise
        said = "".join(traceback.format_exception(type(error), error, frames)).rstrip()
        raise bascule.Error(f"{target} cannot be run up to its kernels:\n{said}") from None
    if not arguments.json:
        _print(target, summary, events)
    failed = {title: str(error) for title, error in summary.failed.items()}
    return {"target": target, **summary._asdict(), "failed": failed}


def _frames_of_target(found: TracebackType | None) -> TracebackType | None:
    """Drop the leading frames of Bascule and importlib from a traceback; None if no other frame is left."""
    ours = (
        os.path.dirname(os.path.dirname(__file__)) + os.sep,
        "<frozen ",
        os.path.dirname(os.__file__) + "/importlib",
    )
    while found is not None and found.tb_frame.f_code.co_filename.startswith(ours):
        found = found.tb_next
    return found


def _print(target: str, summary: Summary, events: list[Event]) -> None:
    times = {event.title: event.milliseconds for event in events}
    for title in summary.compiled:
        print(f"compiled   {title}, {times[title]:,.0f} ms")
    for title in summary.from_disk:
        print(f"on disk    {title}")
    for name in summary.templates:
        print(f"skipped    {name}: a template, and no instance is named in name_expressions")
    sys.stdout.flush()
    for title, error in summary.failed.items():
        text = f"error: {title}: {error}"
        print(_terminal.coloured(text) if _terminal.shows_colour() else text, file=sys.stderr)
    if not (summary.compiled or summary.from_disk or summary.templates or summary.failed):
        print(f"{target} defines no kernel at its top level; kernels that functions compile are not found.")
        return
    counts = f"{len(summary.compiled)} compiled, {len(summary.from_disk)} on disk before"
    for count, what in ((len(summary.templates), "skipped"), (len(summary.failed), "failed")):
        counts += f", {count} {what}" if count else ""
    print(f"{target}: {counts}; {summary.seconds:.1f} s")
