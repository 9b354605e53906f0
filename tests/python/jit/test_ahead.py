"""Compiling ahead: `prepare` in a thread, `Module.precompile`, and `bascule precompile` on modules and scripts."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from pathlib import Path

import pytest
from child_process import run_python

import bascule
from bascule import _compile_team, _precompile

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def text(request):
    """A program that no other test compiles."""
    return f"""// {request.node.name}
template <class T> __global__ void scale(T* p, T f) {{ p[threadIdx.x] *= f; }}
__global__ void fill(float* p) {{ p[threadIdx.x] = 1; }}
"""


def calls():
    return bascule.cache.stats().nvrtc_calls


def python(code, *arguments, cache=None, **keywords):
    """Runs code in a separate process."""
    if cache is not None:
        keywords["BASCULE_CACHE_DIR"] = str(cache)
    return run_python("-c", code, *arguments, timeout=300, **keywords)


# --- prepare, in a thread


def test_the_event_loop_goes_on_while_a_kernel_is_compiled_in_a_thread(text, monkeypatch):
    """The compile ends only after the loop has run something else."""
    goes_on = threading.Event()
    rule = bascule.kernel(text, name="fill")(lambda p: p.size)
    find = type(rule)._find_kernel

    def find_later(self):
        assert goes_on.wait(timeout=120)
        return find(self)

    monkeypatch.setattr(type(rule), "_find_kernel", find_later)

    async def main():
        task = asyncio.create_task(asyncio.to_thread(rule.prepare))
        await asyncio.sleep(0)
        assert not task.done()
        goes_on.set()
        return await task

    assert asyncio.run(main()).name == "fill"
    before = calls()
    bascule.compile(text).fill.prepare()
    assert calls() == before


def test_the_current_stream_of_a_task_holds_in_its_thread():
    async def current_stream():
        return await asyncio.to_thread(bascule.current_stream)

    with bascule.stream() as stream:
        assert asyncio.run(current_stream()) == stream


# --- Module.precompile


def test_instances_are_compiled_by_other_processes_and_found_on_disk(text):
    module = bascule.compile(text)
    before = calls()
    kernels = module.precompile({"scale": ["float", ("double",), {"T": "int"}]}, workers=2)
    for dtype in ("f4", "f8", "i4"):
        module.scale[1, 4](bascule.zeros(4, dtype), 2)
    assert calls() == before
    assert [kernel.origin for kernel in kernels["scale"]] == ["disk"] * 3
    assert [kernel.signature.split("(")[0] for kernel in kernels["scale"]] == [
        "void scale<float>",
        "void scale<double>",
        "void scale<int>",
    ]


def test_one_failure_stops_no_other_and_says_which_and_why(text):
    module = bascule.compile(text)
    with pytest.raises(bascule.CompileError, match=r"2 of 3 programs failed") as caught:
        module.precompile({"scale": ["nothing", "float", "void*"]}, workers=1)
    message = str(caught.value)
    assert "scale<nothing>: " in message
    assert '"nothing" is undefined' in message
    assert "scale<float>:" not in message
    assert caught.value.name_expression == "scale<nothing>, scale<void*>"
    before = calls()
    module.scale[1, 1](bascule.zeros(1, "f4"), 2)
    assert calls() == before


@pytest.mark.parametrize(
    ("instances", "message"),
    [
        (["scale<float>"], "takes a dict of kernel names to lists"),
        ({"scale": "float"}, "takes a dict of kernel names to lists"),
        ({"scale": [()]}, "needs all of its template arguments"),
        ({"fill": ["float"]}, "is not a template"),
        ({"scales": ["float"]}, "no kernel 'scales'"),
    ],
)
def test_what_names_no_instance_is_refused_before_a_process_starts(text, instances, message, monkeypatch):
    monkeypatch.setattr(_compile_team, "_start", lambda output: pytest.fail("a process was started"))
    with pytest.raises(bascule.Error, match=message):
        bascule.compile(text).precompile(instances)


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_the_number_of_workers_is_checked(text, workers):
    with pytest.raises(bascule.ArgumentError, match="`workers`"):
        bascule.compile(text).precompile({"scale": ["float"]}, workers=workers)


def test_a_worker_that_dies_is_an_error_that_says_so(text, monkeypatch):
    """The next program gets a new process."""
    start = _compile_team._start
    started = []

    def start_and_kill_the_first(output):
        process, results = start(output)
        started.append(process)
        if len(started) == 1:
            process.send_signal(signal.SIGKILL)
            process.wait()
        return process, results

    monkeypatch.setattr(_compile_team, "_start", start_and_kill_the_first)
    module = bascule.compile(text)
    with pytest.raises(bascule.CompileError, match="was ended by signal SIGKILL") as caught:
        module.precompile({"scale": ["float", "double"]}, workers=1)
    assert "1 of 2 programs failed" in str(caught.value)
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


def test_an_interruption_ends_all_workers(text, monkeypatch):
    start = _compile_team._start
    started = []

    def note(output):
        process, results = start(output)
        started.append(process)
        return process, results

    def interrupt(event):
        raise KeyboardInterrupt

    monkeypatch.setattr(_compile_team, "_start", note)
    module = bascule.compile(text)
    programs = [
        _precompile.Program(
            f"scale<{t}>", _precompile._recipe(module), bascule._bascule._kernel_reference(module[f"scale<{t}>"])
        )
        for t in ("float", "double", "int", "char")
    ]
    with pytest.raises(KeyboardInterrupt):
        _compile_team.compile_programs(programs, workers=2, on_event=interrupt)
    assert 1 <= len(started) <= 2
    assert all(process.returncode is not None for process in started)


def test_without_a_cache_on_disk_it_says_what_to_do():
    code = """
