"""`bascule cache`: lists, verifies, removes, exports and imports the programs on disk."""

import argparse
from pathlib import Path

import bascule
from bascule import cache
from bascule._command.parser import Commands, UsageError, add_command, counted, print_json, size

_EXAMPLES = """\
  bascule cache list --sort size
  bascule cache list --json | python -m json.tool
  bascule cache export programs.archive --key-file key"""

_LIST_EXAMPLES = """\
  bascule cache list
  bascule cache list --sort size --json"""

_KEY_EXAMPLE = """\
  head -c 32 /dev/urandom > key
  bascule cache {} programs.archive --key-file key"""

_ORDERS = {
    "used": lambda entry: -entry.last_used.timestamp(),
    "size": lambda entry: -entry.bytes,
    "kernel": lambda entry: (not entry.kernels, entry.kernels),
    "arch": lambda entry: (entry.arch, entry.kernels),
}


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "cache", "list, verify, remove, export or import the compiled programs on disk", examples=_EXAMPLES
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    for name, run, text, examples in (
        ("list", _list, "print every program with its size, last use, architecture and kernels", _LIST_EXAMPLES),
        ("verify", _verify, "print the programs that will never be used, and why; exits with 1 if there are any", ""),
        ("clear", _clear, "remove every program", ""),
        ("trim", _trim, "remove the least recently used programs until the rest is within BASCULE_CACHE_LIMIT", ""),
        ("export", _export, "write the programs to an archive that is signed with a key", _KEY_EXAMPLE),
        ("import", _import, "add the programs of an archive that was signed with the same key", _KEY_EXAMPLE),
    ):
        action = add_command(actions, name, text, examples=(examples or "  bascule cache {}").format(name))
        if run is _list:
            action.add_argument(
                "--sort", choices=sorted(_ORDERS), default="used", help="default: used, the latest first"
            )
        if examples is _KEY_EXAMPLE:
            action.add_argument("archive", type=Path)
            action.add_argument(
                "--key-file", type=Path, required=True, help="a file whose bytes are the key, at least 16"
            )
        action.add_argument("--json", action="store_true", help="as JSON; sizes in bytes, times in UTC")
        action.set_defaults(run=run)


def _list(arguments: argparse.Namespace) -> int:
    _print_entries(sorted(cache.list(), key=_ORDERS[arguments.sort]), arguments.json)
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    wrong = cache.verify()
    if wrong or arguments.json:
        _print_entries(wrong, arguments.json)
    else:
        print("All programs are intact.")
    return 1 if wrong else 0


def _clear(arguments: argparse.Namespace) -> int:
    return _print_count(arguments, "removed", *cache.remove_from_disk())


def _trim(arguments: argparse.Namespace) -> int:
    return _print_count(arguments, "removed", cache.trim())


def _export(arguments: argparse.Namespace) -> int:
    if not arguments.archive.parent.is_dir():
        raise UsageError(
            f"the archive {arguments.archive} cannot be written: there is no directory {arguments.archive.parent}"
        )
    return _print_count(arguments, "exported", cache.export(arguments.archive, key=arguments.key_file.read_bytes()))


def _import(arguments: argparse.Namespace) -> int:
    return _print_count(arguments, "imported", cache.import_(arguments.archive, key=arguments.key_file.read_bytes()))


def _print_count(arguments: argparse.Namespace, done: str, count: int, bytes: int | None = None) -> int:
    if arguments.json:
        print_json({done: count} if bytes is None else {done: count, "bytes": bytes})
    else:
        print(f"{done.capitalize()} {counted(count, 'program')}{'' if bytes is None else f', {size(bytes)}'}.")
    return 0


def _print_entries(entries: list[cache.Entry], as_json: bool) -> None:
    total = sum(entry.bytes for entry in entries)
    if as_json:
        rows = [{**entry._asdict(), "last_used": entry.last_used.isoformat()} for entry in entries]
        about = {"directory": cache.directory(), "limit_bytes": cache.limit_bytes, "bytes": total}
        print_json({**about, "entries": rows})
        return
    if not cache.directory():
        print("There is no cache on disk: BASCULE_CACHE_DIR is empty, or there is no home directory.")
        return
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    for entry in entries:
        what = f"{entry.name}: {entry.problem}" if entry.problem else f"{entry.arch:<11}{', '.join(entry.kernels)}"
        print(f"{size(entry.bytes):>10}  {_age((now - entry.last_used).total_seconds()):<20}{what}".rstrip())
    print(f"{summary(len(entries), total)}, in {cache.directory()}")


def summary(count: int, total: int) -> str:
    """Return the number of programs, their size, and the limit, as text."""
    limit = "no limit" if bascule.cache.limit_bytes is None else f"at most {size(bascule.cache.limit_bytes)}"
    return f"{counted(count, 'program')}, {size(total)}, {limit}"


def _age(seconds: float) -> str:
    if seconds <= -3600:
        return "in the future"
    hours = int(seconds // 3600)
    if hours < 1:
        return "within the hour"
    count, unit = (hours, "hour") if hours < 48 else (hours // 24, "day")
    return f"{counted(count, unit)} ago"
