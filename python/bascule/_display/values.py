"""Displays of arrays, the cache, errors and explanations of launches."""

from collections.abc import Sequence
from typing import Any

from bascule import _array_repr, _bascule, _errors, _explain, _terminal, cache
from bascule._display import plots
from bascule._display.document import ACCENT, PROBLEM, WARNING, Code, Document, Table, bytes_text, escape

_MOST_VALUES = 200  # longer arrays show only their first and last values
_COLOURS = {"error": PROBLEM, "warning": WARNING}


def array(array: _bascule.DeviceArray) -> Document:
    """Show an array. Never raises: if the values cannot be read, the display says why."""
    values, why_not = _array_repr.read_values(array, _MOST_VALUES)
    pairs = [
        ("shape", str(array.shape)),
        ("dtype", str(array.dtype)),
        ("size", bytes_text(array.nbytes)),
        ("device", _array_repr.place_of(array)),
    ]
    if not array.c_contiguous:
        order = ", Fortran order" if array.f_contiguous else ""
        pairs.append(("strides", f"{array.strides} bytes{order}"))
    if array.mask is not None:
        pairs.append(("mask", "masked: invalid elements are shown as --"))
    pairs.append(("stream", _stream(array.stream)))
    if why_not:
        return Document("DeviceArray", "", [*pairs, ("values", why_not)])
    return Document("DeviceArray", "", pairs, [Code(values)])


def _stream(stream: _bascule.Stream | None) -> str:
    if stream is None:
        return "none: made with sync=False"
    return repr(stream).removeprefix("<bascule.Stream ").removesuffix(">")


def statistics(counts: _bascule.CacheStatistics) -> Document:
    """Show how many programs came from where since the process started."""
    names = [name for name, value in vars(_bascule.CacheStatistics).items() if isinstance(value, property)]
    facts = [(name.replace("_", " "), f"{getattr(counts, name):,}") for name in names]
    return Document("CacheStatistics", "", facts)


def entries(entries: Sequence[cache.Entry]) -> Document:
    """Show a row for each program, with its problem if it has one."""
    count = f"{len(entries):,} compiled program{'' if len(entries) == 1 else 's'}"
    facts = [("together", bytes_text(sum(entry.bytes for entry in entries)))]
    columns = cache.Entry._fields[1:]
    rows = [tuple(_column(getattr(entry, name)) for name in columns) for entry in entries]
    head = tuple(name.replace("_", " ") for name in columns)
    parts: list[Table] = [Table(head, rows, code=(columns.index("kernels"),))] if rows else []
    return Document("cache", count, facts, list(parts))


def _column(value: Any) -> str:
    if isinstance(value, int):
        return bytes_text(value)
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value) if isinstance(value, str) else f"{value:%Y-%m-%d %H:%M} UTC"


def explanation(launch: _explain.Explanation) -> Document:
    """Show the content of `str`, with a drawing."""
    waiting = [stream for stream, _ in launch.waits]
    waits = [(stream, launch.arguments[index].name) for stream, index in launch.waits]
    named = dict.fromkeys(argument.stream for argument in launch.arguments if argument.stream is not None)
    others = [stream for stream in named if stream not in (launch.stream, *waiting)]
    facts = [("device", launch.device), *launch._facts().items()]
    rows = [
        (f"{each.index + 1} {each.name}", each.declared, each.value, each.place or "", each.order)
        for each in launch.arguments
    ]
    table = Table(("argument", "declared", "passed", "where", "order"), rows, code=(1,))
    drawing = plots.lanes(launch.stream, launch.kernel, waits, others)
    return Document("Explanation", launch.signature, facts, [drawing, *([table] if rows else [])])


def error(error: _errors.Error) -> Document:
    """Show the class and the message."""
    message = str(error)
    markup = "\n".join(map(_marked_line, message.split("\n"))) if isinstance(error, _errors.CompileError) else ""
    return Document(type(error).__name__, "", [], [Code(message, markup)])


def check_error(error: _errors.CheckError) -> Document:
    """Show a row for each finding, and the reports."""
    rows = [
        (
            each.kind,
            each.kernel,
            each.what,
            f"{each.file}:{each.line}" if each.line else "",
            each.source_line,
            f"{each.block}, {each.thread}",
            f"{each.count:,}",
        )
        for each in error.findings
        if each.kernel
    ]
    head = ("check", "kernel", "what it did", "place", "line", "block, thread", "threads")
    parts: list[Table | Code] = [Table(head, rows, code=(1, 4))] if rows else []
    return Document(type(error).__name__, error.kind, [], [*parts, Code(str(error))])


def traceback(error: _errors.CompileError) -> list[str]:
    """Return IPython's own traceback, with the compiler's message in colour if the traceback has colours."""
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
