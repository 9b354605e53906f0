"""A header that changes is never missed, in memory and on disk; one that is as it was is a hit."""

import os
import threading
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
PROBE = '#if __has_include("value.h")\n#define VALUE 7\n#else\n#define VALUE 8\n#endif' + KERNEL


def define(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#define VALUE {value}\n")


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., tuple[float, str]]:
    """Runs a text in a new process; returns the VALUE that its kernel had, and where its code came from."""

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


def test_a_touch_without_a_change_is_a_hit(ask: Callable, tmp_path: Path) -> None:
    define(tmp_path / "value.h", 1)
    ask(tmp_path)
    os.utime(tmp_path / "value.h", (1, 1))
    assert ask(tmp_path) == (1, "disk")


def test_an_edit_with_its_time_put_back_is_seen(ask: Callable, tmp_path: Path) -> None:
    header = tmp_path / "value.h"
    define(header, 1)
    ask(tmp_path)
    before = header.stat()
    define(header, 2)
    os.utime(header, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert header.stat().st_mtime_ns == before.st_mtime_ns
    assert header.stat().st_size == before.st_size
    assert ask(tmp_path) == (2, "compiled")


def test_a_header_that_begins_to_shadow_another_is_seen(ask: Callable, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    define(second / "value.h", 2)
    assert ask(first, second) == (2, "compiled")
    define(first / "value.h", 1)
    assert ask(first, second) == (1, "compiled")
    (first / "value.h").unlink()
    assert ask(first, second)[0] == 2


def test_a_deleted_header_is_an_error_again(tmp_path: Path) -> None:
    define(tmp_path / "value.h", 1)
    options = bascule.CompileOptions(include_paths=[tmp_path])
    bascule.compile(TEXT, options=options)
    (tmp_path / "value.h").unlink()
    with pytest.raises(bascule.CompileError, match=r"value\.h"):
        bascule.compile(TEXT, options=options)


def test_a_probed_header_that_comes_and_goes_is_seen(ask: Callable, tmp_path: Path) -> None:
    assert ask(tmp_path, text=PROBE) == (8, "compiled")
    define(tmp_path / "value.h", 1)
    assert ask(tmp_path, text=PROBE) == (7, "compiled")
    (tmp_path / "value.h").unlink()
    assert ask(tmp_path, text=PROBE) == (8, "disk")


def test_an_edit_is_seen_in_the_process_that_compiled(tmp_path: Path) -> None:
    options = bascule.CompileOptions(include_paths=[tmp_path])
    for value in (11, 12, 11):
        define(tmp_path / "value.h", value)
        kernel = bascule.compile(TEXT, options=options).fill
        out = bascule.device_array(32, "f4")
        kernel[1, 32](out, 32)
        assert out.copy_to_host()[1] == value
    assert kernel.origin == "memory"


def test_sixteen_threads_on_one_program_compile_it_once() -> None:
    text = "__global__ void sixteen(int* p) { *p = 16; }"
    before = bascule.cache.stats()
    start = threading.Barrier(16)
    kernels: list[bascule.Kernel] = []

    def ask() -> None:
        start.wait()
        kernels.append(bascule.compile(text).sixteen)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = bascule.cache.stats()
    assert len(kernels) == 16
    assert after.compiled - before.compiled == 1
    assert after.nvrtc_calls - before.nvrtc_calls == 1
    assert after.from_memory - before.from_memory == 15


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
    (tmp_path / "cuda_fp16.h").write_text("")  # a user's directory, whatever it looks like
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
