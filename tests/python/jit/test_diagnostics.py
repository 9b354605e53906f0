"""Compile errors: structured, and with the line of the user's file in which the text was written."""

from __future__ import annotations

import inspect
import linecache
import os
import pty
import re
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest
from child_process import run_python

import bascule

HERE = Path(__file__).name

MODULE_TEXT = """
__global__ void of_module(float* x) {
    x[0] = wrong_in_module;
}
"""


def error_of(action) -> bascule.CompileError:
    with pytest.raises(bascule.CompileError) as caught:
        action()
    return caught.value


def line_here(mark: str) -> int:
    """The only line of this file that contains `mark`, found independently of the code under test."""
    lines = Path(__file__).read_text().splitlines()
    others = ("line_here", "assert", "next(")
    (found,) = [n for n, line in enumerate(lines, 1) if mark in line and not any(word in line for word in others)]
    return found


def refused(text: str) -> bascule.CompileError:
    """Returns the error of a compile. The caller has the literal, and this function the call of `compile`."""
    return error_of(lambda: bascule.compile(text))


def test_a_diagnostic_tells_severity_place_words_and_source_line():
    error = error_of(
        lambda: bascule.compile("""
__global__ void k(float* x) {
    int never_read;
    x[0] = wrong_first + 1;
}
""")
    )
    first = next(d for d in error.diagnostics if d.severity == "error")
    assert (first.file, first.line) == (__file__, line_here("x[0] = wrong_" + "first"))
    assert first.source_line == "    x[0] = wrong_first + 1;"
    assert first.column == first.source_line.index("wrong_first") + 1
    assert first.message == 'identifier "wrong_first" is undefined'
    assert first.notes == []
    warning = next(d for d in error.diagnostics if d.severity == "warning")
    assert warning.number == "177-D"
    assert warning.line == line_here("int never" + "_read;")
    assert "severity='error'" in repr(first)
    assert "wrong_first" in repr(first)


def test_the_message_shows_the_line_of_the_python_file_with_a_caret():
    error = refused("""
__global__ void k(float* x) {
    x[0] = wrong_second;
}
""")
    line = line_here("x[0] = wrong_" + "second")
    assert f"{HERE}:{line}: error: identifier" in str(error)
    shown = str(error).splitlines()
    row = next(i for i, text in enumerate(shown) if "x[0] = wrong_second;" in text)
    assert shown[row + 1].index("^") == shown[row].index("wrong_second")
    assert "wrong_second" in error.log
    assert not re.search(r"/bascule/[0-9a-f]+\.cu", str(error))  # the program's name inside NVRTC


def test_a_constant_of_the_module_is_found_where_it_stands():
    error = error_of(lambda: bascule.compile(MODULE_TEXT))
    assert error.diagnostics[0].line == line_here("x[0] = wrong_" + "in_module")


def test_a_dedented_literal_with_escapes_is_found():
    error = refused(
        textwrap.dedent("""\
            __global__ void k(float* x) {
                printf("%d\\n", 3);
                x[0] = wrong_dedented;
            }
            """)
    )
    assert error.diagnostics[0].line == line_here("x[0] = wrong_" + "dedented")
    error = refused(
        inspect.cleandoc("""

            __global__ void k(float* x) {
                x[0] = wrong_cleandoc;
            }""")
    )
    assert error.diagnostics[0].line == line_here("x[0] = wrong_" + "cleandoc")


def test_pieces_that_stand_below_each_other_are_found():
    error = refused(
        "__global__ void k(float* x) {\n"  # keep
        "    x[0] = wrong_pieces;\n"
        "}\n"
    )
    assert error.diagnostics[0].line == line_here("x[0] = wrong_" + "pieces")


def test_a_text_that_was_put_together_counts_its_own_lines_and_names_the_call():
    name = "wrong_" + "made"
    error = error_of(lambda: bascule.compile(f"__global__ void k(float* x) {{\n    x[0] = {name};\n}}"))  # the call
    first = error.diagnostics[0]
    assert first.line == 2
    assert first.file == f"<string at {__file__}:{line_here('# the ' + 'call')}>"
    assert f"{HERE}:{line_here('# the ' + 'call')}>:2: error" in str(error)


def test_the_same_text_twice_in_a_file_is_placed_at_the_nearer_one():
    def first() -> None:
        bascule.compile("""
__global__ void k(float* x) { wrong_twice; }""")

    def second() -> None:
        bascule.compile("""
__global__ void k(float* x) { wrong_twice; }""")

    lines = Path(__file__).read_text().splitlines()
    where = [i for i, line in enumerate(lines, 1) if line == '__global__ void k(float* x) { wrong_twice; }""")']
    assert [error_of(first).diagnostics[0].line, error_of(second).diagnostics[0].line] == where


def test_a_decorator_knows_the_line_although_it_compiles_later():
    @bascule.kernel(r"""
__global__ void late(float* x) {
    x[0] = wrong_decorated;
}
""")
    def late(x):
        return 1

    assert error_of(lambda: late.kernel).diagnostics[0].line == line_here("x[0] = wrong_" + "decorated")


def test_a_cell_is_named_as_ipython_names_it(monkeypatch, tmp_path):
    cell = 'import bascule\nbascule.compile("""\n__global__ void k(float* x) {\n    x[0] = wrong_cell;\n}""")\n'
    filename = str(tmp_path / "ipykernel_1" / "123456.py")
    linecache.cache[filename] = (len(cell), None, cell.splitlines(True), filename)  # as ipykernel does
    compiler = types.SimpleNamespace(format_code_name=lambda name: ("Cell", "In[3]") if name == filename else None)
    shell = types.SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    error = error_of(lambda: exec(compile(cell, filename, "exec"), {}))
    assert (error.diagnostics[0].file, error.diagnostics[0].line) == ("In[3]", 4)


