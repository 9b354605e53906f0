"""One directory of results from the reports of a run on a GPU: tests/gpu/run.sh calls it.

    python tests/gpu/collect.py LOGS RESULTS

LOGS holds NAME.rc (an exit status) for every command, NAME.xml where that was pytest (its report), NAME.json where it
measured something, NAME.log (what it printed). Writes RESULTS/DATE-DEVICE/results.json, and beside it what the
measurements printed and wrote. Of the same commit, what other steps left there on that day stays.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import platform
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import bascule

LIBRARIES = ["cupy-cuda13x", "cupy-cuda12x", "torch", "jax", "numba-cuda", "mpi4py", "warp-lang", "pycuda", "rmm-cu13"]
DOCTEST_SUMMARY = re.compile(r"test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed")


def piece(status: Path) -> dict[str, Any]:
    """How one command ended, and what it counted or measured."""
    outcome: dict[str, Any] = {"exit": int(status.read_text())}
    if (report := status.with_suffix(".xml")).exists():
        outcome |= python_tests(report)
    elif found := DOCTEST_SUMMARY.search(status.with_suffix(".log").read_text(errors="replace")):
        outcome |= {"passed": int(found[2]), "failed": int(found[3])}
    if (measured := status.with_suffix(".json")).exists() and not status.name.startswith("bench-"):
        outcome["measured"] = json.loads(measured.read_text(encoding="utf-8"))
    return outcome


def python_tests(report: Path) -> dict[str, Any]:
    """Counts, the names of what failed, and every reason for a skip with how often it was given."""
    passed, failed, skipped = 0, [], Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        elif skip is not None:
            skipped[skip.get("message")] += 1
        else:
            passed += 1
    return {"passed": passed, "failed": failed, "skipped": dict(skipped)}


def versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """Of the tree that ran; a copy without history says so."""
    run = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    return run.stdout.strip() or "unknown"


def pieces_before(results: Path, summary: dict[str, Any]) -> dict[str, Any]:
    """What steps that ran apart have left of the same run."""
    if not results.exists():
        return {}
    before = json.loads(results.read_text(encoding="utf-8"))
    same = all(before.get(key) == summary[key] for key in ("commit", "driver", "python"))
    return before["pieces"] if same else {}


def main() -> int:
    logs, results = Path(sys.argv[1]), Path(sys.argv[2])
    device = bascule.current_device()
    date = datetime.date.today().isoformat()
    pieces = {path.stem: piece(path) for path in sorted(logs.glob("*.rc"))}
    driver = bascule._bascule._driver_info()
    summary = {
        "date": date,
        "device": device.name,
        "arch": device.arch,
        "driver": driver["version"],
        "python": platform.python_version(),
        "bascule": bascule.__version__,
        "commit": commit(),
        "libraries": versions(),
    }
    name = re.sub(r"[^a-z0-9]+", "-", device.name.lower()).strip("-")
    target = results / f"{date}-{name}"
    target.mkdir(parents=True, exist_ok=True)
    file = target / "results.json"
    summary["pieces"] = pieces_before(file, summary) | pieces
    file.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    for log in [*logs.glob("bench-*.log"), *logs.glob("race.log")]:
        shutil.copyfile(log, target / f"{log.stem}.txt")
    for measured in logs.glob("bench-*.json"):
        shutil.copyfile(measured, target / measured.name)
    ended = Counter(outcome["exit"] for outcome in pieces.values())
    print(
        f"{target}: {sum(outcome.get('passed', 0) for outcome in pieces.values())} tests passed; "
        f"{ended[0]} of {len(pieces)} commands ended well"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
