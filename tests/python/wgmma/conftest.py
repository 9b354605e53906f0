"""wgmma needs compute capability 9.0; `clusters/test_as_sm_90` runs these tests on an emulated device that has it."""

from __future__ import annotations

import pytest

import bascule


@pytest.fixture(autouse=True)
def hopper() -> None:
    arch = bascule.current_device().arch
    if arch.partition("_")[2].rstrip("a") != "90":
        pytest.skip(f"needs compute capability 9.0, and this is {arch}: test_as_sm_90 runs it")
