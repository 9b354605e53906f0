"""Tensor maps need compute capability 9.0; test_as_sm_90.py runs these tests on an emulated device that has it."""

from __future__ import annotations

import pytest

import bascule


@pytest.fixture
def hopper() -> None:
    arch = bascule.current_device().arch
    if int(arch.rpartition("_")[2].rstrip("a")[:-1]) < 9:
        pytest.skip(f"needs compute capability 9.0, and this is {arch}: test_as_sm_90 runs it")
