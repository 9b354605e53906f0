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

import bascule

from .cases import ACCEPTED, CASES, Case

pytestmark = pytest.mark.usefixtures("recorded", "two_devices")

PLACED = [case for case in CASES if case.placed]


@functools.cache
def outcomes(*switched_off: str) -> dict[str, dict[str, Any]]:
    environment = {**os.environ, "BASCULE_EMULATED_DEVICES": "2"}
    run = subprocess.run(
        [sys.executable, "-m", "conformance.two_devices", *switched_off],
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


@pytest.mark.skipif(not hasattr(bascule._bascule, "_switch_check"), reason="built without BASCULE_TESTS")
def test_a_check_that_is_switched_off_fails_row_60() -> None:
    off = outcomes("memory_device")
    assert any(off[case.gives][str(v)][0] != case.outcome for case in PLACED for v in case.versions)
