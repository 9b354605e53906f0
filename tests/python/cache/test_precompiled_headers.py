"""Precompiled headers change how long a compile takes, but not its result, and they leave no files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bascule

pytestmark = pytest.mark.slow  # NVRTC writes files

# The beginning of the programs: `value` compiles and runs a kernel that returns its number, and `files` counts the
# precompiled headers in TMPDIR.
PROGRAM = """
import os, sys, glob
import numpy as np
import bascule

HERE = os.environ["TMPDIR"] + "/.."
HEADERS = "#include <many.h>\\n"
BODY = "__global__ void NAME(int* x) { x[0] = part0() + NUMBER; }"

def value(number, headers=HEADERS, **options):
    text = headers + BODY.replace("NAME", f"k{number}").replace("NUMBER", str(number))
    module = bascule.compile(text, options=bascule.CompileOptions(include_paths=[HERE], **options))
    x = bascule.to_device(np.zeros(1, "i4"))
    module[f"k{number}"][1, 1](x)
    return int(x.copy_to_host()[0])

def files():
    return len(glob.glob(os.environ["TMPDIR"] + "/bascule-process-*/*.pch"))
"""


@pytest.fixture(autouse=True)
def _needs_nvrtc_12_8() -> None:
    bascule.current_device()
    if tuple(map(int, bascule._bascule._nvrtc_info()["version"].split("."))) < (12, 8):
        pytest.skip("this NVRTC has no precompiled headers")


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """TMPDIR, next to as many headers as are needed for precompiling; many.h includes them."""
    (tmp_path / "tmp").mkdir()
    parts = range(120)
    for i in parts:
        (tmp_path / f"part{i}.h").write_text(f"inline __device__ int part{i}() {{ return 0; }}\n")
    (tmp_path / "many.h").write_text("".join(f'#include "part{i}.h"\n' for i in parts))
    return tmp_path / "tmp"


def start(temporary: Path, code: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + code],
        env=os.environ | {"TMPDIR": str(temporary), "BASCULE_CACHE_DIR": str(temporary.parent / "cache")} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(temporary: Path, code: str, **environment: str) -> None:
    assert start(temporary, code, **environment).wait(timeout=300) == 0


def test_the_second_compile_of_a_header_writes_it_and_the_end_of_the_process_removes_it(temporary: Path) -> None:
    run(
        temporary,
        "assert value(1) == 1 and files() == 0\n"
        "assert value(2) == 2 and files() == 1\n"
        "assert value(3) == 3 and files() == 1\n"
        "assert value(4, pch=False) == 4 and files() == 1\n",
    )
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_a_living_one_uses_is_not(temporary: Path) -> None:
    wait = "assert value(N, pch=True) == N and files() >= 1\nprint('ready', flush=True)\nsys.stdin.readline()\n"
    # If the programs were equal, only one would be compiled, and only one would write a header.
    killed, living = (start(temporary, wait.replace("N", number)) for number in "12")
    for process in (killed, living):
        assert process.stdout.readline() == "ready\n"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert len(list(temporary.iterdir())) == 2
    run(temporary, "assert value(3, pch=True) == 3 and files() == 2\n")
    assert len(list(temporary.iterdir())) == 1
    living.communicate("\n", timeout=60)
    assert living.returncode == 0
    assert list(temporary.iterdir()) == []


def test_an_edited_header_is_never_taken_from_a_file_made_before(temporary: Path) -> None:
    run(
        temporary,
        """
path = HERE + "/number.h"
headers = HEADERS + '#include "number.h"\\n'
def with_header(number, name):
    with open(path, "w") as file:
        file.write(f"#define OF_HEADER {number}\\n")
    os.utime(path, (1, 1))
    text = headers + f"__global__ void {name}(int* x) {{ x[0] = OF_HEADER; }}"
    options = bascule.CompileOptions(pch=True, include_paths=[HERE])
    x = bascule.to_device(np.zeros(1, "i4"))
    bascule.compile(text, options=options)[name][1, 1](x)
    return int(x.copy_to_host()[0])
assert with_header(1, "a") == 1 and files() == 1
assert with_header(1, "b") == 1 and files() == 1
assert with_header(2, "c") == 2 and files() == 2
assert with_header(1, "d") == 1 and files() == 2
for number in (3, 4):
    in_memory = {"number.h": f"#define OF_HEADER {number}\\n"}
    text = headers + f"__global__ void m{number}(int* x) {{ x[0] = OF_HEADER; }}"
    x = bascule.to_device(np.zeros(1, "i4"))
    options = bascule.CompileOptions(pch=True, include_paths=[HERE], headers=in_memory)
    bascule.compile(text, options=options)[f"m{number}"][1, 1](x)
    assert int(x.copy_to_host()[0]) == number
""",
    )


def test_a_file_that_cannot_be_written_or_read_costs_a_compile_and_no_more(temporary: Path) -> None:
    run(
        temporary,
        """
import resource
assert value(1, pch=True) == 1 and files() == 1
(file,) = glob.glob(os.environ["TMPDIR"] + "/bascule-process-*/*.pch")
size = os.path.getsize(file)
os.truncate(file, 1000)
before = bascule.cache.stats().nvrtc_calls
assert value(2) == 2
assert bascule.cache.stats().nvrtc_calls == before + 2
assert value(3) == 3
assert bascule.cache.stats().nvrtc_calls == before + 3  # it was given up
resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))
assert value(4, "#define OTHER\\n" + HEADERS, pch=True) == 4
assert value(5, "#define OTHER\\n" + HEADERS, pch=True) == 5
assert files() <= 1
""",
    )


# Hides the functions for precompiled headers, which NVRTC 12.8 added.
HIDING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

void* dlsym(void* handle, const char* name) {
    static void* (*real_dlsym)(void*, const char*);
    if (real_dlsym == NULL) real_dlsym = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (real_dlsym == NULL) real_dlsym = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return strstr(name, "PCH") != NULL ? NULL : real_dlsym(handle, name);
}
"""


def test_an_older_nvrtc_refuses_the_option_and_names_the_version(temporary: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library, source = temporary / "hiding.so", temporary / "hiding.c"
    source.write_text(HIDING)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    run(
        temporary,
        """
try:
    value(1, pch=True)
except ValueError as error:
    assert "`pch`" in str(error) and "12.8" in str(error)
else:
    raise SystemExit("it was not refused")
assert value(2) == 2 and value(3) == 3 and files() == 0
""",
        LD_PRELOAD=str(library),
    )
