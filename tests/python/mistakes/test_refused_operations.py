"""For unsupported operations, the emulated device names the C++ function and line before the line of PTX."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bascule

pytestmark = pytest.mark.usefixtures("emulated")

TEXT = r"""
__device__ __noinline__ int beyond(int n) {
    asm volatile("{ .reg .b32 r; txq.channel_order.b32 r, [%0]; }" :: "l"(0ull));  // refused
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
    refusal = (
        "the emulated device cannot run kernel 'outer': txq.channel_order.b32 is not supported: the drivers of GPUs "
        "refuse it too. Pass the answer as an argument\n"
    )
    _, found, rest = message.partition(refusal)
    assert found, message
    function, place, ptx = rest.splitlines()[:3]
    assert function == "  in function 'beyond(int)'"
    assert place == f"  at {__file__}:{line}: {lines[line - 1].strip()}"
    assert ptx.startswith("  PTX line ")


def test_everything_that_a_kernel_lacks_is_named_once_with_its_line():
    module = bascule.compile(
        """
        __device__ __noinline__ void helper() {
            asm volatile("{ .reg .b32 r; suq.array_size.b32 r, [%0]; }" :: "l"(0ull));  // second
        }
        __global__ void many(int* p) {
            asm volatile("{ .reg .b32 r; txq.channel_order.b32 r, [%0]; }" :: "l"(0ull));  // first
            helper();
            asm volatile("{ .reg .b32 r; txq.channel_order.b32 r, [%0]; }" :: "l"(0ull));
        }
        """
    )
    with pytest.raises(bascule.Error) as caught:
        module.many.prepare()
    message = str(caught.value)
    assert "the emulated device cannot run kernel 'many': 2 of its instructions cannot run\n" in message
    lines = Path(__file__).read_text().splitlines()
    for words, mark in (("txq.channel_order.b32", "first"), ("suq.array_size.b32", "second")):
        line = next(number for number, text in enumerate(lines, 1) if text.endswith(f"// {mark}"))
        assert message.count(f"{words} is not supported") == 1
        assert f"  at {__file__}:{line}: {lines[line - 1].strip()}\n" in message
    assert ", and 1 more place" in message


@pytest.mark.parametrize(
    ("instruction", "by_ptxas", "here"),
    [
        (
            "vadd4.u32.u32.u32 %0, %1, %1, 0;",
            "Incorrect video selector for operand 3",
            "vadd4.u32.u32.u32: operand 3 must be a register without a selector",
        ),
        (
            "vadd4.u32.u32.u32 %0.b02, %1, %1, %1;",
            "Incorrect video selector for operand 0",
            "vadd4.u32.u32.u32: '.b02' is not a mask",
        ),
        (
            "cvt.sat.s32.s32 %0, %1;",
            "Illegal modifier '.sat' for instruction 'cvt'",
            "cvt.sat.s32.s32 is not supported: the destination holds every value of the source, so .sat is illegal",
        ),
    ],
)
def test_what_ptxas_refuses_the_emulated_device_refuses_too(instruction, by_ptxas, here):
    source = f'__global__ void k(int* p) {{ int r = *p; asm("{instruction}" : "+r"(r) : "r"(*p)); *p = r; }}'
    with pytest.raises(bascule.CompileError, match=re.escape(by_ptxas)):
        _ = bascule.compile(source, options={"arch": "sm_90"}).k.cubin
    with pytest.raises(bascule.Error, match=re.escape(f"cannot run kernel 'k': {here}\n") + r"  at .*:1: __global__"):
        bascule.compile(source).k.prepare()


def test_other_kernels_of_the_text_run():
    x = bascule.zeros(32, "i4")
    bascule.compile(TEXT).other[1, 32](x)
    assert (x.copy_to_host() == 3).all()
