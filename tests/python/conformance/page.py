"""Reads the tables of interface/CONFORMANCE.md, and writes them from the cases, for pasting into the page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .cases import CASES, KEY, LATER, OWN, TYPE, VALUE, Case

PAGE = Path(__file__).resolve().parents[3] / "interface" / "CONFORMANCE.md"
ERRORS = {
    TYPE: "ArgumentTypeError",
    VALUE: "ArgumentValueError",
    KEY: "ArgumentKeyError",
    LATER: "ArgumentNotImplementedError",
}

Entry = tuple[int, str, "int | None", str, str]  # row, descriptor, version, outcome, error class


def error_class(case: Case) -> str:
    if case.outcome == OWN:
        assert case.error is not None
        return case.error.__name__
    return ERRORS.get(case.outcome, "")


def entries_of(cases: Iterable[Case]) -> list[Entry]:
    return [(c.row, c.gives, version, c.outcome, error_class(c)) for c in cases for version in c.versions]


def versions_of(text: str) -> list[int | None]:
    """Parses '0-3', '3', '0-2', or '-' (the case gives its own version)."""
    if text == "-":
        return [None]
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.replace(r"\|", "\0").strip().strip("|").split("|")]


def parse(text: str) -> list[Entry]:
    """Returns an entry for each version of each table line whose first cell is a number."""
    entries: list[Entry] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            continue
        cells = cells_of(line)
        if not cells[0].isdigit():
            continue
        row, gives, versions, outcome, error = (cell.strip("`").replace("\0", "|") for cell in cells)
        entries += [(int(row), gives, version, outcome, error) for version in versions_of(versions)]
    return entries


def lines() -> Iterable[str]:
    for case in CASES:
        first, last = case.versions[0], case.versions[-1]
        versions = "-" if first is None else str(first) if first == last else f"{first}-{last}"
        gives = case.gives.replace("|", r"\|")
        error = f"`{error_class(case)}`" if error_class(case) else ""
        yield f"| {case.row} | `{gives}` | {versions} | {case.outcome} | {error} |"


if __name__ == "__main__":
    print("\n".join(lines()))
