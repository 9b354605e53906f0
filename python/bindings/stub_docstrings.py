"""Writes the extension module's stub with properties and with the module's docstrings, for editors and type checkers.

    python stub_docstrings.py MODULE STUB OUTPUT

MODULE is the built `_bascule.*.so`, which needs neither the package nor NumPy for this. STUB has the types.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

# The signature that pybind11 puts first. The stub has a better one.
SIGNATURE = re.compile(r"\A\w+\(.*?\)( -> [^\n]*)?(\n\n|\n?\Z)", re.DOTALL)
INHERITED = {each.__doc__ for each in (object, object.__init__, object.__new__, object.__repr__, type)}


def with_properties(stub: str) -> str:
    """Returns the stub with each `name: type` of a class as a read-only property."""
    lines = stub.split("\n")
    for owner in ast.parse(stub).body:
        for node in owner.body if isinstance(owner, ast.ClassDef) else ():
            if isinstance(node, ast.AnnAssign) and not ast.unparse(node.annotation).startswith("ClassVar"):
                name, result = ast.unparse(node.target), ast.unparse(node.annotation)
                lines[node.lineno - 1] = f"    @property\n    def {name}(self) -> {result}: ..."
    return "\n".join(lines)


def documented(stub: str, module: object) -> str:
    """Returns the stub's text with the module's docstrings inserted."""
    lines = stub.split("\n")
    for node, text in reversed(list(definitions(ast.parse(stub).body, module))):
        if not text:
            continue
        body = f"{text}\n" if "\n" in text else text
        docstring = textwrap.indent(f'"""{body}"""', " " * (node.col_offset + 4), lambda row: row.strip() != "")
        first = node.body[0]
        at = min(each.lineno for each in (first, *getattr(first, "decorator_list", ()))) - 1
        if lines[at].strip() == "...":
            del lines[at]
        elif isinstance(first, ast.Expr):  # the dots of def f(...) -> T: ...
            lines[at] = lines[at].replace(": ...", ":", 1)
            at += 1
        lines[at:at] = docstring.replace("\\", "\\\\").split("\n")
    return "\n".join(lines)


def definitions(body: list[ast.stmt], owner: object) -> Iterator[tuple[ast.ClassDef | ast.FunctionDef, str]]:
    """Yields classes and functions in the order of the text, with their docstrings. Skips all but the first
    overload."""
    seen: set[str] = set()
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name in seen:
            continue
        seen.add(node.name)
        value = getattr(owner, node.name, None)
        if not any(isinstance(each, ast.Attribute) for each in node.decorator_list):  # a setter
            yield node, docstring_of(value, node)
        if isinstance(node, ast.ClassDef):
            yield from definitions(node.body, value)


def docstring_of(value: object, node: ast.ClassDef | ast.FunctionDef) -> str:
    text = getattr(value, "__doc__", None)
    if not isinstance(text, str) or text in INHERITED or inspect.isclass(value) != isinstance(node, ast.ClassDef):
        return ""
    dunder = isinstance(node, ast.FunctionDef) and node.name.startswith("__")
    if dunder and text.startswith(("Return ", "Initialize self", "Call self")):
        return ""
    return inspect.cleandoc(SIGNATURE.sub("", text)).strip()


def load(path: str) -> object:
    spec = importlib.util.spec_from_file_location("bascule._bascule", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    module_path, stub_path, output_path = sys.argv[1:]
    stub = with_properties(Path(stub_path).read_text())
    Path(output_path).write_text(documented(stub, load(module_path)))
