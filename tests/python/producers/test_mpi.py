"""The real mpi4py: two processes exchange pinned and managed arrays."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from child_process import run_python

TESTS = Path(__file__).resolve().parents[1]
# Open MPI refuses to run as root or on fewer cores than ranks unless these are set; MPICH ignores them.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


def mpiexec() -> str:
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("mpiexec is not installed, neither beside Python nor on PATH")
    alone = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI"
    tried = run_python("-c", alone)
    if tried.returncode != 0:
        pytest.skip(f"mpi4py finds no MPI library: {tried.stderr.splitlines()[-1]}")
    return found


@pytest.mark.parametrize("kind", ["pinned", "managed"])
def test_two_ranks_exchange_arrays_and_compute_with_them(kind):
    run = subprocess.run(
        [mpiexec(), "-n", "2", sys.executable, "-m", "producers.mpi_ranks", kind],
        env=os.environ | ENVIRONMENT | {"PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads(run.stdout.splitlines()[-1])
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
    assert {(rank["ranks"], rank["kind"]) for rank in report["ranks"]} == {(2, kind)}
