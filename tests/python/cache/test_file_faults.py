"""A failing file system costs one compile at most and gives no wrong program; `faults.py --all` tries everything."""

import faults
import pytest

pytestmark = pytest.mark.slow

# The least counts of each check, because a check that met nothing shows nothing.
LEAST = {
    "file_calls": {"faults": 60, "write gives 0": 1, "renameat gives EIO": 1, "utimensat gives EIO": 1},
    "killed": {"kills": 40, "temporary files left": 2},
    "full_disk": {"kept": 0, "warnings": 1},
    "another_user": {"users": 4},
    "clocks": {"pairs of clocks": 9},
    "processes": {"processes": 16, "deletions": 16},
    "forks": {"forks": 5},
}


@pytest.mark.parametrize("check", faults.CHECKS)
def test_a_fault_costs_one_compile_at_most(check: str) -> None:
    if reason := faults.skip_reason(check):
        pytest.skip(reason)
    outcome = faults.run(check)
    assert outcome.wrong == []
    for what, least in LEAST[check].items():
        assert outcome.counts.get(what, 0) >= least, outcome.counts
