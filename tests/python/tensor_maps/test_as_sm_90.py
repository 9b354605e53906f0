"""Runs the tests of this folder on an emulated device of compute capability 9.0."""

from __future__ import annotations

from pathlib import Path

import pytest
from child_process import PYTEST, run_python

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


@pytest.mark.parametrize("tests", sorted(path.name for path in HERE.glob("test_*.py") if path != Path(__file__)))
def test_they_pass_there(emulated, tests):
    done = run_python(
        *PYTEST, "-x", HERE / tests, timeout=500, cwd=ROOT, BASCULE_DEVICE="emulated", BASCULE_EMULATED_ARCH="90"
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
