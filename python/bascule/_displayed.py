"""Objects that notebooks and IPython show by `bascule._display`, which is imported then."""

from typing import Any


class DisplayedAsHtml:
    """Shown as HTML by notebooks."""

    def _repr_html_(self) -> str:
        from bascule import _display

        return _display.html(self)


class Displayed(DisplayedAsHtml):
    """The same, and in lines by IPython."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        from bascule import _display

        _display.pretty(self, printer, cycle)
