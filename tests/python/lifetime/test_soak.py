"""Ten thousand launches with flat memory, reference counts and held owners; tests/python/soak.py does a million."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_ten_thousand_launches_leave_nothing_behind(emulated: None) -> None:
    command = [sys.executable, Path(__file__).parents[1] / "soak.py", "--launches", "10000"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    assert run.stdout.endswith("soak: flat\n")
