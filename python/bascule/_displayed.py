"""Objects that notebooks and IPython show. `bascule._display` draws them, and is imported when the first is shown."""

import importlib
from typing import Any


def drawing() -> Any:
    """Return `bascule._display`, which imports the modules of the objects that it draws: these must not import it."""
    return importlib.import_module("bascule._display")


class DisplayedAsHtml:
    """Base of classes that notebooks show as HTML."""

    def _repr_html_(self) -> str:
        return str(drawing().html(self))


class Displayed(DisplayedAsHtml):
    """Base of classes that notebooks show as HTML and IPython as text."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        drawing().pretty(self, printer, cycle)
