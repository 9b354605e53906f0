"""`--bascule-races` on a user's tests, and the message of a process that ends with an unreported race."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from child_process import run_python

pytestmark = pytest.mark.usefixtures("emulated")

TESTS = '''
import numpy as np
import pytest
import bascule

module = bascule.compile("""
__global__ void set(int* p, int n) { if (threadIdx.x < n) p[threadIdx.x] = threadIdx.x; }
__global__ void idle() {}
""")

def work(waits):
    p, c = bascule.stream(), bascule.stream()
    x = bascule.as_cuda_array(bascule.device_array(32, "i4", stream=p), sync=False)
    module.set[1, 32, p](x, 32)  # first
    if waits:
        event = bascule.event()
        event.record(p)
        event.wait(c)
    module.set[1, 32, c](x, 32)  # second

def test_ordered():
    work(waits=True)

def test_racing():
    work(waits=False)

def test_racing_and_failing():
    work(waits=False)
    assert 1 == 2

@pytest.fixture
def leaves_a_race():
    yield
    work(waits=False)

def test_torn_down(leaves_a_race):
    work(waits=True)

def test_silent():
    module.idle[1, 32]()

def test_without_a_device():
    pass
'''


def run_tests(directory: Path, *options: str, **environment: str) -> str:
    (directory / "test_work.py").write_text(TESTS)
    variables = {"BASCULE_EMULATED_CHECKS": None, "PYTEST_ADDOPTS": None, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = ["-m", "pytest", "-p", "bascule.pytest_plugin", "-p", "no:cacheprovider", *options, "-rA"]
    child = run_python(*command, "--rootdir", directory, "test_work.py", cwd=directory, **variables | environment)
    return child.stdout + child.stderr


def test_a_test_with_a_race_fails_and_the_others_pass(tmp_path):
    output = run_tests(tmp_path, "--bascule-races")
    said = re.findall(r"^(PASSED|FAILED|ERROR) test_work.py::(\w+)", output, re.MULTILINE)
    assert sorted(said) == [
        ("ERROR", "test_torn_down"),
        ("FAILED", "test_racing"),
        ("FAILED", "test_racing_and_failing"),
        ("PASSED", "test_ordered"),
        ("PASSED", "test_silent"),
        ("PASSED", "test_torn_down"),
        ("PASSED", "test_without_a_device"),
    ]
    assert "RaceError: stream race" in output
    assert re.search(r"test_work.py:\d+: module.set\[1, 32, p\]\(x, 32\)  # first", output)
    assert re.search(r"test_work.py:\d+: module.set\[1, 32, c\]\(x, 32\)  # second", output)
    summary = re.search(r"(\d+) launching tests: (\d+) operations, (\d+) orders between them, (\d+) bytes", output)
    assert summary is not None
    assert summary[1] == "5"
    assert all(int(number) > 0 for number in summary.groups())
    assert "launched without comparing a byte: test_work.py::test_silent" in output
    assert "no byte: test_work.py::test_ordered" not in output


def test_the_environment_asks_for_it_too(tmp_path):
    output = run_tests(tmp_path, "-k", "racing and not failing", BASCULE_EMULATED_CHECKS="memory,races")
    assert "1 failed" in output
    assert "RaceError: stream race" in output


def test_a_gpu_is_refused_since_it_sees_no_races(tmp_path):
    output = run_tests(tmp_path, "--bascule-races", BASCULE_DEVICE="cuda")
    assert "--bascule-races: only the emulated device finds races" in output


def test_without_the_option_nothing_is_looked_for(tmp_path):
    output = run_tests(tmp_path, "-k", "racing and not failing")
    assert "1 passed" in output
    assert "races between streams" not in output


PROGRAM = TESTS.split("def test_ordered")[0].replace("import pytest\n", "") + "work(waits=False)\n"


def test_a_process_that_ends_before_it_waited_says_what_raced(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    child = run_python("program.py", cwd=tmp_path, BASCULE_EMULATED_CHECKS="memory,races")
    assert child.returncode == 0, child.stderr
    assert "stream race" in child.stderr
    assert re.search(r"program.py:\d+: module.set\[1, 32, p\]\(x, 32\)  # first", child.stderr)


def test_a_process_that_looks_for_nothing_says_nothing(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    child = run_python("program.py", cwd=tmp_path, BASCULE_EMULATED_CHECKS=None)
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")
