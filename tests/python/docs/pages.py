"""Reads the code blocks of the documentation's pages with MyST's parser, runs them, and compares their output.

    python tests/python/docs/pages.py --write PAGE...

`--write` puts the output of each block into the ```text block that follows it. A block whose shown lines have `...`
and still match stays as it is.

What the blocks of a page mean:

- ```python: all of a page run in one process, from top to bottom, on the emulated device.
- ```console: each line that begins with `$ ` is a command; the other lines are its output.
- ```cpp: kernels, compiled by bascule.compile; a text with `int main` is a program, compiled and run by a test.
- ```text directly after a block is the block's output, including an exception's last line; `...` matches any text.
- `% not run: REASON` before a block: it cannot run here.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "python" / "docs"
RUNNER = Path(__file__).with_name("run_blocks.py")
PAGES = sorted(DOCS.rglob("*.md"))
LANGUAGES = {"python", "console", "cpp", "text", "toml", "cmake", "yaml"}
NOT_RUN = "not run:"
SEPARATOR = "\x1e"  # between the outputs of a page's blocks


@dataclass
class Block:
    """A fenced block of a page, with the expected output that follows it."""

    page: Path
    line: int  # of the fence, counted from 1
    language: str
    text: str
    not_run: str = ""
    expected: str | None = None
    expected_lines: tuple[int, int] = (0, 0)  # of the output without its fences, counted from 0

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_program(self) -> bool:
        return self.language == "cpp" and "int main(" in self.text


def blocks_of(page: Path) -> list[Block]:
    """Returns the blocks of a page; those of other directives, such as {include}, are left to Sphinx."""
    from myst_parser.mdit_to_docutils.base import DocutilsRenderer

    tokens = create_md_parser(MdParserConfig(), DocutilsRenderer).parse(page.read_text())
    blocks: list[Block] = []
    before: Token | None = None
    for token in tokens:
        language = token.info.strip() if token.type == "fence" else ""
        if token.type == "fence" and not language.startswith("{"):
            assert token.map is not None
            is_output = before is not None and before.type == "fence" and language == "text" and bool(blocks)
            if is_output and blocks[-1].language in ("python", "cpp"):
                blocks[-1].expected = token.content
                blocks[-1].expected_lines = (token.map[0] + 1, token.map[1] - 1)
            else:
                comment = before.content.strip() if before is not None and before.type == "myst_line_comment" else ""
                reason = comment.removeprefix(NOT_RUN).strip() if comment.startswith(NOT_RUN) else ""
                blocks.append(Block(page, token.map[0] + 1, language, token.content, reason))
        before = token
    return blocks


def matches(expected: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS)


def environment(directory: Path) -> dict[str, str]:
    """A reader's environment: the emulated device with its defaults, and with the search for races."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BASCULE_EMULATED_")}
    paths = [os.path.dirname(sys.executable), kept.get("PATH", "")]
    return kept | {
        "BASCULE_DEVICE": "emulated",
        "BASCULE_EMULATED_CHECKS": "races",
        "BASCULE_DOCS": str(DOCS),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PATH": os.pathsep.join(filter(None, paths)),
        "TMPDIR": str(directory),
        "VIRTUAL_ENV": sys.prefix,  # C++ programs find NVRTC in the active environment
    }


def run_python(blocks: list[Block], directory: Path) -> list[str]:
    """Returns the output of each block, run one after another in one process with `directory` as working directory."""
    program = SEPARATOR.join(block.text for block in blocks)
    done = subprocess.run(
        [sys.executable, RUNNER], input=program, text=True, capture_output=True, timeout=300, cwd=directory,
        env=environment(directory),
    )  # fmt: skip
    outputs = done.stdout.split(SEPARATOR)
    if done.returncode or len(outputs) != len(blocks) + 1:
        place = blocks[min(len(outputs), len(blocks)) - 1].place
        raise AssertionError(f"{place} ended the process ({done.returncode}):\n{done.stdout[-2000:]}\n{done.stderr}")
    return [output.replace(f"{directory}/", "") for output in outputs[1:]]


def python_blocks(page: Path) -> list[Block]:
    return [block for block in blocks_of(page) if block.language == "python" and not block.not_run]


def failures_of_python(page: Path, directory: Path) -> list[str]:
    blocks = python_blocks(page)
    failures = []
    for block, printed in zip(blocks, run_python(blocks, directory) if blocks else [], strict=True):
        raised = re.search(r"^Traceback: ", printed, re.MULTILINE)
        shown = printed.replace("Traceback: ", "")
        if raised and block.expected is None:
            failures.append(f"{block.place} raised and shows no output:\n{shown}")
        elif block.expected is not None and not matches(block.expected, shown):
            failures.append(f"{block.place} shows\n{block.expected}\nand printed\n{shown}")
    return failures


def commands_of(block: Block) -> list[tuple[str, str]]:
    """Returns (command, expected output) pairs of a console block."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    return [(part.split("\n", 1)[0], part.split("\n", 1)[1]) for part in parts[1:]]


def failures_of_console(block: Block, directory: Path) -> list[str]:
    failures = []
    for command, expected in commands_of(block):
        done = subprocess.run(
            ["bash", "-c", command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
            cwd=directory, env=environment(directory),
        )  # fmt: skip
        if done.returncode:
            failures.append(f"{block.place}: {command} ended with {done.returncode}:\n{done.stdout}")
        elif expected and not matches(expected, done.stdout):
            failures.append(f"{block.place}: {command} shows\n{expected}\nand printed\n{done.stdout}")
    return failures


def failures_of_program(block: Block, directory: Path, build: Path) -> list[str]:
    """Compiles a C++ program with the libraries of the build tree, and runs it. Returns what failed."""
    source, program = directory / "program.cpp", directory / "program"
    source.write_text(block.text)
    libraries = [build / layer / f"libbascule_{layer}.a" for layer in ("runtime", "jit", "interface")]
    command = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{build / 'include'}", source, "-o", program]
    command += [*libraries, "-lfmt", "-lxxhash", "-ldl", "-pthread", f"-Wl,-rpath,{build / 'python' / 'bascule'}"]
    for step in (command, [program]):
        done = subprocess.run(
            step, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240, cwd=directory,
            env=environment(directory),
        )  # fmt: skip
        if done.returncode:
            return [f"{block.place} ended with {done.returncode}:\n{done.stdout}"]
    if block.expected is not None and not matches(block.expected, done.stdout):
        return [f"{block.place} shows\n{block.expected}\nand printed\n{done.stdout}"]
    return []


def write(page: Path) -> None:
    """Writes the output of the page's Python blocks where the page shows output."""
    with tempfile.TemporaryDirectory() as directory:
        blocks = python_blocks(page)
        outputs = run_python(blocks, Path(directory).resolve())
    lines = page.read_text().splitlines(keepends=True)
    for block, printed in reversed(list(zip(blocks, outputs, strict=True))):
        shown = re.sub(r"0x[0-9a-f]{6,}", "0x...", printed.replace("Traceback: ", ""))
        if block.expected is not None and not matches(block.expected, shown):
            first, last = block.expected_lines
            lines[first:last] = [*shown.rstrip("\n").splitlines(keepends=True), "\n"]
    page.write_text("".join(lines))


if __name__ == "__main__":
    if sys.argv[1:2] != ["--write"]:
        sys.exit(__doc__)
    for name in sys.argv[2:]:
        write(Path(name).resolve())
