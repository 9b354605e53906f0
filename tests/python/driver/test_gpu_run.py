"""A GPU run (tests/gpu) loses no results if a test ends its process, hangs or faults, or if the run is stopped."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # installs and runs tests in new environments

ROOT = Path(__file__).resolve().parents[3]
TESTS = """
import os, signal, threading
import pytest
import bascule

def test_first(): pass

def test_ends_the_process(): os.kill(os.getpid(), signal.SIGSEGV)

def test_hangs(): threading.Event().wait()

def test_loses_the_context():
    kernel = bascule.compile("__global__ void k(int* p) { p[1ll << 40] = 1; }").k
    kernel[1, 1](bascule.zeros(1, "i4"))
    bascule.synchronize()

def test_fails(): assert 1 == 2

def test_is_skipped(): pytest.skip("no reason at all")

def test_last(): pass
"""


@pytest.fixture
def pieces(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "tests" / "gpu")
    monkeypatch.setenv("BASCULE_DEVICE", "emulated")
    import pieces

    monkeypatch.setattr(pieces, "LOGS", tmp_path / "logs")
    pieces.LOGS.mkdir()
    return pieces


def piece_of(pieces, tmp_path: Path, text: str):
    (tmp_path / "test_some.py").write_text(text)
    command = [sys.executable, "-m", "pytest", str(tmp_path / "test_some.py"), "-q", "-p", "no:cacheprovider"]
    return pieces.Piece(
        "some", [*command, "-p", "outcomes", "-p", "no:bascule", "--rootdir", str(tmp_path)], "some", is_pytest=True
    )


def results_in(tmp_path: Path) -> dict:
    (file,) = tmp_path.glob("results/*/results.json")
    return json.loads(file.read_text())


def test_what_follows_a_test_that_ends_its_process_hangs_or_faults_runs_in_another_one(pieces, monkeypatch, tmp_path):
    monkeypatch.setattr(pieces, "SILENCE", 8.0)
    piece = piece_of(pieces, tmp_path, TESTS)
    pieces.Run([piece], 1, 300, tmp_path / "results").go()
    found = results_in(tmp_path)["pieces"]["some"]
    assert piece.processes == 4
    assert found["exit"] == 1
    assert found["passed"] == 2
    assert found["skipped"] == {"no reason at all": 1}
    said = {name.partition("::")[2]: text for name, text in found["failed"].items()}
    assert "ended the process with status -11" in said["test_ends_the_process"]
    assert "did not end within 8 s" in said["test_hangs"]
    if pieces.collect.STACKS.exists():
        assert "PyThread_acquire_lock_timed" in (pieces.LOGS / "some.log").read_text()  # its native stack
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in said["test_loses_the_context"]
    assert "assert 1 == 2" in said["test_fails"]
    assert len(said) == 4


def test_a_run_that_is_stopped_has_what_had_ended_and_goes_on_there(pieces, tmp_path):
    text = "import time\ndef test_quick(): pass\ndef test_slow(): time.sleep({seconds})\n"
    piece = piece_of(pieces, tmp_path, text.format(seconds=600))
    run = pieces.Run([piece], 1, 600, tmp_path / "results")
    original = run.look_at

    def until_the_first_has_ended(each) -> None:
        original(each)
        if '"outcome"' in (each.outcomes.read_text() if each.outcomes.exists() else ""):
            run.until = 0

    run.look_at = until_the_first_has_ended
    run.go()
    found = results_in(tmp_path)["pieces"]["some"]
    assert (found["exit"], found["passed"], found["failed"]) == (None, 1, {})
    again = piece_of(pieces, tmp_path, text.format(seconds=0))
    pieces.Run([again], 1, 300, tmp_path / "results").go()
    found = results_in(tmp_path)["pieces"]["some"]
    assert (found["exit"], found["passed"], found["failed"]) == (0, 2, {})


def test_the_results_name_no_directory_of_the_machine(pieces, tmp_path):
    """Words replace the directories and the rest of each path stays, in JSON's texts and keys too."""
    text = f"E   no {ROOT}/tests/a.cu\n{tmp_path}/b.cu, -I{tmp_path / 'c'} {Path.home()}/d"
    pieces.collect.add_outcome(pieces.LOGS / "some.jsonl", "test_some.py::test", "failed", text)
    (pieces.LOGS / "some.rc").write_text("1")
    (pieces.LOGS / "opcodes.json").write_text(json.dumps({"refused": {f"a {ROOT}": f"in\n{ROOT}/tests/e.py:1"}}))
    (pieces.LOGS / "opcodes.log").write_text(f"{ROOT}/tests/f.py:1")
    pieces.collect.write(pieces.LOGS, tmp_path / "results")
    (directory,) = tmp_path.glob("results/*")
    within = tmp_path.relative_to(tempfile.gettempdir())
    said = results_in(tmp_path)["pieces"]["some"]["failed"]["test_some.py::test"]
    assert said == f"E   no ./tests/a.cu\nTMP/{within}/b.cu, -ITMP/{within}/c ~/d"
    assert json.loads((directory / "opcodes.json").read_text()) == {"refused": {"a .": "in\n./tests/e.py:1"}}
    assert (directory / "opcodes.txt").read_text() == "./tests/f.py:1\n"


def test_of_failures_that_end_alike_three_are_told(pieces, tmp_path):
    for number in range(5):
        for name, error in (("alike", f"[{number}.5, {number:#x}]: it is wrong"), ("other", "x" * number + "_y")):
            text = f"E   ...\nE   {error}\n\ntest_some.py:{number}: AssertionError"
            pieces.collect.add_outcome(pieces.LOGS / "some.jsonl", f"test_some.py::{name}[{number}]", "failed", text)
    pieces.collect.write(pieces.LOGS, tmp_path / "results")
    found = results_in(tmp_path)["pieces"]["some"]
    assert pieces.collect.number_failed(found) == 10
    told = [name.partition("::")[2] for name, text in found["failed"].items() if text]
    assert sorted(told) == [*(f"alike[{number}]" for number in range(3)), *(f"other[{number}]" for number in range(5))]
