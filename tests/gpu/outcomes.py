"""A pytest plugin that writes the outcome of each test at once, so that it survives a crash of the process.

    BASCULE_OUTCOMES=FILE python -m pytest -p outcomes ...

FILE has a line of JSON when a test begins and one when it ends; tests already in FILE are skipped. A process in which a
test destroyed the context ends with LOST: every later test in it would fail for the same reason. Tests that start
a process on the emulated device are marked, because their results are about that device.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import collect
import pytest

import bascule

FILE = Path(os.environ["BASCULE_OUTCOMES"])
MOST_TEXT = 4000  # characters of a failure's text
if collect.STACKS.exists():
    ctypes.CDLL(str(collect.STACKS))

started_on_the_emulated_device = False  # true if the current test started such a process
start_process = subprocess.Popen.__init__


def is_emulated(environment: Mapping[str, str]) -> bool:
    """True if a process finds the emulated device: by its own name, or as libcuda.so.1."""
    if environment.get("BASCULE_DEVICE") == "emulated":
        return True
    directories = environment.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    links = (Path(directory, "libcuda.so.1") for directory in directories if directory)
    first = next((link for link in links if link.exists()), None)
    return first is not None and first.resolve().name in ("libbascule_emulator.so", "wrapped_driver.so")


def watched_start(self: subprocess.Popen[Any], args: Any, *more: Any, **options: Any) -> None:
    global started_on_the_emulated_device
    words = [args] if isinstance(args, str) else list(map(str, args))
    started_on_the_emulated_device |= "emulate" in words or is_emulated(options.get("env") or os.environ)
    start_process(self, args, *more, **options)


subprocess.Popen.__init__ = watched_start  # type: ignore[method-assign]


def write(line: dict[str, Any]) -> None:
    with FILE.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = {name for name, test in collect.outcomes_of(FILE).items() if "outcome" in test}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in known])
    items[:] = [item for item in items if item.nodeid not in known]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Records a file that cannot be imported as a failure, and one that is skipped as a whole as a skip."""
    if report.failed:
        write({"test": report.nodeid, "outcome": "failed", "text": str(report.longrepr)[-MOST_TEXT:]})
    elif report.skipped:
        write({"test": report.nodeid, "outcome": "skipped", "reason": reason_of(report)})


def pytest_runtest_logstart(nodeid: str) -> None:
    global started_on_the_emulated_device
    started_on_the_emulated_device = False
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
        line = {"test": report.nodeid, "outcome": "passed"}
    else:
        return
    if not report.skipped:
        line["seconds"] = round(report.duration, 3)
        if started_on_the_emulated_device:
            line["emulated"] = True
    write(line)


def pytest_runtest_logfinish(nodeid: str) -> None:
    # os._exit skips the code that Python and the driver run at the end of a process, which may wait for the device.
    if bascule._bascule._driver_is_loaded() and bascule._bascule._is_context_lost():
        os._exit(collect.LOST)
