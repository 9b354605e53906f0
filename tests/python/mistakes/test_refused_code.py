"""The emulated device also refuses code that a GPU's driver would not load, with an error in C++ terms."""

from __future__ import annotations

import os

import numpy as np
import pytest

import bascule

emulated = pytest.mark.skipif(os.environ["BASCULE_DEVICE"] != "emulated", reason="a driver has its own words")


def launch(text: str, **options: object) -> np.ndarray:
    module = bascule.compile(text, options=bascule.CompileOptions(**options))
    x = bascule.to_device(np.zeros(32, "f4"))
    module["k"][1, 32](x)
    return x.copy_to_host()


def kernel(body: str, parameter: str = "float* x") -> str:
    return f'extern "C" __global__ void k({parameter}) {{\n    {body}\n}}\n'


def message_of(text: str, **options: object) -> str:
    with pytest.raises(bascule.CompileError) as caught:
        launch(text, **options)
    assert "report this" not in str(caught.value)
    return str(caught.value)


@emulated
def test_a_function_without_a_body_is_named_as_in_cpp_with_the_line_that_calls_it():
    message = message_of("__device__ float helper(float);\n" + kernel("x[threadIdx.x] = helper(1.0f);"))
    assert message.startswith("not defined: 'helper(float)'")
    assert "must be defined in its own text" in message
    assert "test_refused_code.py:" in message or "string at" in message
    assert ":3: x[threadIdx.x] = helper(1.0f);" in message
    assert message.count("not defined") == 1


@emulated
def test_all_that_is_missing_is_named_variables_too():
    text = "extern __device__ float scale;\n__device__ float f(int);\n__device__ float g(float*);\n"
    message = message_of(text + kernel("x[threadIdx.x] = scale + f(1) + g(x);"), extra=["-rdc=true"])
    for name in ("'scale'", "'f(int)'", "'g(float*)'"):
        assert name in message


@pytest.mark.parametrize("parameter", ["float& x", "const float& x"])
def test_references_are_no_kernel_parameters(parameter):
    with pytest.raises(bascule.CompileError) as caught:
        launch(kernel("", parameter))
    message = str(caught.value)
    assert "parameter 'x' is a reference." in message
    assert "CUDA forbids references as kernel parameters" in message


def test_references_of_an_instance_of_a_template_are_found():
    module = bascule.compile("template <class T> __global__ void k(T& x) {}")
    with pytest.raises(bascule.CompileError, match="is a reference"):
        module.k.instantiate(T="float")[1, 1](1.0)


@emulated
@pytest.mark.parametrize("arch", ["sm_86", "sm_90", "compute_90", "sm_90a", "compute_120"])
def test_code_for_a_newer_architecture_does_not_run(arch):
    with pytest.raises(ValueError, match=rf"code for {arch} does not run on device 0 .*which is sm_80\. Omit arch"):
        launch(kernel("x[threadIdx.x] = 1;"), arch=arch)


@emulated
@pytest.mark.parametrize("arch", ["sm_75", "compute_75", "sm_80", "compute_80"])
def test_code_for_the_device_or_an_older_one_runs(arch):
    assert (launch(kernel("x[threadIdx.x] = 1;"), arch=arch) == 1).all()


@emulated
@pytest.mark.parametrize(
    ("text", "expected", "first"),
    [
        # 17 MiB: more than the emulated device's window of shared memory.
        (
            kernel("__shared__ float s[17 << 18]; s[threadIdx.x] = *x; __syncthreads(); *x = s[31 - threadIdx.x];"),
            "17825792 bytes of static shared memory",
            "kernel 'k' needs ",
        ),
        (
            "__constant__ float c[20000];\n" + kernel("*x = c[threadIdx.x];"),
            "'c' the constant variables of this module need 80000 bytes",
            "with 'c' the constant",
        ),
        (kernel("volatile float l[200000]; l[int(*x)] = 2; *x = l[threadIdx.x];"), "800000 bytes of local memory", ""),
    ],
    ids=["shared", "constant", "local"],
)
def test_sizes_that_a_device_does_not_have_are_refused_when_the_code_is_loaded(text, expected, first):
    message = message_of(text)
    assert expected in message
    assert message.startswith(first)


@emulated
def test_three_floats_of_a_vector_are_read_from_twelve_bytes():
    # New compilers read such a value by one load of four floats with a mask of the bytes that count.
    text = "struct alignas(16) Three { float x, y, z; };\n" + kernel(
        "const Three t = *(const Three*)__builtin_assume_aligned(v, 16); x[threadIdx.x] = t.x + t.y + t.z;",
        "float* x, const float* v",
    )
    module = bascule.compile(text)
    x, v = bascule.to_device(np.zeros(32, "f4")), bascule.to_device(np.array([1, 2, 4], "f4"))
    module["k"][1, 32](x, v)
    assert (x.copy_to_host() == 7).all()
