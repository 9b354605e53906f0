"""Some kernels need compute capability 9.0; `test_as_sm_90` runs them on an emulated device that has it."""

from __future__ import annotations

import pytest
from conftest import require_tensor_maps


@pytest.fixture
def hopper() -> None:
    require_tensor_maps()
