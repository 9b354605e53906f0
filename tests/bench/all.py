"""Measures every goal that needs no GPU: prints a line for each with its figure, spread and goal, and if it is met.

    python tests/bench/all.py [--rounds N] [--quick] [--json FILE]

The rounds of all timed benchmarks are mixed and spread over the whole run. --quick takes few rounds and omits C4; its
figures are rough. Rows that are too noisy count as not measured. A goal that is not met is not a failure, except those
of the driver calls (L5) and the wrong hits (C4), which have no noise: then it exits with 1.
tests/bench/emulator.py measures the speed of the emulated device itself, tests/bench/checks.py what its checks cost.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import instructions
import jit
import launch
import measuring
import ordering
import parse
import peers
import startup
import threads
from measuring import ROOT, Result, exact, missing

HERE = Path(__file__).resolve().parent
ORDER = "LNCIST"  # of the rows, by their first letter
STALE_HEADERS = "tests/python/cache/test_headers.py"


def timed(rounds: int | None, quick: bool) -> list[Result]:
    nvrtc = jit.BareNvrtc()
    benchmarks = [
        launch.benchmark(),
        ordering.benchmark(),
        parse.benchmark(),
        jit.small(nvrtc),
        jit.heavy(nvrtc),
        jit.again(),
        startup.benchmark(),
        threads.benchmark(),
    ]
    for benchmark in benchmarks:
        benchmark.rounds = max(2, benchmark.rounds // 6) if quick else rounds or benchmark.rounds
    measuring.run(benchmarks)
    return [result for benchmark in benchmarks for result in benchmark.results()]


def counted() -> list[Result]:
    """Returns the rows N1 and N2, which need valgrind."""
    rows = [
        ("N2" if name in instructions.WAYS else "N1", f"instructions: {instructions.WHAT[name]}", f"<= {goal}")
        for name, goal in instructions.GOALS.items()
    ]
    if shutil.which("valgrind") is None:
        return [missing(*row, "valgrind is not installed") for row in rows]
    figures = instructions.figures(instructions.count())
    counts = [figures[name]["ours"] for name in instructions.GOALS]
    return [exact(number, what, count, goal) for (number, what, goal), count in zip(rows, counts, strict=True)]


def other_libraries(rounds: int | None, quick: bool) -> list[Result]:
    """Returns the rows L6, from a process whose libcuda.so.1 is the emulated device."""
    if absent := peers.missing():
        return [missing("L6", "cuda.core and numba-cuda", "", f"{', '.join(absent)} not installed")]
    with tempfile.TemporaryDirectory() as directory:
        rows = Path(directory) / "rows.json"
        arguments = ["--json", str(rows), "--rounds", str(7 if quick else rounds or 41)]
        run = subprocess.run(
            [sys.executable, str(HERE / "peers.py"), *arguments], capture_output=True, text=True, env=os.environ
        )
        if run.returncode != 0:
            return [missing("L6", "cuda.core and numba-cuda", "", f"peers.py failed: {run.stderr.splitlines()[-1]}")]
        return measuring.read_json(rows)


def wrong_hits() -> Result:
    """C4: the number of failing tests among those that edit, shadow, delete and touch headers."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", STALE_HEADERS]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BASCULE_")}
    report = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if report.returncode not in (0, 1):
        return missing("C4", "wrong hits in the stale-header tests", "<= 0", "pytest could not run them")
    failed = sum(line.startswith(("FAILED", "ERROR")) for line in report.stdout.splitlines())
    return exact("C4", "wrong hits in the stale-header tests", failed, "<= 0")


def order(result: Result) -> tuple[int, str]:
    return (ORDER.index(result.number[0]) if result.number else len(ORDER), result.number)


def main() -> int:
    parser = argparse.ArgumentParser(description="Every goal without a GPU.")
    parser.add_argument("--rounds", type=int, help="of each benchmark; default: each its own number")
    parser.add_argument("--quick", action="store_true", help="few rounds, and no C4")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    options = parser.parse_args()

    exactness, table = ordering.count()
    measuring.pin()
    results = [exactness, *timed(options.rounds, options.quick), *other_libraries(options.rounds, options.quick)]
    results += counted()
    hits = [] if options.quick else [wrong_hits()]
    results = sorted([*results, *hits], key=order)

    print(f"{measuring.machine()}\n{measuring.heading()}")
    for result in results:
        print(result)
    verdicts = Counter(result.verdict if result.measured else "not measured" for result in results if result.goal)
    print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    if options.json:
        measuring.write_json(options.json, results)
    if exactness.verdict != "met":
        print("\n".join(table))
    return int(any(result.verdict == "not met" for result in [exactness, *hits]))


if __name__ == "__main__":
    sys.exit(main())
