"""Runs the tests that need compute capability 9.0 on such an emulated device."""

from __future__ import annotations

from pathlib import Path

import pytest
from child_process import run_python

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("file", ["test_async.py", "test_cluster_races.py"])
def test_they_pass_there(emulated, file):
    command = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(HERE / file)]
    done = run_python(
        *command, timeout=500, cwd=HERE.parents[2], BASCULE_DEVICE="emulated", BASCULE_EMULATED_ARCH="90a"
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "skipped" not in done.stdout
