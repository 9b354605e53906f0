"""Row 60: a launch goes where its arrays are, in a process that has two devices."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .cases import ACCEPTED, CASES, Case

pytestmark = pytest.mark.usefixtures("two_devices")

PLACED = [case for case in CASES if case.placed]


@functools.cache
def outcomes() -> dict[str, dict[str, Any]]:
    environment = {**os.environ, "BASCULE_EMULATED_DEVICES": "2"}
    run = subprocess.run(
        [sys.executable, "-m", "conformance.two_devices"],
        cwd=Path(__file__).resolve().parents[1],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("case", PLACED, ids=lambda case: case.id)
def test_the_launch_goes_where_the_arrays_are(case: Case) -> None:
    for version, (outcome, message, operations) in outcomes()[case.gives].items():
        assert outcome == case.outcome, f"version {version}: {message}"
        if outcome == ACCEPTED:
            assert message == "read [1, 1, 1] times"
            continue
        assert operations == 0
        assert message.startswith("argument ")
        assert "'data'" in message
        for part in case.says:
            assert part in message
