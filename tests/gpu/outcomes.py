"""A plugin for pytest: what came of each test, written at once, so that it outlives the process.

    BASCULE_OUTCOMES=FILE python -m pytest -p outcomes ...

FILE has a line of JSON when a test begins and one when it ends; tests that FILE has already are left out. A process
whose context a test has lost ends with LOST: every later test in it would fail for that one's reason.
"""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

import collect
import pytest

import bascule

FILE = Path(os.environ["BASCULE_OUTCOMES"])
MOST_TEXT = 4000  # characters of a failure's text
if collect.STACKS.exists():
    ctypes.CDLL(str(collect.STACKS))


def write(line: dict[str, Any]) -> None:
    with FILE.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = {name for name, test in collect.outcomes_of(FILE).items() if "outcome" in test}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in known])
    items[:] = [item for item in items if item.nodeid not in known]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot be imported is a failure; one that is skipped as a whole, a skip."""
    if report.failed:
        write({"test": report.nodeid, "outcome": "failed", "text": str(report.longrepr)[-MOST_TEXT:]})
    elif report.skipped:
        write({"test": report.nodeid, "outcome": "skipped", "reason": reason_of(report)})


def pytest_runtest_logstart(nodeid: str) -> None:
    write({"test": nodeid, "begins": True})


def reason_of(report: pytest.CollectReport | pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return str(getattr(report, "wasxfail", "") or report.longrepr)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        where = "" if report.when == "call" else f"in {report.when}: "
        line = {"test": report.nodeid, "outcome": "failed", "text": where + report.longreprtext[-MOST_TEXT:]}
    elif report.skipped:
        line = {"test": report.nodeid, "outcome": "skipped", "reason": reason_of(report)}
    elif report.when == "call":
        line = {"test": report.nodeid, "outcome": "passed", "seconds": round(report.duration, 3)}
    else:
        return
    write(line)


def pytest_runtest_logfinish(nodeid: str) -> None:
    # Without the lines that Python and the driver run at the end of a process: they may wait for the device.
    if bascule._bascule._driver_is_loaded() and bascule._bascule._is_context_lost():
        os._exit(collect.LOST)
