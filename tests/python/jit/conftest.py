"""Selects another NVRTC than the newest, for tests/nvrtc_versions.py."""

from __future__ import annotations

import os

import pytest

import bascule
from bascule import _bascule

if "BASCULE_TEST_NVRTC" in os.environ:
    bascule.config.nvrtc_library = os.environ["BASCULE_TEST_NVRTC"]
    bascule.config.include_paths = os.environ["BASCULE_TEST_INCLUDE"].split(os.pathsep)


@pytest.fixture(autouse=True, scope="session")
def say_which_nvrtc(record_testsuite_property) -> None:
    record_testsuite_property("nvrtc", _bascule._nvrtc_info()["version"])
