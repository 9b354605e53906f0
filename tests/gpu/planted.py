"""Runs the planted bugs of tests/python/checks under compute-sanitizer, and records what its tools report of each.

    python tests/gpu/planted.py [--out FILE] [--seconds SECONDS]

Every kernel runs twice, wrong and corrected, and each file with the tool that looks for its kind of bug. A kernel that
destroys the context, or that does not end, costs its process; the next process goes on behind it. Without
compute-sanitizer the kernels run as they are. Exits with 1 if a tool reports an error of a corrected kernel: then the
kernel is wrong, or the tool is.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from collect import LOST, ROOT, replace
from sanitizer import REPORT, found_sanitizer

import bascule
from bascule import _bascule

FILES = {
    "arrays": "memcheck",
    "races": "racecheck",
    "cluster_races": "racecheck",
    "async": "racecheck",
    "init": "initcheck",
    "sync": "synccheck",
}
SECONDS = 120.0 * float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)  # for all files
SILENCE = 15.0 * float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)  # without a line of output, a kernel hangs
MARK = "@@ "  # begins the line before a kernel's run: its name follows


@contextmanager
def waiting(*_: object) -> Iterator[list[Any]]:
    """Stands for `findings.checking`, whose checks are the emulated device's: it only waits for the kernels."""
    try:
        yield []
        bascule.synchronize()
    except bascule.CudaError as error:
        print(str(error).partition("\n")[0], flush=True)
        if _bascule._is_context_lost():
            sys.stdout.flush()
            os._exit(LOST)


def cases(file: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The name of each run of a file, and the test that launches the kernel."""
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    findings = importlib.import_module("checks.findings")
    findings.checking, findings.bits_of = waiting, lambda _: 0  # before the tests import them
    _bascule._change_checks = lambda *_: 0
    module = importlib.import_module(f"checks.test_{file}")
    wrong, right = (
        next(test for name, test in vars(module).items() if name.startswith("test_") and word in name)
        for word in (("unwritten" if file == "init" else "planted"), "corrected")
    )
    for name in module.PLANTED:
        yield f"{name}: wrong", lambda name=name: wrong(name)
        yield f"{name}: corrected", lambda name=name: right(name)


def run_here(file: str, after: str) -> None:
    """Runs the kernels of a file that follow `after`. The tests fail, because nothing is found here."""
    names = cases(file)
    if after:
        next(name for name, _ in names if name == after)
    for name, test in names:
        print(MARK + name, flush=True)
        try:
            test()
        except AssertionError:
            pass
        except bascule.Error as error:
            print("not run:", str(error).partition("\n")[0], flush=True)


def lines_of(command: list[str], until: float) -> Iterator[str | int | None]:
    """Yields the command's lines of output, and at the end its exit status; None if it was stopped."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    lines: queue.Queue[str | None] = queue.Queue()
    assert process.stdout is not None
    output = process.stdout

    def read() -> None:
        for line in output:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        while (line := lines.get(timeout=max(0.1, min(SILENCE, until - time.monotonic())))) is not None:
            yield line
        yield process.wait()
    except queue.Empty:
        process.kill()
        yield None


def run_file(sanitizer: str | None, file: str, until: float) -> dict[str, dict[str, Any]]:
    """Runs the kernels of a file under its tool, and returns the reports for each."""
    options = [sanitizer, "--tool", FILES[file], "--print-limit", "10000"] if sanitizer else []
    results: dict[str, dict[str, Any]] = {}
    name, status = "", LOST
    while status != 0 and time.monotonic() < until:
        here = [sys.executable, str(Path(__file__).resolve()), "--here", file, "--after", name]
        started = name
        for line in lines_of([*options, *here], until):
            if not isinstance(line, str):
                status = line if line is not None else LOST
                how = {0: "", LOST: "the context was lost", None: "did not end"}.get(line, f"ended with {line}")
                if how and name:
                    results[name]["how"] = how
            elif line.startswith(MARK):
                name = line.removeprefix(MARK).strip()
                results[name] = {"reports": []}
            elif name and ((report := REPORT.match(line)) or line.startswith("not run:")):
                results[name]["reports"].append(report[1] if report else line.strip())
        if name == started:
            break  # the process ended before its first kernel
    return results


def table_of(results: dict[str, Any]) -> Iterator[str]:
    for file, runs in results["files"].items():
        counts = {
            word: [bool(run["reports"] or run.get("how")) for name, run in runs.items() if name.endswith(word)]
            for word in ("wrong", "corrected")
        }
        said = ", ".join(f"{sum(found)} of {len(found)} {word}" for word, found in counts.items())
        yield f"{FILES[file]}, test_{file}.py: something was reported of {said} kernels"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--here", choices=FILES)
    parser.add_argument("--after", default="")
    options = parser.parse_args()
    if options.here:
        run_here(options.here, options.after)
        return 0
    results: dict[str, Any] = {"sanitizer": found_sanitizer(), "tools": FILES, "files": {}}
    until = time.monotonic() + options.seconds
    for file in FILES:
        results["files"][file] = run_file(results["sanitizer"], file, until)
        if options.out:
            replace(options.out, json.dumps(results, indent=1) + "\n")
    print("\n".join(table_of(results)))
    reported = [
        f"{file}, {name}: {run}"
        for file, runs in results["files"].items()
        for name, run in runs.items()
        if name.endswith("corrected") and (run["reports"] or run.get("how")) and "not run" not in str(run["reports"])
    ]
    print("\n".join(reported))
    return int(bool(reported) or not all(results["files"].values()))


if __name__ == "__main__":
    sys.exit(main())
