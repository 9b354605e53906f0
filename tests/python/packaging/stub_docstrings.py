"""Writes the docstrings of the extension module into its stub, for editors, which do not import it.

    python tests/python/packaging/stub_docstrings.py [--write]

Without --write it only says whether the stub is as it would write it, and exits with 1 if not.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from pathlib import Path

from bascule import _bascule

STUB = Path(__file__).resolve().parents[3] / "python" / "bascule" / "_bascule.pyi"
# pybind11 puts the signature first, which the stub says better.
SIGNATURE = re.compile(r"\A\w+\(.*?\)( -> [^\n]*)?(\n\n|\n?\Z)", re.DOTALL)
ONE_LINE = re.compile(r"(.*:) \.\.\.(\s*#.*)?$")
INHERITED = {each.__doc__ for each in (object, object.__init__, object.__new__, object.__repr__, type)}


def documented(stub: str) -> str:
    """The stub's text with the docstrings that the module has, in place of those that are there."""
    lines = without_docstrings(stub)
    for node, text in reversed(list(definitions(ast.parse("\n".join(lines)).body, _bascule))):
        if not text:
            continue
        indent = " " * (node.col_offset + 4)
        body = f"{text}\n" if "\n" in text else text
        docstring = textwrap.indent(f'"""{body}"""', indent, lambda row: row.strip() != "").replace("\\", "\\\\")
        at = first_line(node.body[0]) - 1
        empty = isinstance(node.body[0], ast.Expr)  # the dots
        short = ONE_LINE.match(lines[at]) if empty else None  # def f(...) -> T: ...
        head = [f"{short[1]}{short[2] or ''}"] if short else []
        lines[at : at + (1 if empty else 0)] = [*head, *docstring.split("\n")]
    return "\n".join(lines)


def is_current(stub: str) -> bool:
    """Whether the docstrings are the module's; empty lines are the formatter's."""
    return [line for line in documented(stub).split("\n") if line] == [line for line in stub.split("\n") if line]


def first_line(node: ast.stmt) -> int:
    return min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))


def without_docstrings(stub: str) -> list[str]:
    lines = stub.split("\n")
    nodes = [node for node in ast.walk(ast.parse(stub)) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in sorted(nodes, key=lambda node: node.body[0].lineno, reverse=True):
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            rest = [] if len(node.body) > 1 else [" " * (node.col_offset + 4) + "..."]
            lines[first.lineno - 1 : first.end_lineno] = rest
    return lines


def definitions(body: list[ast.stmt], owner: object):
    """Classes and functions in the order of the text, with their docstrings; of overloads the first."""
    seen: set[str] = set()
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name in seen:
            continue
        seen.add(node.name)
        if not any(isinstance(each, ast.Attribute) for each in node.decorator_list):  # a setter
            yield node, docstring_of(getattr(owner, node.name, None), node)
        if isinstance(node, ast.ClassDef):
            yield from definitions(node.body, getattr(owner, node.name, None))


def docstring_of(value: object, node: ast.stmt) -> str:
    text = getattr(value, "__doc__", None)
    if not isinstance(text, str) or text in INHERITED or inspect.isclass(value) != isinstance(node, ast.ClassDef):
        return ""
    dunder = isinstance(node, ast.FunctionDef) and node.name.startswith("__")
    if dunder and not isinstance(node, ast.ClassDef) and text.startswith(("Return ", "Initialize self", "Call self")):
        return ""
    return inspect.cleandoc(SIGNATURE.sub("", text)).strip()


def main() -> int:
    before = STUB.read_text()
    after = documented(before)
    if "--write" in sys.argv:
        STUB.write_text(after)
    elif not is_current(before):
        print(f"{STUB.name} has other docstrings than the module: run {Path(__file__).name} --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
