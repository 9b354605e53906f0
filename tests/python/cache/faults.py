"""Injects file system faults into the cache: each may cost one more compile, and must never return another program.

    python tests/python/cache/faults.py [--all] [CHECK...]

`--all` takes minutes: it tries every error at every file call, and every point of a kill and of a fork. Prints counts,
and exits with 1 if anything went wrong.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parents[2] / "build" / "dev" / "tests" / "python" / "cache" / "file_faults.so"
CHECKS = ("file_calls", "killed", "full_disk", "another_user", "clocks", "processes", "forks")


@dataclass
class Outcome:
    """Counts of one check, and a sentence for each failure."""

    counts: dict[str, int]
    wrong: list[str]
    note: str = ""


def skip_reason(check: str) -> str:
    """Returns why a check cannot run here, or an empty string."""
    if not LIBRARY.exists():
        return "the fault library is not built (ninja -C build/dev file_faults)"
    if check == "another_user" and os.geteuid() != 0:
        return "only root can run a process as another user"
    return ""


def run(check: str, quick: bool = True) -> Outcome:
    """Runs one check in a separate process, on an empty directory."""
    root = Path(tempfile.mkdtemp(prefix="bascule-faults-"))
    library = Path(f"{root}.so")  # LD_PRELOAD splits at spaces, which the clone's path may have
    library.symlink_to(LIBRARY)
    environment = {**os.environ, "LD_PRELOAD": str(library), "BASCULE_DEVICE": "emulated"}
    command = [sys.executable, str(HERE / "fault_worker.py"), check, str(root), "1" if quick else "0"]
    note = ""
    if check == "full_disk":
        (root / "cache").mkdir()
        small = [
            "unshare",
            "-m",
            "sh",
            "-c",
            'mount -t tmpfs -o size=64k,mode=0700 tmpfs "$0/cache" && exec "$@"',
            str(root),
        ]
        if subprocess.run([*small, "true"], capture_output=True, check=False).returncode == 0:
            command = [*small, *command]
            note = "a file system of 64 KiB"
        else:
            note = environment["FAULT_DISK"] = "a file size limit, as no file system can be mounted here"
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=900 if quick else 7200, check=False
        )
    finally:
        shutil.rmtree(root, ignore_errors=True)
        library.unlink()
    if done.returncode != 0:
        return Outcome({}, [f"the process ended with {done.returncode}: {done.stderr[-2000:]}"], note)
    return Outcome(**json.loads(done.stdout), note=note)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every error and every place, not a selection")
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=f"of {', '.join(CHECKS)}; default: all of them")
    arguments = parser.parse_args()
    failed = False
    for check in arguments.checks or CHECKS:
        if reason := skip_reason(check):
            print(f"{check}: skipped: {reason}")
            continue
        outcome = run(check, quick=not arguments.all)
        print(f"{check}: " + ", ".join(f"{count} {name}" for name, count in outcome.counts.items()), end="")
        print(f" ({outcome.note})" if outcome.note else "", flush=True)
        for sentence in outcome.wrong:
            print(f"  WRONG: {sentence}")
        failed = failed or bool(outcome.wrong)
    print("something went wrong" if failed else "nothing wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
