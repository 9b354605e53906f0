"""Every row of interface/CONFORMANCE.md: what is accepted goes through a kernel, what is refused has issued nothing."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator

import pytest

import bascule

from . import page
from .cases import CASES, Case
from .runner import Run

pytestmark = pytest.mark.usefixtures("recorded")

HERE = [case for case in CASES if not case.placed]  # the others need two devices: test_devices.py
RUNS = [pytest.param(case, version, id=f"{case.id}-{version}") for case in HERE for version in case.versions]
# Only a build with tests has them (BASCULE_TESTS).
CHECKS = {name: row for name, row in getattr(bascule._bascule, "_checks", dict)().items() if name != "memory_device"}


@pytest.fixture(autouse=True, scope="module")
def without_garbage() -> Iterator[None]:
    """Nothing of earlier tests is freed while a trace runs."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(("case", "version"), RUNS)
def test_what_a_producer_gives_has_the_outcome_of_its_row(case: Case, version: int | None) -> None:
    Run(case, version).check()


def test_the_page_and_the_table_say_the_same() -> None:
    written = page.parse(page.PAGE.read_text(encoding="utf-8"))
    tested = page.entries_of(CASES)
    assert len(written) == len(set(written)), [entry for entry, n in Counter(written).items() if n > 1]
    assert set(written) == set(tested)


def test_every_row_has_cases() -> None:
    assert {case.row for case in CASES} == set(range(1, 63))


@pytest.mark.parametrize(("name", "row"), sorted(CHECKS.items()))
def test_a_check_that_is_switched_off_fails_its_row(name: str, row: int) -> None:
    runs = [Run(case, version) for case in HERE if case.row == row for version in case.versions]
    for run in runs:
        run.check_binds()
    bascule._bascule._switch_check(name, False)
    try:
        failed = [run for run in (Run(r.case, r.version) for r in runs) if not holds(run)]
    finally:
        bascule._bascule._switch_check(name, True)
    assert failed, f"row {row} holds without {name}"


def holds(run: Run) -> bool:
    try:
        run.check_binds()
    except Exception:
        return False
    return True
