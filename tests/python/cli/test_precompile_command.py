"""`bascule precompile`: compiles kernels of modules and scripts into the cache before they are launched."""

import json
import os
import pty
import subprocess
import sys

import pytest
from child_process import run_python

KERNELS = """
import bascule

@bascule.kernel("__global__ void scale(float* p, float f, int n) { if (threadIdx.x < n) p[threadIdx.x] *= f; }")
def scale(p, f, n):
    return n

sums = bascule.compile(
    "template <class T> __global__ void sum(const T* p, T* out) { *out = p[0] + p[1]; }",
    name_expressions=["sum<float>", "sum<double>"],
)
open_ = bascule.compile("template <class T> __global__ void fill(T* p, T value) { *p = value; }")
"""
BROKEN = """
import bascule

@bascule.kernel("__global__ void bad(float* p) { *p = undeclared; }")
def bad(p):
    return 1

@bascule.kernel("__global__ void good(float* p) { *p = 1; }")
def good(p):
    return 1
"""


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "empty.py").write_text("def main():\n    pass\n")
    (tmp_path / "raises.py").write_text("def read():\n    return {}['size']\n\nSIZE = read()\n")
    (tmp_path / "wrong.py").write_text("import bascule\nbascule.compile('__global__ void k() { undeclared(); }')\n")
    (tmp_path / "argument.py").write_text("import bascule\nbascule.compile(3)\n")
    (tmp_path / "ends.py").write_text("import sys\nsys.exit('no data')\n")
    (tmp_path / "base.py").write_text("raise BaseException('neither an Exception nor an exit')\n")
    (tmp_path / "syntax.py").write_text("def f(:\n")
    (tmp_path / "imports_syntax.py").write_text("import syntax\n")
    (tmp_path / "nul.py").write_bytes(b"x = 1\0\n")
    (tmp_path / "latin.py").write_bytes(b"x = '\xe9'\n")
    (tmp_path / "cookie.py").write_bytes(b"# coding: nonsense\n")
    (tmp_path / "kernel.cu").write_text("__global__ void k(float* p) { *p = 1; }\n")
    (tmp_path / "guarded.py").write_text(KERNELS + "\nif __name__ == '__main__':\n    raise SystemExit('it ran')\n")
    return tmp_path


@pytest.fixture
def cache(tmp_path):
    return {"BASCULE_CACHE_DIR": str(tmp_path / "programs")}


def test_what_is_compiled_once_is_on_disk_the_second_time(bascule_command, directory, cache):
    first = bascule_command("precompile", "kernels", **cache)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "compiled   scale, " in first.stdout
    assert "compiled   sum<double>, sum<float>, " in first.stdout
    assert "skipped    fill: a template" in first.stdout
    assert "kernels: 2 compiled, 0 on disk before, 1 skipped; " in first.stdout
    again = bascule_command("precompile", "kernels.py", **cache)
    assert "kernels.py: 0 compiled, 2 on disk before, 1 skipped; " in again.stdout
    program = (
        "import bascule, kernels, numpy as np\n"
        "x, out = bascule.to_device(np.ones(4, 'f4')), bascule.zeros(1, 'f4')\n"
        "kernels.scale(x, 2, 4)\n"
        "kernels.sums.sum[1, 1](x, out)\n"
        "print(out.copy_to_host()[0], bascule.cache.stats().compiled)\n"
    )
    used = run_python("-c", program, cwd=directory, **cache)
    assert used.stdout == "4.0 0\n", used.stderr
    listed = bascule_command("cache", "list", **cache).stdout
    assert "scale" in listed
    assert "sum<double>, sum<float>" in listed


def test_a_script_runs_without_its_main_part(bascule_command, directory, cache):
    done = bascule_command("precompile", "guarded.py", "--workers", 1, **cache)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "guarded.py: 2 compiled" in done.stdout


