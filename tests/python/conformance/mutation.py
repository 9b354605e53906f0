"""Removes every check of a descriptor, one at a time, and requires that its row of CONFORMANCE.md fails.

    python -m conformance.mutation [CHECK...]        (in tests/python)

The sources are copied to build/mutants, where an environment variable removes a check (mutants.py), and built once. A
row fails if one of its cases no longer ends as the table says. In the C++ tests, every case must be refused by
the check that it names. Exits with 1 if a check can be removed unnoticed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import bascule

from .cases import CASES
from .mutants import MUTANTS, mutated
from .runner import Run
from .test_devices import PLACED, outcomes

ROOT = Path(__file__).resolve().parents[3]
COPY = ROOT / "build" / "mutants"
BUILD = COPY / "build" / "dev"
ROWS = {mutant.check: mutant.row for mutant in MUTANTS}
CPP_TEST = "what is refused is refused by the check of its row*"


def copy_sources() -> None:
    """Writes only files that differ, so that the others are not compiled again."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    changed = {mutant.file for mutant in MUTANTS}
    for name in filter(None, listed.split("\0")):
        source, copy = ROOT / name, COPY / name
        if not source.is_file():
            copy.unlink(missing_ok=True)
            continue
        content = source.read_bytes()
        if name in changed:
            content = mutated(name, content.decode()).encode()
        if not copy.is_file() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            copy.chmod(source.stat().st_mode)
    if not (COPY / ".venv").exists():
        (COPY / ".venv").symlink_to(ROOT / ".venv")


def build() -> None:
    # Without -e, because `build` asks how much there is to do, and "nothing" must not count as a failure.
    steps = ". tests/setup.sh && configure dev -DBASCULE_TESTS=ON && build dev bascule_python interface_tests"
    subprocess.run(["bash", "-uc", steps], cwd=COPY, check=True)


def fails_its_row(check: str) -> bool:
    """Returns whether a case of the check's row ends otherwise than the table says. BASCULE_MUTANT names the mutant."""
    if check == "memory_device":
        ended = outcomes()
        return any(ended[case.gives][str(version)][0] != case.outcome for case in PLACED for version in case.versions)
    cases = [case for case in CASES if case.row == ROWS[check] and not case.placed]
    return not all(holds(Run(case, version)) for case in cases for version in case.versions)


def holds(run: Run) -> bool:
    try:
        run.check_binds()
    except Exception:
        return False
    return True


def passes_cpp_tests(check: str) -> bool:
    """Returns whether every C++ case that names this check is accepted."""
    tests = BUILD / "tests" / "interface" / "interface_tests"
    run = subprocess.run([tests, f"--test-case={CPP_TEST}"], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        print(run.stdout)
    return run.returncode == 0


def judge(check: str) -> str:
    """Returns what is wrong with the check, its row or its C++ cases; empty if nothing is."""
    os.environ.pop("BASCULE_MUTANT", None)
    outcomes.cache_clear()
    if fails_its_row(check):
        return "the row fails with the check too"
    os.environ["BASCULE_MUTANT"] = check
    outcomes.cache_clear()
    if not fails_its_row(check):
        return "the row holds without the check"
    return "" if passes_cpp_tests(check) else "a case of the C++ tests is refused without the check that it names"


def main(checks: list[str]) -> int:
    if not Path(bascule.__file__).is_relative_to(COPY):
        copy_sources()
        build()
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "BASCULE_DEVICE": "emulated"}
        command = [sys.executable, "-m", "conformance.mutation", *checks]
        return subprocess.run(command, cwd=ROOT / "tests" / "python", env=environment, check=False).returncode
    start = time.monotonic()
    wrong = 0
    for check in checks or ROWS:
        problem = judge(check)
        wrong += bool(problem)
        print(f"{check}, row {ROWS[check]}: {'WRONG: ' + problem if problem else 'fails without it'}", flush=True)
    removed = len(checks or ROWS)
    print(f"checks removed: {removed - wrong} of {removed} noticed, in {time.monotonic() - start:.1f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
