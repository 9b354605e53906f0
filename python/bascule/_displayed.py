"""Objects that notebooks and IPython show. `bascule._display` draws them, and is imported when the first is shown."""

import importlib
from typing import Any


def drawing() -> Any:
    """Return `bascule._display`, which imports the modules of what it draws, so that these cannot import it."""
    return importlib.import_module("bascule._display")


class DisplayedAsHtml:
    """Base of classes that notebooks show as HTML."""

    def _repr_html_(self) -> str:
        return str(drawing().html(self))


class Displayed(DisplayedAsHtml):
    """Base of classes that notebooks show as HTML and IPython as text."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        drawing().pretty(self, printer, cycle)


class SignatureOfInstance:
    """A descriptor for `__signature__`: an instance's own. None for the class, which inspect takes as no signature."""

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return None if instance is None else drawing().signature(instance)


class DocumentationOfInstance(str):
    """A descriptor for `__doc__`: an instance's documentation, or the text of the class.

    It is a str itself, because pydoc reads it from the dict of the class.
    """

    def __get__(self, instance: object, owner: type | None = None) -> str:
        return str(self if instance is None else drawing().documentation(instance))
