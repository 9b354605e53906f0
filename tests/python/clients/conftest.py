"""Makes the emulated device this process's CUDA driver, before another library is imported."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator

import pytest

import bascule

# numba-cuda needs NVVM to compile without a toolkit. NVVM is not in .venv, where other tests import Numba.
NEEDED = ("cuda-core", "numba-cuda", "numba-cuda-mlir", "nvidia-nvvm")


@pytest.fixture(scope="session")
def other_libraries() -> None:
    for package in NEEDED:
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{package} is not installed here; bash tests/clients/setup.sh installs it in .venv-clients")
    if not bascule.current_device().emulated:
        pytest.skip("races are found on the emulated device alone")
    bascule.emulated.install()


@pytest.fixture
def compared(other_libraries: None) -> Iterator[None]:
    """Searches for races. Fails if no operations were compared: such a test shows nothing about their order."""
    before = bascule.emulated.race_statistics().bytes
    with bascule.emulated.checks(races=True):
        yield
    assert bascule.emulated.race_statistics().bytes > before
