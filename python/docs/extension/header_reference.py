"""The directive {headers}: the classes, functions and members of C++ headers with their `///` comments."""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

ROOT = Path(__file__).resolve().parents[3]
COMMENT = re.compile(r"\s*///\s?(?!<)(.*)")
BEHIND = re.compile(r"\s*///<\s?(.*)")
ENUMERATOR = re.compile(r"\w+( = [^;(]+)?,?")


def entries_of(header: Path) -> list[tuple[str, str, str]]:
    """Return (declaration, its class, comment) for each public declaration of a header that has a comment."""
    lines = header.read_text().splitlines()
    entries: list[tuple[str, str, str]] = []
    scopes: list[tuple[int, str, bool]] = []  # indentation, class, whether what follows is public
    i = 0
    while i < len(lines):
        line = lines[i]
        if visibility := re.match(r"\s*(public|private|protected):", line):
            if scopes:
                scopes[-1] = (*scopes[-1][:2], visibility[1] == "public")
            i += 1
            continue
        if re.match(r"\s*\}", line):
            indentation = len(line) - len(line.lstrip())
            while scopes and scopes[-1][0] >= indentation:
                scopes.pop()
        comment: list[str] = []
        while i < len(lines) and (found := COMMENT.fullmatch(lines[i])):
            comment.append(found[1])
            i += 1
        declaration, i = declaration_at(lines, i)
        opened = re.search(r"\b(class|struct) (\w+)[^;]*\{\s*$", declaration)
        behind = BEHIND.search(lines[i - 1]) if i <= len(lines) else None
        if behind and not comment:
            comment = [behind[1]]
        shown = all(public for _, _, public in scopes)
        if comment and shown and declaration:
            scope = "::".join(name for _, name, _ in scopes)
            entries.append((without_body(declaration), scope, " ".join(comment).strip()))
        if opened:
            indentation = len(lines[i - 1]) - len(lines[i - 1].lstrip())
            scopes.append((indentation, opened[2], opened[1] == "struct"))
    return entries


def declaration_at(lines: list[str], i: int) -> tuple[str, int]:
    """Return the declaration that begins at a line, joined to one line, and the number of the line after it."""
    parts: list[str] = []
    while i < len(lines):
        line = lines[i]
        part = re.sub(r"\s*//.*", "", line).strip()
        i += 1
        parts.append(part)
        if BEHIND.search(line) or ENUMERATOR.fullmatch(part):
            break
        if not part.startswith(("template <", "requires")) and (not part or part.endswith((";", "{", "}", ":"))):
            break
    return " ".join(filter(None, parts)), i


def without_body(declaration: str) -> str:
    head = re.sub(r"\s*((?<!= )\{.*|[;,])$", "", declaration)
    return re.sub(r"\) (noexcept )?: \w+\(.*", ")", head)


def comment_nodes(text: str) -> list[nodes.Node]:
    """Return the text as nodes, in which `code` is literal."""
    pieces = re.split(r"`([^`]+)`", text)
    return [nodes.literal(p, p) if n % 2 else nodes.Text(p) for n, p in enumerate(pieces) if p]


class Headers(Directive):
    """A directive whose content is a list of paths, as they are spelled after <bascule/."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        out: list[nodes.Node] = []
        for header in (ROOT / path for path in self.content if path):
            name = f"<bascule/{header.relative_to(ROOT)}>"
            section = nodes.section(ids=[re.sub(r"\W+", "-", str(header.relative_to(ROOT)))])
            section += nodes.title(name, "", nodes.literal(name, name))
            described = nodes.definition_list()
            members = {"": described}  # of each class, by its name
            for declaration, scope, comment in entries_of(header):
                definition = nodes.definition("", nodes.paragraph("", "", *comment_nodes(comment)))
                term = nodes.term("", "", nodes.literal(declaration, declaration))
                while scope not in members:  # a class without a comment
                    scope = scope.rpartition("::")[0]
                members[scope] += nodes.definition_list_item("", term, definition)
                if opened := re.search(r"\b(?:class|struct) (\w+)(?! =)", declaration):
                    own = nodes.definition_list()
                    members["::".join(filter(None, (scope, opened[1])))] = own
                    definition += own
            for item in list(described.findall(nodes.definition_list)):
                if not item.children:
                    item.parent.remove(item)
            section += described
            out.append(section)
            self.state.document.settings.env.note_dependency(str(header))
        return out


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("headers", Headers)
    return {"parallel_read_safe": True}
