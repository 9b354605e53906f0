"""Runs programs that report a fault. A fault destroys its context, so each program has its own process and file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from child_process import run_python

OPENING = """
import sys
import numpy as np
import bascule
def report_of(action):
    try:
        action()
    except bascule.CudaError as error:
        print(error)
        return
    print("nothing was raised")
"""


@dataclass
class Report:
    text: str
    path: Path
    program: str

    @property
    def headline(self) -> str:
        return self.text.splitlines()[0]

    def place(self, mark: str) -> str:
        """Returns "FILE:LINE: TEXT" for the program's line that ends with `mark`."""
        lines = self.program.splitlines()
        number = next(number for number, line in enumerate(lines, 1) if line.endswith(mark))
        return f"{self.path}:{number}: {lines[number - 1].strip()}"


def report_of(tmp_path: Path, program: str, **environment: str) -> Report:
    """Runs the program. Its function `report_of(action)` prints the error that `action` raises."""
    path = tmp_path / "program.py"
    path.write_text(OPENING + program)
    done = run_python(path, BASCULE_DEVICE="emulated", **environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return Report(done.stdout, path, OPENING + program)
