"""Tuples for structs that hold pointers, members of empty classes and half2; parameters that are arrays of arrays."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

COLUMNS = """
struct Columns { const float* a; int n; float* b; };
struct Table { Columns columns[2]; double* const total; void* any; };
__global__ void add(Columns c) { if (threadIdx.x < c.n) c.b[threadIdx.x] += c.a[threadIdx.x]; }
__global__ void sum(Table t) {
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < t.columns[i].n; ++j) *t.total += t.columns[i].a[j];
    if (t.any == nullptr) *t.total = -*t.total;
}
"""


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    return bascule.compile(COLUMNS)


def address(array: bascule.DeviceArray) -> int:
    return array.__cuda_array_interface__["data"][0]


class Foreign:
    """Another library's array."""

    def __init__(self, array: bascule.DeviceArray, **changes: object) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}


@pytest.mark.parametrize("make", [lambda x: x, lambda x: bascule.raw_pointer(address(x)), Foreign])
def test_a_tuple_holds_arrays_and_addresses_for_pointers(module, make):
    a, b = bascule.full(4, 5, "f4"), bascule.full(4, 1, "f4")
    module.add[1, 4]((make(a), 4, make(b)))
    module.add[1, 4]([make(a), np.int64(4), make(b)])
    assert b.copy_to_host().tolist() == [11] * 4


def test_structs_in_arrays_and_null_pointers(module):
    a, b, total = bascule.full(3, 2, "f4"), bascule.full(2, 5, "f4"), bascule.zeros(1, "f8")
    module.sum[1, 1]((((a, 3, None), (b, 2, None)), total, a))
    assert total.copy_to_host()[0] == 16
    module.sum[1, 1]((((a, 3, None), (b, 2, None)), total, None))
    assert total.copy_to_host()[0] == -32


def test_an_array_in_a_tuple_is_ordered_with_its_stream(module):
    stream, other = bascule.stream(), bascule.stream()
    a, b = bascule.full(4, 5, "f4", stream=stream), bascule.full(4, 1, "f4", stream=stream)
    module.add[1, 4, other]((a, 4, b))
    assert b.copy_to_host().tolist() == [6] * 4
    # A bound launch orders and keeps the arrays of the tuple too.
    launch = module.add[1, 4].bind((a, 4, b))
    del a
    launch()
    assert b.copy_to_host().tolist() == [11] * 4


@pytest.mark.parametrize(
    ("value", "error", "says"),
    [
        (
            lambda a, b: (a.astype("f8"), 4, b),
            TypeError,
            "element 0 (of `Columns`): the kernel declares `const float*`, got a float64",
        ),
        (
            lambda a, b: (a, 4, 7),
            TypeError,
            "element 2 (of `Columns`): the kernel declares `float*`, got 7. Pass a device array, bascule.raw",
        ),
        (
            lambda a, b: (np.ones(4, "f4"), 4, b),
            TypeError,
            "element 0 (of `Columns`): the kernel declares `const float*`, got 4 numbers. Pass a device array",
        ),
        (lambda a, b: (a, b, b), TypeError, "element 1 (of `Columns`): the kernel declares `int`, got a float32 array"),
        (
            lambda a, b: (a, None, b),
            TypeError,
            "element 1 (of `Columns`): the kernel declares `int`, got None. Pass a number.",
        ),
        (
            lambda a, b: (a, 4, Foreign(b, data=(address(b), True))),
            ValueError,
            "element 2 (of `Columns`): the kernel declares `float*`",
        ),
        (
            lambda a, b: (a[::2], 4, b),
            ValueError,
            "element 0 (of `Columns`): the kernel declares `const float*`, got a float32 array of shape (2,)",
        ),
        (lambda a, b: (a, "4", b), TypeError, "got a tuple whose element [1] is an object of type str"),
    ],
)
def test_what_does_not_fit_is_named_by_its_place(module, value, error, says):
    a, b = bascule.full(4, 5, "f4"), bascule.full(4, 1, "f4")
    with pytest.raises(error, match="argument 1 'c'") as refused:
        module.add[1, 4](value(a, b))
    assert says in str(refused.value)
    assert b.copy_to_host().tolist() == [1] * 4


def test_an_array_for_a_vector_type_is_not_read_from_the_device():
    kernel = bascule.compile("__global__ void k(float4 v, float* out) { *out = v.x; }").k
    with pytest.raises(TypeError, match=r"element 0 \(of `float4`\): the kernel declares `float`, got a float32 array"):
        kernel[1, 1]((bascule.zeros(1, "f4"), 1, 2, 3), bascule.zeros(1, "f4"))


# --- Empty classes


EMPTY = """
struct Square { __device__ float operator()(float v) const { return v * v; } };
template <class F> __global__ void apply(float* x, F f) { x[threadIdx.x] = f(x[threadIdx.x]); }
struct Tag {};
struct Scale { [[no_unique_address]] Tag tag; float by; Square f; };
struct Pair { Scale scale; Tag tags[1]; float plus; };
__global__ void scale(float* x, Scale s) { x[threadIdx.x] = s.f(x[threadIdx.x] * s.by); }
__global__ void pair(float* x, Pair p) { x[threadIdx.x] = p.scale.f(x[threadIdx.x] * p.scale.by) + p.plus; }
"""


