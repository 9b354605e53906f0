"""One file of results from the reports of a run on a GPU: tests/gpu/run.sh calls it.

    python tests/gpu/collect.py LOGS RESULTS

LOGS holds NAME.xml (pytest's report) and NAME.rc (its exit status) for every piece. Writes RESULTS/DEVICE-COMMIT.json.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import bascule

LIBRARIES = ["cupy-cuda13x", "cupy-cuda12x", "torch", "jax", "numba-cuda", "mpi4py", "warp-lang", "pycuda", "rmm-cu13"]


def piece(report: Path) -> dict[str, Any]:
    """Counts, the names of what failed, and every reason for a skip with how often it was given."""
    outcome: dict[str, Any] = {"exit": int(report.with_suffix(".rc").read_text()), "passed": 0}
    failed, skipped = [], Counter()
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else []:
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        elif skip is not None:
            skipped[skip.get("message")] += 1
        else:
            outcome["passed"] += 1
    return outcome | {"failed": failed, "skipped": dict(skipped)}


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


def main() -> int:
    logs, results = Path(sys.argv[1]), Path(sys.argv[2])
    device = bascule.current_device()
    pieces = {path.stem: piece(path.with_suffix(".xml")) for path in sorted(logs.glob("*.rc"))}
    summary = {
        "device": device.name,
        "arch": device.arch,
        "python": platform.python_version(),
        "bascule": bascule.__version__,
        "commit": commit(),
        "libraries": versions(),
        "pieces": pieces,
    }
    name = re.sub(r"[^a-z0-9]+", "-", device.name.lower()).strip("-")
    target = results / f"{name}-{summary['commit']}.json"
    target.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    print(f"{target}: {sum(one['passed'] for one in pieces.values())} passed, "
          f"{sum(len(one['failed']) for one in pieces.values())} failed")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
