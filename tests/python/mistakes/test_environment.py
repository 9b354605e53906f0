"""Invalid values of environment variables: an error says what they must be, and none is ignored."""

from __future__ import annotations

import os
import subprocess

import pytest
from child_process import run_python

USE = "import bascule; bascule.device_array(3, 'f4')"


def run(program: str = USE, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: None for name in os.environ if name.startswith("BASCULE_")}
    return run_python("-c", program, **{**inherited, "BASCULE_DEVICE": "emulated", **variables})


@pytest.mark.parametrize(
    ("variable", "value", "wanted"),
    [
        ("BASCULE_EMULATED_MEMORY", "lots", "it must be a size, such as 2GB, 512MiB or a number of bytes"),
        ("BASCULE_EMULATED_MEMORY", "2XB", "it must be a size"),
        ("BASCULE_EMULATED_MEMORY", "-1", "it must be a size"),
        ("BASCULE_EMULATED_MEMORY", "0", "it must be a size"),
        ("BASCULE_EMULATED_MEMORY", "1e6GB", "it must be a size"),
        ("BASCULE_EMULATED_DEVICES", "17", "it must be a number from 1 to 16"),
        ("BASCULE_EMULATED_DEVICES", "0", "it must be a number from 1 to 16"),
        ("BASCULE_EMULATED_DEVICES", "two", "it must be a number from 1 to 16"),
        ("BASCULE_EMULATED_WORKERS", "4x", "it must be a number of threads from 1 to 1024"),
        ("BASCULE_EMULATED_EXECUTE", "no", "it must be 1 (kernels run) or 0 (they are launched and do not run)"),
        (
            "BASCULE_EMULATED_ISA",
            "avx512",
            "it must be avx2 (do not use AVX-512), baseline (do not use AVX2 either), or unset",
        ),
        ("BASCULE_EMULATED_SCHEDULE", "slow", "it must be one of: eager, lazy, threads, random:<seed>"),
        ("BASCULE_EMULATED_TIMEOUT", "1min", "it must be a number of seconds above 0, or inf"),
        ("BASCULE_EMULATED_BUSY", "one", "it must be numbers of devices that refuse contexts, such as 1 or 0,2"),
        (
            "BASCULE_EMULATED_CONCURRENT_MANAGED",
            "no",
            "it must be 1 (the host may use managed memory while kernels run) or 0",
        ),
        ("BASCULE_EMULATED_PAGEABLE", "yes", "it must be 1 (kernels reach any memory of the host, as with HMM) or 0"),
        ("BASCULE_EMULATED_CHECKS", "race", "it must be a list of: memory,races,leaks,init,"),
        ("BASCULE_DEVICE", "gpu", "Set it to one of these, or unset it"),
        ("BASCULE_STREAM_OF", "torch", 'set it to "library"'),
        ("BASCULE_CUDA_ARRAY_INTERFACE_SYNC", "off", "set it to 1"),
        ("BASCULE_FULL_TRACEBACK", "yes", "set it to 1"),
        ("BASCULE_NVTX", "yes", "set it to 1"),
    ],
)
def test_a_value_that_is_not_understood_is_an_error(variable, value, wanted):
    ended = run(**{variable: value})
    assert ended.returncode == 1
    said = ended.stderr.splitlines()[-1] if "EMULATED" in variable else ended.stderr
    assert f"{variable} is '{value}'" in said
    assert wanted in said


@pytest.mark.parametrize(
    ("value", "bytes_"),
    [
        ("1000000", 10**6),
        ("64MB", 64 * 10**6),
        ("64 mib", 64 << 20),
        ("0.5GiB", 1 << 29),
        ("0.5gb", 5 * 10**8),
        ("", 2 << 30),
    ],
)
def test_sizes_have_units(value, bytes_):
    program = """
import bascule
try:
    bascule.device_array(1 << 40, "u1")
except bascule.OutOfMemoryError as error:
    print(error)
"""
    assert f"of which {bytes_} of {bytes_} are free" in run(program, BASCULE_EMULATED_MEMORY=value).stdout


