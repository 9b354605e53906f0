"""Errors that are shown as values: the message, with the places and carets of compile errors in colour."""

from __future__ import annotations

from bascule import _errors, _terminal
from bascule._display.document import ACCENT, PROBLEM, Code, Document, escape

_COLOURS = {"error": PROBLEM, "warning": "var(--jp-warn-color1,#d97706)"}


def error(error: _errors.Error) -> Document:
    """The class and what `str` says."""
    message = str(error)
    markup = "\n".join(map(_marked_line, message.split("\n"))) if isinstance(error, _errors.CompileError) else ""
    return Document(type(error).__name__, "", [], [Code(message, markup)])


def traceback(error: _errors.CompileError) -> list[str]:
    """IPython's own traceback, with the compiler's message in colour where the traceback has colours."""
    from IPython import get_ipython

    shell = get_ipython()
    lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
    if shell.colors.lower() == "nocolor":
        return lines
    message = str(error)
    return [line.replace(message, _terminal.coloured(message)) for line in lines]


def _marked_line(line: str) -> str:
    if head := _terminal.HEAD.match(line):
        colour = _COLOURS.get(head["severity"], ACCENT)
        rest = escape(line[head.end() :])
        return f"<b>{escape(head['place'])}<span style='color:{colour}'>{head['severity']}:</span></b> {rest}"
    if _terminal.CARET.match(line):
        return f"<b style='color:{ACCENT}'>{escape(line)}</b>"
    return escape(line)
