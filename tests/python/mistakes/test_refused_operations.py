"""What the emulated device does not run is refused with the C++ function and line, before the line of PTX."""

from __future__ import annotations

from pathlib import Path

import pytest

import bascule

pytestmark = pytest.mark.usefixtures("emulated")

TEXT = r"""
__device__ __noinline__ int beyond(int n) {
    asm volatile("brkpt;");  // refused
    return n + 1;
}
__global__ void outer(int* p) {
    p[threadIdx.x] = beyond(p[0]);
}
__global__ void other(int* p) {
    p[threadIdx.x] = 3;
}
"""


def test_a_refusal_names_the_function_and_the_line_before_the_line_of_ptx():
    module = bascule.compile(TEXT)
    with pytest.raises(bascule.Error) as caught:
        module.outer.prepare()
    message = str(caught.value)
    lines = Path(__file__).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.endswith("// refused"))
    _, found, rest = message.partition("the emulated device cannot run kernel 'outer': brkpt is not supported\n")
    assert found, message
    function, place, ptx = rest.splitlines()[:3]
    assert function == "  in function 'beyond(int)'"
    assert place == f'  at {__file__}:{line}: asm volatile("brkpt;");  // refused'
    assert ptx.startswith("  PTX line ")


def test_other_kernels_of_the_text_run():
    x = bascule.zeros(32, "i4")
    bascule.compile(TEXT).other[1, 32](x)
    assert (x.copy_to_host() == 3).all()
