"""Programs with CUB, libcu++, CUTLASS and CuTe: they compile, give the right values, and are found on disk again."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

import bascule

from .programs import CUTLASS, PROGRAMS, N, Program

pytestmark = pytest.mark.slow


def package(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{name} is not installed")
    return Path(found.submodule_search_locations[0])


@pytest.fixture(scope="module")
def cutlass_paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The include paths of CUTLASS and of a CCCL that fits it: CUTLASS 3.9 and 4.2 do not compile with CCCL 13.3."""
    given = os.environ.get("BASCULE_TEST_CUTLASS")
    cutlass = Path(given) if given else package("nvidia") / "mathdx" / "external" / "cutlass" / "include"
    if not cutlass.is_dir():
        pytest.skip("nvidia-mathdx is not installed")
    cccl = package("nvidia.cuda_cccl") / "include"
    above = tmp_path_factory.mktemp("above")
    (above / "cccl").symlink_to(cccl)  # CUTLASS 4 includes <cccl/cuda/std/...>, by a macro
    return [cutlass, above, cccl]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_program_of_a_library(program: Program, request: pytest.FixtureRequest) -> None:
    options = dict(program.library.options)
    if program.library is CUTLASS:
        options["include_paths"] = request.getfixturevalue("cutlass_paths")
    kernel = bascule.compile(program.text, options=options).k
    y = bascule.zeros(N, program.expected.dtype)
    kernel[1, N](bascule.to_device(program.x), y)
    np.testing.assert_allclose(y.copy_to_host(), program.expected, rtol=1e-5, atol=1e-5)

    assert kernel.origin == "compiled"
    bascule.cache.clear()
    assert bascule.compile(program.text, options=options).k.origin == "disk"
