"""Every code block of the documentation runs and prints what the page shows, or says why it cannot run here."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import bascule
from docs.pages import (
    DOCS,
    LANGUAGES,
    PAGES,
    ROOT,
    blocks_of,
    failures_of_console,
    failures_of_program,
    failures_of_python,
    python_blocks,
)

pytestmark = pytest.mark.slow

BUILD = Path(bascule._bascule.__file__).parents[2]
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
NAMES = [str(page.relative_to(DOCS)) for page in PAGES]
RUNNING = [block for block in BLOCKS if not block.not_run]


def only(language: str) -> list:
    return [block for block in RUNNING if block.language == language]


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.stem)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    assert not failures_of_python(page, tmp_path)


@pytest.mark.parametrize("block", only("console"), ids=lambda block: block.place)
def test_commands_print_what_the_page_shows(block, tmp_path: Path) -> None:
    assert not failures_of_console(block, tmp_path)


@pytest.mark.parametrize("block", [b for b in only("cpp") if not b.is_program], ids=lambda block: block.place)
def test_device_code_compiles(block) -> None:
    module = bascule.compile(block.text + "\n__global__ void nothing() {}\n")
    assert "nothing" in module.nothing.prepare().ptx


@pytest.mark.parametrize("block", [b for b in only("cpp") if b.is_program], ids=lambda block: block.place)
def test_programs_in_cpp_run(block, tmp_path: Path) -> None:
    if not (BUILD / "runtime" / "libbascule_runtime.a").exists():
        pytest.skip("needs a build tree: the installed package has no C++ libraries")
    assert not failures_of_program(block, tmp_path, BUILD)


def test_the_readme_has_a_program_in_cpp_that_prints_what_it_says(tmp_path: Path) -> None:
    if not (BUILD / "runtime" / "libbascule_runtime.a").exists():
        pytest.skip("needs a build tree: the installed package has no C++ libraries")
    (program,) = [block for block in blocks_of(ROOT / "README.md") if block.is_program]
    (printed,) = re.findall(r"printf.*; (\S+)$", program.text, re.MULTILINE)
    program.expected = printed + "\n"
    assert not failures_of_program(program, tmp_path, BUILD)


def test_cpp_17_is_refused_in_one_error() -> None:
    if not (BUILD / "include").exists():
        pytest.skip("needs a build tree: the installed package has no C++ headers")
    compiler = [shutil.which("g++") or "clang++", "-fsyntax-only", "-x", "c++", "-", "-I", BUILD / "include"]
    text = "#include <bascule/bascule.hpp>"
    done = subprocess.run([*compiler, "-std=c++17"], input=text, text=True, capture_output=True)
    assert done.returncode != 0
    assert "bascule needs C++20: compile with -std=c++20, or set CMAKE_CXX_STANDARD to 20" in done.stderr
    assert done.stderr.count("error:") == 1


def test_every_block_has_a_language_that_is_tested() -> None:
    assert not [f"{block.place}: {block.language!r}" for block in BLOCKS if block.language not in LANGUAGES]


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.not_run], ids=lambda block: block.place)
def test_what_cannot_run_here_says_why(block) -> None:
    pytest.skip(block.not_run)


def test_most_blocks_run_and_the_others_have_a_reason() -> None:
    silent = [b.place for b in BLOCKS if b.language in ("cmake", "toml", "yaml") and not b.not_run]
    assert not silent, "nothing runs these languages: say why they are right"
    assert len(RUNNING) > 2 * (len(BLOCKS) - len(RUNNING))
