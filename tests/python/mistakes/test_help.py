"""The advice of messages is true and can be followed: headers, names of other libraries, misplaced values."""

from __future__ import annotations

import inspect
import site
import sys
from pathlib import Path

import numpy as np
import pytest
from child_process import run_python

import bascule

KERNEL = "__global__ void k(double* x) { x[0] = 1; }"


def message(text: str, options: object = None) -> str:
    with pytest.raises(bascule.CompileError) as refused:
        bascule.compile(text, options)
    return str(refused.value)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("nvfunctional", "NVRTC has no nvstd::function: take a functor as a template parameter"),
        ("malloc.h", "leave it out: kernels have malloc and free"),
        *[
            (name, "it is for host code: put it, and what uses it, between `#ifndef __CUDACC_RTC__`")
            for name in ("ctype.h", "pthread.h", "errno.h", "omp.h", "sys/mman.h", "Python.h")
        ],
    ],
)
def test_a_header_that_no_directory_would_bring_is_not_asked_for(header: str, says: str) -> None:
    text = message(f"#include <{header}>\n{KERNEL}")
    assert says in text
    assert "include_paths" not in text


def test_a_standard_header_that_only_libcudacxx_has_is_named_there() -> None:
    names = {
        path.name for place in site.getsitepackages() for path in Path(place).glob("nvidia/cu1*/include/**/cuda/std/*")
    }
    refusals = {}
    for name in sorted(name for name in names if not name.startswith("_") and "." not in name and name != "detail"):
        try:
            bascule.compile(f"#include <{name}>\n{KERNEL}")
        except bascule.CompileError as refused:
            refusals[name] = str(refused)
    assert len(refusals) > 10
    for name, text in refusals.items():
        assert f"#include <cuda/std/{name}> instead, and write cuda::std:: for std::" in text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"include_paths": ["/nonexistent/inc"]}, "include_paths has /nonexistent/inc, which does not exist."),
        ({"include_paths": ["/etc/hostname", "/tmp"]}, "include_paths has /etc/hostname, which is not a directory."),
        (['-I"/tmp"'], '"/tmp", which does not exist.'),
    ],
)
def test_a_directory_that_is_none_is_named_where_a_header_is_missing(options: object, says: str) -> None:
    assert says in message('#include "v.cuh"\n' + KERNEL, options)
    assert says not in message("__global__ void k() { undeclared(); }", options)


def test_the_programming_guides_atomic_add_is_told_to_be_there() -> None:
    text = message('extern "C" {\n__device__ double atomicAdd(double* a, double v) { return v; }\n' + KERNEL + "\n}")
    assert "help: CUDA has this function" in text


def test_an_algorithm_of_thrust_in_a_kernel_is_told_what_there_is() -> None:
    text = message("#include <thrust/sort.h>\n__global__ void k(float* x) { thrust::sort(thrust::seq, x, x + 4); }")
    assert "Thrust's algorithms are for host programs: in a kernel write a loop, or use CUB's" in text


# --- Names


@pytest.mark.parametrize(
    ("of", "name", "says"),
    [
        (lambda: bascule, "sync", "bascule.synchronize() waits"),
        (lambda: bascule, "cdiv", "kernel.forall(n)"),
        (lambda: bascule, "autotune", "kernel.best_block()"),
        (lambda: bascule, "memory_info", "bascule.memory_pool()"),
        (bascule.stream, "sync", "stream.synchronize() waits for it"),
        (bascule.stream, "ptr", "stream.handle"),
        (bascule.current_device, "properties", "device.attributes"),
        (bascule.current_device, "synchronize", "bascule.synchronize()"),
    ],
)
def test_a_name_that_is_not_there_names_what_is(of, name, says):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as refused:
        getattr(of(), name)
    assert says in str(refused.value)
    assert not hasattr(of(), name)
    assert not hasattr(of(), "nothing_of_the_kind")


