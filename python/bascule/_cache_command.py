"""`python -m bascule cache`: the programs on disk, listed, verified, removed, exported and imported."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

from bascule import cache


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `cache` with its own commands; each sets `run`, a function of the parsed arguments."""
    parser = commands.add_parser("cache", help="list, verify, remove, export or import the compiled programs on disk")
    actions = parser.add_subparsers(dest="action", required=True)
    for name, run, text in (
        ("list", _list, "print every program with its size, last use, architecture and kernels"),
        ("verify", _verify, "print the programs that will never be used, and why; exits with 1 if there are any"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        action.add_argument("--json", action="store_true", help="as JSON; sizes in bytes, times in UTC")
        action.set_defaults(run=run)
    for name, run, text in (
        ("clear", _clear, "remove every program"),
        ("trim", _trim, "remove the least recently used programs until the rest is within BASCULE_CACHE_LIMIT"),
    ):
        actions.add_parser(name, help=text, description=text).set_defaults(run=run)
    for name, run, text in (
        ("export", _export, "write the programs to an archive that is signed with a key"),
        ("import", _import, "add the programs of an archive that was signed with the same key"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        action.add_argument("archive", type=Path)
        action.add_argument("--key-file", type=Path, required=True, help="a file whose bytes are the key, at least 16")
        action.set_defaults(run=run)


def _list(arguments: argparse.Namespace) -> int:
    _print_entries(cache.list(), arguments.json)
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    wrong = cache.verify()
    if wrong or arguments.json:
        _print_entries(wrong, arguments.json)
    else:
        print("All programs are intact.")
    return 1 if wrong else 0


def _clear(arguments: argparse.Namespace) -> int:
    count, size = cache.remove_from_disk()
    print(f"Removed {_counted(count)}, {_size(size)}.")
    return 0


def _trim(arguments: argparse.Namespace) -> int:
    print(f"Removed {_counted(cache.trim())}.")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    count = cache.export(arguments.archive, key=arguments.key_file.read_bytes())
    print(f"Exported {_counted(count)}.")
    return 0


def _import(arguments: argparse.Namespace) -> int:
    count = cache.import_(arguments.archive, key=arguments.key_file.read_bytes())
    print(f"Imported {_counted(count)}.")
    return 0


def _print_entries(entries: list[cache.Entry], as_json: bool) -> None:
    total = sum(entry.bytes for entry in entries)
    if as_json:
        rows = [{**entry._asdict(), "last_used": entry.last_used.isoformat()} for entry in entries]
        report = {"directory": cache.directory(), "limit_bytes": cache.limit_bytes, "bytes": total, "entries": rows}
        print(json.dumps(report, indent=2))
        return
    if not cache.directory():
        print("There is no cache on disk: BASCULE_CACHE_DIR is empty, or there is no home directory.")
        return
    now = datetime.now(UTC)
    for entry in entries:
        what = f"{entry.name}: {entry.problem}" if entry.problem else f"{entry.arch:<11}{', '.join(entry.kernels)}"
        print(f"{_size(entry.bytes):>10}  {_age((now - entry.last_used).total_seconds()):<20}{what}".rstrip())
    limit = "no limit" if cache.limit_bytes is None else f"at most {_size(cache.limit_bytes)}"
    print(f"{_counted(len(entries))}, {_size(total)}, {limit}, in {cache.directory()}")


def _counted(count: int) -> str:
    return f"{count} program" if count == 1 else f"{count} programs"


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def _age(seconds: float) -> str:
    if seconds <= -3600:
        return "in the future"
    hours = int(seconds // 3600)
    if hours < 1:
        return "within the hour"
    count, unit = (hours, "hour") if hours < 48 else (hours // 24, "day")
    return f"{count} {unit} ago" if count == 1 else f"{count} {unit}s ago"
