"""Runs `bascule` as from a shell."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from child_process import run_python

Command = Callable[..., subprocess.CompletedProcess]


@pytest.fixture
def bascule_command(tmp_path: Path) -> Command:
    """Runs `bascule ARGUMENTS...` in an empty directory. Keywords set environment variables; None removes one."""

    def call(*arguments: object, **variables: str | None) -> subprocess.CompletedProcess:
        return run_python("-m", "bascule", *arguments, cwd=tmp_path, **variables)

    return call
