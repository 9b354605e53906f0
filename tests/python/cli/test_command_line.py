"""Tests what the commands share: help, versions, exit status, signals, closed pipes, completion; and `bascule info`."""

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from child_process import printed_by, run_python

import bascule

from .files import BLOCK_SUM, ROOT, SAXPY

COMMANDS = ["info", "run", "compile", "precompile", "emulate", "cache"]
CACHE_COMMANDS = ["list", "verify", "clear", "trim", "export", "import"]


def test_help_names_the_commands_the_examples_and_the_exit_status(bascule_command):
    done = bascule_command("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert re.search(rf"^    {command}\b", done.stdout, re.MULTILINE)
    for words in [[command] for command in COMMANDS] + [["cache", command] for command in CACHE_COMMANDS]:
        done = bascule_command(*words, "--help")
        assert done.returncode == 0, done.stderr
        assert f"usage: bascule {' '.join(words)}" in done.stdout
        assert f"\nexamples:\n  bascule {' '.join(words)}" in done.stdout or "head -c 32" in done.stdout
        assert "exit status: 0 success, 1 the command failed, 2 wrong usage, 130 interrupted" in done.stdout


def test_the_version_is_the_packages(bascule_command):
    assert bascule_command("--version").stdout == f"bascule {bascule.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "usage: bascule [-h]"),
        (["launch"], "invalid choice: 'launch'"),
        (["cache"], "usage: bascule cache"),
        (["cache", "shrink"], "invalid choice: 'shrink'"),
        (["run"], "usage: bascule run FILE.cu"),
        (["info", "more"], "bascule info does not take the argument 'more'; bascule info --help says"),
        (["info", "--jsn"], "there is no option --jsn; bascule info --help lists"),
        (["cache", "list", "all"], "bascule cache list does not take the argument 'all'"),
        (["cache", "list", "--sort", "age"], "invalid choice: 'age'"),
        (["cache", "export", "archive"], "required: --key-file"),
        (["cache", "export", "no/archive", "--key-file", "key"], "there is no directory no"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_meant(bascule_command, words, said):
    done = bascule_command(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_files_that_cannot_be_read_are_named_without_numbers_of_errors(bascule_command, tmp_path):
    (tmp_path / "key").write_bytes(b"k" * 16)
    for words, said in (
        (["cache", "export", "archive", "--key-file", "missing"], "error: missing: No such file or directory\n"),
        (["cache", "import", ".", "--key-file", "key"], "error: .: Is a directory\n"),
    ):
        done = bascule_command(*words)
        assert (done.returncode, done.stderr) == (1, said)


def test_help_and_the_version_import_neither_numpy_nor_a_driver(tmp_path):
    program = (
        "import sys\nfrom bascule.__main__ import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "from bascule import _bascule\n"
        "slow = {'numpy', 'cuda', 'rich', 'argcomplete', 'json', 'subprocess'}\n"
        "print(sorted(slow & set(sys.modules)), _bascule._driver_is_loaded())\n"
    )
    for words in (["--help"], ["--version"], ["run", "--help"], ["compile", "--help"], ["cache", "list", "--help"]):
        printed = printed_by("-c", program, *words)
        assert printed.splitlines()[-1] == "[] False"


def test_pip_and_the_set_up_make_the_command(tmp_path):
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"bascule": "bascule.__main__:main"}
    # In a separate directory, because the real one is in use.
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "setup.sh").write_text((ROOT / "tests" / "setup.sh").read_text())
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    packages = tmp_path / "packages"
    packages.mkdir()
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\ncase "$2" in *purelib*) echo {packages};; *) exec "{sys.executable}" "$@";; esac\n')
    python.chmod(0o755)
    set_up = f'. "{tmp_path}/tests/setup.sh"; import_from_build_tree'
    subprocess.run(["bash", "-c", set_up], check=True, timeout=60)
    command = tmp_path / ".venv" / "bin" / "bascule"
    assert command.stat().st_mode & stat.S_IXUSR
    assert "PYTHON_ARGCOMPLETE_OK" in command.read_text()
    (tmp_path / "argparse.py").write_text("raise SystemExit('the present directory is searched')")
    done = subprocess.run([command, "--version"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == (f"bascule {bascule.__version__}\n", "")


def test_info_as_json_has_keys_that_stay(bascule_command):
    done = bascule_command("info", "--json")
    report = json.loads(done.stdout)
    assert set(report) == {
        *("bascule", "python", "platform", "chosen_device", "device", "driver", "nvrtc", "headers", "disassembler"),
        *("cache", "libraries", "missing"),
    }
    assert (done.returncode, report["missing"]) == (0, [])
    assert set(report["device"]) == {"repr", "name", "emulated", "arch", "multiprocessors"}
    assert set(report["driver"]) == {"version", "path", "fallback_reason", "launches_wait"}
    assert set(report["nvrtc"]) == {"version", "path", "accepted", "conflict"}
    assert report["cache"]["directory"] == os.environ["BASCULE_CACHE_DIR"]
    assert "libraries" in report


def test_info_says_how_to_get_what_is_missing(bascule_command, tmp_path):
    done = bascule_command("info", BASCULE_DEVICE="cuda")
    if done.returncode == 0:
        pytest.skip("there is a GPU")
    assert done.returncode == 1
    assert "device     none (BASCULE_DEVICE=cuda)" in done.stdout
    assert re.search("^missing    driver: .*BASCULE_DEVICE", done.stdout, re.MULTILINE)
    report = json.loads(bascule_command("info", "--json", BASCULE_DEVICE="cuda").stdout)
    assert (report["device"], report["driver"]) == (None, None)
    assert len(report["missing"]) == 1


def test_info_counts_the_programs_on_disk(bascule_command, tmp_path):
    directory = str(tmp_path / "programs")
    bascule_command("compile", SAXPY, "--arch", "sm_90", "--ptx", BASCULE_CACHE_DIR=directory)
    told = bascule_command("info", BASCULE_CACHE_DIR=directory).stdout
    for part in (
        f"cache      {directory}: 1 program, ",
        "device",
        "driver",
        "nvrtc",
        "cuda_fp16.h",
        "missing    nothing",
    ):
        assert part in told
    assert "cache      none on disk" in bascule_command("info", BASCULE_CACHE_DIR="").stdout


def test_the_list_of_the_cache_is_sorted_as_asked(bascule_command, tmp_path):
    directory = {"BASCULE_CACHE_DIR": str(tmp_path / "programs")}
    for arch in ("sm_90", "compute_80"):
        bascule_command("compile", SAXPY, "--arch", arch, "--ptx", **directory)
    bascule_command("compile", BLOCK_SUM, "--instance", "block_sum<float>", "--arch", "sm_90", "--ptx", **directory)
    listed = {
        order: json.loads(bascule_command("cache", "list", "--json", "--sort", order, **directory).stdout)["entries"]
        for order in ("used", "size", "kernel", "arch")
    }
    assert all(len(entries) == 3 for entries in listed.values())
    for order, key in (("size", "bytes"), ("kernel", "kernels"), ("arch", "arch")):
        keys = [entry[key] for entry in listed[order]]
        assert keys == sorted(keys, reverse=order == "size")
    assert "block_sum<float>" in bascule_command("cache", "list", **directory).stdout
    cleared = json.loads(bascule_command("cache", "clear", "--json", **directory).stdout)
    assert cleared["removed"] == 3


SAXPY_RUN = ["run", SAXPY, "--work", "1000", "2", "arange:1000", "zeros:1000"]
PRINTING = [
    ["--help"],
    ["--version"],
    ["run", "--help"],
    ["compile", SAXPY, "--ptx"],
    [*SAXPY_RUN, "1000"],
    ["info"],
    ["precompile", "bascule"],
    ["cache", "list"],
    ["cache", "list", "--json"],
    ["cache", "verify"],
]


def run_with_streams(words, *, buffered=True, **streams):
    """Runs `bascule WORDS...` with these streams, buffered as from a shell, or as with PYTHONUNBUFFERED=1."""
    return subprocess.run(
        [sys.executable, "-m", "bascule", *map(str, words)],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        env={**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"},
        text=True,
        timeout=120,
    )


@pytest.fixture
def pipe_without_reader():
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


@pytest.mark.parametrize("words", PRINTING, ids=lambda words: " ".join(map(str, words[:2])))
def test_a_reader_that_ends_early_ends_the_command_quietly(words, pipe_without_reader):
    done = run_with_streams(words, stdout=pipe_without_reader)
    assert (done.returncode, done.stderr) == (141, "")
    done = run_with_streams(words, buffered=False, stdout=pipe_without_reader)
    assert done.stderr == ""
    if words[-1] not in ("--help", "--version"):  # argparse ignores the error
        assert done.returncode == 141


def test_an_error_is_reported_where_the_reader_of_stdout_has_ended(pipe_without_reader):
    done = run_with_streams(SAXPY_RUN, stdout=pipe_without_reader)
    assert done.returncode == 1
    assert done.stderr.startswith("error: kernel 'saxpy' takes 4 arguments, got 3")


@pytest.mark.parametrize("words", [["launch"], ["compile", "missing.cu"], SAXPY_RUN], ids=lambda words: words[0])
def test_a_reader_of_errors_that_ends_early_ends_the_command_quietly(words, pipe_without_reader):
    done = run_with_streams(words, stderr=pipe_without_reader)
    assert (done.returncode, done.stdout) == (141, "")


@pytest.mark.parametrize("words", [["--version"], ["info"], [*SAXPY_RUN, "1000"]], ids=lambda words: words[0])
def test_a_full_disk_is_reported_once(words):
    with open("/dev/full", "w") as full:
        done = run_with_streams(words, stdout=full)
    assert (done.returncode, done.stderr) == (1, "error: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("words", [["info"], [*SAXPY_RUN, "1000"]], ids=lambda words: words[0])
@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_command_may_start_without_stdout_or_stderr(words, closed):
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "bascule", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert (done.stdout == "") == (closed == ">&-")


def test_an_emulated_program_whose_reader_ends_early_ends_by_the_signal(pipe_without_reader):
    done = run_with_streams(["emulate", "--", "yes"], stdout=pipe_without_reader)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


def test_ctrl_c_ends_an_endless_kernel_quietly(tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void k(volatile int* p) { while (*p == 0) p[1] += 1; }\n")
    with subprocess.Popen(
        [sys.executable, "-m", "bascule", "run", "k.cu", "--grid", "1", "--block", "1", "zeros:2:i4"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "BASCULE_DEVICE": "emulated", "BASCULE_EMULATED_TIMEOUT": "inf"},
        # A shell ignores SIGINT for background jobs, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while process.stdout.readline() != "device     Bascule emulated device\n":
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, errors) == (130, "")


@pytest.mark.parametrize(
    "line",
    [
        line
        for file in [*sorted((ROOT / "samples" / "kernels").iterdir()), ROOT / "README.md"]
        for line in re.findall(r"^(?://     )?(bascule (?:run|compile) .*)$", file.read_text(), re.MULTILINE)
    ],
)
def test_the_commands_in_the_samples_and_in_the_readme_work(bascule_command, line):
    kernels = str(ROOT / "samples" / "kernels")
    words = [word.replace("samples/kernels", kernels) for word in shlex.split(line)]
    done = bascule_command(*words[1:])
    assert done.returncode == 0, done.stderr
    assert "elements changed" in done.stdout or words[1] == "compile"


def completions(line: str, directory: Path) -> list[str]:
    """The completions that a shell with argcomplete gets for the line."""
    answer = directory / "answer"
    environment = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    run_python("-m", "bascule", cwd=directory, **environment)
    return answer.read_text().splitlines() if answer.exists() else []


def test_shells_complete_commands_options_files_and_kernels(tmp_path):
    pytest.importorskip("argcomplete")
    (tmp_path / "kernels.cu").write_text(
        "__global__ void scale(float* p) {}\n/* __global__ void commented() {} */\n"
        "template <class T> __global__ void scatter(T* p) {}\nnamespace ns { __global__ void fill() { }  syntax error\n"
    )
    assert set(completions("bascule co", tmp_path)) == {"compile"}
    assert "--cooperative" in completions("bascule run kernels.cu --coo", tmp_path)
    assert "kernels.cu" in completions("bascule run ker", tmp_path)
    assert set(completions("bascule run kernels.cu -k sca", tmp_path)) == {"scale", "scatter"}
    assert set(completions("bascule compile kernels.cu --instance sc", tmp_path)) == {"scale", "scatter"}
    assert completions("bascule run missing.cu -k ", tmp_path) == []


def test_no_planted_link_is_followed(tmp_path):
    """New files in a directory of the user's choice never follow existing links."""
    from bascule._new_file import replacing

    victim, path = tmp_path / "victim", tmp_path / "k.sm_80.ptx"
    victim.write_text("precious")
    path.symlink_to(victim)
    with replacing(path) as file:
        file.write(b"code")
    assert (victim.read_text(), path.read_text(), path.is_symlink()) == ("precious", "code", False)
    with pytest.raises(KeyError), replacing(path):
        raise KeyError
    assert sorted(each.name for each in tmp_path.iterdir()) == ["k.sm_80.ptx", "victim"]
