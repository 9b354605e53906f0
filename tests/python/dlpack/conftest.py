"""Fixtures of the tests of the exchange table."""

from __future__ import annotations

import pytest

import bascule


@pytest.fixture(scope="session")
def module() -> bascule.Module:
    from dlpack.exchanged import TEXT

    return bascule.compile(TEXT)
