"""Base classes of objects that notebooks and IPython show by `bascule._display`, which is imported when needed."""

from typing import Any


class DisplayedAsHtml:
    """Base of classes that notebooks show as HTML."""

    def _repr_html_(self) -> str:
        from bascule import _display

        return _display.html(self)


class Displayed(DisplayedAsHtml):
    """Base of classes that notebooks show as HTML and IPython as text."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        from bascule import _display

        _display.pretty(self, printer, cycle)
