"""Splits large PTX modules into small ones, as seeds for a fuzzer: every kernel with the declarations of its module.

python tests/fuzz/split_ptx.py OUTPUT_DIRECTORY FILE.ptx...
"""

import re
import sys
from pathlib import Path

KERNEL = re.compile(r"^(?:\.visible |\.weak )?\.entry \w+\(.*?^}\n", re.S | re.M)
LONGEST = 20000


def split(text: str) -> list[str]:
    head = KERNEL.sub("", text)
    return [module for match in KERNEL.finditer(text) if len(module := head + match.group()) <= LONGEST]


def main() -> None:
    directory = Path(sys.argv[1])
    for path in map(Path, sys.argv[2:]):
        for number, module in enumerate(split(path.read_text())):
            (directory / f"{path.stem}_{number}.ptx").write_text(module)


main()
