"""Displays Bascule's objects: HTML in notebooks, text in IPython, documentation and signatures.

Imported when something is shown. Only showing an array's values waits; nothing here compiles or loads code.
"""

from collections.abc import Callable
from typing import Any

from bascule import _bascule, _decorator, _errors, _explain, _profile, cache
from bascule._display import kernels, profiles, values
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
    (_errors.CheckError, values.check_error),
    (_errors.Error, values.error),
    (_profile.Profile, profiles.profile),
)


def html(object: Any) -> str:
    """Return the object as HTML, for `_repr_html_`."""
    return _document(object).html()


def text(object: Any) -> str:
    """Return the content of `html` as lines of plain text."""
    return _document(object).text()


def pretty(object: Any, printer: Any, cycle: bool) -> None:
    """Print the object for `_repr_pretty_`: its text, or its repr inside a list or a dict."""
    lines = [repr(object)] if cycle or len(printer.stack) > 1 else text(object).split("\n")
    for number, line in enumerate(lines):
        if number:
            printer.break_()
        printer.text(line)


def _document(object: Any) -> Document:
    return next(make for kind, make in _DOCUMENTS if isinstance(object, kind))(object)