def test_a_variable_that_a_text_with_templates_does_not_have_is_told_so():
    module = bascule.compile(
        "__device__ int here; template <class T> __global__ void t(T* x) { *x = here; }\n" + KERNEL
    )
    with pytest.raises(bascule.CompileError, match="has no __device__ or __constant__ variable 'nothere'"):
        module.get_global("nothere")


# --- Values


def test_a_stream_in_the_place_of_grid_or_block_is_told_its_place():
    kernel, stream = bascule.compile(KERNEL).k, bascule.stream()
    for key, words in (((stream, 1, 32), "first entry in the brackets is the grid"), ((1, stream), "second entry")):
        with pytest.raises(bascule.ArgumentTypeError, match=f"{words}.*got a stream, which is the third"):
            kernel[key]


def test_values_of_another_shape_are_told_how_to_go_into_a_part():
    x = bascule.zeros(100, "f4")
    with pytest.raises(ValueError, match=r"array\[:n\]\.copy_from_host\(values\)") as refused:
        x.copy_from_host(np.zeros(50, "f4"))
    assert "astype" not in str(refused.value)
    x[:50].copy_from_host(np.ones(50, "f4"))


@pytest.mark.parametrize("make", [bascule.zeros, bascule.ones, bascule.device_array, bascule.pinned_array])
def test_what_is_no_dtype_is_told_what_one_is(make):
    with pytest.raises(bascule.ArgumentTypeError, match=r"`dtype` is 4, .*one tuple, such as zeros\(\(3, 4\)\)"):
        make(3, 4)
    with pytest.raises(bascule.ArgumentTypeError, match="`dtype` is 'float46', which NumPy does not take as a dtype"):
        make(3, "float46")


def test_a_format_of_ml_dtypes_goes_by_name():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert bascule.zeros(3, "bfloat16").dtype == ml_dtypes.bfloat16
    assert bascule.device_array(3, "float8_e4m3fn").dtype == ml_dtypes.float8_e4m3fn


def test_an_allocator_that_returns_a_float_is_told():
    bascule.set_allocator((lambda nbytes, stream: 1.5, lambda *arguments: None))
    try:
        with pytest.raises(bascule.ArgumentTypeError, match="the allocator returned an object of type float"):
            bascule.zeros(3)
    finally:
        bascule.set_allocator(None)


def test_a_wrong_setting_is_one_line_in_the_command_line():
    ended = run_python("-m", "bascule", "info", BASCULE_LOG="loud", BASCULE_DEVICE="emulated")
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: BASCULE_LOG is 'loud'")
    assert len(ended.stderr.splitlines()) == 1
    ended = run_python("-c", "import bascule", BASCULE_LOG="loud")
    assert "ArgumentValueError: BASCULE_LOG is 'loud'" in ended.stderr


@pytest.mark.parametrize("schedule", ["foo", "random", "random:x", "lazy "])
def test_a_schedule_that_is_none_is_refused_before_the_program_runs(schedule):
    ended = run_python("-m", "bascule", "emulate", "--schedule", schedule, "--", sys.executable, "-c", "print(1)")
    assert ended.returncode != 0
    assert f"--schedule {schedule}: it is threads, eager, lazy or random:SEED" in ended.stderr
    assert ended.stdout == ""


# --- Signatures


def test_the_signatures_of_built_in_functions_can_be_inspected():
    assert str(inspect.signature(bascule.zeros)).startswith(
        "(shape: 'int | Sequence[int]', dtype: 'Any' = 'float64', *, order"
    )
    assert list(inspect.signature(bascule.LaunchConfig).parameters)[:3] == ["grid", "block", "shared_bytes"]
    assert list(inspect.signature(bascule.stream().wait_event).parameters) == ["event"]
    assert list(inspect.signature(bascule.DeviceArray.reshape).parameters) == ["self", "shape"]
    from bascule import _bascule

    for name, function in vars(_bascule).items():
        if isinstance(function, type(bascule.zeros)) and not name.startswith("_"):
            assert inspect.signature(function).parameters is not None
