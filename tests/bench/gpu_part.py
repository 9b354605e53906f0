"""The costs of one library and of Bascule on a GPU, in one process: launches, memory, compiling. gpu.py starts it.

    python tests/bench/gpu_part.py LIBRARY [--rounds N] [--rows FILE]

A line of JSON is appended to FILE as soon as it is known: {"bar": ...} for a time, {"row": ...} for a ratio. A case
that cannot be measured is a row with the reason; a topic that fails does not affect the others.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bench_device  # noqa: F401
import measuring
import peers
from measuring import Benchmark, Result, Row, missing

import bascule

DEVICE = "BASCULE_BENCH_DEVICE"  # set in the processes that measure
TOPICS = ["gpu_launches", "gpu_memory", "gpu_compile"]
Timer = Callable[[], float]  # takes one measurement: the time of one operation


class NotMeasuredError(Exception):
    """The reason why something is not measured."""


@dataclass(frozen=True)
class Case:
    """`make` returns a Timer, or raises; `what` is empty for cases that only ratios use."""

    name: str
    what: str
    make: Callable[[], Timer]


@dataclass(frozen=True)
class Ratio:
    number: str
    name: str
    over: str
    goal: str = ""


def need(module: str) -> None:
    if not peers.installed(module):
        raise NotMeasuredError(f"{module} is not installed")
    if os.environ.get(DEVICE) == "emulated" and module in ("cupy", "torch", "triton"):
        raise NotMeasuredError(f"{module} cannot use the emulated device")


def reason_of(error: Exception) -> str:
    if isinstance(error, NotMeasuredError):
        return str(error)
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:300]


class Writer:
    def __init__(self, file: Path | None, note: str = "") -> None:
        self.file = file
        self.note = note  # a remark for every row

    def write(self, **line: Any) -> None:
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(line) + "\n")

    def bar(self, bar: dict[str, Any]) -> None:
        print(f"{measuring.number(bar['median']):>10} {bar['unit']}  {bar['what']}", flush=True)
        self.write(bar=bar)

    def row(self, result: Result) -> None:
        result = dataclasses.replace(result, note=result.note or self.note)
        print(result, flush=True)
        self.write(row=dataclasses.asdict(result))


def measure(
    cases: list[Case], ratios: list[Ratio], unit: str, rounds: int, writer: Writer, of_all: Row | None = None
) -> None:
    """Tries each case once, then runs those that work in turn. `of_all` is a row that needs all cases."""
    functions: dict[str, Timer] = {}
    reasons: dict[str, str] = {}
    for case in cases:
        try:
            functions[case.name] = case.make()
            functions[case.name]()  # compiles, and shows whether this works here
        except Exception as error:
            functions.pop(case.name, None)
            reasons[case.name] = reason_of(error)
    what = {case.name: case.what for case in cases}
    rows = []
    absent: dict[str, Result] = {}
    for ratio in ratios:
        text = f"{what.get(ratio.name) or ratio.name} / {what.get(ratio.over) or ratio.over}"
        if reason := reasons.get(ratio.name) or reasons.get(ratio.over):
            absent[text] = missing(ratio.number, text, ratio.goal, reason)
        else:
            rows.append(Row(ratio.number, text, lambda r, ratio=ratio: r[ratio.name] / r[ratio.over], ratio.goal))
    if of_all is not None and not reasons:
        rows.append(of_all)
    bars = {case.name: case.what for case in cases if case.name in functions and case.what}
    told = {ratio.name for ratio in ratios} | {ratio.over for ratio in ratios}
    for name, reason in reasons.items():
        if name not in told:
            absent[name] = missing("", what[name] or name, "", reason)
    if functions:
        benchmark = Benchmark(functions, rows, rounds, bars, unit, keep=cases)
        measuring.run([benchmark])
        for bar in benchmark.bars():
            writer.bar(bar)
        for result in benchmark.results():
            writer.row(result)
    for result in absent.values():
        writer.row(result)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--rows", type=Path)
    options = parser.parse_args()
    note = peers.complete_numpy_for_numba() if options.library == "numba-cuda" else ""
    writer = Writer(options.rows, note)
    bascule.device_array(1, "f4")
    for topic in TOPICS:
        module = importlib.import_module(topic)
        try:
            module.run(options.library, options.rounds, writer)
        except Exception as error:
            writer.row(missing("", f"{topic.removeprefix('gpu_')}, {options.library}", "", reason_of(error)))
    return 0


if __name__ == "__main__":
    sys.modules["gpu_part"] = sys.modules["__main__"]  # the topics import this module
    sys.exit(main())
