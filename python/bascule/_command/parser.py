"""Shared by the commands: the parser, compiler options, warnings, shell completion, units."""

import argparse
import importlib
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import bascule
from bascule import _errors, _terminal

_COMMANDS = ("info", "run", "compile", "precompile", "emulate", "cache")
_EXIT = "exit status: 0 success, 1 the command failed, 2 wrong usage, 130 interrupted by Ctrl-C"

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


class UsageError(Exception):
    """A wrong command line. The process ends with status 2."""


def make_parser() -> argparse.ArgumentParser:
    """Return the parser for all commands. Each command's parser sets `run`, a function of the parsed arguments."""
    parser = argparse.ArgumentParser(
        prog="bascule",
        description="Run, compile and cache CUDA C++ kernels, on a GPU or without one.",
        epilog=f"bascule COMMAND --help has examples.\n{_EXIT}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"bascule {bascule.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in _COMMANDS:
        importlib.import_module(f"bascule._command.{name}").add_parser(commands)
    return parser


def add_command(
    commands: Commands,
    name: str,
    help: str,
    *,
    examples: str,
    details: str = "",
    usage: str | None = None,
) -> argparse.ArgumentParser:
    """Add a command whose --help ends with examples and the exit status."""
    sentence = help[0].upper() + help[1:] + "."
    parser = commands.add_parser(
        name,
        help=help,
        usage=usage,
        description=f"{sentence}\n\n{details}" if details else sentence,
        epilog=f"examples:\n{examples}\n\n{_EXIT}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(words=parser.prog)
    return parser


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. A command with `takes_rest` gets the remaining arguments, in order, as `rest`.

    Raises UsageError, or ends the process with status 2.
    """
    chosen, rest = parser.parse_known_args(arguments)
    options = rest[: rest.index("--")] if "--" in rest else rest
    for text in options:
        if re.match(r"--?[A-Za-z]", text) and not re.match(r"-(inf|nan)$", text):
            raise UsageError(f"there is no option {text}; {chosen.words} --help lists the options")
    if rest and not getattr(chosen, "takes_rest", False):
        raise UsageError(
            f"{chosen.words} does not take the argument {rest[0]!r}; {chosen.words} --help says what it takes"
        )
    chosen.rest = [text for text in options if text != "--"] + rest[len(options) + 1 :]
    return chosen


def complete(parser: argparse.ArgumentParser) -> None:
    """Print completions for a shell and end the process; return if argcomplete is not installed."""
    try:
        import argcomplete
    except ImportError:
        return
    argcomplete.autocomplete(parser)


def kernels_of_file(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Return completions of a kernel's name: the kernels in the file's text. Nothing is compiled."""
    try:
        text = bascule._bascule._read_source(parsed_args.file)
        module = bascule._bascule._make_module(text, parsed_args.file, 1, "", bascule.CompileOptions(), [])
        return [name for name in module.kernels if name.startswith(prefix)]
    except (bascule.Error, UnicodeDecodeError, TypeError):  # no file was given yet, or it cannot be read
        return []


def add_compile_options(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add -D, -I, --std, --arch and --option. With `several`, --arch may be repeated."""
    group = parser.add_argument_group("compiler")
    group.add_argument("-D", dest="defines", action="append", default=[], metavar="NAME[=VALUE]", help="define a macro")
    group.add_argument(
        "-I", dest="include_paths", action="append", default=[], metavar="DIRECTORY", help="search it for headers"
    )
    group.add_argument("--std", metavar="STANDARD", help="c++17 (default), c++20 ...")
    more = ", else sm_80); may be repeated" if several else ")"
    arch = f"such as sm_90, or compute_90 for PTX alone (default: the device's{more}"
    group.add_argument("--arch", action="append", default=[], metavar="ARCH", help=arch)
    group.add_argument(
        "--option",
        dest="options",
        action="append",
        default=[],
        metavar="FLAG",
        help="any other flag of NVRTC, with an equals sign: --option=--use_fast_math",
    )


def compile_options(arguments: argparse.Namespace, arch: str | None = None, *more: str) -> bascule.CompileOptions:
    """Return CompileOptions for the options of `add_compile_options`, for one architecture."""
    from bascule._options import to_options

    flags = [f"-D{each}" for each in arguments.defines] + [f"-I{each}" for each in arguments.include_paths]
    if arguments.std:
        flags.append(f"--std={arguments.std}")
    if arch:
        flags.append(f"-arch={arch}")
    return to_options([*flags, *arguments.options, *more])


def add_checks_option(parser: argparse.ArgumentParser, help: str) -> None:
    """Add --checks, and --check, its former name."""
    parser.add_argument("--checks", "--check", metavar="LIST", help=help)


def require_checks(checks: str) -> None:
    """Raise UsageError if a name in the list is not a check's."""
    try:
        bascule._bascule._find_checks(checks)
    except bascule.ArgumentValueError as error:
        raise UsageError(f"--checks {checks}: {error}") from None


def show_warnings_briefly() -> None:
    """Print Bascule's warnings as a compiler does, without a source line of this package."""
    shown_elsewhere = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if isinstance(message, _errors.CompileWarning):
            text = _diagnostic(message)
        elif category.__module__.partition(".")[0] == "bascule" or category is UserWarning:
            text = f"warning: {message}"
        else:
            shown_elsewhere(message, category, *place, **more)
            return
        print(_terminal.coloured(text) if _terminal.shows_colour() else text, file=sys.stderr)

    warnings.showwarning = show
    warnings.simplefilter("default", bascule.CompileWarning)


def _diagnostic(warning: _errors.CompileWarning) -> str:
    found = warning.diagnostic
    number = f" [{found.number}]" if found.number else ""
    lines = [f"{found.file}:{found.line or 1}: {found.severity}: {found.message}{number}"]
    if found.source_line:
        lines.append(f"  {found.source_line}")
        if found.column:
            before = found.source_line[: found.column - 1]
            lines.append("  " + re.sub(r"[^\t]", " ", before) + "^")
    return "\n".join(lines)


def print_json(report: object) -> None:
    """Print a command's report as JSON."""
    import json

    print(json.dumps(report, indent=2))


def number_of(things: str, least: int = 0) -> Callable[[str], int]:
    """Return the `type` function for an option that takes a number of `things`."""

    def parsed(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of {things}")
        return int(text)

    return parsed


def size(count: float) -> str:
    """Format a number of bytes with a unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def counted(count: int, noun: str) -> str:
    """Format a count with its noun: "1 program", "2 programs"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
