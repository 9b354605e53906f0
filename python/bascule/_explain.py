"""What a launch would do: the result of `kernel[grid, block].explain(...)`."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from bascule._displayed import DisplayedAsHtml

if TYPE_CHECKING:
    from bascule._bascule import Stream

_CHOICES = {
    "given": "it was given",
    "current": "it is the current one: the launch is inside `with stream:`",
    "common": "every array names it",
    "default": "the device's default stream: none was given, none is current, and the arrays do not name one stream",
}

_SOURCES = {
    "bound": "the stream it is bound to",
    "interface": "its interface names it",
    "table": "the work stream of its library's exchange table",
    "library": "its library's current stream",
    "registered": "by the function registered for its type",
    "dlpack": "its library made that stream wait for the array",
    "call": "named in `streams` of this launch",
    "ignored": "its stream is ignored",
}

_SILENT = {
    "interface": "names no stream, which in version 3 of the interface means that there is nothing to wait for",
    "unsaid": "names no stream, and none is known for its type (bascule.register_producer): nothing is waited for",
    "table": "names no stream",
    "library": "its library has nothing to wait for",
    "registered": "the function registered for its type returned None: there is nothing to wait for",
    "ignored": "its stream is ignored (sync=False)",
}

_MEANINGS = {
    "wait": "the launch waits for it, and it waits for the launch",
    "same": "no wait: the launch is on that stream",
    "unordered": "no wait: this launch ignores streams (sync=False)",
}


@dataclass(frozen=True)
class ArgumentExplanation:
    """One argument of an explained launch.

    index, name, declared : the parameter's position from 0, its name and its C++ type.
    value : the argument's type and value. place : the memory that an array is in; None for other values.
    stream : the stream that an array is ordered with, or None. order : a sentence on how that stream is known and what
    it means for the launch; empty for values.
    """

    index: int
    name: str
    declared: str
    value: str
    place: str | None
    stream: str | None
    order: str


@dataclass(frozen=True, repr=False)
class Explanation(DisplayedAsHtml):
    """What a launch would do. `str` gives a readable text; notebooks draw the streams and show a table.

    kernel, signature : the function that the arguments select.
    device : where it would run. stream : the launch stream. choice : why it is that stream.
    grid, block : in blocks and threads; None where no grid was given. shared_bytes : dynamic shared memory per block.
    work : the extents passed to `forall`; empty otherwise.
    arguments : a tuple of ArgumentExplanation.
    waits : the streams that the launch waits for and that then wait for it, each with the index of the first argument
    that names it.
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

    def _geometry(self) -> str:
        if 0 in self.work:
            return "no work, so nothing would be launched"
        if self.grid is None or self.block is None:
            return "not given; use kernel[grid, block].explain(...) or kernel.forall(n).explain(...)"
        threads = prod(self.grid) * prod(self.block)
        chosen = f", chosen for {' x '.join(map(str, self.work))} threads of work" if self.work else ""
        return (
            f"{self.grid} blocks of {self.block} threads, {threads:,} in all{chosen}; "
            f"{self.shared_bytes} bytes of dynamic shared memory per block"
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
        verb = "waits" if len(self.waits) == 1 else "wait"
        return f"{', '.join(stream for stream, _ in self.waits)} {verb} for {self.stream}"


def _sentence(order: dict[str, Any]) -> str:
    source, stream = order["source"], order["stream"]
    if stream is None:
        return _SILENT.get(source, _SILENT["ignored"])
    return f"stream {stream} ({_SOURCES[source]}): {_MEANINGS[order['means']]}"


def explanation(*, arguments: list[dict[str, Any]], waits: list[tuple[str, int]], **facts: Any) -> Explanation:
    """Called by the extension module."""
    explained = []
    for argument in arguments:
        order = argument.pop("order")
        stream = order["stream"] if order else None
        explained.append(ArgumentExplanation(**argument, stream=stream, order=_sentence(order) if order else ""))
    return Explanation(arguments=tuple(explained), waits=tuple(waits), **facts)


ArgumentExplanation.__module__ = Explanation.__module__ = "bascule"
