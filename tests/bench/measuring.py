"""Shared by the benchmarks: rounds in which each compared function runs once, and ratios with their goals.

A ratio is taken within a round, so that a noisy machine affects both sides. Its figure is the median over the rounds,
and its spread half the width of the median's 95 % confidence interval. If the goal is inside that interval, the figure
decides nothing and counts as not measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import math
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "dev" / "tests"
PACKAGE = ROOT / "build" / "dev" / "python"
if PACKAGE.is_dir():  # is preferred to an installed one, here and in child processes
    sys.path.insert(0, str(PACKAGE))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))

Round = dict[str, float]


@dataclass(frozen=True)
class Row:
    """A ratio. `goal` is "<= X", ">= X", "X to Y", or empty if it is only recorded."""

    number: str
    what: str
    figure: Callable[[Round], float]
    goal: str = ""


@dataclass(frozen=True)
class Result:
    """One line of a table. `verdict` is "met", "not met", "recorded", "too noisy" or "not measured: REASON"."""

    number: str
    what: str
    figure: float | None
    spread: float
    goal: str
    verdict: str
    note: str = ""  # a remark on how it was measured

    @property
    def measured(self) -> bool:
        return self.verdict in ("met", "not met", "recorded")

    def __str__(self) -> str:
        told = "" if self.figure is None else number(self.figure)
        if self.spread:
            told += f" ±{number(self.spread)}"
        note = f" ({self.note})" if self.note else ""
        return f"{self.number:4}{self.what:60}{told:>18}{self.goal:>14}  {self.verdict}{note}"


@dataclass
class Benchmark:
    """Functions that each return the time of one operation, and the rows made from their ratios."""

    functions: dict[str, Callable[[], float]]
    rows: list[Row]
    rounds: int
    what: dict[str, str] = field(default_factory=dict)  # titles of the functions whose own times are printed
    unit: str = "ns"
    keep: Any = None  # keeps objects alive as long as the functions
    taken: list[Round] = field(default_factory=list)

    def warm(self) -> None:
        for function in self.functions.values():
            function()

    def run_round(self) -> None:
        self.taken.append({name: function() for name, function in self.functions.items()})

    def median(self, name: str) -> float:
        return statistics.median(times[name] for times in self.taken)

    def bars(self) -> list[dict[str, Any]]:
        """The functions' median times, for plot.py."""
        return [{"what": what, "median": self.median(name), "unit": self.unit} for name, what in self.what.items()]

    def results(self) -> list[Result]:
        return [result(row, list(map(row.figure, self.taken))) for row in self.rows]


def number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 10 else f"{value:.2f}"


def median_interval(values: list[float]) -> tuple[float, float, float]:
    """The median, and its 95 % confidence interval from order statistics."""
    ordered = sorted(values)
    outside = max(math.floor(len(ordered) / 2 - 0.98 * math.sqrt(len(ordered))), 0)
    return statistics.median(ordered), ordered[outside], ordered[-1 - outside]


def result(row: Row, values: list[float]) -> Result:
    figure, low, high = median_interval(values)
    return Result(row.number, row.what, figure, (high - low) / 2, row.goal, verdict(figure, low, high, row.goal))


def exact(number: str, what: str, figure: float, goal: str) -> Result:
    """A row for a count, which has no noise."""
    return Result(number, what, figure, 0, goal, verdict(figure, figure, figure, goal))


def missing(number: str, what: str, goal: str, reason: str) -> Result:
    return Result(number, what, None, 0, goal, f"not measured: {reason}")


def verdict(figure: float, low: float, high: float, goal: str) -> str:
    """Returns "met" or "not met", or "too noisy" if a limit of the goal is inside the interval.

    Without a goal, returns "recorded", or "too noisy" if half of the interval is more than the figure.
    """
    if not goal:
        return "recorded" if (high - low) / 2 <= abs(figure) else "too noisy"
    match goal.split():
        case ["<=", limit]:
            bounds = (-math.inf, float(limit))
        case [">=", limit]:
            bounds = (float(limit), math.inf)
        case [least, "to", most]:
            bounds = (float(least), float(most))
        case _:
            raise ValueError(f"a goal is '<= X', '>= X' or 'X to Y', not {goal!r}")
    if any(low < bound < high for bound in bounds):
        return "too noisy"
    return "met" if bounds[0] <= figure <= bounds[1] else "not met"


def run(benchmarks: Iterable[Benchmark]) -> None:
    """Runs the rounds of all benchmarks in turn, so that those of each are spread over the whole time."""
    benchmarks = list(benchmarks)
    for benchmark in benchmarks:
        benchmark.warm()
    most = max(benchmark.rounds for benchmark in benchmarks)
    for step in range(most):
        for benchmark in benchmarks:
            if step * benchmark.rounds // most != (step + 1) * benchmark.rounds // most:
                benchmark.run_round()


def heading() -> str:
    return f"{'':4}{'':60}{'figure':>18}{'goal':>14}"


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def write_json(path: Path, results: list[Result], **more: Any) -> None:
    rows = [dataclasses.asdict(result) | {"measured": result.measured} for result in results]
    path.write_text(json.dumps({"machine": machine()} | more | {"rows": rows}, indent=2) + "\n", encoding="utf-8")


def read_json(path: Path) -> list[Result]:
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    names = {field.name for field in dataclasses.fields(Result)}
    return [Result(**{name: row[name] for name in names & row.keys()}) for row in rows]


def main(make: Callable[[], Benchmark], description: str) -> list[Result]:
    """The main function of a benchmark that is run by itself."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    options = parser.parse_args()
    pin()
    benchmark = make()
    benchmark.rounds = options.rounds or benchmark.rounds
    run([benchmark])
    print(f"{machine()}, {benchmark.rounds} rounds\n")
    for name, what in benchmark.what.items():
        print(f"{number(benchmark.median(name)):>10} {benchmark.unit}  {what}")
    print(f"\n{heading()}")
    for line in (results := benchmark.results()):
        print(line)
    if options.json:
        write_json(options.json, results, bars=benchmark.bars())
    return results


def native(*names: str) -> list[ModuleType]:
    """Modules written in C and C++, from the build tree."""
    sys.path[:0] = [str(BUILD / "bench"), str(BUILD / "python" / "dlpack")]
    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as error:
        sys.exit(f"{error}\nBuild it first: cmake --build build/dev --target {' '.join(names)}")


def pin() -> None:
    """Pins the process to one core, so that nothing migrates between two compared measurements."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
