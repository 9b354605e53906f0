"""Every sample fails if its kernel computes something else: its comparisons are real."""

from __future__ import annotations

import os
import re

import pytest

from .catalogue import SAMPLES, TABLE, run

pytestmark = pytest.mark.slow
# Samples that take ten seconds or more.
LONG = {"black_scholes", "dask_blocks", "heat", "nbody"}


@pytest.mark.parametrize("name", TABLE)
def test_the_sample_fails_when_its_kernel_is_wrong(name, tmp_path):
    if name in LONG and "LONG_TESTS" not in os.environ:
        pytest.skip("takes ten seconds and more: .ci/run --long")
    text = (SAMPLES / f"{name}.py").read_text()
    for right, changed in filter(any, (TABLE[name].wrong, TABLE[name].smaller)):
        assert text.count(right) == 1
        text = text.replace(right, changed)
    (tmp_path / "wrong.py").write_text(text)
    ran = run(tmp_path / "wrong.py", tmp_path, environment=TABLE[name].environment)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert re.search(rf"^{name}: ", ran.stderr, re.MULTILINE)
    assert "Traceback" not in ran.stderr
