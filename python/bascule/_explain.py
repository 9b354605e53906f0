"""The result of `kernel[grid, block].explain(...)`, which says what a launch would do."""

from dataclasses import dataclass
from math import prod
from typing import Any

from bascule._bascule import Stream
from bascule._displayed import DisplayedAsHtml

_CHOICES = {
    "given": "it was given",
    "current": "it is the current one: the launch is inside `with stream:`",
    "common": "every array names it",
    "default": "the device's default stream: none was given, none is current, and the arrays do not name one stream",
}

# For each way in which an array's stream is known: the text if there is a stream, and the text if there is none.
_SOURCES = {
    "bound": ("the stream it is bound to", ""),
    "interface": (
        "its interface names it",
        "names no stream, which in version 3 of the interface means that there is nothing to wait for",
    ),
    "unsaid": (
        "",
        "names no stream, and none is known for its type (bascule.register_producer): nothing is waited for",
    ),
    "table": ("the work stream of its library's exchange table", "names no stream"),
    "library": ("its library's current stream", "its library has nothing to wait for"),
    "registered": (
        "by the function registered for its type",
        "the function registered for its type returned None: there is nothing to wait for",
    ),
    "dlpack": ("its library made that stream wait for the array", ""),
    "call": ("named in `streams` of this launch", ""),
    "ignored": ("its stream is ignored", "its stream is ignored (sync=False)"),
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
    value : the argument's type and value. place : the memory of an array; None for other values.
    stream : the stream that an array is ordered with, or None. order : a sentence that says how that stream is known
    and what it means for the launch; empty for other values.
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
    """Describes what a launch would do. `str` gives a readable text; notebooks draw the streams and show a table.

    kernel, signature : the function that the arguments select.
    device : where the kernel would run. stream : the launch stream. choice : why that stream was chosen.
    grid, block : in blocks and threads; None where no grid was given. shared_bytes : dynamic shared memory per block.
    work : the extents passed to `forall`; empty otherwise.
    arguments : a tuple of ArgumentExplanation.
    waits : the streams that the launch waits for and that then wait for the launch, each with the index of the first
    argument that names it.
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
    _stream: Stream  # the object for `stream`, for bascule.benchmark

    def __str__(self) -> str:
        facts = [f"  {name}: {text}" for name, text in self._facts().items()]
        lines = ["  arguments:" if self.arguments else "  arguments: none"]
        for argument in self.arguments:
            lines.append(f"    {argument.index + 1} '{argument.name}', declared {argument.declared}: {argument.value}")
            if argument.place is not None:
                lines.append(f"      in {argument.place}; {argument.order}")
        return "\n".join([f"{self.signature} on {self.device}", *facts[:2], *lines, *facts[2:]])

    __repr__ = __str__

    def _facts(self) -> dict[str, str]:
        """Return facts about the launch. `str` lists the arguments after the first two facts."""
        before, after = "nothing is waited for", "nothing waits"
        if self.waits:
            before = "; ".join(
                f"{self.stream} waits for {stream} (argument {index + 1} '{self.arguments[index].name}')"
                for stream, index in self.waits
            )
            verb = "waits" if len(self.waits) == 1 else "wait"
            after = f"{', '.join(stream for stream, _ in self.waits)} {verb} for {self.stream}"
        stream = f"{self.stream}; {_CHOICES[self.choice]}"
        return {"grid": self._geometry(), "stream": stream, "before the launch": before, "after the launch": after}

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


def _sentence(order: dict[str, Any]) -> str:
    source, stream = order["source"], order["stream"]
    if stream is None:
        return _SOURCES[source][1] or _SOURCES["ignored"][1]
    return f"stream {stream} ({_SOURCES[source][0]}): {_MEANINGS[order['means']]}"


def explanation(*, arguments: list[dict[str, Any]], waits: list[tuple[str, int]], **facts: Any) -> Explanation:
    """Make an Explanation. Called by the extension module."""
    for argument in arguments:
        order = argument["order"]
        argument |= {"stream": order["stream"], "order": _sentence(order)} if order else {"stream": None, "order": ""}
    explained = tuple(ArgumentExplanation(**argument) for argument in arguments)
    return Explanation(arguments=explained, waits=tuple(waits), **facts)


ArgumentExplanation.__module__ = Explanation.__module__ = "bascule"
