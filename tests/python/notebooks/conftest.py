"""Notebook kernels: the tests of one file share a kernel, different files do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .sessions import Session


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A notebook kernel with an empty cache."""
    from .sessions import session  # imported here, because Jupyter may not be installed

    with session(tmp_path_factory.mktemp("cache"), BASCULE_EMULATED_TIMEOUT="inf") as started:
        yield started
