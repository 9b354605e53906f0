"""A process finds on disk what another one compiled; a cache that cannot be written or trusted fails no compile."""

import os
import shutil
import subprocess
from pathlib import Path

import compile_counter
import processes
import pytest
from child_process import run_python
from processes import run

DEFINES = {"VALUE": "3"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_a_second_process_has_everything_from_disk_and_calls_no_nvrtc(directory: Path) -> None:
    first = run(directory, defines=DEFINES)
    assert (first.compiled, first.from_disk, first.origin) == (1, 0, "compiled")
    second = run(directory, defines=DEFINES)
    assert (second.compiled, second.from_disk, second.nvrtc_calls, second.origin) == (0, 1, 0, "disk")
    assert second.values == first.values
    assert second.factor == 3
    assert second.directory == str(directory)


def test_the_count_of_nvrtc_calls_is_what_nvrtc_sees(directory: Path, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library, count = tmp_path / "counter.so", tmp_path / "count"
    source = tmp_path / "counter.c"
    source.write_text(compile_counter.SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    counting = {"LD_PRELOAD": str(library), "COMPILE_COUNTER": str(count)}
    texts = [processes.TEXT, processes.TEXT + " ", processes.TEXT]
    first = run(directory, *texts, defines=DEFINES, environment=counting)
    assert first.nvrtc_calls == int(count.read_text()) == 2
    second = run(directory, *texts, defines=DEFINES, environment=counting)
    assert second.nvrtc_calls == int(count.read_text()) == 0


def test_another_build_of_nvrtc_is_another_compiler(directory: Path, tmp_path: Path) -> None:
    """The same library with another modification time counts as another compiler."""
    import bascule

    info = bascule._bascule._nvrtc_info()
    library = Path(info["path"])
    version = info["version"]
    other = tmp_path / "nvrtc" / "lib"
    other.mkdir(parents=True)
    for file in (library, library.parent / f"libnvrtc-builtins.so.{version}"):
        if not file.exists():
            pytest.skip("needs an NVRTC with its builtins beside it")
        shutil.copy(file, other / file.name)
    program = processes.PROGRAM.replace(
        "request = ", f"bascule.config.nvrtc_library = {str(other / library.name)!r}\nrequest = "
    )
    original, processes.PROGRAM = processes.PROGRAM, program
    try:
        assert run(directory, defines=DEFINES).compiled == 1
        assert run(directory, defines=DEFINES).from_disk == 1
        builtins = other / f"libnvrtc-builtins.so.{version}"
        os.utime(builtins)
        assert run(directory, defines=DEFINES).compiled == 1
        os.utime(other / library.name)
        assert run(directory, defines=DEFINES).compiled == 1
    finally:
        processes.PROGRAM = original


def test_a_read_only_directory_still_gives_what_it_has(directory: Path) -> None:
    run(directory, defines=DEFINES)
    directory.chmod(0o500)
    try:
        if os.geteuid() == 0:  # root may write anywhere, so a file takes the directory's place
            nowhere = directory / "not_a_directory"
            nowhere.write_text("")
        else:
            nowhere = directory
        outcome = run(nowhere, processes.TEXT + " ", defines=DEFINES)
        assert (outcome.compiled, outcome.factor, len(outcome.warnings)) == (1, 3, 1)
        assert run(directory, defines=DEFINES).from_disk == 1
    finally:
        directory.chmod(0o700)


def test_a_warning_that_is_an_error_fails_no_compile(directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o777)
    program = "import bascule; bascule.compile('__global__ void k() {}').k.prepare(); print('right')"
    command = ["-W", "error::bascule.CacheWarning", "-W", "error::UserWarning", "-c", program]
    done = run_python(*command, BASCULE_CACHE_DIR=str(directory), BASCULE_DEVICE="emulated")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "right"
    assert "others can write to it" in done.stderr
