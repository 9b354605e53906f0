"""Every sample, run as a user runs it: its comparisons, and the picture that it writes."""

from __future__ import annotations

import os
import re
import sys

import pytest
from child_process import run_python

import bascule

from .catalogue import GPU_ONLY, SAMPLES, TABLE, run

pytestmark = pytest.mark.slow

# Lines of the emulated device when Numba asks for the runtime's version, and lines of Dask on a busy machine.
NOT_OURS = re.compile(r"asked the emulated device for the CUDA runtime's private tables| - distributed\.")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Returns a function that runs a sample of the table once, and returns its outcome and its directory."""
    outcomes = {}

    def of(name):
        if name not in outcomes:
            directory = tmp_path_factory.mktemp(name)
            outcomes[name] = run(SAMPLES / f"{name}.py", directory, environment=TABLE[name].environment), directory
        return outcomes[name]

    return of


def test_every_sample_is_run_and_listed():
    files = {path.stem for path in SAMPLES.glob("*.py")}
    assert files == {*TABLE, *GPU_ONLY, "edges"}
    listed = re.findall(r"^\| \[`(\w+)\.py`\]\(\1\.py\) ", (SAMPLES / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(files)


@pytest.mark.parametrize("name", TABLE)
def test_the_sample_says_that_it_is_right_and_writes_its_picture(name, outcome):
    sample = TABLE[name]
    ran, directory = outcome(name)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [line for line in ran.stderr.splitlines() if not NOT_OURS.search(line)] == []
    assert re.findall(r"^ok +(\w+)", ran.stdout, re.MULTILINE) == sample.compared
    if sample.check:
        picture = directory / "out" / sample.picture
        assert f": {picture}\n" in ran.stdout
        sample.check(picture)


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


@pytest.mark.parametrize(
    ("name", "module"), [("numba_interop", "numba"), ("mpi_halo", "mpi4py"), ("dask_blocks", "dask")]
)
def test_a_sample_whose_library_is_missing_says_what_to_install(name, module, tmp_path):
    (tmp_path / f"{module}.py").write_text(f'raise ImportError("No module named {module!r}")')
    ran = run_python(SAMPLES / f"{name}.py", PYTHONPATH=os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert re.fullmatch(rf"{name}: No module named '{module}'; .+: pip install .+\n", ran.stderr)


def test_the_bugs_are_reported_each_with_its_line(outcome):
    ran, _ = outcome("find_the_bug")
    assert "6 of 6 bugs were found" in ran.stdout
    lines = (SAMPLES / "find_the_bug.py").read_text().splitlines()
    launches = ("module.average[1, 4]", "module.scale[8, 128, first]", "module.scale[8, 128, second]")
    for bug in ("if (i <= n) out", "averages[threadIdx.x] =", *launches):
        (number,) = (number for number, line in enumerate(lines, 1) if bug in line)
        assert f"find_the_bug.py:{number}: " in ran.stdout


def test_each_rank_of_mpi_and_each_worker_of_dask_has_a_device(outcome):
    if bascule.current_device().emulated:
        devices = [f"<bascule.Device emulated:{number}" for number in (0, 1)]
        ranks = re.findall(
            r"^rank (\d) of 2: rows .+ on (<bascule.Device emulated:\d)", outcome("mpi_halo")[0].stdout, re.M
        )
        assert dict(ranks) == dict(zip("01", devices, strict=True))
        workers = re.search(r"^the workers' devices: (.+)$", outcome("dask_blocks")[0].stdout, re.M)[1]
        assert [each.rstrip(">") for each in workers.split(", ")] == devices


def test_the_workers_of_dask_compile_nothing(outcome):
    ran, _ = outcome("dask_blocks")
    assert re.search(r"^compiled [01] times here and 0 times in 2 workers;", ran.stdout, re.MULTILINE)
    blocks, array, limit = re.search(r"(\d+) blocks, ([\d,]+) bytes; a worker may use ([\d,]+)", ran.stdout).groups()
    assert int(array.replace(",", "")) > int(limit.replace(",", ""))
    assert int(blocks) == 144


def test_the_spelling_checker_takes_words_and_refuses_others(tmp_path):
    ran = run(SAMPLES / "levenshtein.py", tmp_path, "exeption")
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"^exeption +-> exception \(distance 1\)$", ran.stdout, re.MULTILINE)
    ran = run(SAMPLES / "levenshtein.py", tmp_path, "Exception!")
    assert ran.returncode == 2
    assert "a word is 1 to 24 letters" in ran.stderr
