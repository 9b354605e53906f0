"""A pytest plugin that writes each test's outcome to a JSON file at $BASCULE_CLIENTS_REPORT."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

import pytest

# "passed", "failed" or "skipped", and why.
Outcome = tuple[str, str]
# CUDA_ERROR_ILLEGAL_ADDRESS and others after which every call returns the same error.
FAULTS = {700, 702, 710, 714, 715, 716, 717, 718, 719}


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Returns one line: why the test was skipped, or the first line of the exception's message."""
    text: Any = report.longrepr
    if isinstance(text, tuple):  # file, line, reason
        return str(text[2]).removeprefix("Skipped: ")
    crash = getattr(text, "reprcrash", None)
    lines = str(crash.message if crash is not None else text).strip().splitlines()
    return lines[0] if lines else ""


class Recorder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, Outcome] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        before = self.outcomes.get(report.nodeid, ("passed", ""))[0]
        if report.failed:
            if before != "failed":
                self.outcomes[report.nodeid] = "failed", reason_of(report)
        elif report.skipped and not hasattr(report, "wasxfail"):
            if before != "failed":
                self.outcomes[report.nodeid] = "skipped", reason_of(report)
        else:
            self.outcomes.setdefault(report.nodeid, ("passed", ""))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.outcomes[report.nodeid] = "failed", reason_of(report)
        elif report.skipped:
            self.outcomes[report.nodeid] = "skipped", reason_of(report)

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(self.outcomes, indent=1), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # pytest-xdist's controller receives all reports
        config.pluginmanager.register(Recorder(Path(os.environ["BASCULE_CLIENTS_REPORT"])))


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """Resets the devices after a fault, because a lost context would fail every later test of the process too."""
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:  # not loaded: Bascule's own plugin resets its device
        return
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if driver.cuMemGetInfo(ctypes.byref(free), ctypes.byref(total)) in FAULTS:
        count = ctypes.c_int()
        driver.cuDeviceGetCount(ctypes.byref(count))
        for device in range(count.value):
            driver.bascule_emulated_reset(device)


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request: pytest.FixtureRequest) -> None:
    """A fixture that numba-cuda's tests need from a conftest.py that its wheel lacks."""
    request.cls._dump_failed_filechecks = False
