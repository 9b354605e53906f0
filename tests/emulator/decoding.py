"""Checks that decoding PTX takes time in proportion to its length: callgrind counts instructions, for several shapes.

python tests/emulator/decoding.py PROGRAM      PROGRAM is emulator_decoding. Exits with 77 without valgrind.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COUNT = 500
# The growth if COUNT doubles, after subtracting the constant part: 2 for linear time, 4 for quadratic.
MOST_GROWTH = 2.6


def instructions(program: str, shape: str, count: int) -> int:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "counts"
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={file}", program, shape, str(count)],
            capture_output=True,
            text=True,
            timeout=300,
        )
        if done.returncode != 0:
            sys.exit(f"{shape} {count}: {done.stdout}{done.stderr}")
        found = re.search(r"^(?:totals|summary): (\d+)", file.read_text(), re.M)
    assert found is not None
    return int(found[1])


def main() -> None:
    program = sys.argv[1]
    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        sys.exit(77)
    failed = False
    for shape in subprocess.run([program], capture_output=True, text=True, timeout=60).stdout.split():
        one, two, four = (instructions(program, shape, factor * COUNT) for factor in (1, 2, 4))
        growth = (four - two) / (two - one)
        failed = failed or growth > MOST_GROWTH
        print(f"{shape:8} {one:>12,} {two:>12,} {four:>12,}  growth {growth:.2f}")
    sys.exit(failed)


main()