def test_json_has_what_was_done_for_each_target(bascule_command, directory, cache):
    done = bascule_command("precompile", "kernels", "empty", "--json", **cache)
    kernels, empty = json.loads(done.stdout)
    assert sorted(kernels["compiled"]) == ["scale", "sum<double>, sum<float>"]
    assert (kernels["target"], kernels["from_disk"], kernels["failed"]) == ("kernels", [], {})
    assert kernels["templates"] == ["fill"]
    assert (empty["target"], empty["compiled"], empty["templates"]) == ("empty", [], [])


def test_what_does_not_compile_fails_and_all_else_is_compiled(bascule_command, directory, cache):
    done = bascule_command("precompile", "broken.py", **cache)
    assert done.returncode == 1
    assert 'broken.py:4: error: identifier "undeclared" is undefined' in done.stderr
    assert "compiled   good" in done.stdout
    assert "1 compiled, 0 on disk before, 1 failed" in done.stdout


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "required: MODULE-OR-SCRIPT"),
        (["missing.py"], 2, "there is no file 'missing.py'"),
        (["missing_module"], 2, "there is no module 'missing_module'"),
        (["kernels", "--workers", "0"], 2, "'0' is not a number of processes"),
        (["kernels", "--bogus"], 2, "there is no option --bogus; bascule precompile --help"),
        (["raises.py"], 1, "raises.py cannot be run up to its kernels"),
        (["wrong.py"], 1, 'wrong.py:2: error: identifier "undeclared" is undefined'),
        (["argument.py"], 1, "argument.py cannot be run up to its kernels"),
        (["ends.py"], 1, "ends.py cannot be run up to its kernels"),
        (["base.py"], 1, "BaseException: neither an Exception nor an exit"),
        ([""], 2, "there is no module ''"),
        (["."], 2, "there is no module '.'"),
        (["..x"], 2, "there is no module '..x'"),
        (["x..y"], 2, "there is no module 'x..y'"),
        (["x."], 2, "there is no module 'x.'"),
        (["syntax.py"], 1, "syntax.py cannot be run up to its kernels"),
        (["syntax"], 1, "syntax cannot be run up to its kernels"),
        (["imports_syntax.py"], 1, "SyntaxError"),
        (["nul.py"], 1, "Error: source code string cannot contain null bytes"),
        (["latin.py"], 1, "SyntaxError"),
        (["cookie.py"], 1, "SyntaxError"),
        (["kernel.cu"], 1, "kernel.cu cannot be run up to its kernels"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(bascule_command, directory, cache, words, status, said):
    done = bascule_command("precompile", *words, **cache)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stderr
    assert "_command" not in done.stderr  # a program's own error shows only its own frames
    assert "<frozen" not in done.stderr
    if "raises.py" in words:
        assert "in read" in done.stderr
        assert "KeyError: 'size'" in done.stderr


def test_a_file_without_kernels_and_no_cache_are_said(bascule_command, directory, cache):
    assert "empty defines no kernel at its top level" in bascule_command("precompile", "empty", **cache).stdout
    done = bascule_command("precompile", "kernels", BASCULE_CACHE_DIR="")
    assert done.returncode == 1
    assert "there is no cache on disk" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_terminal_shows_a_bar(directory, cache):
    pytest.importorskip("rich")
    terminal, end = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "bascule", "precompile", "kernels"],
        cwd=directory,
        env={**os.environ, **cache, "TERM": "xterm", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=end,
    ) as process:
        os.close(end)
        shown = b""
        try:
            while more := os.read(terminal, 4096):
                shown += more
        except OSError:  # the other end is closed
            pass
        assert process.wait(60) == 0
    os.close(terminal)
    assert b"2 of 2" in shown


def test_a_worker_whose_sitecustomize_prints_compiles(bascule_command, directory, cache, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sys\nprint('hello', flush=True)\nprint('dear', file=sys.stderr)\n")
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = bascule_command("precompile", "kernels", **cache, PYTHONPATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 compiled, 0 on disk before, 1 skipped" in done.stdout
