"""Instances requested together are compiled in one run, share an image, and are found by later launches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import bascule

TEXT = """
namespace ns { template <class T, int N> __global__ void fill(T* x) { x[threadIdx.x] = T(N); } }
template <class T> __global__ void scale(T* x, T a) { x[threadIdx.x] *= a; }
__device__ int count = 0;
__global__ void plain(int* x) { x[0] = ++count; }
template <class T> __global__ void counted(T* x) { x[0] = T(++count); }
"""
numbers = iter(range(1000))


def new_text() -> str:
    return f"{TEXT}// {next(numbers)}\n"


@contextmanager
def compiles(expected: int) -> Iterator[None]:
    before = bascule.cache.stats().nvrtc_calls
    yield
    assert bascule.cache.stats().nvrtc_calls - before == expected


def zeros(dtype: str, size: int = 4) -> bascule.DeviceArray:
    return bascule.to_device(np.zeros(size, dtype))


def first(kernel: bascule.Kernel, dtype: str) -> float:
    x = zeros(dtype, 1)
    kernel[1, 1](x)
    return float(x.copy_to_host()[0])


def test_a_set_of_instances_is_one_compile_and_launches_find_them():
    module = bascule.compile(new_text())
    with compiles(1):
        made = module.instantiate(
            {"scale": [("float",), ("double",), np.dtype("i4")], "ns::fill": [("float", 7), {"N": 8, "T": "int"}]}
        )
    assert {name: len(kernels) for name, kernels in made.items()} == {"scale": 3, "ns::fill": 2}
    assert [kernel.name for kernel in made["ns::fill"]] == ["ns::fill", "ns::fill"]
    with compiles(0):
        for dtype in ("f4", "f8", "i4"):
            x = bascule.to_device(np.full(4, 3, dtype))
            module.scale[1, 4](x, 2)
            assert x.copy_to_host().tolist() == [6, 6, 6, 6]
        for kernel, dtype, value in zip(made["ns::fill"], ("f4", "i4"), (7, 8), strict=True):
            assert first(kernel, dtype) == value
        assert first(module["ns::fill"].instantiate("float", 7), "f4") == 7
    with compiles(1):
        assert first(module["ns::fill"].instantiate("float", 9), "f4") == 9


def test_asking_again_or_in_another_order_compiles_nothing():
    text = new_text()
    bascule.compile(text).instantiate({"scale": ["float", "double"]})
    again = bascule.compile(text)
    with compiles(0):
        again.instantiate({"scale": ["double", "float", "double"]})
        again.instantiate({"scale": ["double"]})
        again.instantiate({})


def test_a_set_and_an_instance_that_was_made_before_have_the_same_variables():
    module = bascule.compile(new_text())
    alone = module.counted.instantiate("float")
    assert first(alone, "f4") == 1
    together = module.instantiate({"counted": ["float", "int", "double"]})["counted"]
    assert first(together[0], "f4") == 2  # the one that was made before
    assert first(together[1], "i4") == 3
    assert first(together[2], "f8") == 4
    assert int(together[2].get_global("count").copy_to_host()) == 4
    assert first(module.plain, "i4") == 5


def test_name_expressions_are_compiled_with_the_functions_and_share_their_variables():
    with compiles(1):
        module = bascule.compile(
            new_text(), name_expressions=["counted<float>", "ns::fill< int , 5 >", "plain", "::scale<double>"]
        )
    with compiles(0):
        assert first(module.plain, "i4") == 1
        assert first(module.counted, "f4") == 2
        assert first(module["ns::fill"].instantiate("int", 5), "i4") == 5
        x = bascule.to_device(np.ones(4))
        module.scale[1, 4](x, 3)
        assert x.copy_to_host().tolist() == [3, 3, 3, 3]
    with compiles(1):
        assert first(module.counted, "i4") == 3


def test_a_text_of_templates_alone_is_compiled_at_once_when_instances_are_named():
    text = "template <class T> __global__ void one(T* x) { x[0] = T(1); }"
    with compiles(1):
        module = bascule.compile(text, name_expressions=["one<float>"])
    with compiles(0):
        assert first(module.one, "f4") == 1


def test_the_next_process_finds_the_set_on_disk():
    text = new_text()
    names = ["scale<float>", "scale<double>"]
    bascule.compile(text, name_expressions=names)
    bascule.cache.clear()
    with compiles(0):
        module = bascule.compile(text, name_expressions=names[::-1])
    assert module.scale.instantiate("float").origin == "disk"


REFUSED = [
    ({"scale": "float"}, TypeError, ["dict", "list", "'float'"]),
    ({3: ["float"]}, TypeError, ["dict", "3"]),
    ({"scael": ["float"]}, bascule.CompileError, ["scael", "Did you mean 'scale'"]),
    ({"plain": ["float"]}, ValueError, ["plain", "not a template"]),
    ({"ns::fill": [("float",)]}, ValueError, ["ns::fill", "all of its template arguments"]),
    ({"scale": [("float", "int")]}, TypeError, ["scale"]),
    ({"scale": ["nothing"]}, bascule.CompileError, ["scale", "nothing"]),
]


@pytest.mark.parametrize(("wanted", "kind", "parts"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_cannot_be_instantiated_is_refused_and_the_rest_still_works(wanted, kind, parts):
    module = bascule.compile(TEXT)
    with pytest.raises(kind) as error:
        module.instantiate(wanted)
    for part in parts:
        assert part in str(error.value)
    assert first(module.counted, "i4") == 1


@pytest.mark.parametrize(
    ("names", "kind", "parts"),
    [
        ("scale<float>", TypeError, ["name_expressions", "list"]),
        ([3], TypeError, ["name_expressions", "3"]),
        (3, TypeError, ["name_expressions", "got 3"]),
        (b"scale<float>", TypeError, ["name_expressions", "list"]),
        (["scale<float"], ValueError, ["scale<float", "`>`"]),
        (["scale"], ValueError, ["scale", "all of its template arguments"]),
        (["plain<float>"], ValueError, ["plain", "not a template"]),
        (["scale<nothing>"], bascule.CompileError, ["scale<nothing>"]),
    ],
    ids=str,
)
def test_name_expressions_that_name_nothing_are_refused(names, kind, parts):
    with pytest.raises(kind) as error:
        bascule.compile(TEXT, name_expressions=names)
    for part in parts:
        assert part in str(error.value)


def test_name_expressions_may_be_none_or_any_iterable():
    constant = "__constant__ float c[2]; template <class T> __global__ void t(T* x) { *x = c[0]; }"
    assert bascule.compile(constant, name_expressions=None).kernels == bascule.compile(constant).kernels
    for names in (("t<float>", "c"), iter(["t<float>", "c"]), {"t<float>": 0, "c": 1}, map(str, ["t<float>", "c"])):
        assert bascule.compile(constant, name_expressions=names).get_global("c").shape == (2,)
