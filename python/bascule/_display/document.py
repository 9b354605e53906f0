"""The content of a display, written as HTML and as plain text."""

import html as html_module
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


def _theme(jupyter: str, code: str, hue: str) -> str:
    """Return JupyterLab's or VS Code's colour; elsewhere `hue` mixed with the text's, legible on light and dark."""
    return f"var(--jp-{jupyter},var(--vscode-{code},color-mix(in srgb,currentColor 35%,{hue})))"


# Displays use no colours but these.
ACCENT = _theme("brand-color1", "textLink-foreground", "#3b82f6")
PROBLEM = _theme("error-color1", "errorForeground", "#e5484d")
WARNING = _theme("warn-color1", "editorWarning-foreground", "#d97706")
_LINE = "1px solid rgba(128,128,128,.4)"
_CELL = "style='text-align:left;vertical-align:top;padding:2px 14px 2px 0;white-space:pre-wrap;border:0'"
_HEAD = _CELL.replace("pre-wrap", "nowrap")
_ROW = f"style='border-bottom:{_LINE};background:none'"
_CODE = "style='font-family:var(--jp-code-font-family,ui-monospace,monospace);background:none;color:inherit'"
_MOST_ROWS = 20


def escape(text: str) -> str:
    """Escape text for HTML, and replace characters that cannot be printed."""
    return html_module.escape("".join(c if c.isprintable() or c in "\n\t" else "�" for c in text))


@dataclass
class Table:
    """Rows of text under a header row. `code` has the indices of the columns that are C++ or Python code."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    code: tuple[int, ...] = ()

    def html(self) -> str:
        head = "".join(f"<th {_HEAD}>{escape(title)}</th>" for title in self.head)
        body = "".join(
            f"<tr {_ROW}>" + "".join(self._cell(column, cell) for column, cell in enumerate(row)) + "</tr>"
            for row in self.rows[:_MOST_ROWS]
        )
        rest = f"<div style='opacity:.7'>{self._rest()}</div>" if self._rest() else ""
        return (
            f"<table style='border-collapse:collapse;margin:6px 0;color:inherit;font-size:inherit'>"
            f"<thead><tr {_ROW}>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"
        )

    def lines(self) -> Iterator[str]:
        rows = [tuple(" ".join(cell.split()) for cell in row) for row in (self.head, *self.rows[:_MOST_ROWS])]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if self._rest():
            yield self._rest()

    def _cell(self, column: int, cell: str) -> str:
        content = f"<code {_CODE}>{escape(cell)}</code>" if column in self.code else escape(cell)
        return f"<td {_CELL}>{content}</td>"

    def _rest(self) -> str:
        return f"and {len(self.rows) - _MOST_ROWS} more" if len(self.rows) > _MOST_ROWS else ""


@dataclass
class Figure:
    """A drawing, and the same information as text."""

    svg: str
    text: str

    def html(self) -> str:
        return f"<div style='margin:6px 0;overflow-x:auto'>{self.svg}</div>"

    def lines(self) -> Iterator[str]:
        yield from self.text.split("\n")


@dataclass
class Code:
    """Text whose white space is kept."""

    text: str
    markup: str = ""  # the same text as HTML, if it has colours

    def html(self) -> str:
        return (
            "<pre style='margin:6px 0;padding:0;background:none;color:inherit;overflow-x:auto;line-height:1.35'>"
            f"{self.markup or escape(self.text)}</pre>"
        )

    def lines(self) -> Iterator[str]:
        yield from self.text.split("\n")


@dataclass
class Document:
    """A class name, the object's own name, facts as (name, value) pairs, and further parts."""

    title: str
    subject: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    parts: Sequence[Table | Figure | Code] = field(default_factory=list)

    def html(self) -> str:
        facts = "".join(
            f"<tr style='background:none'><th scope='row' {_HEAD}>{escape(name)}</th>"
            f"<td {_CELL}>{escape(value)}</td></tr>"
            for name, value in self.facts
        )
        table = f"<table style='border-collapse:collapse;margin:4px 0;color:inherit;font-size:inherit'>{facts}</table>"
        subject = f" <code {_CODE}>{escape(self.subject)}</code>" if self.subject else ""
        return (
            "<div style='font:13px/1.45 var(--jp-ui-font-family,system-ui,sans-serif);color:inherit'>"
            f"<div style='white-space:pre-wrap'><b style='color:{ACCENT}'>{escape(self.title)}</b>{subject}</div>"
            f"{table if facts else ''}{''.join(part.html() for part in self.parts)}</div>"
        )

    def text(self) -> str:
        lines = [f"bascule.{self.title} {self.subject}".rstrip()]
        lines += [f"  {name}: {value}" for name, value in self.facts]
        for part in self.parts:
            lines += [f"  {line}".rstrip() for line in part.lines()]
        return "\n".join(lines)


def bytes_text(count: int) -> str:
    """Format a number of bytes, as '4,000 bytes' or '3.8 MiB (4,000,000 bytes)'."""
    if count < 10_000:
        return f"{count:,} byte{'' if count == 1 else 's'}"
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:,.1f} {unit} ({count:,} bytes)"
