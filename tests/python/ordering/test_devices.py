"""Rule 12, the choice of device, and every rule on two devices: in processes that have them.

The cases are in two_devices.py and rules_two_devices.py.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from pathlib import Path

import pytest
from child_process import printed_by

pytestmark = pytest.mark.usefixtures("two_devices")

HERE = Path(__file__).resolve().parent
FILES = ["two_devices.py", "rules_two_devices.py"]


@functools.cache
def outcomes(file: str) -> dict[str, str]:
    """Why each case of the file failed; empty for those that passed."""
    printed = printed_by(
        HERE / file, BASCULE_EMULATED_DEVICES="2", PYTHONPATH=os.pathsep.join([str(HERE.parent), *sys.path])
    )
    return json.loads(printed)


def case_names(file: str) -> list[str]:
    return [
        line.removeprefix("def ").partition("(")[0]
        for line in (HERE / file).read_text().splitlines()
        if line.startswith("def ") and line.rstrip().endswith("-> None:  # a case")
    ]


@pytest.mark.parametrize(("file", "name"), [(file, name) for file in FILES for name in case_names(file)])
def test_on_two_devices(file: str, name: str) -> None:
    assert outcomes(file)[name] == ""


@pytest.mark.parametrize("file", FILES)
def test_every_case_was_run(file: str) -> None:
    assert sorted(outcomes(file)) == sorted(case_names(file))
    assert len(case_names(file)) >= 12
