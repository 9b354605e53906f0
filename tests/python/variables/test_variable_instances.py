"""Variables among the name expressions: instances of variable templates, and variables that no kernel uses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import bascule

TEXT = """
template <class T> __constant__ T table[4];
namespace ns { template <class T, int N> __device__ T scratch[N]; }
__device__ int untouched = 7;
template <class T> __global__ void look(T* out) { out[threadIdx.x] = table<T>[threadIdx.x]; }
__global__ void count(int* out) { out[0] = ns::scratch<int, 3>[1]++; }
"""
numbers = iter(range(1000))


def compiled(*names: str, text: str = TEXT) -> bascule.Module:
    return bascule.compile(f"{text}// {next(numbers)}\n", name_expressions=names)


def seen(module: bascule.Module, dtype: str) -> np.ndarray:
    out = bascule.device_array(4, dtype)
    module.look[1, 4](out)
    return out.copy_to_host()


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u8"])
def test_an_instance_is_written_by_the_host_and_read_by_the_kernels_that_were_named_with_it(rng, dtype):
    spelling = {"f4": "float", "f8": "double", "i2": "short", "u8": "unsigned long long"}[dtype]
    module = compiled(f"look<{spelling}>", f"table<{spelling}>")
    table = module.get_global(f"table<{spelling}>")
    assert (table.shape, table.dtype) == ((4,), np.dtype(dtype))
    values = rng.integers(0, 1000, 4).astype(dtype)
    table.copy_from_host(values)
    calls = bascule.cache.stats().nvrtc_calls
    np.testing.assert_array_equal(seen(module, dtype), values)
    np.testing.assert_array_equal(table.copy_to_host(), values)
    assert bascule.cache.stats().nvrtc_calls == calls  # nothing more is compiled: this kernel was named


def test_what_no_kernel_uses_is_there_all_the_same(rng):
    module = compiled("table<double>", "scratch<int, 5>", "untouched")
    table, scratch = module.get_global("table<double>"), module.get_global("ns::scratch<int,5>")
    assert (table.shape, table.dtype) == ((4,), np.float64)
    assert (scratch.shape, scratch.dtype) == ((5,), np.int32)
    assert module.get_global("untouched").copy_to_host() == 7
    values = rng.random(4)
    table.copy_from_host(values)
    scratch.fill(3)
    np.testing.assert_array_equal(table.copy_to_host(), values)
    np.testing.assert_array_equal(scratch.copy_to_host(), np.full(5, 3))
    out = bascule.zeros(1, "i4")
    module.count[1, 1](out)
    assert out.copy_to_host() == 0  # another instance


@pytest.mark.parametrize("name", ["table<float>", "&table<float>", "::table< float >", "& ::table<float>"])
def test_the_name_may_be_written_as_nvrtc_takes_it(name):
    module = compiled(name.replace("& ", "&"))
    assert module.get_global("table<float>").shape == (4,)
    assert module.get_global("::table<float>").shape == (4,)


def test_a_text_of_templates_alone_has_the_variables_that_are_named():
    module = compiled("table<int>", text="template <class T> __constant__ T table[4];\n" + TEXT.splitlines()[4] + "\n")
    table = module.get_global("table<int>")
    table.copy_from_host(np.arange(4, dtype="i4"))
    np.testing.assert_array_equal(table.copy_to_host(), np.arange(4))


def test_instances_that_were_not_named_use_the_same_variables(rng):
    module = compiled("look<float>", "table<float>", "table<int>")
    module.get_global("table<int>").fill(1)
    module.look.instantiate("int").get_global("table<int>").fill(2)
    np.testing.assert_array_equal(seen(module, "i4"), np.full(4, 2))
    np.testing.assert_array_equal(module.get_global("table<int>").copy_to_host(), np.full(4, 2))
    values = rng.random(4)
    module.get_global("table<double>").copy_from_host(values)
    np.testing.assert_array_equal(seen(module, "f8"), values)


def test_a_variable_that_no_kernel_uses_is_there_when_it_is_asked_for():
    module = bascule.compile("template <class T> __device__ T v = 4; __global__ void k(int* x) { *x = 1; }")
    assert module.get_global("v<float>").copy_to_host() == 4
    assert module.k.get_global("v<short>").dtype == np.int16


HEADER = "template <class T> __constant__ T of_header[2];\n"


def test_a_variable_of_a_header_is_named_by_its_address():
    text = '#include "table.h"\n__global__ void k(int* x) { *x = 1; }\n'
    options = bascule.CompileOptions(headers={"table.h": HEADER})
    module = bascule.compile(text, options=options, name_expressions=["&of_header<float>"])
    assert module.get_global("of_header<float>").shape == (2,)


def test_the_names_go_with_a_module_that_is_pickled():
    module = compiled("look<float>", "table<float>")
    again = pickle.loads(pickle.dumps(module))
    again.get_global("table<float>").fill(5)
    np.testing.assert_array_equal(seen(again, "f4"), np.full(4, 5))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("table<nothing>", ["no variable 'table<nothing>'", "nothing"]),
        ("table", ["table"]),
        ("&nothing", ["no variable 'nothing'"]),
        ("&look<float>", ["look<float>"]),
    ],
)
def test_what_is_no_variable_is_refused(name, parts):
    with pytest.raises(bascule.CompileError) as error:
        compiled(name).get_global(name.removeprefix("&"))
    for part in parts:
        assert part in str(error.value)
