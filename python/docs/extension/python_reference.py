"""The reference of the Python package: docstrings as reStructuredText, and signatures from the extension module's stub.

The directive {compile-options} lists the options of a compile, from the docstring of their class.

The docstrings are written to be read in a terminal. What they say in lines of `name : description` becomes a list here,
and the first line of an extension function, its signature, is omitted: the stub has it.
"""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

import bascule

STUB = Path(__file__).resolve().parents[2] / "bascule" / "_bascule.pyi"
ITEM = re.compile(r"(\w+(?:, \w+)*|`[^`]+`) : (.*)")
SECTION = re.compile(r"^\w+\n-{4,}$", re.MULTILINE)


def signatures_of_stub() -> dict[str, str]:
    """'Event.record' -> '(stream=None)', without the types, which the docstrings explain."""
    found: dict[str, str] = {}

    def collect(body: list[ast.stmt], owner: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                collect(node.body, f"{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                arguments = node.args
                for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                    each.annotation = None
                for each in filter(None, (arguments.vararg, arguments.kwarg)):
                    each.annotation = None
                if owner and arguments.args and arguments.args[0].arg == "self":
                    del arguments.args[0]
                found[owner + node.name] = f"({ast.unparse(arguments)})"

    collect(ast.parse(STUB.read_text()).body, "")
    return found


SIGNATURES = signatures_of_stub()


def use_signature_of_stub(_app: Any, kind: str, name: str, _object: Any, _options: Any, signature: Any, _returns: Any):
    if kind in ("function", "method"):
        return SIGNATURES.get(name.removeprefix("bascule."), signature), None
    return None


def rewrite(_app: Any, _kind: str, name: str, what: Any, _options: Any, lines: list[str]) -> None:
    doc = inspect.getdoc(what)
    text = "\n".join(lines if doc is None else doc.splitlines())
    text = re.sub(rf"\A{re.escape(name.rpartition('.')[2])}\(.*\n+", "", text)
    section = SECTION.search(text)
    prose, rest = (text[: section.start()], text[section.start() :]) if section else (text, "")
    prose = "\n\n".join(with_items(paragraph) for paragraph in re.split(r"\n{2,}", prose))
    # Attributes would become members of their own; here they are a list like the parameters.
    rest = re.sub(r"^Attributes\n-+", "Other Parameters\n----------------", rest, flags=re.MULTILINE)
    lines[:] = [*f"{prose}\n\n{rest}".splitlines(), ""]


def rewrite_property(app: Any, kind: str, name: str, what: Any, options: Any, lines: list[str]) -> None:
    """Run after napoleon, which takes the text before a colon for the property's type."""
    if kind in ("property", "attribute"):
        rewrite(app, kind, name, what, options, lines)


def with_items(paragraph: str) -> str:
    """Return the paragraph with its lines `name : description`, and those that continue them, as a list."""
    if paragraph.lstrip().startswith((">>>", "-")):
        return paragraph
    out: list[str] = []
    in_list = False
    for line in paragraph.splitlines():
        item = ITEM.fullmatch(line)
        if item:
            if not in_list:
                out.append("")
            names = ", ".join(f"``{each.strip('`')}``" for each in item[1].split(", "))
            out.append(f"- {names}: {item[2]}")
            in_list = True
        else:
            out.append(f"  {line.strip()}" if in_list else line)
    return "\n".join(out)


class OptionsOfCompile(Directive):
    def run(self) -> list[nodes.Node]:
        options = nodes.definition_list()
        rows = re.findall(r"^(\w+) : (.*(?:\n    .*)*)", bascule.CompileOptions.__doc__ or "", re.MULTILINE)
        for name, meaning in rows:
            default = repr(getattr(bascule.CompileOptions(), name))
            term = nodes.term("", "", nodes.literal(name, name), nodes.Text(" = "), nodes.literal(default, default))
            definition = nodes.definition("", nodes.paragraph("", " ".join(meaning.split())))
            options += nodes.definition_list_item("", term, definition)
        return [options]


def list_errors(_app: Any, _page: str, source: list[str]) -> None:
    errors = "".join(f".. autoexception:: {name}\n" for name in bascule._errors.__all__)
    source[0] = source[0].replace(".. every-error::\n", errors)


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("compile-options", OptionsOfCompile)
    app.connect("source-read", list_errors)
    app.connect("autodoc-process-signature", use_signature_of_stub)
    app.connect("autodoc-process-docstring", rewrite, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", rewrite_property, priority=600)
    return {"parallel_read_safe": True}
