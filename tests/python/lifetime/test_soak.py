"""Ten thousand launches with constant memory, reference counts and kept owners; tests/python/soak.py runs a million."""

from __future__ import annotations

from pathlib import Path

from child_process import run_python


def test_ten_thousand_launches_leave_nothing_behind(emulated: None) -> None:
    run = run_python(Path(__file__).parents[1] / "soak.py", "--launches", "10000")
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    assert run.stdout.endswith("soak: flat\n")
