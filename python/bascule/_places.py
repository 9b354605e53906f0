"""Finds the string literal of a CUDA C++ text, so that errors name lines of the Python file."""

import functools
import itertools
import linecache
import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType

Site = tuple[str, int]  # file and line of a call
Place = tuple[str, int]  # the text's name in messages, and the number of its first line

_DEPTH = 4  # how many frames are searched for the literal
_MOST_REMEMBERED = 1024

_remembered: dict[tuple[str, str, int], Place] = {}


def place_of(text: str, frame: FrameType) -> Place:
    """Return the place of a text that the code of `frame` passes. Later calls are a dict lookup."""
    key = (text, frame.f_code.co_filename, frame.f_lineno)
    place = _remembered.get(key)
    if place is None:
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        place = _remembered[key] = find(text, sites(frame))
    return place


def sites(frame: FrameType | None) -> tuple[Site, ...]:
    """Return the file and line of `frame` and of its callers."""
    found: list[Site] = []
    while frame is not None and len(found) < _DEPTH:
        found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def find(text: str, calls: tuple[Site, ...]) -> Place:
    """Return the literal's file and line; if not found, a name with the call's line, or "<string>" without a file."""
    for filename, line in calls:
        first_line = _first_line(text, filename, line)
        if first_line is not None:
            return display(filename), first_line
    filename, line = calls[0]
    if not _lines(filename):
        return "<string>", 1
    return f"<string at {display(filename)}:{line}>", 1


def _lines(filename: str) -> list[str]:
    if filename in ("<string>", "<stdin>"):
        return []  # the text of `python -c` or of standard input
    linecache.checkcache(filename)
    return linecache.getlines(filename)


def holds_one_tuple(code: CodeType, instruction: int) -> bool:
    """True if the expression `x[key]` at this instruction has one tuple in parentheses as its key."""
    line, end_line, column, end_column = next(itertools.islice(code.co_positions(), instruction // 2, None))
    if line is None or end_line is None or column is None or end_column is None:
        return False
    lines = [text.encode() for text in _lines(code.co_filename)[line - 1 : end_line]]
    if not lines:
        return False
    end = sum(map(len, lines[:-1])) + end_column
    import ast

    try:
        text = f"({b''.join(lines)[column:end].decode()})"
        subscript = ast.parse(text, mode="eval").body
        if not isinstance(subscript, ast.Subscript) or not isinstance(subscript.slice, ast.Tuple):
            return False
        call = ast.parse(f"f({ast.get_source_segment(text, subscript.slice)})", mode="eval").body
    except (SyntaxError, ValueError):  # the file was changed
        return False
    return isinstance(call, ast.Call) and len(call.args) == 1


def _first_line(text: str, filename: str, near: int) -> int | None:
    lines = _lines(filename)
    if not lines or not text.strip():
        return None
    content = "".join(lines)
    candidates = list(_verbatim(text, content))
    if not candidates and _telling_line(text) in content:
        candidates = list(_evaluated(text, content))
    return min(candidates, key=lambda line: abs(line - near), default=None)


def _verbatim(text: str, content: str) -> Iterator[int]:
    """Yield the lines where the text appears unchanged between quotes: raw strings, and strings without escapes."""
    at = content.find(text)
    while at != -1:
        before = content[max(at - 200, 0) : at].rstrip(" \t\n\\")
        after = content[at + len(text) : at + len(text) + 200].lstrip()
        if before.endswith(("'", '"')) and after.startswith(("'", '"')):
            yield content.count("\n", 0, at) + 1
        at = content.find(text, at + 1)


def _telling_line(text: str) -> str:
    """Return a line of the text that the file must contain if the literal is in it."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if "__global__" in line), max(lines, key=len))


def _evaluated(text: str, content: str) -> Iterator[int]:
    """Yield the lines of literals whose value is the text, possibly after dedent, cleandoc or strip."""
    telling = _telling_line(text)
    for value, first, last in _literals(content):
        if telling not in value:
            continue
        rows, newlines = last - first, value.count("\n")
        if newlines == rows or (newlines == rows + 1 and value.endswith("\n")):
            begin = first
        elif newlines == rows - 1 and content.split("\n")[first - 1].endswith("\\"):
            begin = first + 1  # a backslash follows the opening quotes
        else:
            continue  # the value's lines do not correspond to lines of the file
        for changed, dropped in _changes(value):
            at = changed.find(text)
            if at != -1 and changed.strip() == text.strip():
                yield begin + dropped + changed.count("\n", 0, at)
                break


def _changes(value: str) -> Iterator[tuple[str, int]]:
    """Yield the value, and the results of dedent and cleandoc, each with the number of leading lines removed."""
    yield value, 0
    import inspect
    import textwrap

    yield textwrap.dedent(value), 0
    lines = value.split("\n")
    blank = next((i for i, line in enumerate(lines) if line.strip()), 0)
    yield inspect.cleandoc(value), blank


@functools.lru_cache(maxsize=8)
def _literals(content: str) -> tuple[tuple[str, int, int], ...]:
    """Return the value, first line and last line of each string constant."""
    import ast

    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):
        return ()  # such as a notebook's cell with magics
    return tuple(
        (node.value, node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def display(filename: str) -> str:
    """Return the file's name, or for a notebook's cell its number, as in IPython's own tracebacks."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    try:
        name = shell.compile.format_code_name(filename)  # type: ignore[union-attr]
    except AttributeError:  # there is no shell, or it is an old version
        name = None
    return os.fspath(filename) if name is None else str(name[1])
