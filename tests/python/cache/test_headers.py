"""A header that changes is always noticed, in memory and on disk; an unchanged one is a hit."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import run

import bascule

KERNEL = """
__global__ void fill(float* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = VALUE * i;
}
"""
TEXT = '#include "value.h"' + KERNEL


def define(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#define VALUE {value}\n")


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., tuple[float, str]]:
    """Runs a text in a new process; returns the VALUE of its kernel, and where its code came from."""

    def ask(*include_paths: Path, text: str = TEXT) -> tuple[float, str]:
        outcome = run(tmp_path / "cache", text, include_paths=[str(path) for path in include_paths])
        assert outcome.warnings == []
        return outcome.factor, outcome.origin

    return ask


def test_an_edit_is_seen_and_a_header_put_back_is_a_hit(ask: Callable, tmp_path: Path) -> None:
    define(tmp_path / "value.h", 1)
    assert ask(tmp_path) == (1, "compiled")
    assert ask(tmp_path) == (1, "disk")
    define(tmp_path / "value.h", 2)
    assert ask(tmp_path) == (2, "compiled")
    define(tmp_path / "value.h", 1)
    assert ask(tmp_path) == (1, "disk")
    define(tmp_path / "value.h", 2)
    assert ask(tmp_path) == (2, "disk")


def test_an_edit_is_seen_in_the_process_that_compiled(tmp_path: Path) -> None:
    options = bascule.CompileOptions(include_paths=[tmp_path])
    for value in (11, 12, 11):
        define(tmp_path / "value.h", value)
        kernel = bascule.compile(TEXT, options=options).fill
        out = bascule.device_array(32, "f4")
        kernel[1, 32](out, 32)
        assert out.copy_to_host()[1] == value
    assert kernel.origin == "memory"


def test_a_text_compiled_again_is_the_same_module_until_it_is_cleared() -> None:
    text = "__global__ void again(int* p) { *p = 17; }"
    assert bascule.compile(text).again.origin == "compiled"
    module = bascule.compile(text)
    assert module.again.origin == "memory"
    before = bascule.cache.stats()
    assert bascule.compile(text) is module
    bascule.cache.clear()
    assert bascule.compile(text) is not module
    assert bascule.cache.stats().from_disk == before.from_disk + 1


def test_failures_are_not_kept() -> None:
    for _ in range(2):
        before = bascule.cache.stats().nvrtc_calls
        with pytest.raises(bascule.CompileError):
            bascule.compile("__global__ void wrong() { oops; }")
        assert bascule.cache.stats().nvrtc_calls > before


def test_a_header_in_a_directory_of_the_configuration_is_watched(tmp_path: Path) -> None:
    (tmp_path / "cuda_fp16.h").write_text("")  # the directory is a user's, although it has a header of CUDA's name
    text = "#include <watched.h>" + KERNEL
    before = list(bascule.config.include_paths)
    bascule.config.include_paths = [str(tmp_path)]
    try:
        for value in (21, 22, 23, 24):
            define(tmp_path / "watched.h", value)
            kernel = bascule.compile(text).fill
            out = bascule.device_array(32, "f4")
            kernel[1, 32](out, 32)
            assert out.copy_to_host()[1] == value
    finally:
        bascule.config.include_paths = before


def test_a_probe_of_a_system_header_is_not_taken_for_a_text_that_reads_no_file(tmp_path: Path) -> None:
    text = "#if __has_include(<probed.h>)\n#define VALUE 32\n#else\n#define VALUE 31\n#endif" + KERNEL
    before = list(bascule.config.include_paths)
    bascule.config.include_paths = [str(tmp_path)]
    try:
        for value in (31, 31, 31, 32):
            if value == 32:
                define(tmp_path / "probed.h", 0)
            out = bascule.device_array(32, "f4")
            bascule.compile(text).fill[1, 32](out, 32)
            assert out.copy_to_host()[1] == value
    finally:
        bascule.config.include_paths = before


@pytest.mark.parametrize("include", ["#include <pipe.h>", '#include "pipe.h"', "#if __has_include(<pipe.h>)\n#endif"])
def test_a_pipe_as_a_header_is_an_error_and_no_hang(tmp_path: Path, include: str) -> None:
    os.mkfifo(tmp_path / "pipe.h")
    with pytest.raises(bascule.FileError, match="pipe.h is a pipe or a device, which may have no end"):
        bascule.compile(include + KERNEL, {"include_paths": [str(tmp_path)]})


def test_a_device_as_a_header_is_an_error() -> None:
    with pytest.raises(bascule.FileError, match="/dev/zero is a pipe or a device"):
        bascule.compile('#include "/dev/zero"' + KERNEL)
