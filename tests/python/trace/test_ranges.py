"""NVTX ranges, as seen by a profiler's library that NVTX loads into the process."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from child_process import run_python

import bascule

pytestmark = pytest.mark.skipif(importlib.util.find_spec("nvtx") is None, reason="nvtx is not installed")
# The fake profiler is in the build directory of the package under test, or packed with the tests.
BUILDS = [Path(bascule._bascule.__file__).resolve().parents[2], Path(__file__).resolve().parents[3] / "build" / "dev"]
LAUNCH = """
import numpy as np
import bascule

module = bascule.compile("__global__ void twice(float* p) { p[threadIdx.x] *= 2; }")
front, back = bascule.stream(), bascule.stream()
x = bascule.to_device(np.ones(32, "f4"), stream=front)
module.twice.prepare()

def launch():
    module.twice[1, 32, back](x)
"""
RANGES = [
    "push bascule: read arguments of twice",
    "pop",
    "push bascule: launch twice",
    "push bascule: wait for stream",
    "pop",
    "pop",
]


def ranges(program: str, *, profiler: bool = True, **environment: str) -> list[str]:
    """The ranges that the fake profiler receives, without handles of streams."""
    library = next((each for build in BUILDS if (each := build / "tests/python/trace/fake_profiler.so").exists()), None)
    if library is None:
        pytest.fail("build the target fake_profiler first: cmake --build build/dev --target fake_profiler")
    if profiler:
        environment["NVTX_INJECTION64_PATH"] = str(library)
    run = run_python("-c", LAUNCH + program, **environment)
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stderr.splitlines() if line == "pop" or line.startswith("push ")]
    return [line.partition(" 0x")[0] for line in lines]


def test_a_trace_emits_ranges_while_a_profiler_is_attached():
    assert ranges("launch()\nwith bascule.trace():\n    launch()\nlaunch()") == RANGES


def test_without_the_variable_and_outside_of_a_trace_there_are_none():
    assert ranges("launch()") == []
    assert ranges("launch()", BASCULE_NVTX="0") == []


def test_the_variable_emits_ranges_for_the_whole_process():
    found = ranges("import sys\nprint('pop', file=sys.stderr)\nlaunch()", BASCULE_NVTX="1")
    assert found[-6:] == RANGES
    assert any(line.startswith("push bascule: compile") for line in found)
    assert found.count("pop") - 1 == len(found) - found.count("pop")  # one "pop" is the program's own


def test_a_trace_inside_emits_each_range_once():
    found = ranges("with bascule.trace():\n    launch()\nlaunch()", BASCULE_NVTX="1")
    assert found[-12:] == RANGES * 2


def test_a_launch_that_fails_closes_its_ranges():
    program = (
        "hook = bascule.add_launch_hook(before=lambda _: 1 / 0)\ntry:\n    launch()\nexcept ZeroDivisionError: pass\n"
    )
    program += "hook.remove()\ntry:\n    module.twice[1, 32, back]('no')\nexcept TypeError: pass"
    found = ranges(program, BASCULE_NVTX="1")
    assert found.count("pop") == len(found) - found.count("pop")


def test_a_missing_package_is_an_error_that_names_the_command():
    program = "import sys; sys.modules['nvtx'] = None; import bascule"
    run = run_python("-c", program, BASCULE_NVTX="1")
    assert 'ImportError: ranges for a profiler need the package nvtx: pip install "bascule[nvtx]"' in run.stderr


def test_without_the_package_a_trace_under_a_profiler_warns_and_records():
    program = "import sys; sys.modules['nvtx'] = None\nwith bascule.trace() as trace:\n    launch()\n"
    program += "assert any(event['ph'] == 'X' for event in trace.events)"
    run = run_python("-c", LAUNCH + program, NVTX_INJECTION64_PATH="/nowhere.so")
    assert run.returncode == 0, run.stderr
    assert "A profiler is attached, and it gets no ranges" in run.stderr
