"""Compares the ratios in README.md and performance.md with the newest results of a GPU.

    python tests/bench/figures.py [--write]

A row begins with the name of a row in a result file. A column, or the cell in the column "run", names the run. Prints
wrong lines and exits with 1; --write corrects the pages and keeps the number of decimals.
"""

import difflib
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "python" / "docs" / "performance.md")
RUNS = {"first": "bench-gpu.json", "second": "bench-gpu-again.json"}
SIZE = re.compile(r"\d+ (launch(es)?|KiB|MiB)")
FIGURE = re.compile(r"\d+\.?(?P<decimals>\d*)(?P<spread> ± \S+)?")
ABBREVIATIONS = {"`": "", "] (": "](", "module.": "m.", "kernel[grid, block": "k[g, b", "kernel.forall": "k.forall"}


def name_of(label: str, size: str) -> str:
    """Return the name of a row in a result file."""
    for long, short in ABBREVIATIONS.items():
        label = label.replace(long, short)
    joint = " of " if "launch" in size else " " if "freeing" in label else ", "
    return " / ".join(side + joint + size for side in label.split(" / ")) if size else label


def corrected(line: str, columns: list[str], rows: dict[str, dict]) -> str:
    """Return a table's row with the figures of the result files. Raises KeyError for a name that they do not have."""
    cells = cells_of(line)
    for i, column in enumerate(columns):
        size = column if SIZE.fullmatch(column) else ""
        run = cells[columns.index("run")] if "run" in columns else column.removesuffix(" run")
        found = FIGURE.fullmatch(cells[i])
        if found and (size or column in ("ratio", "first run", "second run")):
            row, decimals = rows[run][name_of(cells[0], size)], len(found["decimals"])
            spread = f" ± {row['spread']:.{decimals}f}" if found["spread"] else ""
            cells[i] = f"{row['figure']:.{decimals}f}{spread}"
    return f"| {' | '.join(cells)} |".replace("  ", " ")


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line[1:-1].split("|")]


def correct(page: str) -> str:
    """Return the page with the figures of the newest results."""
    results = max((ROOT / "tests" / "gpu" / "results").glob("*/bench-gpu.json")).parent
    files = {run: json.loads((results / name).read_text()) for run, name in RUNS.items()}
    rows = {run: {row["what"]: row for row in file["rows"]} for run, file in files.items()}
    lines, columns = page.split("\n"), []
    for i, line in enumerate(lines):
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = cells_of(line)
        elif " / " in line and ("run" in columns or "second run" in columns):
            lines[i] = corrected(line, columns, rows)
    return "\n".join(lines)


def main() -> bool:
    wrong = False
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new = correct(text)
        if "--write" in sys.argv:
            page.write_text(new, encoding="utf-8")
        elif new != text:
            wrong = True
            print("\n".join(difflib.unified_diff(text.split("\n"), new.split("\n"), page.name, "results", n=0)))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
