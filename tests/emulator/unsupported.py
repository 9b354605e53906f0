"""Writes runtime/emulator/UNSUPPORTED.md from the operation table. Exits with 1 if the page differs from it.

    python tests/emulator/unsupported.py [--program PATH] [--write]

`--write` rewrites the page. `--program` is emulator_vectors, which prints the table.
"""

import argparse
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build" / "dev" / "tests" / "emulator" / "emulator_vectors"
PAGE = ROOT / "runtime" / "emulator" / "UNSUPPORTED.md"

# The instructions of PTX ISA 9.0 that have no row in the table, and the CUDA C++ that compiles to them. An instruction
# that gets a row must be removed from this list.
REFUSED = [
    ("wgmma tcgen05 setmaxnreg", "tensor cores of sm_90 and later"),
    ("clusterlaunchcontrol", "work that one cluster takes from another"),
    ("multimem", "multicast objects of several devices"),
]
# Unsupported forms of instructions that have a row.
REFUSED_FORMS = [
    (
        "txq.channel_data_type txq.channel_order txq.normalized_coords suq.array_size suq.channel_data_type "
        "suq.channel_order suq.memory_layout",
        "inline PTX only; the drivers of GPUs refuse them too",
    ),
]

OPENING = """# What the emulated device does not run

Written by tests/emulator/unsupported.py from the operation table (program/table/rows.hpp), and tested against it:
do not edit this page.

A kernel is refused before its first launch if it uses an instruction listed here as refused, or a type or modifier that
is not listed as run. The error names the C++ function, the line of the source and the line of PTX; other kernels of the
module run. Code is compiled for compute_80, unless `BASCULE_EMULATED_ARCH` says otherwise. A GPU that has these
instructions runs them.

## Refused instructions

| PTX | written in CUDA C++ by |
|---|---|
"""

ELSEWHERE = """
## Refused elsewhere

| what | instead |
|---|---|
| launches from kernels (dynamic parallelism), and graphs launched from kernels | launch from the host |
| stream operations and graph nodes on words of memory (`cuStreamWaitValue32`) and external semaphores | events |
| pools shared between processes, events of other processes in graphs | memory of `cuMemAlloc` (`cuIpcGetMemHandle`) |
| texture and surface references (CUDA has none since 12.0) | a texture object |
| anisotropic filtering, block-compressed formats, sparse arrays | filter or decode in the kernel |
| clusters of more than one block before sm_90 | `BASCULE_EMULATED_ARCH=90`, or a cooperative grid |
| accesses by name outside of a parameter (`ld.param.u32 r, [p+100]`), which ptxas takes | the parameter's bytes |
| registers and constants as arguments of `call`, and `.reg` parameters of functions | `.param` variables |
| addresses of 16 bits; of 32 bits in generic and global memory, also where ptxas takes them | 64 bits |
| initial values of type `.b128`, and registers of type `.f16x2` in integer instructions | `.b32` |
| constants of one operator beyond `+ - * ~ !`, or in parentheses | the value |
| `setp` of two halves with one predicate, which ptxas takes | `p\\|q` |
| parameters of type `.pred` or `.f16x2`, two of one name, stores to a kernel's, also where ptxas takes them | `.b32` |
| tensor copies of sm_100: gather and scatter of rows, wide columns, elements of 4 and 6 bits | tiles and `.im2col` |
| addresses without brackets and numbers with a point in tensor copies, which ptxas takes | `[address]`, integers |
| fences of tensor maps that are named and not in global memory, which ptxas takes | an address in global memory |
| tiles of more than one slice of an interleaved tensor | one tile for each slice |
| machine code (cubin, fatbin) without PTX | compile for the device's architecture |

## Instructions that run

Types after an arrow are those of the second type, the source of a conversion or comparison. Of the types and modifiers
in one row every combination that PTX allows runs.

| PTX | types | modifiers |
|---|---|---|
"""


def table_of(program: Path) -> dict[str, list[dict[str, list[str]]]]:
    """Returns each instruction's rows, with the names of their types, second types and modifiers."""
    printed = subprocess.run([program, "--table"], capture_output=True, text=True, check=True, timeout=60).stdout
    rows: dict[str, dict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for line in printed.splitlines():
        _, number, name, kind, item, *_ = line.split()
        cells = rows[name][number]
        if kind != "any":
            cells[kind].append(item)
    return {name: list(of_name.values()) for name, of_name in rows.items()}


def spelled(names: list[str]) -> str:
    return " ".join(f"`.{name}`" for name in names)


def page(table: dict[str, list[dict[str, list[str]]]]) -> str:
    text = OPENING
    for names, written_by in REFUSED + REFUSED_FORMS:
        text += f"| {' '.join(f'`{name}`' for name in names.split())} | {written_by} |\n"
    text += ELSEWHERE
    for name, rows in sorted(table.items()):
        for row in rows:
            types = spelled(row["type"]) + (f" ← {spelled(row['second'])}" if row["second"] else "")
            text += f"| `{name}` | {types} | {spelled(row['modifier'])} |\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    table = table_of(arguments.program)
    if both := {name for names, _ in REFUSED for name in names.split()} & set(table):
        print(f"unsupported.py lists as refused what the table has: {', '.join(sorted(both))}")
        return 1
    wanted = page(table)
    if arguments.write:
        PAGE.write_text(wanted, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != wanted:
        print(f"{PAGE.name} differs from the operation table: run tests/emulator/unsupported.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
