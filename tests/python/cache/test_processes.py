"""What one process compiled, the next one finds; whatever is wrong with the cache costs a compile at most."""

import os
import shutil
import subprocess
from pathlib import Path

import compile_counter
import processes
import pytest
from child_process import printed_by, run_python
from processes import entries, finish, run, start

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


def test_options_architecture_and_text_are_told_apart(directory: Path) -> None:
    run(directory, defines=DEFINES)
    assert run(directory, defines={"VALUE": "4"}).factor == 4
    assert run(directory, processes.TEXT + "\n", defines=DEFINES).compiled == 1
    assert run(directory, defines=DEFINES, arch="compute_75").compiled == 1
    assert run(directory, defines=DEFINES).from_disk == 1


def test_another_build_of_nvrtc_is_another_compiler(directory: Path, tmp_path: Path) -> None:
    """The same library with another time is not believed to be the same."""
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


def test_the_same_text_in_a_file_and_on_another_line_is_the_same_program(directory: Path, tmp_path: Path) -> None:
    program = r"""
import sys, bascule
text = "__global__ void k(int* p) { *p = __LINE__; }"
bascule.compile(text).k.prepare()

bascule.compile("__global__ void k(int* p) { *p = __LINE__; }").k.prepare()
bascule.compile(file=sys.argv[1]).k.prepare()
print(bascule.cache.stats().compiled, bascule.cache.stats().from_memory)
"""
    file = tmp_path / "kernels.cu"
    file.write_text("__global__ void k(int* p) { *p = __LINE__; }")
    assert printed_by("-c", program, file, BASCULE_CACHE_DIR=str(directory)).split() == ["1", "2"]


def test_two_processes_at_once_on_one_program_are_both_right(directory: Path) -> None:
    outcomes = [finish(process) for process in [start(directory, defines=DEFINES) for _ in range(2)]]
    assert [outcome.factor for outcome in outcomes] == [3, 3]
    assert run(directory, defines=DEFINES).from_disk == 1
    assert len(entries(directory)) == 1
    assert list(directory.glob("tmp-*")) == []


def test_a_damaged_entry_is_compiled_again_and_replaced(directory: Path) -> None:
    run(directory, defines=DEFINES)
    (entry,) = entries(directory)
    whole = entry.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]
    for damaged in (b"", whole[:40], whole[:-1], flipped):
        entry.write_bytes(damaged)
        again = run(directory, defines=DEFINES)
        assert (again.compiled, again.factor, again.warnings) == (1, 3, [])
        assert run(directory, defines=DEFINES).from_disk == 1


def test_a_directory_that_others_can_write_to_is_refused_with_one_warning(directory: Path) -> None:
    run(directory, defines=DEFINES)
    directory.chmod(0o777)
    refused = run(directory, processes.TEXT, processes.TEXT + " ", defines=DEFINES)
    assert (refused.compiled, refused.from_disk, refused.factor) == (2, 0, 3)
    assert len(refused.warnings) == 1
    assert str(directory) in refused.warnings[0]
    assert "others can write to it" in refused.warnings[0]
    directory.chmod(0o700)
    assert run(directory, defines=DEFINES).from_disk == 1


def test_a_link_is_refused_with_one_warning(directory: Path, tmp_path: Path) -> None:
    run(directory, defines=DEFINES)
    link = tmp_path / "link"
    link.symlink_to(directory)
    refused = run(link, defines=DEFINES)
    assert refused.compiled == 1
    assert "symbolic link" in refused.warnings[0]


def test_a_read_only_directory_still_gives_what_it_has(directory: Path) -> None:
    run(directory, defines=DEFINES)
    directory.chmod(0o500)
    try:
        if os.geteuid() == 0:  # root may write anywhere: a file in the directory's place stands for it
            nowhere = directory / "not_a_directory"
            nowhere.write_text("")
        else:
            nowhere = directory
        outcome = run(nowhere, processes.TEXT + " ", defines=DEFINES)
        assert (outcome.compiled, outcome.factor, len(outcome.warnings)) == (1, 3, 1)
        assert run(directory, defines=DEFINES).from_disk == 1
    finally:
        directory.chmod(0o700)


def test_without_a_home_nothing_is_kept_and_nothing_is_said() -> None:
    nowhere: dict[str, str | None] = {"BASCULE_CACHE_DIR": None, "XDG_CACHE_HOME": None, "HOME": None}
    outcome = run(None, defines=DEFINES, environment=nowhere)
    assert (outcome.compiled, outcome.directory, outcome.warnings) == (1, "", [])
    off = run(None, defines=DEFINES, environment={"BASCULE_CACHE_DIR": ""})
    assert (off.compiled, off.directory, off.warnings) == (1, "", [])


def test_a_warning_that_is_an_error_fails_no_compile(directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o777)
    program = "import bascule; bascule.compile('__global__ void k() {}').k.prepare(); print('right')"
    command = ["-W", "error::bascule.CacheWarning", "-W", "error::UserWarning", "-c", program]
    done = run_python(*command, BASCULE_CACHE_DIR=str(directory), BASCULE_DEVICE="emulated")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "right"
    assert "others can write to it" in done.stderr


def test_a_fork_in_the_middle_of_compiles_breaks_neither_process(directory: Path) -> None:
    program = r"""
import os, sys, threading
import bascule
texts = [f"__global__ void k(int* p) {{ *p = {i}; }}" for i in range(12)]
bascule.compile("__global__ void first() {}")
threads = [threading.Thread(target=bascule.compile, args=(text,)) for text in texts]
for thread in threads:
    thread.start()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        bascule.cache.stats()
        bascule.cache.clear()
        os._exit(0)
    children.append(child)
for thread in threads:
    thread.join(60)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
print(bascule.cache.stats().compiled)
"""
    assert printed_by("-W", "ignore", "-c", program, BASCULE_CACHE_DIR=str(directory)).strip() == "13"
    assert len(entries(directory)) == 13
