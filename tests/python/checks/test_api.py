"""What a user sees of the checks: how they are switched on, and what is raised for what they find."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from child_process import run_python

import bascule

pytestmark = pytest.mark.usefixtures("emulated")

KERNELS = """
__device__ __forceinline__ int quotient(int a, int b) {
    return a / b;  // inlined
}
__global__ void divide(const int* x, const int* y, int* z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    z[i] = x[i] / y[i];  // direct
}
template <class T> __global__ void modulo(T* x, T n) {
    x[threadIdx.x] = x[threadIdx.x] % n;  // modulo
}
__global__ void call(int* x, int n) {
    x[threadIdx.x] = quotient(x[threadIdx.x], n);  // calls
}
"""


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    return bascule.compile(KERNELS)


def line_of(mark: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if re.search(f"(//|#) {mark}$", text))
    return line


def divide(module: bascule.Module, zeros: int) -> None:
    """Divides 64 numbers, the first by zero."""
    x, z = bascule.to_device(np.arange(64, dtype="i4")), bascule.zeros(64, "i4")
    y = bascule.to_device(np.where(np.arange(64) < zeros, 0, 1).astype("i4"))
    module.divide[2, 32](x, y, z)  # the launch


def test_a_finding_has_the_place_the_thread_the_count_and_the_launch(module):
    with pytest.raises(bascule.CheckError) as caught, bascule.emulated.checks("division"):
        divide(module, zeros=5)
    assert isinstance(caught.value, bascule.Error | RuntimeError)
    assert not isinstance(caught.value, bascule.RaceError)
    assert caught.value.kind == "division"
    (found,) = caught.value.findings
    assert (found.kind, found.kernel, found.what) == ("division", "divide", "divided an integer by zero")
    assert (found.file, found.line) == (__file__, line_of("direct"))
    assert found.source_line == "z[i] = x[i] / y[i];  // direct"
    assert (found.block, found.thread, found.count) == ((0, 0, 0), (0, 0, 0), 5)
    assert (found.address, found.bytes, found.space, found.index, found.other) == (0, 0, "", "", None)
    assert "test the divisor" in found.advice
    assert found.launch == f"{__file__}:{line_of('the launch')}: module.divide[2, 32](x, y, z)  # the launch"
    assert str(caught.value) == found.report
    assert found.report.split("\n") == [
        f"division: kernel 'divide' divided an integer by zero at {__file__}:{found.line}: {found.source_line}",
        "  in block (0,0,0), thread (0,0,0)",
        "  4 other threads did the same",
        f"  {found.advice}",
        f"  launched at {found.launch}",
    ]


def test_an_instance_and_an_inlined_line_are_named(module):
    x = bascule.to_device(np.ones(4, "i8"))
    with pytest.raises(bascule.CheckError) as caught, bascule.emulated.checks("division"):
        module.modulo[1, 4](x, 0)
    assert caught.value.findings[0].kernel == "modulo<long long>" or "modulo<long" in caught.value.findings[0].kernel
    assert "took the remainder" in str(caught.value)
    with pytest.raises(bascule.CheckError) as caught, bascule.emulated.checks("division"):
        module.call[1, 4](bascule.zeros(4, "i4"), 0)
    assert caught.value.findings[0].line == line_of("inlined")
    assert f"called from {__file__}:{line_of('calls')}: x[threadIdx.x] = quotient(" in str(caught.value)


def test_a_correct_kernel_raises_nothing_and_a_check_that_is_off_finds_nothing(module):
    with bascule.emulated.checks("division"):
        divide(module, zeros=0)
        bascule.synchronize()
    with bascule.emulated.checks("races"):
        divide(module, zeros=1)
        bascule.synchronize()
    divide(module, zeros=1)
    bascule.synchronize()


@pytest.mark.parametrize(
    "wait",
    [
        bascule.synchronize,
        lambda: bascule.default_stream().synchronize(),
        lambda: bascule.zeros(1, "i4").copy_to_host(),
    ],
)
def test_the_next_call_that_waits_raises_and_only_once(module, wait):
    with bascule.emulated.checks("division"):
        divide(module, zeros=1)
        with pytest.raises(bascule.CheckError):
            wait()
        wait()


def test_all_includes_races_and_an_error_with_a_race_is_a_race_error(module):
    a, b = bascule.stream(), bascule.stream()
    x = bascule.as_cuda_array(bascule.to_device(np.ones(4, "i4")), sync=False)
    bascule.synchronize()

    def race() -> None:
        module.call[1, 4, a](x, 0)
        module.call[1, 4, b](x, 1)
        bascule.synchronize()

    with pytest.raises(bascule.RaceError, match="^stream race") as caught, bascule.emulated.checks("all"):
        race()
    assert isinstance(caught.value, bascule.CheckError)
    assert caught.value.kind == "races"
    assert [each.kind for each in caught.value.findings] == ["races", "division"]
    assert caught.value.races == [caught.value.findings[0].report]


def test_blocks_nest_and_the_previous_checks_come_back(module):
    checks = bascule._bascule._checks
    before = checks()
    with bascule.emulated.checks("division"):
        assert checks() == before | bascule._bascule._find_checks("division")
        with bascule.emulated.checks("init", "sync"):
            assert checks() == before | bascule._bascule._find_checks("division,init,sync")
        assert checks() == before | bascule._bascule._find_checks("division")
        with pytest.raises(KeyError), bascule.emulated.checks("init"):
            raise KeyError
        assert checks() == before | bascule._bascule._find_checks("division")
    assert checks() == before


def test_what_comes_from_before_the_block_is_raised_at_its_begin(module):
    with bascule.emulated.checks("division"):
        divide(module, zeros=1)
        with pytest.raises(bascule.CheckError), bascule.emulated.checks("init"):
            pytest.fail("the block ran")


def test_reports_are_notes_of_an_exception_that_leaves_the_block(module):
    def fail() -> None:
        divide(module, zeros=1)
        raise KeyError

    with pytest.raises(KeyError) as caught, bascule.emulated.checks("division"):
        fail()
    (note,) = caught.value.__notes__
    assert note.startswith("division: kernel 'divide' divided an integer by zero at")


def test_an_unknown_name_lists_the_names():
    with pytest.raises(ValueError, match="'speed' is not a check") as caught, bascule.emulated.checks("init", "speed"):
        pytest.fail("the block ran")
    for name in ("memory", *bascule._bascule._check_names().split(","), "all"):
        assert name in str(caught.value)
    with pytest.raises(ValueError, match=r"bascule.emulated.leaks\(\)"), bascule.emulated.checks("leaks"):
        pytest.fail("the block ran")
    with pytest.raises(TypeError, match=r'checks\("all"\)'), bascule.emulated.checks():
        pytest.fail("the block ran")


def test_an_unknown_name_in_the_environment_is_refused_at_the_first_use():
    done = run_python("-c", "import bascule; bascule.zeros(1, 'f4')", BASCULE_EMULATED_CHECKS="init,speed")
    assert done.returncode == 1
    assert "BASCULE_EMULATED_CHECKS is 'init,speed'; it must be a list of: memory,races,leaks,init" in done.stderr


def test_errors_are_pickled_and_told_as_json(module):
    with pytest.raises(bascule.CheckError) as caught, bascule.emulated.checks("division"):
        divide(module, zeros=2)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.findings == caught.value.findings
    assert copy.kind == "division"
    (record,) = json.loads(caught.value.to_json())
    assert record["kind"] == "division"
    assert record["thread"] == [0, 0, 0]
    assert record["count"] == 2
    assert set(record) == {field.name for field in dataclasses.fields(bascule.emulated.Finding)}
    other = bascule.emulated.ThreadAction("wrote 4 bytes", "k.cu", 3, "x[0] = 1;", (0, 0, 0), (1, 0, 0))
    assert dataclasses.replace(caught.value.findings[0], other=other).to_dict()["other"]["line"] == 3


PROGRAM = """
import bascule
k = bascule.compile("__global__ void k(int* x, int n) { x[0] = 7 / n; }").k
x = bascule.zeros(1, "i4")
k[1, 1](x, 0)
"""


def test_what_no_call_raised_is_printed_at_exit():
    done = run_python("-c", PROGRAM, BASCULE_EMULATED_CHECKS="division")
    assert done.returncode == 0, done.stderr
    first, second, *_ = done.stderr.splitlines()
    assert first == "bascule: an error in a kernel that no call raised, because the program ended before it waited."
    assert second == (
        "division: kernel 'k' divided an integer by zero at <string>:1: "
        "__global__ void k(int* x, int n) { x[0] = 7 / n; }"
    )


def test_an_uncaught_error_ends_the_program():
    done = run_python("-c", PROGRAM + "bascule.synchronize()", BASCULE_EMULATED_CHECKS="all")
    assert done.returncode == 1
    assert re.search(r"^bascule.CheckError: division: kernel 'k'", done.stderr, re.MULTILINE)
    assert done.stderr.count("divided an integer by zero") == 1


def test_a_gpu_has_no_checks():
    program = "import bascule\nwith bascule.emulated.checks('init'): print('the block ran')"
    command = ["-m", "bascule", "emulate", "--", sys.executable, "-c", program]
    done = run_python(*command, BASCULE_DEVICE="cuda")  # treats the emulated device as a GPU
    assert done.returncode == 1
    assert "LibraryError: kernels run on a GPU" in done.stderr
