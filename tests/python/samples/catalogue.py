"""The expected output of each sample, and a change of its kernel after which it must fail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib import cbook
from PIL import Image

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def check_equalized(path: Path) -> None:
    before, after = np.hsplit(np.asarray(Image.open(path)), 2)
    with cbook.get_sample_data("grace_hopper.jpg") as file:
        assert np.array_equal(before, np.asarray(Image.open(file).convert("L")))
    assert (after.min(), after.max()) == (0, 255)
    assert abs(after.mean() - 127.5) < 3  # every level is now about equally frequent; before, dark ones prevailed
    assert before.mean() < 100
    order = np.argsort(before, axis=None, kind="stable")
    assert (np.diff(after.ravel()[order].astype(int)) >= 0).all()  # the order of brightness is unchanged


def check_galaxies(path: Path) -> None:
    with Image.open(path) as gif:
        frames = []
        for index in range(gif.n_frames):
            gif.seek(index)
            frames.append(np.asarray(gif.convert("RGB")).astype(int))
    assert len(frames) == 41
    orange, blue = ([(frame[..., a] > frame[..., b] + 50) for frame in frames] for a, b in ((0, 2), (2, 0)))
    columns = np.arange(frames[0].shape[1])
    for galaxy in (orange, blue):
        assert all(seen.sum() > 500 for seen in galaxy)
    start = [(seen[0] * columns).sum() / seen[0].sum() for seen in (orange, blue)]
    end = [(seen[-1] * columns).sum() / seen[-1].sum() for seen in (orange, blue)]
    assert start[0] + 60 < start[1]  # they start apart
    assert abs(end[0] - end[1]) < abs(start[0] - start[1]) - 30


def check_plates(path: Path) -> None:
    start, copper, steel = np.hsplit(np.asarray(Image.open(path)).astype(int).sum(axis=-1), 3)
    assert start.shape == (288, 384)
    assert copper.std() < steel.std() < start.std()  # copper conducts heat faster


@dataclass(frozen=True)
class Sample:
    compared: list[str]  # words that follow `ok` in its output lines
    wrong: tuple[str, str]  # a change of the text after which it must fail
    picture: str = ""  # the file that it writes into `out`
    check: Callable[[Path], None] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    smaller: tuple[str, str] = ("", "")  # a change of the text that reduces the work


TABLE = {
    "histogram_equalization": Sample(
        ["histogram", "table", "picture"],
        ("atomicAdd(&mine[pixels[i]], 1)", "atomicAdd(&mine[pixels[i] & 254], 1)"),
        "grace_hopper-equalized.png",
        check_equalized,
    ),
    "nbody": Sample(
        ["positions", "energy"],
        ("inverse * inverse * inverse", "inverse * inverse"),
        "galaxies.gif",
        check_galaxies,
    ),
    "heat": Sample(["copper", "steel"], ("- 4 * here", "- 3.999f * here"), "heat.png", check_plates),
    "black_scholes": Sample(["float32", "float64"], ("normcdf(-d1)", "normcdf(-d2)"), smaller=("50_000", "5_000")),
    "spmv": Sample(["laplacian", "random"], ("distance = LANES / 2", "distance = LANES / 4")),
    "gemm_tma": Sample(["200"], ("in_b + i * 2", "in_b")),
    "levenshtein": Sample(["0"], ("(word[i] != query[j])", "2 * (word[i] != query[j])")),
    "find_the_bug": Sample([], ("if (i <= n) out", "if (i < n) out")),
    "numba_interop": Sample(["Numba", "Bascule"], ("y[i] += a", "y[i] -= a")),
    "mpi_halo": Sample(["0"], ("now[-1 - below]", "now[-2 - below]"), environment={"BASCULE_EMULATED_DEVICES": "2"}),
    # The search for races keeps records of freed memory too, and Dask pauses workers that come near their memory limit.
    "dask_blocks": Sample(
        ["luminance"],
        ("0.2126f * p[0]", "0.2127f * p[0]"),
        environment={"BASCULE_EMULATED_CHECKS": "memory", "BASCULE_EMULATED_DEVICES": "2"},
        smaller=("(12000, ", "(3000, "),
    ),
}
GPU_ONLY = ["cupy_torch_jax"]


def run(
    script: Path, directory: Path, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, script, *arguments],
        cwd=directory,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
