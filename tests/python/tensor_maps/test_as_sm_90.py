"""Runs the tests of tensor maps on an emulated device of compute capability 9.0; other devices refuse tensor maps."""

from __future__ import annotations

from pathlib import Path

import pytest
from child_process import run_python

import bascule

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent


FILES = sorted(path.name for path in HERE.glob("test_*.py") if path != Path(__file__))
ELSEWHERE = [
    ["../lifetime/test_every_type.py", "-k", "TensorMap"],
    ["../graphs/test_every_operation.py", "-k", "tensor_map"],
]


@pytest.mark.parametrize(
    "tests",
    [*([name, "-k", "not recorded_drivers"] for name in FILES), *ELSEWHERE],
    ids=[*FILES, "types", "captures"],
)
def test_they_pass_there(emulated, tests):
    paths = [str((HERE / test).resolve()) if test.endswith(".py") else test for test in tests]
    command = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *paths]
    done = run_python(*command, timeout=500, cwd=ROOT, BASCULE_DEVICE="emulated", BASCULE_EMULATED_ARCH="90")
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


def test_other_devices_are_refused_by_their_capability(emulated):
    if "90" in bascule.current_device().arch:
        pytest.skip("this device has tensor maps")
    with pytest.raises(bascule.ArgumentError, match=r"need compute capability 9.0 .*BASCULE_EMULATED_ARCH=90"):
        bascule.tensor_map(bascule.zeros((16, 16), "f4"), (8, 8))
