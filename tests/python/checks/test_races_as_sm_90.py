"""Runs the tests of races in clusters on an emulated device of compute capability 9.0."""

from __future__ import annotations

from pathlib import Path

from child_process import run_python

HERE = Path(__file__).resolve().parent


def test_they_pass_there(emulated):
    command = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(HERE / "test_cluster_races.py")]
    done = run_python(
        *command, timeout=500, cwd=HERE.parents[2], BASCULE_DEVICE="emulated", BASCULE_EMULATED_ARCH="90a"
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "skipped" not in done.stdout
