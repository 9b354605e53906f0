"""The rules of tests/check_tree.py hold, and the checks notice when one is broken."""

import importlib.util
import subprocess
from pathlib import Path

import pytest
from conformance.mutants import MUTANTS, mutated

ROOT = Path(__file__).resolve().parents[2]
specification = importlib.util.spec_from_file_location("check_tree", ROOT / "tests" / "check_tree.py")
check_tree = importlib.util.module_from_spec(specification)
specification.loader.exec_module(check_tree)


@pytest.mark.parametrize("check", check_tree.CHECKS, ids=lambda check: check.__name__)
def test_the_repository_keeps_the_rule(check):
    findings = list(check())
    assert not findings, "\n".join(findings)


def write_repository(root, files):
    """Makes a git repository whose index has these files. The contents are by path."""
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "."], cwd=root, check=True)


BREACHES = [
    ("includes_run_one_way", "jit/a.cpp", "#include <bascule/runtime/driver/driver.hpp>"),
    ("includes_run_one_way", "interface/a.hpp", "#include <bascule/jit/program/program.hpp>"),
    ("includes_run_one_way", "runtime/emulator/ptx/a.cpp", "#include <bascule/interface/types/dtype.hpp>"),
    ("includes_run_one_way", "runtime/a.cpp", '#include "emulator/ptx/lexer.hpp"'),
    ("quoted_includes_stay_in_their_directory", "jit/a.cpp", '#include "../interface/dtype.hpp"'),
    ("one_file_opens_the_driver", "runtime/driver/device.cpp", 'open("libcuda.so.1");'),
    ("nvrtc_is_known_to_jit_only", "runtime/a.cpp", "#include <nvrtc.h>"),
    ("python_is_known_to_the_bindings_only", "jit/a.cpp", "#include <pybind11/pybind11.h>"),
    ("cmake_lists_its_files", "jit/CMakeLists.txt", "file(GLOB sources *.cpp)"),
    ("every_source_is_built", "jit/orphan.cpp", "int x;"),
    ("every_folder_is_in_the_design", "jit/orphan.cpp", "int x;"),
    ("every_source_is_described", "jit/orphan.cpp", "int x;"),
    ("the_design_can_be_read_at_once", "DESIGN.md", "a line\n" * 301),
    ("the_top_level_is_tidy", "notes.txt", "remember"),
    ("no_machine_is_named", "README.md", "see /" + "root/notes"),
    ("every_python_test_is_collected", "tests/python/more.py", "def test_x(): pass"),
    ("comments_are_sentences", "jit/a.cpp", "// Of two nodes,\n// without their edges.\nint x;"),
    ("comments_are_sentences", "jit/a.py", '"""Whose memory this is."""'),
    ("comments_are_sentences", "jit/a.md", "The size, as repr has it."),
]


@pytest.mark.parametrize(("check", "path", "content"), BREACHES, ids=lambda value: str(value)[:40])
def test_a_breach_is_noticed(tmp_path, monkeypatch, check, path, content):
    write_repository(tmp_path, {"DESIGN.md": "| file | responsibility |\n|---|---|\n", path: content + "\n"})
    monkeypatch.setattr(check_tree, "ROOT", tmp_path)
    assert any(path in finding or "notes.txt" in finding for finding in getattr(check_tree, check)())


@pytest.mark.parametrize("line", ["if (operation == Operation::rem) {}", "return a >= Operation::rem;"])
def test_code_that_knows_an_instruction_is_noticed(tmp_path, monkeypatch, line):
    files = {
        check_tree.OPERATIONS: 'OPERATION(rem, by_lane, letters) FORM("rem", rem, "DAA", integers)\n',
        f"{check_tree.EMULATOR}/handlers/a.cpp": "r.add(Operation::rem, rem);\n",
        f"{check_tree.EMULATOR}/program/a.cpp": line + "\n",
    }
    write_repository(tmp_path, files)
    monkeypatch.setattr(check_tree, "ROOT", tmp_path)
    findings = list(check_tree.an_instruction_is_a_row_and_a_handler())
    assert findings
    assert all("program/a.cpp:1" in finding for finding in findings)


