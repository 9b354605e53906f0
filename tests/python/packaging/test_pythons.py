"""The package is built, installed and tested with every Python from 3.11 to 3.14 that this machine has."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from installing import ROOT, copy_of_clone, run, without_toolkit

NEWEST = 14
TESTED = ["arrays", "launches", "lifetime", "dlpack", "jit/test_instantiation.py", "test_end_to_end.py"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("LONG_TESTS" not in os.environ, reason="takes five minutes a Python: .ci/run --long"),
]


def pythons():
    """For each minor version except the running one: the first on the PATH, or of pyenv, that has its headers."""
    found = {}
    places = [*os.get_exec_path(), *sorted(map(str, Path.home().glob(".pyenv/versions/*/bin")), reverse=True)]
    for minor in range(11, NEWEST + 1):
        for place in places:
            python = shutil.which(f"python3.{minor}", path=place)
            headers = "import os, sysconfig; print(os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
            if python and subprocess.run([python, "-c", headers], capture_output=True, text=True).stdout == "True\n":
                found.setdefault(f"3.{minor}", python)
    found.pop(f"3.{sys.version_info.minor}", None)
    return found


@pytest.mark.parametrize("version", [f"3.{minor}" for minor in range(11, NEWEST + 1)])
def test_the_package_is_built_and_passes_its_tests_with(version, tmp_path):
    if version == f"3.{sys.version_info.minor}":
        pytest.skip("all other tests run with this one")
    if version not in pythons():
        pytest.skip(f"there is no python{version} with headers on this machine")
    run(pythons()[version], "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    copy_of_clone(tmp_path / "source")
    requirements = (ROOT / "tests" / "requirements.txt").read_text() + (
        ROOT / "samples" / "requirements.txt"
    ).read_text()
    wanted = ["ml_dtypes", "numpy", "pytest", "hypothesis", "pytest-xdist"]
    pinned = [line for line in requirements.splitlines() if re.split("==", line)[0] in wanted]
    assert len(pinned) == len(wanted)
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "-q")
    run(*pip, *pinned, cwd=tmp_path)
    run(*pip, tmp_path / "source", cwd=tmp_path, env=without_toolkit(CMAKE_ARGS="-DCMAKE_CXX_FLAGS_RELEASE=-O1"))
    # The tests import the installed package, not that of a build tree.
    tests = [tmp_path / "source" / "tests" / "python" / each for each in TESTED]
    environment = without_toolkit(BASCULE_DEVICE="emulated", BASCULE_CACHE_DIR=str(tmp_path / "cache"))
    of_the_build = (
        "tests/python/dlpack/test_export.py::test_a_tensor_may_outlive_the_interpreter"  # needs the tests' C module
    )
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile"]
    command += ["--deselect", of_the_build, *tests]
    done = subprocess.run(
        command, cwd=tmp_path / "source", env=environment, capture_output=True, text=True, timeout=1500
    )
    assert done.returncode == 0, done.stdout[-6000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout[-2000:]
    assert int(passed[1]) > 500
