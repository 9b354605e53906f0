"""Runs other projects' tests: their programs on the emulated device, and their tests of launches on Bascule.

    .venv-clients/bin/python tests/clients/all.py                   every suite, some 20 minutes on 2 cores
    .venv-clients/bin/python tests/clients/all.py --sample          a part of each, within a minute
    .venv-clients/bin/python tests/clients/all.py NAME... [-k WORDS]
    .venv-clients/bin/python tests/clients/all.py --shrink          removes from the lists what passes now

Prints a table: how many tests exist, apply here (are not skipped by the suite itself), and pass, with the reasons of
the rest. A suite's list, NAME.toml, has the tests that do not pass, by reason. Exits with 1 if a test fails that is not
in its suite's list, or if one in the list passes: lists only shrink. Run `bash tests/clients/setup.sh` first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from suites import HERE, ROOT, SUITES, WORK, Suite

KINDS = ("missing", "by design", "shim", "its own")


def command_of(suite: Suite, options: argparse.Namespace, directory: Path) -> list[str]:
    root = directory if suite.copies else suite.sources or ROOT  # pytest's node ids are relative to it
    command = [sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini"), f"--rootdir={root}"]
    command += ["-n", str(options.jobs), "--dist", "load" if suite.shim else "loadfile"]
    command += suite.sample if options.sample else suite.tests
    if options.words:
        command += ["-k", options.words]
    return [sys.executable, "-m", "bascule", "emulate", "--", *command] if suite.emulate else command


def run_suite(suite: Suite, options: argparse.Namespace) -> dict[str, tuple[str, str]]:
    """Returns each test's outcome and reason, by its node id relative to the suite's own directory."""
    directory = WORK / "runs" / suite.name
    directory.mkdir(parents=True, exist_ok=True)
    report = directory / "report.json"
    report.unlink(missing_ok=True)
    for name, copy in suite.copies.items():
        assert suite.sources is not None
        (directory / name).write_text(copy.text(suite.sources), encoding="utf-8")
    paths = [
        str(HERE),
        *([str(HERE / "shims" / suite.shim)] if suite.shim else []),
        str(suite.packages or ""),
        os.environ.get("PYTHONPATH", ""),
    ]
    environment = {
        **os.environ,
        **suite.environment,
        "BASCULE_CLIENTS_REPORT": str(report),
        "BASCULE_CLIENTS_SOURCES": str(suite.sources or ""),
        "BASCULE_DEVICE": "emulated",
        "BASCULE_EMULATED_DEVICES": str(suite.devices),
        "BASCULE_EMULATED_REPORTS": "0",  # tests compare the output on stderr
        "PYTHONFAULTHANDLER": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    command = command_of(suite, options, directory)
    with (directory / "output.txt").open("w") as output:
        subprocess.run(command, cwd=directory, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False)
    if not report.exists():
        return {}
    outcomes = json.loads(report.read_text(encoding="utf-8"))
    return {short(node): (outcome, why) for node, (outcome, why) in outcomes.items()}


def short(node: str) -> str:
    """The node id without the directories above the suite's own."""
    path, separator, test = node.partition("::")
    return path.rpartition("/tests/")[2] + separator + test


@dataclass
class Listed:
    """The reason of each test that does not pass, by its node id. Those in `sometimes` may pass, by their timing."""

    reasons: dict[str, str] = field(default_factory=dict)
    sometimes: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, file: Path) -> Listed:
        listed = cls()
        if not file.exists():
            return listed
        for entry in tomllib.loads(file.read_text(encoding="utf-8"))["reason"]:
            if entry["kind"] not in KINDS:
                raise SystemExit(f"{file}: {entry['kind']!r} is none of {', '.join(KINDS)}")
            listed.reasons |= dict.fromkeys(entry["tests"], f"{entry['kind']}: {entry['why']}")
            if entry.get("sometimes"):
                listed.sometimes |= set(entry["tests"])
        return listed

    def reason(self, test: str) -> str | None:
        return self.reasons.get(test)


def shrink(file: Path, passing: set[str]) -> None:
    """Removes tests that pass now from the list, and reasons without tests."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = "".join(line for line in lines if not names_one_of(line, passing))
    kept = re.sub(r"\n\[\[reason\]\]\nkind = .*\nwhy = .*\ntests = \[\n\]\n", "", kept)
    file.write_text(kept, encoding="utf-8")


def names_one_of(line: str, tests: set[str]) -> bool:
    return line.startswith('    "') and tomllib.loads(f"test = {line.strip().rstrip(',')}")["test"] in tests


def tell_of(suite: Suite, options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Returns the suite's lines of the table, and its errors."""
    if suite.sources is not None and not suite.sources.exists():
        return [f"{suite.what:<24} {'absent: ' + suite.absent}"], []
    start = time.monotonic()
    outcomes = run_suite(suite, options)
    seconds = time.monotonic() - start
    listed = Listed.read(suite.list_file())
    output = WORK / "runs" / suite.name / "output.txt"
    if not outcomes:
        return [], [f"{suite.name}: no test ran; see {output}"]
    passed = {test for test, (outcome, _) in outcomes.items() if outcome == "passed"}
    failed = {test: why for test, (outcome, why) in outcomes.items() if outcome == "failed"}
    applying = len(passed) + len(failed)
    lines = [f"{suite.what:<24} {len(outcomes):>6} {applying:>6} {len(passed):>6}   {seconds:.0f} s"]
    counted = Counter(listed.reason(test) or "not in the list" for test in failed)
    lines += [f"{'':<24} {count:>20}   {reason}" for reason, count in counted.most_common()]
    wrong = [
        f"{suite.name}: {test} fails and is not in {suite.list_file().name}: {why}"
        for test, why in failed.items()
        if listed.reason(test) is None
    ]
    now = passed & (listed.reasons.keys() - listed.sometimes)
    if now and options.shrink:
        shrink(suite.list_file(), now)
    elif now:
        wrong += [
            f"{suite.name}: {test} passes; take it out of {suite.list_file().name} (--shrink)" for test in sorted(now)
        ]
    if not options.sample and not options.words:
        gone = sorted(set(listed.reasons) - set(outcomes))
        wrong += [f"{suite.name}: {test} is in {suite.list_file().name} and was not run" for test in gone]
    return lines, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs other people's tests.")
    parser.add_argument("suites", nargs="*", metavar="NAME", help=", ".join(suite.name for suite in SUITES))
    parser.add_argument("--sample", action="store_true", help="a part of each suite, within a minute")
    parser.add_argument("--shrink", action="store_true", help="take what passes now out of the lists")
    parser.add_argument("-k", dest="words", metavar="WORDS", help="pytest's -k")
    parser.add_argument("-j", dest="jobs", type=int, default=os.cpu_count(), help="processes of a suite")
    options = parser.parse_args()
    if unknown := set(options.suites) - {suite.name for suite in SUITES}:
        parser.error(f"there is no suite {', '.join(sorted(unknown))}")
    wrong = []
    print(f"{'suite':<24} {'exist':>6} {'apply':>6} {'pass':>6}   time, or how many do not pass for which reason")
    for suite in SUITES:
        if options.suites and suite.name not in options.suites:
            continue
        lines, its_wrong = tell_of(suite, options)
        print(*lines, sep="\n", flush=True)
        wrong += its_wrong
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
