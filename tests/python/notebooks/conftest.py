"""Kernels of notebooks; the tests of a file share one, and the files share nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .sessions import Session, session


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A kernel with an empty cache."""
    with session(tmp_path_factory.mktemp("cache"), BASCULE_EMULATED_TIMEOUT="inf") as started:
        yield started
