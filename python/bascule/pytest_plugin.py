"""A plugin for pytest. With `--bascule-checks=all` a test fails if a check of the emulated device finds an error in its
kernels; with `--bascule-races` if its work has a race between streams. A test whose kernel faults on the emulated
device does not make later tests fail.

BASCULE_EMULATED_CHECKS in the environment also turns checks on. The host waits for the work of a test when the test
ends, so that the right test fails. If races are looked for, the terminal summary says how much was compared, and names
tests that launched kernels but compared no byte, because such tests prove nothing.
"""

import os
from collections.abc import Generator
from operator import add, sub
from typing import Any

import pytest

from bascule import ArgumentValueError, _bascule
from bascule.emulated import RaceStatistics, _raise_findings, _raising_findings, race_statistics, reset

_VARIABLE = "BASCULE_EMULATED_CHECKS"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bascule")
    group.addoption(
        "--bascule-checks",
        metavar="LIST",
        help="check kernels on the emulated device; what is found makes the test fail; all, or names with commas",
    )
    group.addoption("--bascule-races", action="store_true", help="as --bascule-checks=races: races between streams")


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown() -> Generator[None, Any, Any]:
    """After a fault, reset the emulated device, so that the next test starts with a new context."""
    try:
        return (yield)
    finally:
        if _bascule._is_context_lost() and _bascule._driver_info()["emulated"]:
            reset()


def pytest_configure(config: pytest.Config) -> None:
    option = "--bascule-checks" if config.getoption("--bascule-checks") else "--bascule-races"
    asked = [config.getoption("--bascule-checks"), "races" if config.getoption("--bascule-races") else None]
    names = ",".join(filter(None, [os.environ.get(_VARIABLE), *asked]))
    if not names:
        return
    try:
        checks = _bascule._find_checks(names)
    except ArgumentValueError as error:
        raise pytest.UsageError(f"{option if any(asked) else _VARIABLE}: {error}") from None
    if any(asked):
        if os.environ.get("BASCULE_DEVICE", "emulated") != "emulated":
            raise pytest.UsageError(
                f"{option}: only the emulated device finds races and checks kernels, and BASCULE_DEVICE is "
                f"{os.environ['BASCULE_DEVICE']!r}. Set BASCULE_DEVICE=emulated, or leave it unset."
            )
        # The driver reads the variable when it is first used, in this process or in one that a test starts.
        os.environ[_VARIABLE] = names
        os.environ.setdefault("BASCULE_DEVICE", "emulated")
        if _bascule._driver_is_loaded():
            _bascule._change_checks(checks, 0)
    if checks & ~_bascule._find_checks("leaks"):
        config.pluginmanager.register(Checks(), "bascule-checks")
        if checks & _bascule._find_checks("races"):
            config.pluginmanager.register(Races(), "bascule-races")


class Checks:
    """Hooks around each test, while a check is on."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with _raising_findings():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        result = yield
        _raise_findings()
        return result


class Races:
    """Counts what the search for races compares in each test."""

    def __init__(self) -> None:
        self.total = RaceStatistics(0, 0, 0, 0)
        self.launching = 0
        self.silent: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        item.stash[_BEFORE] = _counts()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            # Plain numbers, so that the report can be sent from another process.
            before = item.stash[_BEFORE]
            report.__dict__["bascule_races"] = list(map(sub, _counts(), before))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        counts: list[int] | None = getattr(report, "bascule_races", None)
        if counts is None:
            return
        launches, *compared = counts
        self.total = RaceStatistics(*map(add, self.total, compared))
        if launches > 0:
            self.launching += 1
            if RaceStatistics(*compared).bytes == 0:
                self.silent.append(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total = self.total
        terminalreporter.section("races between streams")
        terminalreporter.write_line(
            f"{self.launching} launching tests: {total.nodes} operations, {total.edges} orders between them, "
            f"{total.bytes} bytes compared; {total.races} races"
        )
        for test in self.silent:
            terminalreporter.write_line(f"launched without comparing a byte: {test}")


_BEFORE = pytest.StashKey[tuple[int, ...]]()


def _counts() -> tuple[int, ...]:
    """Return the number of launches and the fields of RaceStatistics."""
    if not _bascule._driver_is_loaded() or not _bascule._driver_info()["emulated"]:
        return (0, 0, 0, 0, 0)
    return (_bascule._driver_calls("cuLaunchKernelEx"), *race_statistics())
