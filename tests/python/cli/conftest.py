"""Runs `bascule` as a shell does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess]


@pytest.fixture
def bascule_command(tmp_path: Path) -> Command:
    """`bascule ARGUMENTS...` in an empty directory; variables of the environment by keyword, None removes one."""

    def call(*arguments: object, **variables: str | None) -> subprocess.CompletedProcess:
        environment = {**os.environ, **variables}
        return subprocess.run(
            [sys.executable, "-m", "bascule", *map(str, arguments)],
            cwd=tmp_path,
            env={name: value for name, value in environment.items() if value is not None},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return call