import bascule
module = bascule.compile("template <class T> __global__ void k(T* p) {}")
try:
    module.precompile({"k": ["float"]})
except bascule.CacheError as error:
    print(error)
"""
    assert "BASCULE_CACHE_DIR" in python(code, cache="").stdout


def test_with_the_cache_disabled_it_says_so(text):
    module = bascule.compile(text)
    with bascule.cache.disabled(), pytest.raises(bascule.CacheError, match="disabled"):
        module.precompile({"scale": ["float"]})


# --- Programs

PROGRAM = """
import sys
import bascule

@bascule.kernel("__global__ void twice(float* p, int n) { if (threadIdx.x < n) p[threadIdx.x] *= 2; }")
def twice(p, n):
    return n

SAXPY = "template <class T> __global__ void saxpy(T a, T* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= a; }"

@bascule.kernel(SAXPY, name_expressions=["saxpy<float>"])
def saxpy(a, x, n):
    return n

@bascule.kernel("template <class T> __global__ void late(T* x) {}")
def late(x):
    return 1

module = bascule.compile("__global__ void one() {} __global__ void two() {}")

def main():
    x = bascule.full(4, 1, "f4")
    twice(x, 4)
    saxpy(2.0, x, 4)
    module.one[1, 1]()
    print(x.copy_to_host().tolist(), bascule.cache.stats().nvrtc_calls)

if __name__ == "__main__":
    main()
"""
PRECOMPILE = """
import json, sys
from bascule._precompile import precompile_target
events = []
summary = precompile_target(sys.argv[1], workers=2, on_event=events.append)
assert [event.done for event in events] == list(range(1, len(events) + 1))
print(json.dumps([sorted(summary.compiled), sorted(summary.from_disk), list(summary.failed), summary.templates]))
"""


@pytest.mark.parametrize("form", ["script", "module"])
def test_what_a_program_defines_is_compiled_and_its_run_compiles_nothing(tmp_path, form):
    (tmp_path / "program.py").write_text(PROGRAM)
    target = tmp_path / "program.py" if form == "script" else "program"
    ahead = python(PRECOMPILE, target, cache=tmp_path / "cache", cwd=tmp_path)
    assert json.loads(ahead.stdout) == [["one, two", "saxpy<float>", "twice"], [], [], ["late"]], ahead.stderr
    run = run_python(tmp_path / "program.py", timeout=300, BASCULE_CACHE_DIR=str(tmp_path / "cache"))
    assert run.stdout == "[4.0, 4.0, 4.0, 4.0] 0\n", run.stderr
    again = python(PRECOMPILE, target, cache=tmp_path / "cache", cwd=tmp_path)
    assert json.loads(again.stdout)[:2] == [[], ["one, two", "saxpy<float>", "twice"]]


def test_the_main_sample_compiles_nothing_after_it_was_precompiled(tmp_path):
    pytest.importorskip("PIL", reason="the sample needs Pillow")
    ahead = python(PRECOMPILE, ROOT / "samples" / "edges.py", cache=tmp_path / "cache")
    assert json.loads(ahead.stdout)[0] == ["blur_rows, blur_columns", "luminance", "sobel, colour"], ahead.stderr
    run = run_python(
        ROOT / "samples" / "edges.py", timeout=300, cwd=tmp_path, BASCULE_CACHE_DIR=str(tmp_path / "cache")
    )
    assert run.stdout.splitlines()[-1] == "0 compiled, 3 from disk, 1 from memory", run.stderr


def test_what_fails_is_in_the_summary(tmp_path):
    (tmp_path / "broken.py").write_text(
        'import bascule\nbascule.compile("__global__ void good() {}")\nbascule.compile("__global__ void bad() {x;}")\n'
        '@bascule.kernel("int nothing;")\ndef none():\n    return 1\n'
    )
    ahead = python(PRECOMPILE, tmp_path / "broken.py", cache=tmp_path / "cache")
    assert json.loads(ahead.stdout) == [["good"], [], ["none", "bad"], []], ahead.stderr


@pytest.mark.parametrize(
    ("target", "message"), [("no_such_module", "there is no module"), ("none.py", "there is no file")]
)
def test_a_target_that_is_not_there_is_named(target, message):
    with pytest.raises(bascule.ArgumentError, match=f"{message} '{target}'"):
        _precompile.precompile_target(target)


def test_an_import_that_fails_inside_is_not_taken_for_a_missing_target(tmp_path, monkeypatch):
    (tmp_path / "lacks.py").write_text("import no_such_library\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        _precompile.precompile_target("lacks")
