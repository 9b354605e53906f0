"""The wheel, built and installed once for all tests of it."""

import sys
from pathlib import Path

import pytest
from installing import copy_of_clone, run, without_compiler, without_toolkit

PIP = ("-m", "pip", "--disable-pip-version-check")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The path of a wheel, beside it the directory that it was built in."""
    directory = tmp_path_factory.mktemp("a place for packaging")
    copy_of_clone(directory / "source")
    # A toolkit on this machine is out of CMake's sight, so that the headers must come from build-system.requires.
    toolkits = ["/usr/local/include", *(str(path / "include") for path in Path("/usr/local").glob("cuda*"))]
    build = f"--config-settings=build-dir={directory / 'build'}"
    run(
        *(sys.executable, *PIP, "wheel", "--no-deps", build, "-w", directory, directory / "source"),
        cwd=directory,
        # Where everything ends up is tested here, not how fast it is: unoptimised it compiles in half the time.
        env=without_toolkit(CMAKE_ARGS=f"-DCMAKE_IGNORE_PATH={';'.join(toolkits)} -DCMAKE_CXX_FLAGS_RELEASE=-O0"),
    )
    (built,) = directory.glob("bascule-*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel):
    """The Python of a virtual environment in which the wheel was installed, and the directory it was built in."""
    directory = wheel.parent
    run(sys.executable, "-m", "venv", directory / "venv")
    python = directory / "venv" / "bin" / "python"
    run(python, *PIP, "install", wheel, cwd=directory, env=without_compiler(directory))
    return python, directory / "build"
