"""Helpers for tests of the installation: a copy of the repository, and environments without compilers or toolkits."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def without_toolkit(**more):
    """The environment, without nvcc and without variables that point at a toolkit or at this build; and `more`."""
    hidden = {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "LD_LIBRARY_PATH", "PYTHONPATH", "CPATH", "CPLUS_INCLUDE_PATH"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    directories = environment["PATH"].split(os.pathsep)
    environment["PATH"] = os.pathsep.join(d for d in directories if not (Path(d) / "nvcc").exists())
    return environment | more


def without_compiler(directory, **more):
    """An environment whose PATH is `directory` alone: it has no compiler, no CMake and no toolkit."""
    return without_toolkit(PATH=str(directory), **more)


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def copy_of_clone(destination):
    """Copies the tracked files, in their present state."""
    for path in filter(None, run("git", "ls-files", "-z", cwd=ROOT).split("\0")):
        if (ROOT / path).is_file():
            (destination / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, destination / path)
