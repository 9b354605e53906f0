"""Adds to the classes of the extension module what Python implements: displays, documentation, copies and pickles."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bascule import _bascule
from bascule._displayed import Displayed, DocumentationOfInstance, SignatureOfInstance

_IMMUTABLE = ("CompileOptions", "Device", "Diagnostic", "Kernel", "LaunchConfig", "Launcher", "Module")


def complete() -> None:
    """Add the methods. Called once, when the package is imported."""
    classes: dict[str, Any] = {name: each for name, each in vars(_bascule).items() if isinstance(each, type)}
    for each in classes.values():
        each.__reduce__ = _reduce  # Python's default does not work for pybind11's objects
    for name in _IMMUTABLE:
        classes[name].__copy__ = lambda self: self
        classes[name].__deepcopy__ = lambda self, memo: self
    for name in ("CacheStatistics", "KernelAttributes", "Occupancy"):
        classes[name].__repr__ = _repr_of_properties
    classes["Diagnostic"].__repr__ = _repr_of_diagnostic
    for name in ("BoundLaunch", "CacheStatistics", "DeviceArray", "Kernel", "Launcher", "Module"):
        classes[name]._repr_html_ = Displayed._repr_html_
    for name in ("BoundLaunch", "Kernel", "Launcher", "Module"):
        classes[name]._repr_pretty_ = Displayed._repr_pretty_
    for name in ("BoundLaunch", "Kernel", "Launcher"):
        classes[name].__signature__ = SignatureOfInstance()
    classes["Module"].__dir__ = _names_in_module
    classes["Kernel"].__doc__ = DocumentationOfInstance(_bascule.Kernel.__doc__)
    classes["Device"].__getattr__ = classes["Stream"].__getattr__ = _missing_attribute


def _reduce(self: object) -> tuple[Any, ...]:
    from bascule._pickling import reduce

    return reduce(self)


def _repr_of_properties(self: object) -> str:
    """Return the class and its properties, in the order in which they were bound."""
    values = {name: getattr(self, name) for name, each in vars(type(self)).items() if isinstance(each, property)}
    parts = [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value!r}" for name, value in values.items()]
    return f"{type(self).__name__}({', '.join(parts)})"


def _repr_of_diagnostic(self: _bascule.Diagnostic) -> str:
    names = ("severity", "number", "file", "line", "column", "message")
    parts = [f"{name}={value!r}" for name in names if (value := getattr(self, name))]
    parts += [f"{len(self.notes)} notes"] if self.notes else []
    return f"<bascule.Diagnostic {', '.join(parts)}>"


def _names_in_module(self: _bascule.Module) -> list[str]:
    """Return the attributes, and the kernels that `module.name` finds: qualified ones by their last part."""
    kernels = [name for name in type(self).kernels.__get__(self) if "<" not in name]
    last = Counter(name.rpartition("::")[2] for name in kernels if "::" in name)
    found = [name for name in kernels if "::" not in name] + [name for name, count in last.items() if count == 1]
    return list(dict.fromkeys([*object.__dir__(self), *found]))


def _missing_attribute(self: object, name: str) -> Any:
    from bascule._porting import attribute_error

    raise attribute_error(self, name)
