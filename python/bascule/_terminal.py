"""Colours compile errors on a terminal."""

import os
import re
import sys

_BOLD, _RED, _YELLOW, _CYAN, _GREEN, _PLAIN = "\033[1m", "\033[31m", "\033[33m", "\033[36m", "\033[32m", "\033[0m"

_SEVERITIES = {"error": _RED, "warning": _YELLOW, "remark": _CYAN, "note": _CYAN}
HEAD = re.compile(r"^(?P<place>\S.*?: |  )(?P<severity>error|warning|remark|note): ")
CARET = re.compile(r"^\s*\^$")


def coloured(text: str) -> str:
    """Return the message with places in bold, and severities, carets and help in colour."""
    return "\n".join(map(_coloured_line, text.split("\n")))


def _coloured_line(line: str) -> str:
    if head := HEAD.match(line):
        severity = head["severity"]
        rest = line[head.end() :]
        return f"{_BOLD}{head['place']}{_SEVERITIES[severity]}{severity}:{_PLAIN} {rest}"
    if CARET.match(line):
        return f"{_BOLD}{_GREEN}{line}{_PLAIN}"
    if line.startswith("help: "):
        return f"{_BOLD}{_CYAN}help:{_PLAIN}{line[5:]}"
    return line


def prints_uncaught_errors_in_colour() -> bool:
    """True if an exception's `__str__` is called to print an uncaught exception, and stderr shows colours.

    Python up to 3.12 prints in C, so that `__str__` has no caller; later versions print in the module `traceback`.
    """
    frame = sys._getframe(1).f_back  # the caller of __str__
    while frame is not None and frame.f_code.co_name != "_print_exception_bltin":
        if frame.f_globals.get("__name__") != "traceback":
            return False
        frame = frame.f_back
    return shows_colour()


def shows_colour() -> bool:
    if os.getenv("NO_COLOR"):
        return False
    if os.getenv("FORCE_COLOR"):
        return True
    if os.getenv("TERM") == "dumb":
        return False
    try:
        return os.isatty(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):
        return False  # stderr was replaced by an object that is not a file
