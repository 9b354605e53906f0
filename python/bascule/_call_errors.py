"""Error messages for calls with wrong arguments: the function, the argument, its accepted types and the passed value.

The parameters are read from the extension module's stub file.
"""

import ast
import difflib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

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


class _Parameter(NamedTuple):
    name: str
    types: tuple[str, ...]  # from the annotation, without type arguments; empty if any type is accepted
    has_default: bool
    by_name_only: bool

    @property
    def words(self) -> str:
        return " or ".join(_TYPES[each][0] if each in _TYPES else f"a bascule.{each}" for each in self.types)

    def fits(self, value: object) -> bool:
        classes = {each.__name__ for each in type(value).__mro__}
        return not self.types or any(
            _TYPES[each][1](value) if each in _TYPES else each in classes for each in self.types
        )


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
    given, kind = found.args, inspect.Parameter
    defaults = [None] * (len(given.posonlyargs + given.args) - len(given.defaults)) + list(given.defaults)
    rows: list[tuple[ast.arg, Any, ast.expr | None]] = [
        (each, kind.POSITIONAL_ONLY if each in given.posonlyargs else kind.POSITIONAL_OR_KEYWORD, default)
        for each, default in zip(given.posonlyargs + given.args, defaults, strict=True)
    ]
    if given.vararg:
        rows.append((given.vararg, kind.VAR_POSITIONAL, None))
    rows += [
        (each, kind.KEYWORD_ONLY, default) for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    if given.kwarg:
        rows.append((given.kwarg, kind.VAR_KEYWORD, None))
    parameters = [
        inspect.Parameter(
            each.arg,
            how,
            default=inspect.Parameter.empty if default is None else ast.literal_eval(default),
            annotation=_source_of(each.annotation),
        )
        for each, how, default in rows
    ]
    return inspect.Signature(parameters, return_annotation=_source_of(found.returns))


def _source_of(annotation: ast.expr | None) -> Any:
    return inspect.Parameter.empty if annotation is None else ast.unparse(annotation)


def _problem(parameters: list[_Parameter], positional: list[Any], named: dict[str, Any]) -> tuple[str, str]:
    """Return what is wrong, and the name of the argument."""
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
    """Return the value's type, and its repr if that is short and safe."""
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


@functools.cache
def _table() -> dict[str, list[_Parameter]]:
    """Map qualified names of functions to their parameters; the types are omitted if there are several signatures."""
    table: dict[str, list[_Parameter]] = {}
    for name, function in _written_functions():
        parameters = list(_parameters(function.args))["." in name :]
        table[name] = [each._replace(types=()) for each in parameters] if name in table else parameters
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


def _parameters(arguments: ast.arguments) -> Iterator[_Parameter]:
    by_position = [*arguments.posonlyargs, *arguments.args]
    for i, each in enumerate(by_position):
        yield _Parameter(each.arg, _types(each), len(by_position) - i <= len(arguments.defaults), False)
    if arguments.vararg:
        yield _Parameter(f"*{arguments.vararg.arg}", (), False, False)
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _Parameter(each.arg, _types(each), default is not None, True)
    if arguments.kwarg:
        yield _Parameter(f"**{arguments.kwarg.arg}", (), False, False)


def _types(parameter: ast.arg) -> tuple[str, ...]:
    types = tuple(_names(parameter.annotation))
    return () if any(each in ("Any", "object") or each.startswith("_") for each in types) else types


def _names(annotation: ast.expr | None) -> Iterator[str]:
    """Yield the names of the types in a union: "int" and "Sequence" for `int | Sequence[int]`."""
    if isinstance(annotation, ast.BinOp):
        yield from _names(annotation.left)
        yield from _names(annotation.right)
    elif annotation is not None:
        yield ast.unparse(annotation).partition("[")[0]
