"""Kernel templates in included headers are kernels of the module, like those in its own text."""

import pickle

import numpy as np
import pytest

import bascule

HEADER = """#pragma once
template <class T> __global__ void put(T* p, T value) { p[threadIdx.x] = value; }
template <class T> __global__ void put(T* p, T* from) { p[threadIdx.x] = from[threadIdx.x]; }
namespace deep { template <class T, int N> __global__ void add(T* p) { p[threadIdx.x] += N; } }
template <class T> __device__ T table[4] = {T(1), T(2), T(3), T(4)};
"""
TEXT = """#include "k.cuh"
__global__ void own(float* p) { p[0] = table<float>[3]; }
"""


@pytest.fixture(params=["a text", "a file"])
def options(request, tmp_path):
    if request.param == "a text":
        return {"headers": {"k.cuh": HEADER}}
    (tmp_path / "k.cuh").write_text(HEADER)
    return {"include_paths": [tmp_path]}


@pytest.fixture
def x():
    return bascule.zeros(4, "f4")


def after(kernel, x, *arguments):
    kernel[1, 4](x, *arguments)
    return x.copy_to_host().tolist()


def test_they_are_found_by_name_instance_and_qualified_name(options, x):
    module = bascule.compile(TEXT, options=options)
    assert after(module["deep::add<float, 2>"], x) == [2] * 4
    assert after(module["add"].instantiate("float", 3), x) == [5] * 4
    assert after(module["deep::add"].instantiate(N=1), x) == [6] * 4
    assert module["own"].signature == "void own(float* p)"


def test_they_are_chosen_by_arguments(options, x):
    module = bascule.compile(TEXT, options=options)
    assert after(module.put, x, 3) == [3] * 4
    assert after(module.put, x, bascule.to_device(np.arange(4, dtype="f4"))) == [0, 1, 2, 3]
    y = bascule.zeros(4, "i8")
    assert after(module["put"], y, 5) == [5] * 4


def test_they_are_named_by_name_expressions_in_one_image_with_the_text(options, x):
    module = bascule.compile(TEXT, options=options, name_expressions=["deep::add<float, 7>"])
    before = bascule.cache.stats().nvrtc_calls
    assert after(module["deep::add<float, 7>"], x) == [7] * 4
    assert after(module["own"], x) == [4, 7, 7, 7]
    assert bascule.cache.stats().nvrtc_calls == before


def test_a_text_of_nothing_but_the_include_is_a_program(options, x):
    assert after(bascule.compile('#include "k.cuh"\n', options=options).put, x, 2) == [2] * 4


def test_variable_templates_are_read_and_written(options, x):
    own = bascule.compile(TEXT, options=options).own
    table = own.get_global("table<float>")
    np.testing.assert_array_equal(table.copy_to_host(), [1, 2, 3, 4])
    table.copy_from_host([5, 6, 7, 8])
    assert after(own, x)[0] == 8


def test_they_are_pickled(options, x):
    kernel = bascule.compile(TEXT, options=options)["deep::add<float, 4>"]
    assert after(pickle.loads(pickle.dumps(kernel)), x) == [4] * 4


def test_a_name_that_no_header_has_is_an_error(options):
    with pytest.raises(bascule.CompileError, match="has no kernel 'nothing'"):
        bascule.compile(TEXT, options=options)["nothing<float>"]
