"""Debug mode: an index out of bounds is reported with its place. A fault ends its context: each has a process."""

from __future__ import annotations

from pathlib import Path

import pytest
from child_process import run_python

import bascule

# Tests find a line of the kernels by the comment at its end.
KERNELS = r"""
#include "edge.cuh"
using bascule::array_view;
using bascule::masked_view;
namespace ns {
template <typename T> __global__ void past(array_view<const T> x, array_view<T> y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] + 1;  // past
}
}
__global__ void negative(array_view<float, 3> image, int at) {
    image(1, 2,
          at) = 1;
    image(0, at, 0) = 2;  // negative
}
__global__ void called(masked_view<float, 2> image) {
    if (image.valid(threadIdx.x, 0)) image(0, 0) = 1;  // called
}
__device__ float corner(array_view<const float, 2> v) {
    return v(v.extent(0) - 1, v.extent(1));  // corner
}
__global__ void through_const(array_view<float, 2> source, float* out) { *out = corner(source); }
__global__ void base(masked_view<const float> source, float* out) {
    array_view<const float> plain = source;
    *out = plain(9u);  // base
}
__global__ void header(array_view<float> x) { edge(x); }
__global__ void inside(array_view<float, 2> x, array_view<const float> y) {
    x(blockIdx.x, threadIdx.x) += y(0) * y[1ull];
}
__global__ void scalar(array_view<float, 0> x) { x() = 4; }
__global__ void fine(float* p) { p[threadIdx.x] = 1; }
__global__ void far_away(float* p) { p[1 << 28] = 1; }
"""
HEADER = "__device__ void edge(bascule::array_view<float> v) {\n\n    v[v.size()] = 0;  // edge\n}\n"
PROGRAM = """
import sys
import numpy as np
import bascule
options = bascule.CompileOptions({options})
m = bascule.compile(file=sys.argv[1], options=options)
x = bascule.to_device(np.zeros(100, "f4"))
y = bascule.to_device(np.zeros((4, 6), "f4"))
z = bascule.to_device(np.zeros((2, 3, 5), "f4"))
masked = bascule.to_device(np.ma.array(np.zeros((4, 6), "f4"), mask=True))
try:
    {launch}
    bascule.synchronize()
except bascule.CudaError as error:
    print("CODE", error.code)
    print(error)
else:
    print("NOTHING")
"""


def output_of(tmp_path: Path, launch: str, options: str = "debug=True") -> str:
    kernels, program = tmp_path / "kernels.cu", tmp_path / "program.py"
    kernels.write_text(KERNELS)
    (tmp_path / "edge.cuh").write_text(HEADER)
    program.write_text(PROGRAM.format(launch=launch, options=options))
    run = run_python(program, kernels)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return run.stdout


def line_of(text: str, mark: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.endswith(f"  // {mark}"))


WRONG = [
    (
        "m.past[4, 32](x, x)",
        "past",
        [
            "kernel 'ns::past<float>', parameter 'x' (`bascule::array_view<const float>`)",
            "axis 0, which has 100 elements",
            "block (3,0,0)",
            "27 other threads left a view too",
        ],
    ),
    (
        "m.negative[1, 1](z, -1)",
        None,
        ["kernel 'negative', parameter 'image' (`bascule::array_view<float, 3>`)", "index -1 of axis 2, which has 5"],
    ),
    (
        "m.called[1, 5](masked)",
        "called",
        [
            "kernel 'called', parameter 'image' (`bascule::masked_view<float, 2>`)",
            "index 4 of axis 0, which has 4 elements",
            "block (0,0,0), thread (4,0,0)",
        ],
    ),
    (
        "m.through_const[1, 1](y, x)",
        "corner",
        ["kernel 'through_const', parameter 'source' (`bascule::array_view<float, 2>`)", "index 6 of axis 1"],
    ),
    (
        "m.base[1, 1](x[:9] if hasattr(x, 'T') else bascule.to_device(np.zeros(9, 'f4')), x)",
        "base",
        ["kernel 'base', parameter 'source' (`bascule::masked_view<const float>`)", "index 9 of axis 0, which has 9"],
    ),
    ("m.header[1, 1](x)", "edge", ["parameter 'x'", "index 100 of axis 0, which has 100 elements"]),
    (
        "m.inside[1, 1](bascule.to_device(np.zeros((1, 0), 'f4')), x)",
        None,
        ["index 0 of axis 1, which has 0 elements"],
    ),
]