def test_several_devices_and_empty_values():
    assert (
        run(USE + "; assert len([bascule.device(i) for i in range(3)]) == 3", BASCULE_EMULATED_DEVICES="3").stderr == ""
    )
    for name in ("DEVICES", "WORKERS", "EXECUTE", "ISA", "SCHEDULE", "TIMEOUT", "CHECKS"):
        assert run(**{f"BASCULE_EMULATED_{name}": ""}).stderr == ""


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("BASCULE_CACHEDIR", "BASCULE_CACHE_DIR"),
        ("BASCULE_EMULATED_DEVICE", "BASCULE_EMULATED_DEVICES"),
        ("BASCULE_EMULATOR_SCHEDULE", "BASCULE_EMULATED_SCHEDULE"),
        ("BASCULE_DEVISE", "BASCULE_DEVICE"),
    ],
)
def test_a_misspelt_name_is_warned_of_at_the_import(name, meant):
    ended = run("\nimport bascule", **{name: "1"})
    assert ended.returncode == 0
    assert ended.stderr.startswith("<string>:2: UserWarning: ")
    assert f"the environment variable {name} has no effect. Did you mean {meant}?" in ended.stderr


def test_names_of_other_programs_are_left_alone():
    assert run("import bascule", BASCULE_BENCH_DEVICE="1", BASCULE_MY_PROGRAM="x", BASCULEX="1").stderr == ""


def test_a_tilde_is_the_home_directory(tmp_path):
    program = "import bascule; print(bascule.cache.directory())"
    ended = run(program, HOME=str(tmp_path), BASCULE_CACHE_DIR="~/cache of kernels")
    assert ended.stdout.strip() == str(tmp_path / "cache of kernels")
    ended = run(program, HOME=str(tmp_path), BASCULE_CACHE_DIR="~")
    assert ended.stdout.strip() == str(tmp_path)
    ended = run(program, HOME=str(tmp_path), XDG_CACHE_HOME="~/.c", BASCULE_CACHE_DIR="~other/x")
    assert "~other/x" in ended.stdout


def test_cuda_home_may_begin_with_a_tilde(tmp_path):
    include = tmp_path / "cuda" / "include"
    include.mkdir(parents=True)
    (include / "cuda_fp16.h").write_text("")
    (include / "only_in_this_toolkit.h").write_text("#define ANSWER 42\n")
    program = """
import bascule, numpy as np
k = bascule.compile('#include <only_in_this_toolkit.h>\\n__global__ void k(int* p) { *p = ANSWER; }').k
x = bascule.to_device(np.zeros(1, "i4"))
k[1, 1](x)
print(x.copy_to_host()[0])
"""
    ended = run(program, HOME=str(tmp_path), CUDA_HOME="~/cuda", BASCULE_CACHE_DIR="")
    assert (ended.stdout.strip(), ended.stderr) == ("42", "")


def test_a_home_that_others_can_replace_has_no_cache_and_one_warning_says_so(tmp_path):
    shared = tmp_path / "shared"
    (shared / "home").mkdir(parents=True)
    environment = {"HOME": str(shared / "home"), "XDG_CACHE_HOME": ""}
    shared.chmod(0o777)
    program = "import bascule\nfor i in range(2): bascule.compile('__global__ void k() {}' + ' ' * i).k.prepare()"
    ended = run(program, **environment)
    reason = f"every user can replace what is in {shared} (chmod +t {shared} would prevent it)"
    assert ended.stderr.count("CacheWarning") == 1
    assert f"kept in {shared}/home/.cache/bascule: {reason}." in ended.stderr
    info = "import sys; from bascule.__main__ import main; sys.exit(main(['info']))"
    assert reason in run(info, **environment).stdout
    shared.chmod(0o1777)
    assert run(program, **environment).stderr == ""
    assert f"cache      {shared}/home/.cache/bascule: 2 programs" in run(info, **environment).stdout
