"""Finds a kernel's definition in CUDA C++ text, and the comment above it."""

import inspect
import re
import textwrap
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
      (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
    | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
    | (?P<literal>(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    | (?P<number>\d[\w'.]*)
    | (?P<word>[^\W\d]\w*)
    | (?P<mark>[{};])
    | (?P<other>\S)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


class Definition(NamedTuple):
    """A kernel's text, from `template` or `__global__` to its last brace, and the comment above it."""

    code: str
    comment: str


def find_definition(text: str, name: str, line: int) -> Definition | None:
    """Find the kernel whose name is in this line, counted from 1. Returns None if a macro made the kernel."""
    tokens = list(_TOKEN.finditer(text))
    word = name.rpartition("::")[2]
    statement = 0  # index of the statement's first token
    found: tuple[int, int] | None = None
    for at, token in enumerate(tokens):
        if token.lastgroup in ("directive", "mark"):
            statement = at + 1
        elif token["word"] == "__global__" and text.count("\n", 0, token.start()) < line:
            end = _end(tokens, at)
            if any(each["word"] == word for each in tokens[at:end]):
                found = statement, end
    if found is None:
        return None
    statement, end = found
    code = next(at for at in range(statement, end) if tokens[at].lastgroup != "comment")
    begin = tokens[code].start()
    indented = text[text.rfind("\n", 0, begin) + 1 : tokens[end - 1].end()]
    if indented[: -len(text[begin : tokens[end - 1].end()])].strip():
        indented = text[begin : tokens[end - 1].end()]  # other code precedes it in its line
    return Definition(textwrap.dedent(indented), _comment(text, tokens[statement : code + 1]))


def _end(tokens: list[re.Match[str]], begin: int) -> int:
    """Return the index of the token after the body, or after the semicolon of a declaration."""
    depth = 0
    for at in range(begin, len(tokens)):
        mark = tokens[at]["mark"]
        depth += (mark == "{") - (mark == "}")
        if mark and depth <= 0 and mark != "{":
            return at + 1
    return len(tokens)


def _comment(text: str, tokens: list[re.Match[str]]) -> str:
    """Return the text of the comments directly above the last of the tokens."""
    own: list[str] = []
    following = tokens[-1]
    for token in reversed(tokens[:-1]):
        if text.count("\n", token.end(), following.start()) > 1:
            break
        line = text[text.rfind("\n", 0, token.start()) + 1 : token.start()]
        if line.strip():
            break  # a comment about the code before it
        own.insert(0, token[0])
        following = token
    return textwrap.dedent("\n".join(map(_without_marks, own))).strip()


def _without_marks(comment: str) -> str:
    if comment.startswith("//"):
        return re.sub(r"^//[/!]?<? ?", "", comment)
    inside = re.sub(r"^/\*[*!]?|\*/$", "", comment)
    return inspect.cleandoc(re.sub(r"(?m)^[ \t]*\*(?: |$)", "", inside))
