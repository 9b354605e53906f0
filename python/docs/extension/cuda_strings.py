"""Colours CUDA C++ inside Python's strings, in programs and in examples with prompts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pygments.lexer import DelegatingLexer
from pygments.lexers.c_like import CudaLexer
from pygments.lexers.python import PythonConsoleLexer, PythonLexer
from pygments.token import Error, String, _TokenType

_CUDA = re.compile(r"__global__|__device__|#include")
_LITERAL = re.compile(r"(?s)([A-Za-z]*)(\"\"\"|'''|\"|')(.*)\2")

Part = tuple[int, _TokenType, str]


class PythonWithCuda(PythonLexer):
    """Python, where a string with CUDA's words has the colours of C++."""

    def get_tokens_unprocessed(self, text: str) -> Iterator[Part]:  # type: ignore[override]
        literal: list[Part] = []
        for part in super().get_tokens_unprocessed(text):
            if part[1] in String and not (literal and part[1] is String.Affix):
                literal.append(part)
                continue
            yield from _coloured(literal)
            literal = []
            if part[1] in String:
                literal.append(part)
            else:
                yield part
        yield from _coloured(literal)


class ConsoleWithCuda(PythonConsoleLexer):
    """Pygments' lexer for Python sessions, with the lexer above for the code after the prompts."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        lines = self.language_lexer  # for code after prompts, and tracebacks
        assert isinstance(lines, DelegatingLexer)
        lines.root_lexer = PythonWithCuda(**options)


def _coloured(literal: list[Part]) -> Iterator[Part]:
    text = "".join(value for _, _, value in literal)
    found = _LITERAL.fullmatch(text) if _CUDA.search(text) else None
    inside = list(CudaLexer().get_tokens_unprocessed(found[3])) if found is not None else []
    if found is None or any(kind is Error for _, kind, _ in inside):  # Python with a kernel in it
        yield from literal
        return
    at = literal[0][0]
    yield at, String, text[: found.start(3)]
    for offset, kind, value in inside:
        yield at + found.start(3) + offset, kind, value
    yield at + found.end(3), String, found[2]


def setup(app: Any) -> dict[str, bool]:
    app.add_lexer("python", PythonWithCuda)
    app.add_lexer("pycon", ConsoleWithCuda)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
