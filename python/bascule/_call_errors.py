"""Error messages for calls with wrong arguments: the function, the argument, its accepted types and the passed value.

The parameters are read from the extension module's stub file.
"""

import ast
import difflib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from inspect import Parameter
from pathlib import Path
from typing import Any

from bascule import _errors

# Maps the name of an annotation to its wording in messages and a test for values. Other names are classes of Bascule.
_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("True or False", lambda value: isinstance(value, bool)),
    "str": ("a str", lambda value: isinstance(value, str)),
    "bytes": ("bytes", lambda value: isinstance(value, bytes)),
    "PathLike": ("a path", lambda value: isinstance(value, os.PathLike)),
    "dict": ("a dict", lambda value: isinstance(value, dict)),
    "Mapping": ("a dict", lambda value: isinstance(value, dict)),
    "tuple": ("a tuple", lambda value: isinstance(value, tuple)),
    "Sequence": ("a list", lambda value: isinstance(value, (list, tuple))),
    "float": ("a number", lambda value: hasattr(value, "__float__") or hasattr(value, "__index__")),
    "int": ("an integer", lambda value: hasattr(value, "__index__") and -(2**63) <= int(value) < 2**64),
    "None": ("None", lambda value: value is None),
}


def describe(name: str, positional: list[Any], named: dict[str, Any]) -> _errors.ArgumentTypeError:
    """Return the error for a wrong call of the function with this qualified name. Called by the extension module."""
    owner, _, method = name.rpartition(".")
    if owner:
        positional = positional[1:]
    shown = f"bascule.{owner}" if method == "__init__" else name if owner or name.startswith("_") else f"bascule.{name}"
    parameters = _table().get(name)
    if parameters is None:
        return _errors.ArgumentTypeError(f"{shown}() does not take these arguments.")
    problem, argument = _problem(parameters, positional, named)
    error = _errors.ArgumentTypeError(f"{shown}() {problem}. Call it as {shown}({', '.join(_written(parameters))}).")
    error.name = argument
    return error


def signature(name: str) -> inspect.Signature:
    """Return the `inspect.Signature` of the function with this qualified name. Called by the extension module."""
    found = _functions().get(name)
    if found is None:
        raise AttributeError("__signature__")
    return _signature_of(found)


def _signature_of(function: ast.FunctionDef) -> inspect.Signature:
    """Return the signature of a function of the stub, with annotations as text."""
    function.decorator_list = []
    made: dict[str, Any] = {}
    exec(f"from __future__ import annotations\n{ast.unparse(function)}", made)
    return inspect.signature(made[function.name])


def _problem(parameters: list[Parameter], positional: list[Any], named: dict[str, Any]) -> tuple[str, str]:
    """Return what is wrong, and the name of the argument."""
    kinds = {parameter.kind for parameter in parameters}
    taken = [each for each in parameters if each.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)]
    names = [parameter.name for parameter in taken]
    if Parameter.VAR_KEYWORD not in kinds:
        for name in named:
            if name not in names:
                near = difflib.get_close_matches(name, names, 1)
                return f"has no parameter {name!r}" + (f" (did you mean {near[0]!r}?)" if near else ""), name
    by_position = [parameter for parameter in taken if parameter.kind != Parameter.KEYWORD_ONLY]
    if len(positional) > len(by_position) and Parameter.VAR_POSITIONAL not in kinds:
        most = len(by_position)
        return f"takes {most or 'no'} argument{'s' * (most != 1)} by position, got {len(positional)}", ""
    given = dict(zip([parameter.name for parameter in by_position], positional, strict=False))
    for name in named:
        if name in given:
            return f"got the argument {name!r} twice", name
    given |= named
    for parameter in taken:
        if parameter.name not in given and parameter.default is Parameter.empty:
            return f"lacks the argument {parameter.name!r}", parameter.name
    for parameter in taken:
        types = _types(parameter)
        if types and parameter.name in given and not _fits(given[parameter.name], types):
            words = " or ".join(_TYPES[each][0] if each in _TYPES else f"a bascule.{each}" for each in types)
            return f"needs {words} for {parameter.name!r}, got {_shown(given[parameter.name])}", parameter.name
    return "does not take these arguments", ""


def _fits(value: object, types: tuple[str, ...]) -> bool:
    classes = {each.__name__ for each in type(value).__mro__}
    return any(_TYPES[each][1](value) if each in _TYPES else each in classes for each in types)


def _shown(value: object) -> str:
    """Describe a value: the repr, at most 40 characters, and the type of a number or text; the type alone of others."""
    kind = type(value).__name__
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, (int, float, str, bytes)):
        text = repr(value)
        return f"{text if len(text) <= 40 else text[:37] + '...'} ({kind})"
    return f"a {kind}" if kind[:1] not in "aeiouAEIOU" else f"an {kind}"


def _written(parameters: list[Parameter]) -> Iterator[str]:
    starred = False
    for parameter in parameters:
        if parameter.kind == Parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        stars = "*" * ((parameter.kind == Parameter.VAR_POSITIONAL) + 2 * (parameter.kind == Parameter.VAR_KEYWORD))
        yield stars + parameter.name + ("" if parameter.default is Parameter.empty else "=...")


@functools.cache
def _table() -> dict[str, list[Parameter]]:
    """Map qualified names of functions to their parameters; the types are omitted if there are several signatures."""
    table: dict[str, list[Parameter]] = {}
    for name, function in _written_functions():
        parameters = list(_signature_of(function).parameters.values())["." in name :]
        table[name] = [each.replace(annotation=Parameter.empty) for each in parameters] if name in table else parameters
    return table


@functools.cache
def _functions() -> dict[str, ast.FunctionDef]:
    return dict(reversed(list(_written_functions())))  # keeps the first of several signatures


def _written_functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions of the stub file with their qualified names."""
    stub = ast.parse(Path(__file__).with_name("_bascule.pyi").read_text(encoding="utf-8"))
    for owner in stub.body:
        members = owner.body if isinstance(owner, ast.ClassDef) else [owner]
        for function in members:
            if isinstance(function, ast.FunctionDef):
                yield f"{owner.name}.{function.name}" if isinstance(owner, ast.ClassDef) else function.name, function


def _types(parameter: Parameter) -> tuple[str, ...]:
    """Return the types of the annotation without type arguments; none if any type is accepted."""
    if parameter.annotation is Parameter.empty:
        return ()
    types = tuple(_names(ast.parse(parameter.annotation, mode="eval").body))
    return () if any(each in ("Any", "object") or each.startswith("_") for each in types) else types


def _names(annotation: ast.expr) -> Iterator[str]:
    """Yield the names of the types in a union: "int" and "Sequence" for `int | Sequence[int]`."""
    if isinstance(annotation, ast.BinOp):
        yield from _names(annotation.left)
        yield from _names(annotation.right)
    else:
        yield ast.unparse(annotation).partition("[")[0]
