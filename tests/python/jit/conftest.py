"""Another NVRTC than the newest, for tests/nvrtc_versions.py."""

from __future__ import annotations

import os

import bascule

if "BASCULE_TEST_NVRTC" in os.environ:
    bascule.config.nvrtc_library = os.environ["BASCULE_TEST_NVRTC"]
    bascule.config.include_paths = os.environ["BASCULE_TEST_INCLUDE"].split(os.pathsep)
