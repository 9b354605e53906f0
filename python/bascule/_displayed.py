"""Objects that notebooks and IPython show. `bascule._display` draws them, and is imported when the first is shown."""

import importlib
from typing import Any


def drawing() -> Any:
    """The module `bascule._display`, which imports what it draws: nothing that it draws may import it by name."""
    return importlib.import_module("bascule._display")


class DisplayedAsHtml:
    """Base of classes that notebooks show as HTML."""

    def _repr_html_(self) -> str:
        return str(drawing().html(self))


class Displayed(DisplayedAsHtml):
    """Base of classes that notebooks show as HTML and IPython as text."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        drawing().pretty(self, printer, cycle)
