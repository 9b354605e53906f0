"""`pytest --bascule-checks`: a user's own tests under the checks."""

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
__global__ void divide(int* x, int n) { x[threadIdx.x] /= n; }
""")

def work(divisor):
    x = bascule.ones(4, "i4")
    module.divide[1, 4](x, divisor)  # launch
    return x

def test_right():
    assert work(1).copy_to_host().tolist() == [1, 1, 1, 1]

def test_wrong_without_a_wait():
    work(0)

def test_wrong_and_waiting():
    work(0).copy_to_host()

def test_wrong_and_failing():
    work(0)
    assert 1 == 2

@pytest.fixture
def divides_at_its_end():
    yield
    work(0)

def test_torn_down(divides_at_its_end):
    work(2)

def test_without_a_device():
    pass
'''


def run_tests(directory: Path, *options: str, **environment: str) -> str:
    (directory / "test_work.py").write_text(TESTS)
    variables = {"BASCULE_EMULATED_CHECKS": None, "PYTEST_ADDOPTS": None, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = ["-m", "pytest", "-p", "bascule.pytest_plugin", "-p", "no:cacheprovider", *options, "-rA"]
    child = run_python(*command, "--rootdir", directory, "test_work.py", cwd=directory, **variables | environment)
    return child.stdout + child.stderr


@pytest.mark.parametrize("checks", ["all", "init,division"])
def test_a_test_fails_by_what_its_own_kernels_did(tmp_path, checks):
    output = run_tests(tmp_path, f"--bascule-checks={checks}")
    said = re.findall(r"^(PASSED|FAILED|ERROR) test_work.py::(\w+)", output, re.MULTILINE)
    assert sorted(said) == [
        ("ERROR", "test_torn_down"),
        ("FAILED", "test_wrong_and_failing"),
        ("FAILED", "test_wrong_and_waiting"),
        ("FAILED", "test_wrong_without_a_wait"),
        ("PASSED", "test_right"),
        ("PASSED", "test_torn_down"),
        ("PASSED", "test_without_a_device"),
    ]
    assert "CheckError: division: kernel 'divide' divided an integer by zero at" in output
    assert re.search(r"test_work.py:7: __global__ void divide\(int\* x, int n\)", output)
    assert re.search(r"launched at .*test_work.py:\d+: module.divide\[1, 4\]\(x, divisor\)  # launch", output)
    assert ("races between streams" in output) == (checks == "all")


def test_the_environment_turns_checks_on_too(tmp_path):
    output = run_tests(tmp_path, "-k", "without_a_wait", BASCULE_EMULATED_CHECKS="division")
    assert "1 failed" in output
    assert "1 passed" in run_tests(tmp_path, "-k", "without_a_wait", BASCULE_EMULATED_CHECKS="init")


def test_both_options_go_together(tmp_path):
    output = run_tests(tmp_path, "--bascule-races", "--bascule-checks=division", "-k", "without_a_wait")
    assert "1 failed" in output
    assert "races between streams" in output


def test_an_unknown_name_is_wrong_usage(tmp_path):
    output = run_tests(tmp_path, "--bascule-checks=init,speed")
    assert "--bascule-checks: 'speed' is not a check. There are: memory,races," in output
    output = run_tests(tmp_path, BASCULE_EMULATED_CHECKS="speed")
    assert "BASCULE_EMULATED_CHECKS: 'speed' is not a check" in output


def test_a_gpu_is_refused(tmp_path):
    output = run_tests(tmp_path, "--bascule-checks=all", BASCULE_DEVICE="cuda")
    assert "--bascule-checks: only the emulated device finds races and checks kernels" in output
