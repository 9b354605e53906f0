"""Every sample, run as a user runs it: its comparisons, the picture that it writes, and that a wrong kernel fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from matplotlib import cbook
from PIL import Image

import bascule

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def check_equalized(path: Path) -> None:
    before, after = np.hsplit(np.asarray(Image.open(path)), 2)
    with cbook.get_sample_data("grace_hopper.jpg") as file:
        assert np.array_equal(before, np.asarray(Image.open(file).convert("L")))
    assert (after.min(), after.max()) == (0, 255)
    assert abs(after.mean() - 127.5) < 3  # every level as frequent as the others; before, dark ones were
    assert before.mean() < 100
    order = np.argsort(before, axis=None, kind="stable")
    assert (np.diff(after.ravel()[order].astype(int)) >= 0).all()  # what was brighter still is


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
    assert start[0] + 60 < start[1]  # apart, and then they met
    assert abs(end[0] - end[1]) < abs(start[0] - start[1]) - 30


def check_plates(path: Path) -> None:
    start, copper, steel = np.hsplit(np.asarray(Image.open(path)).astype(int).sum(axis=-1), 3)
    assert start.shape == (288, 384)
    assert copper.std() < steel.std() < start.std()  # copper conducts heat faster


@dataclass(frozen=True)
class Sample:
    compared: list[str]  # words behind `ok` in the lines that it prints
    picture: str = ""  # the file that it writes into `out`
    check: Callable[[Path], None] | None = None
    wrong: tuple[str, str] | None = None  # a change of the text after which it must fail


TABLE = {
    "histogram_equalization": Sample(
        ["histogram", "table", "picture"],
        "grace_hopper-equalized.png",
        check_equalized,
        ("atomicAdd(&mine[pixels[i]], 1)", "atomicAdd(&mine[pixels[i] & 254], 1)"),
    ),
    "nbody": Sample(
        ["positions", "energy"], "galaxies.gif", check_galaxies, ("inverse * inverse * inverse", "inverse * inverse")
    ),
    "black_scholes": Sample(["float32", "float64"], wrong=("normcdf(-d1)", "normcdf(-d2)")),
    "heat": Sample(["copper", "steel"], "heat.png", check_plates, ("- 4 * here", "- 3.999f * here")),
    "spmv": Sample(["laplacian", "random"], wrong=("distance = LANES / 2", "distance = LANES / 4")),
    "levenshtein": Sample(["0"], wrong=("(word[i] != query[j])", "2 * (word[i] != query[j])")),
    "find_the_bug": Sample([], wrong=("if (i <= n) out", "if (i < n) out")),
    "numba_interop": Sample(["Numba", "Bascule"], wrong=("y[i] += a", "y[i] -= a")),
    "mpi_halo": Sample(["0"], wrong=("now[-1 - below]", "now[-2 - below]")),
}
# What the emulated device says to libraries of CUDA's runtime, which Numba asks for a version.
NUMBA_ASKS = "a program asked the emulated device for the CUDA runtime's private tables"
GPU_ONLY = ["cupy_torch_jax"]


def run(script: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, script],
        cwd=directory,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )


def test_every_sample_is_run_and_listed():
    files = {path.stem for path in SAMPLES.glob("*.py")}
    assert files == {*TABLE, *GPU_ONLY, "edges"}
    listed = re.findall(r"^\| \[`(\w+)\.py`\]\(\1\.py\) ", (SAMPLES / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(files)


@pytest.mark.parametrize("name", TABLE)
def test_the_sample_says_that_it_is_right_and_writes_its_picture(name, tmp_path):
    sample = TABLE[name]
    ran = run(SAMPLES / f"{name}.py", tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [line for line in ran.stderr.splitlines() if NUMBA_ASKS not in line] == []
    assert re.findall(r"^ok +(\w+)", ran.stdout, re.MULTILINE) == sample.compared
    if sample.check:
        picture = tmp_path / "out" / sample.picture
        assert f": {picture}\n" in ran.stdout
        sample.check(picture)


@pytest.mark.parametrize("name", [name for name, sample in TABLE.items() if sample.wrong])
def test_the_sample_fails_when_its_kernel_is_wrong(name, tmp_path):
    text = (SAMPLES / f"{name}.py").read_text()
    right, wrong = TABLE[name].wrong
    assert text.count(right) == 1
    (tmp_path / "wrong.py").write_text(text.replace(right, wrong))
    ran = run(tmp_path / "wrong.py", tmp_path)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert re.search(rf"^{name}: ", ran.stderr, re.MULTILINE)
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("name", GPU_ONLY)
def test_a_sample_that_needs_a_gpu_runs_there_and_tells_why_it_does_not_elsewhere(name, tmp_path):
    ran = run(SAMPLES / f"{name}.py", tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    if skipped := re.search(r"^skipped: (.+)$", ran.stdout, re.MULTILINE):
        assert ran.stdout == f"{skipped[0]}\n"
        assert "need a GPU" in ran.stdout or "pip install" in ran.stdout
        if "need a GPU" in ran.stdout:
            assert bascule.current_device().emulated
    else:
        assert re.search("^ok ", ran.stdout, re.MULTILINE)


@pytest.mark.parametrize(("name", "module"), [("numba_interop", "numba"), ("mpi_halo", "mpi4py")])
def test_a_sample_whose_library_is_missing_says_what_to_install(name, module, tmp_path):
    (tmp_path / f"{module}.py").write_text(f'raise ImportError("No module named {module!r}")')
    ran = subprocess.run(
        [sys.executable, SAMPLES / f"{name}.py"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert re.fullmatch(rf"{name}: No module named '{module}'; .+: pip install .+\n", ran.stderr)


def test_the_bugs_are_reported_each_with_its_line(tmp_path):
    ran = run(SAMPLES / "find_the_bug.py", tmp_path)
    assert "3 of 3 bugs were found" in ran.stdout
    lines = (SAMPLES / "find_the_bug.py").read_text().splitlines()
    for bug in ("if (i <= n) out", "module.scale[8, 128, first]", "module.scale[8, 128, second]"):
        (number,) = (number for number, line in enumerate(lines, 1) if bug in line)
        assert f"find_the_bug.py:{number}: " in ran.stdout


def test_the_spelling_checker_takes_words_and_refuses_others(tmp_path):
    script = SAMPLES / "levenshtein.py"
    arguments = {"capture_output": True, "text": True, "timeout": 120, "env": os.environ, "cwd": tmp_path}
    ran = subprocess.run([sys.executable, script, "exeption"], **arguments)
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"^exeption +-> exception \(distance 1\)$", ran.stdout, re.MULTILINE)
    ran = subprocess.run([sys.executable, script, "Exception!"], **arguments)
    assert ran.returncode == 2
    assert "a word is 1 to 24 letters" in ran.stderr
