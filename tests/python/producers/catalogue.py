"""The exports of other libraries, from the committed JSON files: one file per library, one row per kind of array.

A file has `sources` (repository, commit, path and line of the read code) and `exports`. In an export's `interface`,
JSON's arrays stand for the tuples that libraries make of shape, strides and data (descr is a list of tuples).
Placeholders stand for values that differ from run to run: "<pointer>", "<anything>" (an address that no consumer may
use), "<stream>", "<mask pointer>"; {"<object>": interface} is an object with that interface, {"<sequence>": [...]} a
Sequence that is not a tuple, {"<list>": [...]} a list. `make`, with `setup` and `within`, is Python that makes the real
object if the library is installed; `values` and `view` are the same in NumPy. `raises` marks a property that raises,
`refused` a dict that Bascule refuses, `wrong` one that does not describe the array.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

DIRECTORY = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Export:
    """One kind of array of one library, and the dict that it exports."""

    library: str
    case: str
    source: str
    values: dict[str, Any]
    view: str = "values"
    setup: str = ""
    within: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    make: str = ""
    raises: dict[str, str] | None = None
    interface: dict[str, Any] | None = None
    refused: dict[str, Any] | None = None
    wrong: str = ""
    note: str = ""

    def __str__(self) -> str:
        return f"{self.library}: {self.case}"

    @property
    def goes_through_a_kernel(self) -> bool:
        """True if a launch accepts it and computes what the library means."""
        return self.interface is not None and self.refused is None and not self.wrong

    def host_view(self, values: np.ndarray) -> np.ndarray:
        """The corresponding NumPy array: same shape, same strides."""
        return eval(self.view, {"np": np, "values": values})  # the expressions come from files of this repository


@dataclass(frozen=True)
class Library:
    """A file: the code that makes the real objects, and what they export."""

    name: str
    library: str
    kind: str
    needs: list[str]
    not_emulated: str  # why it cannot use the emulated device, or empty
    imports: str
    available: str
    pointer: str
    stream: str
    host: str
    sources: dict[str, dict[str, Any]]
    exports: list[Export]
    release: str = ""
    finish: str = ""  # synchronizes, for a library that works on a stream without naming it
    consume: str = ""  # an expression that makes the library's array of `ours`, as NumPy array
    refuses: dict[str, str] = field(default_factory=dict)  # what it may refuse of `ours`, and the error message


def read_library(path: Path) -> Library:
    content = json.loads(path.read_text(encoding="utf-8"))
    exports = [Export(library=content["library"], **row) for row in content.pop("exports")]
    return Library(name=path.stem, exports=exports, **content)


def libraries() -> list[Library]:
    """Libraries that export; files of kind "consumer" belong to consumers.py."""
    paths = sorted(DIRECTORY.glob("*.json"))
    return [read_library(path) for path in paths if json.loads(path.read_text(encoding="utf-8"))["kind"] == "producer"]


def exports() -> Iterator[Export]:
    for library in libraries():
        yield from library.exports


class Exposing:
    """An object of another library: its interface, read from a property, and the owner of the memory."""

    def __init__(self, interface: dict[str, Any], owner: object = None) -> None:
        self._interface = interface
        self.owner = owner

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self._interface)


class Raising:
    """An object whose property raises, as a library's does."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise self.error


class Pair(Sequence):
    """A sequence that is neither tuple nor list."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]


def bind(interface: dict[str, Any], places: Callable[[str], Any]) -> dict[str, Any]:
    """The dict as the library makes it: with its tuples, and `places(name)` for each placeholder."""

    def value(item: Any) -> Any:
        if isinstance(item, str) and item.startswith("<") and item.endswith(">"):
            return places(item)
        if isinstance(item, list):
            return tuple(value(element) for element in item)
        if isinstance(item, dict):
            ((form, content),) = item.items()
            if form == "<object>":
                return Exposing(bind(content, places))
            elements = [value(element) for element in content]
            return Pair(elements) if form == "<sequence>" else elements
        return item

    return {key: list(value(item)) if key == "descr" else value(item) for key, item in interface.items()}
