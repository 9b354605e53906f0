"""Every row of interface/CONFORMANCE.md: accepted arguments run through a kernel, refused ones issue no operation."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator

import pytest

from . import page
from .cases import CASES, Case
from .runner import Run

HERE = [case for case in CASES if not case.placed]  # the others need two devices: test_devices.py
RUNS = [pytest.param(case, version, id=f"{case.id}-{version}") for case in HERE for version in case.versions]


@pytest.fixture(autouse=True, scope="module")
def without_garbage() -> Iterator[None]:
    """Disables the garbage collector, so that no object of an earlier test is freed during a trace."""
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
