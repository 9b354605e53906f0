"""Random kernels with and without races are told apart (random_races.py)."""

from __future__ import annotations

import os

from .random_races import check

PROGRAMS = 10_000 if os.environ.get("LONG_TESTS") else 60


def test_random_programs_are_told_apart(emulated):
    counts = check(PROGRAMS, seed=45)
    assert min(counts["with"], counts["without"]) > PROGRAMS // 5, counts
    assert counts["missed"] <= counts["with"] // 200, counts
