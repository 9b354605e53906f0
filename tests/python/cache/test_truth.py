"""Random headers under random changes, in a separate process."""

import os
import re
from pathlib import Path

import pytest
from child_process import printed_by

pytestmark = pytest.mark.slow


def test_random_sequences_get_no_old_code() -> None:
    sequences = "100" if "LONG_TESTS" in os.environ else "30"
    printed = printed_by(Path(__file__).with_name("truth.py"), "--sequences", sequences, "--seed", "1", timeout=900)
    report = printed.splitlines()[-1]
    assert f"{sequences} sequences" in report
    assert "stale 0" in report
    # Otherwise the sequences would prove nothing.
    for count in (
        "doubtful",
        "compiled",
        "from memory",
        "from disk",
        "disturbed",
        "answered",
        "refused answers",
        "unpickled",
    ):
        match = re.search(rf"{count} (\d+)", report)
        assert match, report
        assert int(match[1]) > 20, report
