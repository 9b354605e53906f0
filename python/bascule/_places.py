"""Finds the string literal of a CUDA C++ text, so that errors name the line of the Python file, not of the string."""

import functools
import itertools
import linecache
import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType

Site = tuple[str, int]  # file and line of a call
Place = tuple[str, int]  # what messages call the text, and the number of its first line

_DEPTH = 4  # helpers between the literal and the call
_MOST_REMEMBERED = 1024

_remembered: dict[tuple[str, str, int], Place] = {}


def place_of(text: str, frame: FrameType) -> Place:
    """The place of a text that the code of `frame` passes. After the first time a dict lookup."""
    key = (text, frame.f_code.co_filename, frame.f_lineno)
    place = _remembered.get(key)
    if place is None:
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        place = _remembered[key] = find(text, sites(frame))
    return place


def sites(frame: FrameType | None) -> tuple[Site, ...]:
    """The call in `frame`, and those that led there."""
    found: list[Site] = []
    while frame is not None and len(found) < _DEPTH:
        found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def find(text: str, calls: tuple[Site, ...]) -> Place:
    """The literal's file and line; else a name with the line of the call that passed the text."""
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
        return []  # `python -c`: one line of a shell
    linecache.checkcache(filename)
    return linecache.getlines(filename)


def holds_one_tuple(code: CodeType, instruction: int) -> bool:
    """Whether the expression `x[key]` that the code evaluates there has one tuple in parentheses as its key."""
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
    """Lines where the text stands between quotes as it is: raw strings, and those without escapes."""
    at = content.find(text)
    while at != -1:
        before = content[max(at - 200, 0) : at].rstrip(" \t\n\\")
        after = content[at + len(text) : at + len(text) + 200].lstrip()
        if before.endswith(("'", '"')) and after.startswith(("'", '"')):
            yield content.count("\n", 0, at) + 1
        at = content.find(text, at + 1)


def _telling_line(text: str) -> str:
    """A line that the file must hold if the text's literal is in it."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if "__global__" in line), max(lines, key=len))


def _evaluated(text: str, content: str) -> Iterator[int]:
    """Lines of literals whose value is the text, also after dedent, cleandoc and strip."""
    telling = _telling_line(text)
    for value, first, last in _literals(content):
        if telling not in value:
            continue
        rows, newlines = last - first, value.count("\n")
        if newlines == rows or (newlines == rows + 1 and value.endswith("\n")):
            begin = first
        elif newlines == rows - 1 and content.split("\n")[first - 1].endswith("\\"):
            begin = first + 1  # a backslash after the quotes
        else:
            continue  # lines of the value are not lines of the file
        for changed, dropped in _changes(value):
            at = changed.find(text)
            if at != -1 and changed.strip() == text.strip():
                yield begin + dropped + changed.count("\n", 0, at)
                break


def _changes(value: str) -> Iterator[tuple[str, int]]:
    """What is commonly done to a literal, and how many lines that takes away before it."""
    yield value, 0
    import inspect
    import textwrap

    yield textwrap.dedent(value), 0
    lines = value.split("\n")
    blank = next((i for i, line in enumerate(lines) if line.strip()), 0)
    yield inspect.cleandoc(value), blank


@functools.lru_cache(maxsize=8)
def _literals(content: str) -> tuple[tuple[str, int, int], ...]:
    """Value, first and last line of every string constant."""
    import ast

    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):
        return ()  # a notebook's cell with magics
    return tuple(
        (node.value, node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def display(filename: str) -> str:
    """The file's name; for a notebook's cell its number, as IPython's own tracebacks have it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    try:
        name = shell.compile.format_code_name(filename)  # type: ignore[union-attr]
    except AttributeError:  # no shell, or an old one
        name = None
    return os.fspath(filename) if name is None else str(name[1])