def test_a_file_a_header_and_a_header_given_as_a_text_are_named(tmp_path):
    (tmp_path / "mine.h").write_text("\n__device__ int f() { return wrong_header; }\n")
    source = tmp_path / "k.cu"
    source.write_text('#include "mine.h"\n__global__ void k() {}\n')
    first = error_of(lambda: bascule.compile(file=source)).diagnostics[0]
    assert (first.file, first.line) == (str(tmp_path / "mine.h"), 2)
    source.write_text("\n\n__global__ void k() { wrong_file; }\n")
    first = error_of(lambda: bascule.compile(file=source)).diagnostics[0]
    assert (first.file, first.line, first.column) == (str(source), 3, 23)
    options = bascule.CompileOptions(headers={"given.h": "\n\n\nint g( { }\n"})
    first = error_of(
        lambda: bascule.compile('#include "given.h"\n__global__ void k() {}', options=options)
    ).diagnostics[0]
    assert (first.file, first.line) == ("given.h", 4)


def test_a_column_counts_characters_and_the_caret_stands_below_its_word():
    error = refused("""
__global__ void k(float* x) {
    /* größer, 中 */ x[0] = wrong_unicode;
}
""")
    first = error.diagnostics[0]
    assert first.column == first.source_line.index("wrong_unicode") + 1


def test_instantiations_lead_to_the_users_own_line():
    error = refused("""
template <class T> __device__ T field(T x) { return x.wrong_field; }
template <class T> __device__ T through(T x) { return field(x); }
__global__ void k(float* x) {
    x[0] = through(x[0]);  // asked for here
}
""")
    notes = error.diagnostics[0].notes
    assert [note.severity for note in notes] == ["note", "note"]
    assert notes[-1].line == line_here("// asked for " + "here")
    assert f"{HERE}:{notes[-1].line}: note: detected during instantiation" in str(error)


def test_notes_about_library_headers_are_folded_and_kept_in_diagnostics():
    error = refused("""
#include <cub/block/block_reduce.cuh>
struct Pair { int a; };
__global__ void k(Pair* x) {
    using Reduce = cub::BlockReduce<Pair, 128>;
    __shared__ typename Reduce::TempStorage storage;
    x[0] = Reduce(storage).Sum(x[0]);  // the user's line
}
""")
    line = line_here("// the user's " + "line")
    assert f"{HERE}:{line}: note: detected during instantiation" in str(error)
    assert re.search(r"\.\.\. \d+ more notes", str(error))
    assert len(error.diagnostics[0].notes) > str(error).split("error:")[1].count("note: ")


def test_an_unknown_type_is_one_error_with_what_follows_counted():
    error = refused("__global__ void k(__half* x) { x[0] = 1; }")
    assert str(error).count("error: ") == 1
    assert 'identifier "__half" is undefined' in str(error)
    assert "errors that follow from it" in str(error)
    assert len(error.diagnostics) > 3
    assert "cuda_fp16.h" in str(error)


# --- Colour ----------------------------------------------------------------------------------------------------------

UNCAUGHT = "import bascule; bascule.compile('__global__ void f(float* x) {\\n  x[0] = undefined_name;\\n}').f.prepare()"
CAUGHT = """
import bascule, sys
try:
    bascule.compile('__global__ void f() { oops; }')
except bascule.CompileError as error:
    print(error, file=sys.stderr)
"""


def stderr_of(program: str, terminal: bool, **environment: str) -> str:
    if not terminal:
        return run_python(
            "-c", program, **{"NO_COLOR": None, "FORCE_COLOR": None, "TERM": "xterm", **environment}
        ).stderr
    clean = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR"}}
    variables = {**clean, "TERM": "xterm", **environment}
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", program], env=variables, stderr=theirs)
    os.close(theirs)
    read = b""
    try:
        while piece := os.read(ours, 4096):
            read += piece
    except OSError:
        pass  # on Linux this is the end of a pty
    os.close(ours)
    process.wait(timeout=120)
    return read.decode()


def test_the_command_of_the_issue_shows_line_2_of_the_string_with_a_caret():
    shown = stderr_of(UNCAUGHT, terminal=False).splitlines()
    row = next(i for i, line in enumerate(shown) if line.startswith("<string>:2: error: "))
    assert shown[row + 2].index("^") == shown[row + 1].index("undefined_name")


def test_an_uncaught_error_is_coloured_in_a_terminal_and_nowhere_else():
    assert "\x1b[31merror:" in stderr_of(UNCAUGHT, terminal=True)
    assert "\x1b[" not in stderr_of(UNCAUGHT, terminal=False)


def test_no_color_and_force_color_are_respected():
    # The line that shows a long compile moves the cursor.
    assert not re.search(r"\x1b\[[0-9;]*m", stderr_of(UNCAUGHT, terminal=True, NO_COLOR="1"))
    assert not re.search(r"\x1b\[[0-9;]*m", stderr_of(UNCAUGHT, terminal=True, TERM="dumb"))
    assert "\x1b[31merror:" in stderr_of(UNCAUGHT, terminal=False, FORCE_COLOR="1")


def test_the_text_of_a_caught_error_is_plain_even_in_a_terminal():
    shown = stderr_of(CAUGHT, terminal=True)
    assert "oops" in shown
    assert "\x1b[" not in shown
