"""Row 60: a launch goes to the device of its arrays, in a process that has two devices."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from child_process import printed_by

from .cases import ACCEPTED, CASES, Case

pytestmark = pytest.mark.usefixtures("two_devices")

PLACED = [case for case in CASES if case.placed]


@functools.cache
def outcomes() -> dict[str, dict[str, Any]]:
    printed = printed_by(
        "-m", "conformance.two_devices", cwd=Path(__file__).resolve().parents[1], BASCULE_EMULATED_DEVICES="2"
    )
    return json.loads(printed)


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
