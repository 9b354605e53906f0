"""NVRTC's warnings of a successful compile become Python warnings, at the user's line, once per process."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from child_process import run_python

import bascule


def line_here(mark: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if mark in line and "line_here" not in line]
    return found


def test_a_warning_stands_at_the_line_of_the_python_file_with_number_and_cure():
    with pytest.warns(bascule.CompileWarning) as caught:
        bascule.compile("""
__global__ void k(float* x) {
    int never_used;  // here
    x[0] = 1;
}
""")
    (warning,) = caught
    assert (warning.filename, warning.lineno) == (__file__, line_here("// " + "here"))
    assert "never_used" in str(warning.message)
    assert "-diag-suppress=177" in str(warning.message)
    assert warning.message.diagnostic.number == "177-D"
    assert issubclass(bascule.CompileWarning, UserWarning)


def test_the_cure_that_the_warning_names_silences_it():
    options = bascule.CompileOptions(extra=["-diag-suppress=177"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bascule.compile("__global__ void k(float* x) { int silenced; x[0] = 1; }", options=options)


def test_a_warning_is_issued_once_a_process_and_a_hit_does_not_repeat_it():
    text = "__global__ void k(float* x) { int only_once; x[0] = 1; }"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            bascule.compile(text)
        bascule.cache.clear()
        bascule.compile(text)
    assert [w.category for w in caught] == [bascule.CompileWarning]


def test_two_texts_warn_each():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bascule.compile("__global__ void k(float* x) { int of_one; x[0] = 1; }")
        bascule.compile("__global__ void k(float* x) { int of_other; x[0] = 1; }")
    assert ["of_one" in str(w.message) for w in caught] == [True, False]


def test_a_warning_turned_into_an_error_does_not_lose_the_kernel():
    text = "__global__ void k(float* x) { int made_an_error; x[0] = 7; }"
    before = bascule.cache.stats().compiled
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(bascule.CompileWarning, match="made_an_error"):
            bascule.compile(text)
        module = bascule.compile(text)
    x = bascule.device_array(1, "f4")
    module.k[1, 1](x)
    assert x.copy_to_host()[0] == 7
    assert bascule.cache.stats().compiled - before == 1


def test_a_text_without_warnings_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bascule.compile("__global__ void k(float* x) { x[0] = 8; }")


def test_a_failed_compile_raises_and_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(bascule.CompileError):
            bascule.compile("__global__ void k(float* x) { int and_unused; oops; }")


def test_a_warning_of_a_text_without_a_file_shows_its_own_line():
    program = "import bascule; bascule.compile('__global__ void k(float* x) {\\n  int shown_here;\\n  x[0] = 1;\\n}')"
    ended = run_python("-c", program)
    assert ended.returncode == 0, ended.stderr
    assert "<string>:2: CompileWarning: " in ended.stderr
    assert "  int shown_here;" in ended.stderr
    assert ended.stdout == ""
