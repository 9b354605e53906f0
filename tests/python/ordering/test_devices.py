"""Rule 12 and the choice of device, in processes that have two devices: two_devices.py says what is tried."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("emulated")

HERE = Path(__file__).resolve().parent


@functools.cache
def outcomes() -> dict[str, str]:
    """Why each case of two_devices.py failed; empty for those that did not."""
    run = subprocess.run(
        [sys.executable, str(HERE / "two_devices.py")],
        env={
            **os.environ,
            "BASCULE_EMULATED_DEVICES": "2",
            "PYTHONPATH": os.pathsep.join([str(HERE.parent), *sys.path]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def case_names() -> list[str]:
    return [
        line.removeprefix("def ").partition("(")[0]
        for line in (HERE / "two_devices.py").read_text().splitlines()
        if line.startswith("def ") and line.rstrip().endswith("-> None:  # a case")
    ]


@pytest.mark.parametrize("name", case_names())
def test_on_two_devices(name: str) -> None:
    assert outcomes()[name] == ""


def test_every_case_was_run() -> None:
    assert sorted(outcomes()) == sorted(case_names())
    assert len(case_names()) >= 12
