"""Runs Python in a child process, for tests that end the process or need a fresh one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")


def run_python(
    *command: object,
    timeout: float = 120,
    cwd: Path | None = None,
    input: str | None = None,
    **variables: str | None,
) -> subprocess.CompletedProcess[str]:
    """Runs `python COMMAND...` to its end. Keywords set environment variables; None removes one."""
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=cwd,
        env={name: value for name, value in environment.items() if value is not None},
        input=input or "",
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def printed_by(*command: object, **settings) -> str:
    """Returns what `python COMMAND...` printed; it must exit with 0. Settings are those of `run_python`."""
    done = run_python(*command, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
