"""What a launch would do, as an object that people read: `kernel[grid, block].explain(...)`."""

from __future__ import annotations

import html
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bascule._bascule import Stream

_CHOICES = {
    "given": "it was given",
    "current": "it is the current one: the launch is inside `with stream:`",
    "common": "every array names it",
    "default": "the device's default stream: none was given, none is current, and the arrays do not all name one",
}

_SOURCES = {
    "bound": "the stream it is bound to",
    "interface": "its interface names it",
    "table": "the work stream in its library's exchange table",
    "library": "what its library says is its current stream",
    "registered": "by the function registered for its type",
    "dlpack": "its library made that stream wait for the array",
    "call": "named in this launch's streams",
    "ignored": "not asked: streams are ignored for it",
}

_SILENT = {
    "interface": "names no stream: version 3 of the interface says by that that there is nothing to wait for",
    "unsaid": "names no stream, nor does anybody for it (bascule.register_producer): nothing is waited for",
    "table": "names no stream",
    "library": "its library says that there is nothing to wait for",
    "registered": "the function registered for its type says that there is nothing to wait for",
    "ignored": "its stream is ignored, as was asked (sync=False)",
}

_MEANINGS = {
    "wait": "the launch waits for it, and it waits for the launch",
    "same": "no wait: the launch is on that stream",
    "unordered": "no wait: this launch ignores streams (sync=False)",
}


@dataclass(frozen=True)
class ArgumentExplanation:
    """One argument of a launch that is explained.

    index, name, declared : the parameter, from 0, and its C++ type.
    value : what was passed. place : where an array lies; None for other values.
    stream : the stream that an array is ordered with, or None. order : a sentence that says how that is known, and what
    it means; empty for values.
    """

    index: int
    name: str
    declared: str
    value: str
    place: str | None
    stream: str | None
    order: str


@dataclass(frozen=True, repr=False)
class Explanation:
    """What a launch would do; `str` of it is meant to be read, and notebooks show it as a table.

    kernel, signature : the function that the arguments choose.
    device : where it would run. stream : the launch's stream. choice : why it is that one.
    grid, block : in blocks and threads; None where no grid was said. shared_bytes : dynamic shared memory a block.
    arguments : a list of ArgumentExplanation.
    waits : the streams that the launch waits for, and that wait for it in turn, each with the first argument naming it.
    """

    kernel: str
    signature: str
    device: str
    stream: str
    choice: str
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    shared_bytes: int
    work: tuple[int, ...]
    arguments: tuple[ArgumentExplanation, ...]
    waits: tuple[tuple[str, int], ...]
    _stream: Stream  # the same as `stream`, for bascule.benchmark

    def __str__(self) -> str:
        lines = [f"{self.signature} on {self.device}", f"  grid: {self._geometry()}"]
        lines.append(f"  stream: {self.stream}; {_CHOICES[self.choice]}")
        lines.append("  arguments:" if self.arguments else "  arguments: none")
        for argument in self.arguments:
            lines.append(f"    {argument.index + 1} '{argument.name}', declared {argument.declared}: {argument.value}")
            if argument.place is not None:
                lines.append(f"      in {argument.place}; {argument.order}")
        lines.append(f"  before the launch: {self._before()}")
        lines.append(f"  after the launch: {self._after()}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for cells in (
                (
                    f"{argument.index + 1} {argument.name}",
                    argument.declared,
                    argument.value,
                    argument.place or "",
                    argument.order,
                )
                for argument in self.arguments
            )
        )
        head = "".join(f"<th>{title}</th>" for title in ("argument", "declared", "passed", "where", "order"))
        facts = "".join(
            f"<li>{title}: {html.escape(text)}</li>"
            for title, text in (
                ("device", self.device),
                ("grid", self._geometry()),
                ("stream", f"{self.stream}; {_CHOICES[self.choice]}"),
                ("before the launch", self._before()),
                ("after the launch", self._after()),
            )
        )
        return (
            f"<div><code>{html.escape(self.signature)}</code><ul>{facts}</ul>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )

    def _geometry(self) -> str:
        if 0 in self.work:
            return "no work, so nothing would be launched"
        if self.grid is None or self.block is None:
            return "not said; kernel[grid, block].explain(...) and kernel.forall(n).explain(...) say it"
        threads = prod(self.grid) * prod(self.block)
        chosen = f", chosen for {' x '.join(map(str, self.work))} threads of work" if self.work else ""
        return (
            f"{self.grid} blocks of {self.block} threads, {threads:,} in all{chosen}; "
            f"{self.shared_bytes} bytes of dynamic shared memory a block"
        )

    def _named(self, index: int) -> str:
        argument = self.arguments[index]
        return f"argument {index + 1} '{argument.name}'"

    def _before(self) -> str:
        if not self.waits:
            return "nothing is waited for"
        return "; ".join(f"{self.stream} waits for {stream} ({self._named(index)})" for stream, index in self.waits)

    def _after(self) -> str:
        if not self.waits:
            return "nothing waits"
        return f"{', '.join(stream for stream, _ in self.waits)} wait for {self.stream}"


def _sentence(order: dict[str, Any]) -> str:
    source, stream = order["source"], order["stream"]
    if stream is None:
        return _SILENT.get(source, _SILENT["ignored"])
    return f"stream {stream} ({_SOURCES[source]}): {_MEANINGS[order['means']]}"


def explanation(*, arguments: list[dict[str, Any]], waits: list[tuple[str, int]], **facts: Any) -> Explanation:
    """From the facts that the extension module found; called by it alone."""
    explained = []
    for argument in arguments:
        order = argument.pop("order")
        stream = order["stream"] if order else None
        explained.append(ArgumentExplanation(**argument, stream=stream, order=_sentence(order) if order else ""))
    return Explanation(arguments=tuple(explained), waits=tuple(waits), **facts)
