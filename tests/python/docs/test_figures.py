"""The ratios in README.md and performance.md are those of the newest results of a GPU."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FIGURES = ROOT / "tests" / "bench" / "figures.py"


def test_the_figures_of_the_pages_are_those_of_the_results() -> None:
    if not list((ROOT / "tests" / "gpu" / "results").glob("*/bench-gpu.json")):
        pytest.skip("needs the results of a GPU, which a pack for one does not have")
    done = subprocess.run([sys.executable, FIGURES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run: python tests/bench/figures.py --write\n{done.stdout}{done.stderr}"
