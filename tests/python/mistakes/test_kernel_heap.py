"""Mistakes with memory that kernels allocate: reports name the lines of the kernels that allocated and freed it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from child_process import run_python

import bascule

pytestmark = pytest.mark.usefixtures("emulated")

TEXT = r"""
__global__ void make(int** out) { *out = new int[4]; }  // made
__global__ void twice(int** p) {
    delete[] *p;  // first
    delete[] *p;  // second
}
__global__ void after(int** p, int* out) {
    free(*p);  // freed
    *out = (*p)[1];  // used
}
__global__ void past(int** p) { (*p)[4] = 1; }  // past
__global__ void inside(int** p) { free(*p + 1); }  // inside
__global__ void foreign(int* p) { free(p); }  // foreign
__global__ void stacked() { int x; free(&x); }  // stacked
"""


def place(mark: str) -> str:
    lines = Path(__file__).read_text().splitlines()
    number = next(n for n, text in enumerate(lines, 1) if text.endswith(f"// {mark}"))
    return f"{__file__}:{number}: {lines[number - 1].strip()}"


@pytest.fixture
def module():
    yield bascule.compile(TEXT)
    bascule.emulated.reset()


@pytest.fixture
def pointer(module):
    x = bascule.zeros(1, "u8")
    address = bascule.raw_pointer(x.__cuda_array_interface__["data"][0])
    module.make[1, 1](address)
    bascule.synchronize()
    yield address
    del x


def message_of(launch) -> str:
    def launch_and_wait():
        launch()
        bascule.synchronize()

    with pytest.raises(bascule.CudaError) as caught:
        launch_and_wait()
    return str(caught.value)


def test_a_double_free_names_the_three_lines(module, pointer):
    message = message_of(lambda: module.twice[1, 1](pointer))
    assert "invalid free: kernel 'twice' freed memory that it cannot free at " + place("second") in message
    assert "inside a freed 16-byte allocation that kernel 'make' made at " + place("made") in message
    assert "and freed at " + place("first") in message


def test_a_use_after_a_free_in_the_same_kernel(module, pointer):
    out = bascule.zeros(1, "i4")
    message = message_of(lambda: module.after[1, 1](pointer, out))
    assert "illegal address: kernel 'after' read 4 bytes" in message
    assert place("used") in message
    assert "and freed at " + place("freed") in message


def test_an_access_past_the_end(module, pointer):
    message = message_of(lambda: module.past[1, 1](pointer))
    assert "directly past the 16-byte allocation that kernel 'make' made at " + place("made") in message


def test_a_free_within_an_allocation(module, pointer):
    message = message_of(lambda: module.inside[1, 1](pointer))
    assert "no memory of malloc or new begins there: it is at byte 4 of the 16-byte allocation" in message
    assert place("inside") in message


def test_a_free_of_an_array_and_of_a_variable(module):
    x = bascule.zeros(4, "i4")
    message = message_of(lambda: module.foreign[1, 32](x))
    assert "at byte 0 of the 16-byte allocation made at " in message
    assert "31 other threads of the block did the same" in message
    bascule.emulated.reset()
    assert "no memory of malloc or new begins there" in message_of(lambda: module.stacked[1, 1]())


def test_leaks_are_listed_by_the_line_that_made_them(module):
    x = bascule.zeros(1, "u8")
    address = bascule.raw_pointer(x.__cuda_array_interface__["data"][0])
    for _ in range(3):
        module.make[1, 1](address)
    (leak,) = bascule.emulated.leaks()
    assert leak == ("make", place("made"), 3, 48)
    assert str(leak) == f"48 bytes in 3 allocations, made by kernel 'make' at {place('made')}"
    bascule.emulated.reset()
    assert bascule.emulated.leaks() == []


@pytest.mark.parametrize(("checks", "reported"), [("leaks", True), ("memory,leaks", True), ("all", False), ("", False)])
def test_the_end_of_the_process_reports_leaks_when_asked(tmp_path, checks, reported):
    program = tmp_path / "program.py"
    program.write_text(
        "import bascule\n"
        "text = '__device__ int* kept[64]; __global__ void keep(int n) { kept[threadIdx.x] = new int[n]; }'\n"
        "kernel = bascule.compile(text).keep\n"
        "kernel[2, 32](5)\n"
        "print(len(bascule.emulated.leaks()))\n"
    )
    ended = run_python(program, BASCULE_DEVICE="emulated", BASCULE_EMULATED_CHECKS=checks)
    assert ended.stdout == "1\n", ended.stderr
    assert ("1280 bytes in 64 allocations, made by kernel 'keep' at" in ended.stderr) == reported


def test_memory_that_kernels_free_is_no_race_of_the_next_ones():
    text = "__global__ void churn(int* p) { volatile int* x = new int(threadIdx.x); p[blockIdx.x] = *x; delete x; }"
    churn = bascule.compile(text).churn
    x, y = bascule.zeros(300, "i4"), bascule.zeros(300, "i4")
    bascule.synchronize()
    with bascule.emulated.checks(races=True):
        for _ in range(3):  # more than the quarantine of freed memory holds
            for array, stream in ((x, bascule.stream()), (y, bascule.stream())):
                churn[300, 32, stream](array)
            bascule.synchronize()
    assert (x.copy_to_host() == y.copy_to_host()).all()
    assert np.isin(x.copy_to_host(), np.arange(32)).all()
