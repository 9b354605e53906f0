"""A launch takes the function that C++ would call, if several have the name."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from child_process import printed_by

import bascule

TREE = Path(__file__).parents[3]


def read_only(array):
    described = dict(array.__cuda_array_interface__)
    described["data"] = (described["data"][0], True)
    return bascule.from_cuda_array_interface(described, owner=array)


def chosen(*functions, arguments, **options):
    """The number of the function that ran."""
    numbered = [
        f"{head} __global__ void f({parameters}, int* which) {{ *which = {number}; }}"
        for number, (head, _, parameters) in enumerate(each.rpartition("|") for each in functions)
    ]
    which = bascule.zeros(1, "i4")
    bascule.compile("\n".join(numbered), **options)["f"][1, 1](*arguments, which)
    return int(which.copy_to_host()[0])


def ints():
    return bascule.zeros(4, "i4")


T = "template <class T>|"


@pytest.mark.parametrize(
    ("functions", "readonly", "expected"),
    [
        (["const int* p", T + "T* p"], False, 1),
        (["const int* p", T + "T* p"], True, 0),
        (["int* p", T + "T* p"], False, 0),
        ([T + "T* p", T + "const T* p"], False, 0),
        ([T + "T* p", T + "const T* p"], True, 1),
        ([T + "T p", T + "T* p", T + "const T* p"], True, 2),
        (["void* p", "const void* p"], False, 0),
        (["void* p", "const void* p"], True, 1),
        (["const volatile int* p", "volatile int* p"], False, 1),
        (["float4* p", "int* p"], False, 1),
        (["bascule::array_view<const int> p", "bascule::array_view<int> p"], False, 1),
    ],
)
def test_the_best_conversion_of_an_array_and_then_the_more_specialized_template_win(functions, readonly, expected):
    array = ints()
    assert chosen(*functions, arguments=[read_only(array) if readonly else array]) == expected


@pytest.mark.parametrize(
    ("functions", "value", "expected"),
    [
        (["long long n", "int n"], np.int16(3), 1),  # promoted
        (["float x", "double x"], np.float32(1), 0),
        (["float x", "double x"], np.float16(1), 0),
        (["int n", "double x"], np.True_, 0),
        (["long long n", "double x"], 3, 0),  # a Python number keeps its kind
        (["int n", T + "T n"], np.int64(3), 1),
    ],
)
def test_the_best_conversion_of_a_number_wins(functions, value, expected):
    assert chosen(*functions, arguments=[value]) == expected


def test_conversions_of_one_rank_are_ambiguous_for_numpy_scalars_as_in_cpp():
    with pytest.raises(TypeError, match="several overloads of kernel 'f'"):
        chosen("int n", "double x", arguments=[np.int64(3)])


def test_pointers_that_add_one_qualifier_each_are_ambiguous_as_in_cpp():
    with pytest.raises(TypeError, match="several overloads of kernel 'f'"):
        chosen("const int* p", "volatile int* p", arguments=[ints()])


def test_a_template_takes_a_read_only_array_with_const_elements():
    array = bascule.to_device(np.arange(4, dtype="i4"))
    out = bascule.zeros(1, "i4")
    text = "template <class T> __global__ void last(T* p, int* out) { *out = p[3] + (sizeof(T) == 4); }"
    kernel = bascule.compile(text).last
    kernel[1, 1](read_only(array), out)
    assert out.copy_to_host()[0] == 4
    assert kernel.prepare(read_only(array), out).signature == "void last<const int>(const int* p, int* out)"


def test_a_template_that_writes_refuses_a_read_only_array_by_the_name_of_its_parameter():
    kernel = bascule.compile("template <class T> __global__ void clear(T* p) { *p = 0; }").clear
    with pytest.raises(ValueError, match=r"'p'.*writes to it, but the array is read-only"):
        kernel[1, 1](read_only(ints()))
    kernel[1, 1](ints())


def test_const_before_a_template_parameter_that_is_a_pointer_belongs_to_the_pointer():
    two = [T + "const T p", "template <class T, class U>|T p, U q"]
    assert chosen(*two, arguments=[ints()]) == 0
    assert chosen(*two, arguments=[ints(), ints()]) == 1


def test_templates_that_no_name_tells_apart_compete_all_the_same():
    """Both templates of a pair have an instance of one type: (const double*, double), and (int, int)."""
    array = read_only(bascule.zeros(4, "f8"))
    with pytest.raises(TypeError, match="several overloads of kernel 'f'"):
        chosen(T + "const double* p, T x", T + "T* p, double x", arguments=[array, np.float64(1)])
    with pytest.raises(TypeError, match="several overloads of kernel 'f'"):
        chosen(T + "T a, int b", T + "int a, T b", "unsigned int a, short b", arguments=[1, 1])
    wide = "template <class T> requires (sizeof(T) >= 4)|"
    constrained = [wide + "T* p", wide + "T** p", "volatile unsigned char* p"]
    assert chosen(*constrained, arguments=[bascule.zeros(4, "u1")], options={"std": "c++20"}) == 2


def test_a_template_that_the_arguments_do_not_call_does_not_make_others_ambiguous():
    """The third template has an instance like the others', but is called only if both arguments have one type."""
    array = bascule.zeros(4, "u1")
    one, two = "template <class U>|", "template <class T, class U>|"
    functions = [one + "const unsigned char* p, U* q", two + "const T* p, U* const q", one + "const U p, const U q"]
    assert chosen(*functions, arguments=[array, read_only(array)]) == 0
    with pytest.raises(TypeError, match="several overloads of kernel 'f'"):  # now it is called too
        chosen(*functions, arguments=[read_only(array), read_only(array)])


def test_packs_beside_other_templates_are_spelled_out():
    several = ["template <class T, class... Ts>|T a", "template <class T, class U>|T a, U b"]
    assert chosen(*several, arguments=[1, 2.0]) == 1


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to compare with")
def test_random_sets_choose_as_gxx_does():
    printed_by(TREE / "tests/jit/overloads/compare.py", "--sets", "60", "--seed", "7")