def test_two_files_of_the_emulated_device_of_one_name_are_noticed(tmp_path, monkeypatch):
    files = [f"{check_tree.EMULATOR}/{folder}/module.hpp" for folder in ("ptx", "program")]
    write_repository(tmp_path, dict.fromkeys(files, "#pragma once\n"))
    monkeypatch.setattr(check_tree, "ROOT", tmp_path)
    (finding,) = check_tree.emulator_files_have_names_of_their_own()
    assert "program/module.hpp has this name too" in finding


def test_a_folder_that_is_too_full_is_noticed(tmp_path, monkeypatch):
    files = {f"jit/text/part{number}.hpp": "#pragma once\n" for number in range(check_tree.MOST_FILES + 1)}
    write_repository(tmp_path, files)
    monkeypatch.setattr(check_tree, "ROOT", tmp_path)
    assert [finding for finding in check_tree.no_folder_is_too_full() if "jit/text/" in finding]


RINGS = [
    (
        "no_ring_of_includes",
        {"jit/text/a.cpp": "jit/text/b.hpp", "jit/text/b.hpp": "jit/text/a.hpp", "jit/text/a.hpp": "x"},
        "jit/text/a -> jit/text/b -> jit/text/a",
    ),
    (
        "no_ring_of_folders",
        {
            "jit/text/a.hpp": "jit/files/b.hpp",
            "jit/files/b.hpp": "x",
            "jit/files/c.hpp": "jit/text/d.hpp",
            "jit/text/d.hpp": "x",
        },
        "jit/files -> jit/text -> jit/files",
    ),
    (
        "no_ring_of_modules",
        {"python/bascule/_a.py": "from bascule import _b", "python/bascule/_b.py": "import bascule._a"},
        "bascule._a -> bascule._b -> bascule._a",
    ),
]


@pytest.mark.parametrize(("subject", "noticed"), [("Add a row", False), ("Add a row " + "x" * 63, True)])
def test_a_long_subject_of_a_commit_is_noticed(tmp_path, monkeypatch, subject, noticed):
    for arguments in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", subject],
    ):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    monkeypatch.setattr(check_tree, "ROOT", tmp_path)
    assert bool(list(check_tree.subjects_of_commits_are_short())) == noticed


def write_files(root, files):
    write_repository(
        root,
        {
            path: content if path.endswith(".py") else f"#include <bascule/{content}>\n"
            for path, content in files.items()
        },
    )


@pytest.mark.parametrize(("check", "files", "ring"), RINGS, ids=lambda value: str(value)[:20])
def test_a_ring_is_noticed(tmp_path, monkeypatch, check, files, ring):
    write_files(tmp_path, files)
    monkeypatch.setattr(check_tree, "ROOT", tmp_path)
    assert [finding for finding in getattr(check_tree, check)() if finding.startswith(f"{ring}: a ring")]


def test_a_source_counts_where_the_header_of_its_class_is(tmp_path, monkeypatch):
    """`Stream`'s functions are in another folder than its header: their includes make the cycle."""
    write_files(
        tmp_path,
        {
            "jit/low/stream.hpp": "x",
            "jit/high/wait.cpp": "jit/high/wait.hpp",
            "jit/high/wait.hpp": "jit/low/stream.hpp",
        },
    )
    (tmp_path / "jit/low/stream.hpp").write_text("class Stream {\n    void wait();\n};\n")
    source = tmp_path / "jit/high/wait.cpp"
    monkeypatch.setattr(check_tree, "ROOT", tmp_path)
    assert not list(check_tree.no_ring_of_folders())
    source.write_text(source.read_text() + "void Stream::wait() {}\n")
    assert [finding for finding in check_tree.no_ring_of_folders() if finding.startswith("jit/high -> jit/low")]


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_each_check_of_a_descriptor_is_where_the_table_of_mutants_says(file):
    assert mutated(file, (ROOT / file).read_text(encoding="utf-8"))


def test_a_check_that_is_not_where_the_table_of_mutants_says_is_an_error():
    with pytest.raises(ValueError, match="check version_negative could be"):
        mutated("interface/arrays/array_interface.cpp", "int x;")
