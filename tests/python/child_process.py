"""Another process of Python: for what ends a process, or needs one that nobody has used."""

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
    """`python COMMAND...` to its end; variables of the environment by keyword, None removes one."""
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
    """What `python COMMAND...` printed; it must end with 0. Settings are those of `run_python`."""
    done = run_python(*command, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
