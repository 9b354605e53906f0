"""Kernels made by a macro, an include or an explicit instantiation are kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bascule

MACRO = """
#define OP(NAME, T, OPERATOR) extern "C" __global__ void NAME(T* x, T y) { x[threadIdx.x] = x[threadIdx.x] OPERATOR y; }
OP(add_f32, float, +)
OP(mul_f64, double, *)
"""


def test_a_kernel_that_a_macro_makes_is_launched_and_its_arguments_are_checked() -> None:
    module = bascule.compile(MACRO)
    x = bascule.to_device(np.arange(4, dtype="f4"))
    module["add_f32"][1, 4](x, 2)
    np.testing.assert_array_equal(x.copy_to_host(), [2, 3, 4, 5])
    with pytest.raises(TypeError, match="float64"):
        module.add_f32[1, 4](bascule.to_device(np.zeros(4)), 2)


def test_kernels_lists_what_the_image_has_with_the_compilers_signatures() -> None:
    module = bascule.compile(MACRO + "__global__ void plain(int* x) {}\n")
    assert module.kernels == ["plain", "add_f32", "mul_f64"]
    assert module.add_f32.signature.startswith("void add_f32(float*")
    assert [spelling for _, spelling in module.mul_f64.parameters] == ["double*", "double"]
    assert "add_f32" in dir(module)
    assert "add_f32" in repr(module)


def test_the_names_are_those_of_cpp() -> None:
    module = bascule.compile("""
#define OP(NAME, T) namespace ns { __global__ void NAME(T* x) { x[0] = 1; } }
OP(set_f32, float)
template <class T> __global__ void scale(T* x) { x[0] *= 2; }
#define INSTANTIATE(T) template __global__ void scale<T>(T*);
INSTANTIATE(float)
""")
    x = bascule.to_device(np.zeros(1, "f4"))
    module["ns::set_f32"][1, 1](x)
    module.set_f32[1, 1](x)
    module.scale[1, 1](x)
    assert x.copy_to_host()[0] == 2
    assert module.kernels == ["scale", "ns::set_f32"]


def test_a_kernel_of_an_include_is_found(tmp_path: Path) -> None:
    (tmp_path / "kernels.cuh").write_text("__global__ void fill(int* x, int value) { x[threadIdx.x] = value; }\n")
    module = bascule.compile("#include <kernels.cuh>\n", options={"include_paths": [tmp_path]})
    x = bascule.to_device(np.zeros(3, "i4"))
    module.fill[1, 3](x, 7)
    assert x.copy_to_host().tolist() == [7, 7, 7]


def test_it_shares_the_image_and_its_variables_with_the_others() -> None:
    module = bascule.compile("""
__device__ int total;
#define ADD(NAME, N) __global__ void NAME() { total += N; }
ADD(add_one, 1)
ADD(add_ten, 10)
__global__ void add_hundred() { total += 100; }
""")
    module.add_one[1, 1]()
    module.add_ten[1, 1]()
    module.add_hundred[1, 1]()
    assert int(module.get_global("total").copy_to_host()) == 111


def test_did_you_mean_is_for_what_is_really_absent() -> None:
    module = bascule.compile(MACRO)
    with pytest.raises(bascule.CompileError, match=r"has no kernel 'add_f31'\. Did you mean 'add_f32'\?"):
        module["add_f31"]
    with pytest.raises(AttributeError, match="add_f32"):
        _ = module.add_f23


def test_a_text_without_kernels_is_an_error_as_ever() -> None:
    with pytest.raises(bascule.CompileError, match="has no __global__ function"):
        bascule.compile("#define OP(NAME) __global__ void NAME() {}\n__device__ int x;\n")


def test_a_text_that_is_a_placeholder_is_told_so() -> None:
    with pytest.raises(bascule.CompileError, match=r"has no __global__ function.* A placeholder is left in the text"):
        bascule.compile("${kernels}").scale  # noqa: B018


def test_the_launch_rule_of_a_decorator_finds_it() -> None:
    @bascule.kernel("""
#define ADD(NAME, T) __global__ void NAME(T* x, T y, int n) { if (threadIdx.x < n) x[threadIdx.x] += y; }
ADD(add_f32, float)
ADD(add_i32, int)
""")
    def add_f32(x, y, n):
        return n

    x = bascule.to_device(np.arange(4, dtype="f4"))
    add_f32(x, 1, 4)
    np.testing.assert_array_equal(x.copy_to_host(), [1, 2, 3, 4])


def test_a_text_whose_kernels_are_all_spelled_is_compiled_once() -> None:
    before = bascule.cache.stats().nvrtc_calls
    bascule.compile("__global__ void only_spelled(int* x) { x[0] = 31; }").only_spelled.prepare()
    assert bascule.cache.stats().nvrtc_calls == before + 1


def test_a_text_with_kernels_of_macros_asks_for_all_signatures_at_once() -> None:
    before = bascule.cache.stats().nvrtc_calls
    text = MACRO.replace("+)", "+ 17 +)")
    bascule.compile(text).add_f32.prepare()
    assert bascule.cache.stats().nvrtc_calls == before + 2
    bascule.compile(text + " ").mul_f64.prepare()
    assert bascule.cache.stats().nvrtc_calls == before + 4