@pytest.mark.parametrize(("launch", "mark", "parts"), WRONG, ids=[row[0][:20] for row in WRONG])
def test_an_index_out_of_bounds_is_named_with_its_kernel_parameter_and_line(tmp_path, launch, mark, parts):
    report = output_of(tmp_path, launch)
    for part in ["CODE 71", "index out of bounds: ", "The context is lost", *parts]:
        assert part in report
    if mark == "edge":
        assert f"line {line_of(HEADER, mark)} of " in report
        assert "edge.cuh" in report
    elif mark is not None:
        line = line_of(KERNELS, mark)
        assert f" at {tmp_path}/kernels.cu:{line}: {KERNELS.splitlines()[line - 1].strip()}\n" in report


def test_every_index_inside_passes_the_checks(tmp_path):
    launch = (
        "m.inside[4, 6](y, x); m.scalar[1, 1](bascule.to_device(np.array(1, 'f4'))); "
        "m.past[1, 100](x, x); assert (x.copy_to_host() == 1).all()"
    )
    assert output_of(tmp_path, launch) == "NOTHING\n"


def test_checks_are_asked_for_by_a_define_without_code_for_debuggers_and_can_be_left_out_of_it(tmp_path):
    launch = "m.negative[1, 1](z, 4)"
    report = output_of(tmp_path, launch, "defines={'BASCULE_CHECK_BOUNDS': ''}")
    assert "index 4 of axis 1, which has 3 elements" in report
    assert f"kernels.cu:{line_of(KERNELS, 'negative')}: image(0, at, 0) = 2;" in report
    # The access is inside the allocation, so that only the checks notice it.
    assert output_of(tmp_path, launch, "debug=True, defines={'BASCULE_CHECK_BOUNDS': 0}") == "NOTHING\n"
    assert output_of(tmp_path, launch, "") == "NOTHING\n"


def test_a_fault_that_is_no_index_of_a_view_is_reported_as_ever(tmp_path, emulated):
    report = output_of(tmp_path, "m.far_away[1, 1](x)")
    assert "CODE 700" in report
    assert "wrote 4 bytes of " in report
    assert "index out of bounds" not in report


def test_a_view_without_checks_is_passed_as_a_pointer_extents_and_strides():
    module = bascule.compile(
        "__global__ void k(bascule::array_view<float> x, bascule::array_view<const double, 3> y,"
        " bascule::masked_view<int, 2> z) { x[0] = y(0, 0, 0) + z.valid(0, 0); }"
    )
    assert [parameter in module.k.ptx for parameter in ("_param_0[24]", "_param_1[56]", "_param_2[72]")] == [True] * 3
    assert "trap" not in module.k.ptx


def test_a_view_costs_what_a_pointer_and_a_stride_cost():
    """The kernel compiles to the same opcodes as one that computes the addresses by hand."""
    module = bascule.compile(r"""
struct by_hand { const char* data; long long extent, stride; };
__global__ void view(float a, bascule::array_view<const float> x, bascule::array_view<float> y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void hand(float a, by_hand x, by_hand y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const auto at = [&](by_hand v) { return v.data + i * v.stride; };
    float& out = *reinterpret_cast<float*>(const_cast<char*>(at(y)));
    if (i < n) out = a * *reinterpret_cast<const float*>(at(x)) + out;
}""")
    assert instructions(module.view.ptx, "4view") == instructions(module.hand.ptx, "4hand")


def instructions(ptx: str, kernel: str) -> list[str]:
    """The opcodes of one kernel in alphabetical order, because the compiler may schedule them in any order."""
    body = ptx.split(f".entry _Z{kernel}", 1)[1].split("\n}", 1)[0].split("{", 1)[1]
    lines = [line.strip() for line in body.splitlines()]
    return sorted(line.split()[0] for line in lines if line and line[0] not in ".$/")
