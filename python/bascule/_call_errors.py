"""What a call with wrong arguments says: the function, the argument, what it takes and what it got."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bascule import _errors

# What pybind11 writes for a parameter's type: in words, and the Python types that are taken.
_TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "bool": ("True or False", (bool,)),
    "str": ("a str", (str,)),
    "bytes": ("bytes", (bytes,)),
    "dict": ("a dict", (dict,)),
    "tuple": ("a tuple", (tuple,)),
    "list": ("a list", (list, tuple)),
    "SupportsFloat": ("a number", (int, float)),
    "SupportsInt": ("an integer", (int,)),
}
_OVERLOAD = re.compile(r"^    \d+\. (.*)$", re.MULTILINE)


@dataclass
class _Parameter:
    name: str
    annotation: str
    has_default: bool
    by_name_only: bool

    @property
    def words(self) -> str:
        return self._known()[0]

    def fits(self, value: object) -> bool:
        words, types = self._known()
        if not types:
            return not words or type(value).__name__ == words.rpartition(".")[2]
        return isinstance(value, types) and not (words == "an integer" and not -(2**63) <= int(value) < 2**64)  # type: ignore[call-overload]

    def _known(self) -> tuple[str, tuple[type, ...]]:
        for written, known in _TYPES.items():
            if re.match(rf"(typing\.)?{written}\b", self.annotation):
                return known
        if self.annotation in ("", "object", "handle"):
            return "", ()
        if "Sequence[" in self.annotation:
            return "a list", (list, tuple)
        name = self.annotation.partition(" | ")[0]
        return f"a {name}", ()


def describe(text: str, positional: list[Any], named: dict[str, Any]) -> _errors.ArgumentTypeError:
    """The error in place of pybind11's `text`. Called by the extension module."""
    function = text.partition("(")[0]
    signatures = _OVERLOAD.findall(text.partition("\n\nInvoked with")[0])
    if function == "__init__":
        owner, positional = type(positional[0]).__name__, positional[1:]
        written = [_parameters(signature) for signature in signatures]
        return _error(f"bascule.{owner}", written, positional, named)
    written = [_parameters(signature) for signature in signatures]
    if written[0] and written[0][0].name == "self" and positional:
        function = f"{type(positional[0]).__name__}.{function}"
        return _error(function, [parameters[1:] for parameters in written], positional[1:], named)
    return _error(f"bascule.{function}" if not function.startswith("_") else function, written, positional, named)


def _error(
    function: str, overloads: Sequence[list[_Parameter]], positional: list[Any], named: dict[str, Any]
) -> _errors.ArgumentTypeError:
    problems = [_problem(parameters, positional, named) for parameters in overloads]
    if len(problems) == 1:
        problem, name = problems[0]
    else:
        problem, name = "takes other arguments", ""
    ways = " or ".join(f"{function}({', '.join(_written(parameters))})" for parameters in overloads)
    error = _errors.ArgumentTypeError(f"{function}() {problem}. Call it as {ways}.")
    error.name = name
    return error


def _problem(parameters: list[_Parameter], positional: list[Any], named: dict[str, Any]) -> tuple[str, str]:
    """What is wrong, and with which argument."""
    taken = [parameter for parameter in parameters if not parameter.name.startswith("*")]
    names = [parameter.name for parameter in taken]
    if not any(parameter.name.startswith("**") for parameter in parameters):
        for name in named:
            if name not in names:
                near = difflib.get_close_matches(name, names, 1)
                return f"has no parameter {name!r}" + (f" (did you mean {near[0]!r}?)" if near else ""), name
    by_position = [parameter for parameter in taken if not parameter.by_name_only]
    if len(positional) > len(by_position) and not any(parameter.name.startswith("*") for parameter in parameters):
        most = len(by_position)
        return f"takes {most or 'no'} argument{'s' * (most != 1)} by position, got {len(positional)}", ""
    given = dict(zip([parameter.name for parameter in by_position], positional, strict=False))
    for name in named:
        if name in given:
            return f"got the argument {name!r} twice", name
    given |= named
    for parameter in taken:
        if parameter.name not in given and not parameter.has_default:
            return f"lacks the argument {parameter.name!r}", parameter.name
    for parameter in taken:
        if parameter.name in given and not parameter.fits(given[parameter.name]):
            value = given[parameter.name]
            return f"needs {parameter.words} for {parameter.name!r}, got {_shown(value)}", parameter.name
    return "does not take these arguments", ""


def _shown(value: object) -> str:
    """The value, if that is short and safe; its type in any case."""
    kind = type(value).__name__
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, (int, float, str, bytes)):
        text = repr(value)
        return f"{text if len(text) <= 40 else text[:37] + '...'} ({kind})"
    return f"a {kind}" if kind[:1] not in "aeiouAEIOU" else f"an {kind}"


def _written(parameters: list[_Parameter]) -> Iterator[str]:
    starred = False
    for parameter in parameters:
        if parameter.by_name_only and not starred:
            starred = True
            yield "*"
        yield parameter.name + ("=..." if parameter.has_default else "")


def _parameters(signature: str) -> list[_Parameter]:
    """Of `name(first: type, *, second: type = default) -> type`."""
    inside = signature[signature.index("(") + 1 : signature.rindex(")")]
    if " -> " in signature:
        inside = signature[signature.index("(") + 1 : signature.rindex(") -> ")]
    found: list[_Parameter] = []
    by_name_only = False
    for part in _split(inside):
        if part in ("*", "/"):
            by_name_only = by_name_only or part == "*"
            continue
        name, _, rest = part.partition(":")
        annotation, equals, _ = rest.partition(" = ")
        found.append(_Parameter(name.strip(), annotation.strip(), bool(equals), by_name_only))
    return found


def _split(text: str) -> Iterator[str]:
    """At commas outside brackets and quotes."""
    depth, quote, part = 0, "", ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0 and not quote:
            yield part.strip()
            part = ""
        else:
            part += c
    if part.strip():
        yield part.strip()
