"""How much longer the kernels of the corpus take while all checks of the emulated device are on.

    python tests/bench/checks.py [--rounds N] [--checks LIST] [PYTEST'S ARGUMENTS...]

Runs the tests of tests/python/kernels, or those that the arguments select, in this process. Each test runs once, which
compiles its kernels, and then N times (3) without and with the checks, in turn. What counts is the time of its kernels
with one worker thread. Prints the ratio of each test whose kernels take at least 0.1 ms, and the median, whose goal is
at most 6. The corpus is correct, so each finding that is printed at the end is an error of a check or of a kernel.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

os.environ["BASCULE_DEVICE"] = "emulated"
os.environ["BASCULE_EMULATED_CHECKS"] = "memory"
os.environ["BASCULE_EMULATED_SCHEDULE"] = "eager"
os.environ.setdefault("BASCULE_EMULATED_WORKERS", "1")

import pytest

import bascule

ROOT = Path(__file__).resolve().parents[2]
CORPUS = "tests/python/kernels"
GOAL = 6
LEAST_MICROSECONDS = 100


def microseconds(test: pytest.Function) -> float:
    """Runs a test; returns how long its kernels took together."""
    arguments = {name: test.funcargs[name] for name in test._fixtureinfo.argnames}
    with bascule.trace() as trace:
        test.obj(**arguments)
    return sum(event["dur"] for event in trace.events if event.get("cat") == "kernel")


class Rounds:
    """A plugin for pytest that measures each test."""

    def __init__(self, checks: str, rounds: int) -> None:
        self.checks = checks.split(",")
        self.rounds = rounds
        self.times: dict[str, list[list[float]]] = defaultdict(list)  # by test: (without, with) of each parameter set
        self.findings: set[str] = set()

    def checked(self, test: pytest.Function) -> float:
        try:
            with bascule.emulated.checks(*self.checks):
                time = microseconds(test)
                try:
                    bascule.synchronize()
                except bascule.CheckError as error:
                    self.findings |= {finding.report for finding in error.findings}
        except bascule.CheckError as error:  # raised by a wait within the test
            self.findings |= {finding.report for finding in error.findings}
            return 0
        return time

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        result = yield
        if "unchecked" in pyfuncitem.fixturenames:  # its kernel is wrong on purpose
            return result
        pairs = [(microseconds(pyfuncitem), self.checked(pyfuncitem)) for _ in range(self.rounds)]
        without, under = (min(times) for times in zip(*pairs, strict=True))
        if without >= LEAST_MICROSECONDS and under > 0:
            self.times[f"{pyfuncitem.path.stem}.{pyfuncitem.originalname}"].append([without, under])
        return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--checks", default="all", metavar="LIST")
    options, others = parser.parse_known_args()
    os.chdir(ROOT)
    rounds = Rounds(options.checks, options.rounds)
    tests = others if any(not each.startswith("-") for each in others) else [CORPUS, *others]
    status = pytest.main(
        ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", *tests], plugins=[rounds]
    )

    ratios = {test: sum(b for _, b in pairs) / sum(a for a, _ in pairs) for test, pairs in rounds.times.items()}
    for test, ratio in sorted(ratios.items(), key=lambda each: each[1]):
        print(f"{ratio:8.1f}  {sum(a for a, _ in rounds.times[test]) / 1e3:9.2f} ms  {test.replace('test_', '')}")
    for report in sorted(rounds.findings):
        print(report)
    if ratios:
        median = statistics.median(ratios.values())
        verdict = "met" if median <= GOAL else "not met"
        print(f"{median:8.1f}  median of {len(ratios)} tests with {options.checks}, goal <= {GOAL}: {verdict}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
