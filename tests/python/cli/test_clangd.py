"""What `bascule info --clangd` prints lets clangd understand kernels: it completes them, and finds errors in them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

KERNEL = """
#include "factor.cuh"
__device__ int counter;
template <class T>
__global__ void scale(bascule::array_view<const T, 2> in, bascule::array_view<T, 2> out, int n) {
    __shared__ T tile[32];
    tile[threadIdx.x] = __expf(FACTOR);
    __syncthreads();
    for (auto i : bascule::grid_stride(n)) out(0, i) = in(0, i) * tile[0];
    atomicAdd(&counter, 1);
}
"""


@pytest.fixture
def settings(bascule_command, tmp_path: Path) -> Path:
    done = bascule_command("info", "--clangd")
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / ".clangd").write_text(done.stdout)
    (tmp_path / "factor.cuh").write_text("#define FACTOR 2.0f\n")
    return tmp_path


def errors_of(text: str, directory: Path) -> list[str]:
    clangd = shutil.which("clangd")
    if clangd is None:
        pytest.skip("needs clangd")
    (directory / "kernel.cu").write_text(text)
    done = subprocess.run(
        [clangd, "--check=kernel.cu"], cwd=directory, capture_output=True, text=True, timeout=120, check=False
    )
    assert "All checks completed" in done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("E[")]


def test_the_folders_and_the_prelude_exist(settings: Path) -> None:
    flags = [
        line.strip(' -"') for line in (settings / ".clangd").read_text().splitlines() if line.startswith('    - "')
    ]
    assert len(flags) >= 2
    for flag in flags:
        assert Path(flag.removeprefix("I").removeprefix("include")).exists(), flag
    assert flags[-1].endswith("prelude.cuh")


def test_clangd_finds_no_error_in_a_kernel_with_views(settings: Path) -> None:
    assert errors_of(KERNEL, settings) == []


def test_clangd_finds_a_misspelled_name(settings: Path) -> None:
    errors = errors_of(KERNEL.replace("grid_stride", "grid_strid"), settings)
    assert "no member named 'grid_strid' in namespace 'bascule'" in errors[0]