@pytest.mark.parametrize("std", ["c++17", "c++20"])
@pytest.mark.parametrize(
    ("kernel", "value", "expected"),
    [
        ("apply<Square>", (), lambda x: x * x),
        ("scale", (3.0,), lambda x: 9 * x * x),
        ("scale", ((), 3.0, ()), lambda x: 9 * x * x),
        ("pair", ((2.0,), 1.0), lambda x: 4 * x * x + 1),
        ("pair", (((), 2.0, ()), ((),), 1.0), lambda x: 4 * x * x + 1),
    ],
)
def test_members_of_empty_classes_take_no_value_or_an_empty_tuple(std, kernel, value, expected):
    module = bascule.compile(EMPTY, {"std": std, "extra": ["-w"]}, name_expressions=["apply<Square>"])
    host = np.arange(8, dtype="f4")
    for _ in range(2):  # the second launch uses the known members
        x = bascule.to_device(host)
        module[kernel][1, 8](x, value)
        np.testing.assert_array_equal(x.copy_to_host(), expected(host))


def test_a_value_for_an_empty_struct_and_too_few_are_refused():
    module = bascule.compile(EMPTY, {"extra": ["-w"]}, name_expressions=["apply<Square>"])
    x = bascule.zeros(8, "f4")
    with pytest.raises(TypeError, match=r"argument 2 'f'.*it is empty, for which \(\) is passed"):
        module["apply<Square>"][1, 8](x, (1.0,))
    with pytest.raises(ValueError, match=r"argument 2 's'.*more members than the tuple, which has 2 numbers"):
        module.scale[1, 8](x, (1.0, 2.0))
    with pytest.raises(ValueError, match=r"argument 2 's'.*more members than the tuple, which has 0"):
        module.scale[1, 8](x, ())


def test_a_struct_with_a_half2_member():
    kernel = bascule.compile("""
#include <cuda_fp16.h>
struct Pair { __half2 h; float f; };
__global__ void k(Pair p, float* out) { out[0] = __low2float(p.h); out[1] = __high2float(p.h); out[2] = p.f; }""").k
    out = bascule.zeros(3, "f4")
    kernel[1, 1](((1.5, -2), 3), out)
    assert out.copy_to_host().tolist() == [1.5, -2, 3]
    record = np.zeros((), [("h", "f2", (2,)), ("f", "f4")])
    record["h"], record["f"] = (2.5, 4), 5
    kernel[1, 1](record[()], out)
    assert out.copy_to_host().tolist() == [2.5, 4, 5]


def test_a_long_double_is_refused_with_words():
    kernel = bascule.compile("__global__ void add(double* x, long double d) { *x += d; }").add
    with pytest.raises(bascule.Error, match="parameter 'd' as `long double`.*Declare `double`"):
        kernel[1, 1](bascule.zeros(1, "f8"), 1.5)
    member = bascule.compile("struct S { long double d; }; __global__ void k(S s, double* x) { *x = s.d; }").k
    with pytest.raises(bascule.Error, match="`long double`"):
        member[1, 1]((1.5,), bascule.zeros(1, "f8"))


# --- Arrays of arrays


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 2, 3, 4), (5, 3, 4), (0, 3, 4), (3, 4)])
def test_a_parameter_of_rows_takes_arrays_whose_last_axes_are_the_row(shape):
    kernel = bascule.compile("""
__global__ void scale(float (*x)[3][4], const float y[2][3][4], int n) {
    int i = threadIdx.x;
    if (i < n) x[i / 12][i / 4 % 3][i % 4] *= y[i / 12][i / 4 % 3][i % 4];
}""").scale
    host = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    x, y = bascule.to_device(host), bascule.to_device(host + 1)
    kernel[1, 64](x, y, host.size)
    np.testing.assert_array_equal(x.copy_to_host(), host * (host + 1))


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (bascule.zeros((2, 4, 3), "f4"), r"One element is an array of shape \(3, 4\) of float32"),
        (bascule.zeros(24, "f4"), r"One element is an array of shape \(3, 4\) of float32"),
        (bascule.zeros((2, 3, 4), "f8"), r"One element is an array of shape \(3, 4\) of float32"),
        (
            bascule.zeros((2, 4, 3), "f4").transpose(0, 2, 1),
            "axis 1 has a stride of 4 bytes|last axis has a stride of 12",
        ),
        (bascule.zeros((4, 3, 2), "f4").T, "must lie side by side"),
    ],
)
def test_other_arrays_are_refused(array, says):
    kernel = bascule.compile("__global__ void k(const float (*x)[3][4]) {}").k
    with pytest.raises(bascule.ArgumentError, match=rf"argument 1 'x'.*({says})"):
        kernel[1, 1](array)
