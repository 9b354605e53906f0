"""Reports about kernels that fail on the emulated device. A fault ends its context, so each has a process."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from child_process import run_python

# Tests find a line of the kernels by the comment at its end.
KERNELS = r"""
__device__ __noinline__ int nest(int n) {
    return n == 0 ? 0 : nest(n - 1) + nest(n - 2) + 1;  // nest
}
__global__ void past(float* p, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    p[i] = value;  // past
}
__global__ void read_past(const float* p, float* out) {
    out[threadIdx.x] = p[threadIdx.x + 1];  // read past
}
__global__ void misaligned(char* p) {
    *reinterpret_cast<float*>(p + 1 + 4 * threadIdx.x) = 1;  // misaligned
}
__global__ void null_pointer(float** p) {
    *p[0] = 1;  // null
}
__global__ void wild(unsigned long long address) {
    *reinterpret_cast<float*>(address) = 1;  // wild
}
__global__ void endless_recursion(int* p) { p[threadIdx.x] = nest(p[threadIdx.x] - 1); }
__global__ void endless_loop(volatile int* p) {
    while (p[0] == 0) {  // loop
    }
}
__global__ void divergent(int* p) {
    if (threadIdx.x < 32) {
        asm volatile("bar.sync 1;");  // one
    } else {
        asm volatile("bar.sync 2;");  // two
    }
}
__global__ void no_function(int* p, unsigned long long address) {
    p[0] = reinterpret_cast<int (*)(int)>(address)(3);  // call
}
__global__ void trap(int* p) {
    if (threadIdx.x == 5) __trap();  // trap
}
__global__ void shared_past(int* p) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;  // shared past
    __syncthreads();
    p[threadIdx.x] = s[(threadIdx.x + 1) % 32];
}
"""

PROGRAM = """
import sys
import numpy as np
import bascule
m = bascule.compile(file=sys.argv[1])
x = bascule.to_device(np.zeros(1000, "f4"))  # here
i = bascule.to_device(np.zeros(64, "i4"))
u = bascule.to_device(np.zeros(1, "u8"))
try:
    {launch}
    bascule.synchronize()
except bascule.CudaError as error:
    print(error)
try:
    bascule.to_device(np.zeros(4))
except bascule.CudaError as error:
    print("LATER", error)
"""


def report_of(tmp_path: Path, launch: str) -> str:
    kernels, program = tmp_path / "kernels.cu", tmp_path / "program.py"
    kernels.write_text(KERNELS)
    program.write_text(PROGRAM.format(launch=launch))
    run = run_python(program, kernels, BASCULE_DEVICE="emulated", BASCULE_EMULATED_TIMEOUT="0.2")
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return run.stdout


def line_of(text: str, mark: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.endswith(f"  {mark}"))


@pytest.mark.parametrize(
    ("launch", "mark", "parts"),
    [
        (
            "m.past[8, 128](x, 3)",
            "past",
            [
                "CUDA_ERROR_ILLEGAL_ADDRESS (700), noticed while ",
                "kernel 'past' wrote 4 bytes of global memory",
                "block (7,0,0), thread (104,0,0)",
                "directly past the 4000-byte allocation made at PROGRAM:HERE",
                "23 other threads",
            ],
        ),
        (
            "m.read_past[1, 64](bascule.to_device(np.zeros(64, 'f4')), x)",
            "read past",
            [
                "read 4 bytes of global memory",
                "directly past the 256-byte allocation made at PROGRAM:",
                "thread (63,0,0)",
            ],
        ),
        ("m.misaligned[1, 64](bascule.to_device(np.zeros(1000, 'i1')))", "misaligned", ["(716)", "multiple of 4"]),
        (
            "m.null_pointer[1, 1](bascule.raw_pointer(u.__cuda_array_interface__['data'][0]))",
            "null",
            ["(700)", "wrote 4 bytes of", "address 0x0: "],
        ),
        (
            "m.wild[1, 64](0x123456789000)",
            "wild",
            ["(700)", "address 0x123456789000: no allocation is near", "63 other threads"],
        ),
        ("m.endless_recursion[1, 64](i)", "nest", ["(700)", "stack overflow", "CU_LIMIT_STACK_SIZE"]),
        ("m.endless_loop[1, 64](i)", "loop", ["(702)", "infinite loop", "BASCULE_EMULATED_TIMEOUT"]),
        ("m.divergent[1, 64](i)", "one", ["(719)", "divergent barrier", "thread (32,0,0) waits at KERNELS:TWO: asm"]),
        ("m.no_function[1, 1](i, 0)", "call", ["(718)", "which is not a function"]),
        ("m.trap[1, 64](i)", "trap", ["(715)", "thread (5,0,0)"]),
        ("m.shared_past[1, 64](i)", "shared past", ["wrote 4 bytes of shared memory", "31 other threads"]),
    ],
)
def test_a_fault_names_the_line_of_the_kernel_and_says_what_happened(
    tmp_path: Path, launch: str, mark: str, parts: list[str]
) -> None:
    report = report_of(tmp_path, launch)
    line = line_of(KERNELS, "// " + mark)
    text = KERNELS.splitlines()[line - 1].strip()
    assert f"at {tmp_path}/kernels.cu:{line}: {text}" in report
    places = {
        "PROGRAM": str(tmp_path / "program.py"),
        "KERNELS": str(tmp_path / "kernels.cu"),
        "HERE": str(line_of(PROGRAM, "# here")),
        "TWO": str(line_of(KERNELS, "// two")),
    }
    for part in parts:
        wanted = re.sub("PROGRAM|KERNELS|HERE|TWO", lambda found: places[found[0]], part)
        assert wanted in report
    assert "LATER" in report, "a fault stays in its context"


def test_freed_memory_is_said_to_be_freed(tmp_path: Path) -> None:
    """Memory whose address was exported is freed only after the device has been waited for."""
    address = "p = bascule.raw_pointer(x.__cuda_array_interface__['data'][0])"
    report = report_of(tmp_path, f"{address}; del x; bascule.synchronize(); m.past[1, 32](p, 3)")
    assert "inside a freed 4000-byte allocation made at" in report
    assert "31 other threads of the block did the same" in report


def test_division_by_zero_goes_on_as_on_a_device(tmp_path: Path) -> None:
    """The CUDA C++ programming guide leaves the value open, and no trap is raised."""
    source = "__global__ void k(int* p) { p[threadIdx.x] = (void(7 / p[threadIdx.x]), 5); p[1] = 7 % p[2]; }"
    launch = (
        f"k = bascule.compile({source!r}).k; k[1, 3](i); bascule.synchronize(); print('RESULT', i.copy_to_host()[0])"
    )
    assert "RESULT 5" in report_of(tmp_path, launch)
