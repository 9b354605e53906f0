"""Reports what the vectors of the emulated device cover: a table "row | types and modifiers | comparisons".

Runs emulator_vectors on each instruction set of the processor. Exits with 1 if a result differs, if a type or modifier
of a row of the operation table was compared in no result, or if an opcode of PTX is refused unexpectedly.

    python tests/emulator/coverage.py [--program PATH] [--only-summary]
    python tests/emulator/coverage.py --self-test    a wrong reference result of each kind must be noticed
"""

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build" / "dev" / "tests" / "emulator" / "emulator_vectors"
KINDS = [
    "scalar",
    "packing",
    "memory",
    "exchange",
    "control",
    "tensor",
    "video",
    "wide",
    "async",
    "tensor_copy",
    "image",
]


def instruction_sets() -> dict[str, str]:
    """The value of BASCULE_EMULATED_ISA for each instruction set."""
    processor = Path("/proc/cpuinfo")
    has_avx512 = processor.exists() and "avx512_vbmi2" in processor.read_text(encoding="utf-8")
    return {"fastest": "", **({"AVX2": "avx2"} if has_avx512 else {}), "baseline": "baseline"}


@dataclass
class Run:
    """The parsed output of one run of the vectors."""

    name: str
    code: int
    cells: dict[tuple[int, str], dict[tuple[str, str], tuple[int, int]]] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    summary: str = ""

    def failures(self) -> list[str]:
        found = list(self.complaints)
        for (row, name), cells in self.cells.items():
            for (kind, item), (compared, different) in cells.items():
                where = f"row {row} ({name}), {kind} {item}"
                if compared == 0:
                    found.append(f"{where}: nothing was compared")
                elif different:
                    found.append(f"{where}: {different} of {compared} results differ")
        if self.code != 0:
            found.append(f"the program exited with {self.code}")
        found += [f"legal in PTX, refused here: {refusal}" for refusal in self.refusals]
        if not self.cells:
            found.append("the program printed no rows")
        return [f"{self.name}: {failure}" for failure in found]


def start(program: Path, isa: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "BASCULE_EMULATED_ISA": isa} if isa else {**os.environ}
    if not isa:
        environment.pop("BASCULE_EMULATED_ISA", None)
    return subprocess.Popen([program, *arguments], env=environment, stdout=subprocess.PIPE, text=True)


def finished(name: str, process: subprocess.Popen[str]) -> Run:
    output, _ = process.communicate()
    run = Run(name, process.returncode)
    rows: dict[tuple[int, str], dict[tuple[str, str], tuple[int, int]]] = defaultdict(dict)
    for line in output.splitlines():
        words = line.split()
        if words[0] == "row":
            row, family, kind, item, compared, different = words[1:]
            rows[int(row), family][kind, item] = int(compared), int(different)
        elif words[0] in ("mismatch", "fault"):
            run.complaints.append(line)
        elif words[0] == "refused":
            run.refusals.append(line.removeprefix("refused "))
        else:
            run.summary = line
    run.cells = dict(rows)
    return run


def print_table(run: Run) -> None:
    print(f"{'row':<14} | {'types and modifiers':<100} | comparisons")
    for (row, name), cells in run.cells.items():
        items = [
            f"{'<-' if kind in ('second', 'third', 'fourth') else ''}{item}:{n}"
            for (kind, item), (n, _) in cells.items()
            if kind != "any"
        ]
        lines, line = [], ""
        for item in items:
            if line and len(line) + len(item) >= 100:
                lines.append(line)
                line = ""
            line += (" " if line else "") + item
        lines.append(line)
        total = cells.get(("any", "-"), (0, 0))[0]
        for number, text in enumerate(lines):
            print(f"{f'{row} {name}' if number == 0 else '':<14} | {text:<100} | {total if number == 0 else ''}")


def self_test(program: Path) -> int:
    missed = []
    processes = {kind: start(program, "", "--only", kind, "--corrupt") for kind in KINDS}
    for kind, process in processes.items():
        run = finished(kind, process)
        noticed = run.code == 1 and len([c for c in run.complaints if c.startswith("mismatch")]) == 1
        print(f"a wrong reference result among the {kind} vectors is {'noticed' if noticed else 'NOT noticed'}")
        if not noticed:
            missed.append(kind)
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=PROGRAM, help="emulator_vectors of another build")
    parser.add_argument("--only-summary", action="store_true", help="no table")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if not arguments.program.is_file():
        print(f"{arguments.program} does not exist; build the target emulator_vectors", file=sys.stderr)
        return 2
    if arguments.self_test:
        return self_test(arguments.program)
    processes = {name: start(arguments.program, isa) for name, isa in instruction_sets().items()}
    runs = [finished(name, process) for name, process in processes.items()]
    if not arguments.only_summary:
        print_table(runs[0])
    print(f"{len(runs[0].refusals)} legal opcodes are refused:")
    for refusal in runs[0].refusals:
        print(f"  {refusal}")
    failures = [failure for run in runs for failure in run.failures()]
    print("\n".join(failures))
    for run in runs:
        print(run.summary)
    cells = sum(len(cells) for cells in runs[0].cells.values())
    print(f"{len(runs[0].cells)} rows, {cells} types and modifiers of them; {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
