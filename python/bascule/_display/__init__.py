"""How Bascule's objects are shown: HTML in notebooks, lines in IPython, documentation and signatures.

Imported when something is shown. Nothing here compiles, loads, or waits, but for the values of an array.
"""

from collections.abc import Callable
from typing import Any

from bascule import _bascule, _decorator, _errors, _explain, cache
from bascule._display import kernels, values
from bascule._display.document import Document
from bascule._display.kernels import documentation, signature
from bascule._display.values import traceback

__all__ = ["documentation", "html", "pretty", "signature", "text", "traceback"]

_DOCUMENTS: tuple[tuple[type, Callable[[Any], Document]], ...] = (
    (_bascule.Kernel, kernels.kernel),
    (_bascule.Module, kernels.module),
    (_bascule.Launcher, kernels.launcher),
    (_bascule.BoundLaunch, kernels.bound_launch),
    (_decorator.LaunchRule, kernels.launch_rule),
    (_bascule.DeviceArray, values.array),
    (_bascule.CacheStatistics, values.statistics),
    (cache.Entries, values.entries),
    (_explain.Explanation, values.explanation),
    (_errors.Error, values.error),
)


def html(object: Any) -> str:
    """What `_repr_html_` returns."""
    return _document(object).html()


def text(object: Any) -> str:
    """The same as `html`, in lines of plain text."""
    return _document(object).text()


def pretty(object: Any, printer: Any, cycle: bool) -> None:
    """What `_repr_pretty_` does: alone all lines, inside a list or a dict the repr."""
    lines = [repr(object)] if cycle or len(printer.stack) > 1 else text(object).split("\n")
    for number, line in enumerate(lines):
        if number:
            printer.break_()
        printer.text(line)


def _document(object: Any) -> Document:
    return next(make for kind, make in _DOCUMENTS if isinstance(object, kind))(object)
