"""Arguments passed by value: ctypes structures, NumPy's scalars and small arrays, tuples and lists."""

from __future__ import annotations

import ast
import ctypes
import itertools
import re
from collections import namedtuple

import numpy as np
import pytest

import bascule

WRITE = """
template <class T> __device__ void write(unsigned char* out, const T& value) {
    for (unsigned i = 0; i < sizeof(T); ++i) out[i] = reinterpret_cast<const unsigned char*>(&value)[i];
}
"""
TEXT = """
struct Inner { short key; double weight; };
struct Body { float mass; int count; double position[3]; };
struct Matrix { float m[9]; int n; };
struct Deep { Inner in[2]; float4 v; int a[3]; unsigned char t[2][2]; bool flag; };
struct Block { float* data; int n; };
struct Trailing { double d; unsigned char c; };
struct alignas(32) Wide { int n; char c; };
struct Base { int a; };
struct Derived : Base { float b; };
class Closed { float x_; public: double y; };
__global__ void bodies(const Body* value, unsigned char* out) { write(out, value[0]); }
__global__ void block(Block b) { b.data[b.n] = b.n; }
template <class T> __global__ void templated(float4 v, T* out) { out[0] = v.y; }
__global__ void defaults(float* p, int n = 4, bool b = false) { p[0] = n; }
template <class T> __global__ void template_defaults(T* p, int n = 4) { p[0] = n; }
"""  # with_kernels adds a kernel for each type, which writes the bytes of its argument
TYPES = {
    "body": "Body",
    "matrix": "Matrix",
    "deep": "Deep",
    "block_bytes": "Block",
    "trailing": "Trailing",
    "wide": "Wide",
    "derived": "Derived",
    "closed": "Closed",
    "dim": "dim3",
    "vector": "float4",
    "bytes4": "uchar4",
}
# A separate text, because the compiler reads a text again for the members of each of its structs.
ARRAYS = """
#include <cuda/std/array>
struct Holder { cuda::std::array<int, 3> a; short n; };
typedef cuda::std::array<cuda::std::array<float, 3>, 2> Rows;
"""
TYPES_WITH_ARRAYS = {"holder": "Holder", "rows": "Rows", "array": "cuda::std::array<short, 5>"}


def with_kernels(text, types):
    kernels = (
        f"__global__ void {name}({cpp} value, unsigned char* out) {{ write(out, value); }}\n" for name, cpp in types
    )
    return WRITE + text + "".join(kernels)


TEXT, ARRAYS = with_kernels(TEXT, TYPES.items()), with_kernels(ARRAYS, TYPES_WITH_ARRAYS.items())

INNER = np.dtype([("key", "i2"), ("weight", "f8")], align=True)


def padded(dtype, itemsize):
    """Returns the dtype with padding after its last field, where C++ aligns more than NumPy's align=True."""
    fields = [dtype.fields[name] for name in dtype.names]
    formats, offsets = [field[0] for field in fields], [field[1] for field in fields]
    return np.dtype({"names": dtype.names, "formats": formats, "offsets": offsets, "itemsize": itemsize})


DTYPES = {
    "body": np.dtype([("mass", "f4"), ("count", "i4"), ("position", "f8", (3,))], align=True),
    "matrix": np.dtype([("m", "f4", (9,)), ("n", "i4")], align=True),
    "deep": padded(  # a float4 is aligned to 16 bytes
        np.dtype(
            [("in", INNER, (2,)), ("v", "f4", (4,)), ("a", "i4", (3,)), ("t", "u1", (2, 2)), ("flag", "?")], align=True
        ),
        80,
    ),
    "trailing": np.dtype([("d", "f8"), ("c", "u1")], align=True),
}


class Body(ctypes.Structure):
    _fields_ = (("mass", ctypes.c_float), ("count", ctypes.c_int), ("position", ctypes.c_double * 3))


class Swapped(ctypes.Structure):
    _fields_ = (("count", ctypes.c_int), ("mass", ctypes.c_float), ("position", ctypes.c_double * 3))


class Matrix(ctypes.Structure):
    _fields_ = (("m", ctypes.c_float * 9), ("n", ctypes.c_int))


class Block(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("n", ctypes.c_int))


class Either(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("real", ctypes.c_float))


class Kernels:
    """The kernels of both texts, by name."""

    def __init__(self) -> None:
        self.plain, self.arrays = bascule.compile(TEXT), bascule.compile(ARRAYS)

    def __getitem__(self, name: str) -> bascule.Kernel:
        return (self.arrays if name in TYPES_WITH_ARRAYS else self.plain)[name]

    __getattr__ = __getitem__


@pytest.fixture(scope="module")
def module() -> Kernels:
    return Kernels()


def passed(kernel, value, dtype):
    """Passes `value` to the kernel, and returns the value that arrives, as NumPy reads its bytes."""
    dtype = np.dtype(dtype)
    out = bascule.zeros(dtype.itemsize, "u1")
    kernel[1, 1](value, out)
    return out.copy_to_host().view(dtype.base).reshape(dtype.shape)[()]


def refused(kernel, value):
    """Returns the error that passing `value` raises."""
    with pytest.raises(bascule.ArgumentError, match="argument 1 'value'") as caught:
        kernel[1, 1](value, bascule.zeros(64, "u1"))
    return caught.value


def random_values(dtype, rng):
    """A structured scalar with random numbers in its fields and zeros between them."""
    host = np.zeros((), dtype)

    def fill(field):
        for name in field.dtype.names:
            if field[name].dtype.names:
                fill(field[name])
            else:
                field[name] = rng.integers(0, 2 if field[name].dtype.kind == "b" else 100, field[name].shape)

    fill(host)
    return host


def nested(value, kind):
    """The same numbers in tuples or lists."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    return kind(nested(each, kind) for each in value) if isinstance(value, (tuple, list)) else value


@pytest.mark.parametrize("name", DTYPES)
def test_a_structured_scalar_a_tuple_and_lists_are_the_same_struct(module, name, rng):
    for _ in range(5):
        host = random_values(DTYPES[name], rng)
        values = host.item()
        for value in (
            host,
            host[()],
            nested(values, tuple),
            nested(values, list),
            np.array([host, host], host.dtype)[1],
        ):
            assert passed(module[name], value, host.dtype).tobytes() == host.tobytes()


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    [
        ("vector", "f4", (4,)),
        ("dim", "u4", (3,)),
        ("array", "i2", (5,)),
        ("rows", "f4", (2, 3)),
        ("bytes4", "u1", (4,)),
    ],
)
def test_arrays_tuples_and_lists_are_vectors_and_arrays_of_cuda_std(module, name, dtype, shape, rng):
    for given in (dtype, "i8", "u2"):
        host = rng.integers(0, 200, shape).astype(given)
        expected = host.astype(dtype)
        strided = np.repeat(host, 2, axis=-1)[..., ::2]
        for value in (host, strided, nested(host, tuple), nested(host, list), tuple(host)):
            received = passed(module[name], value, (dtype, shape))
            np.testing.assert_array_equal(received, expected)


def test_a_named_tuple_is_a_struct_and_so_is_a_tuple_with_an_array_in_it(module):
    named = namedtuple("named", "m n")(np.eye(3, dtype="f4").ravel(), np.int64(-3))
    received = passed(module.matrix, named, DTYPES["matrix"])
    np.testing.assert_array_equal(received["m"], np.eye(3).ravel())
    assert received["n"] == -3
    assert passed(module.holder, ((1, 2, 3), 4), "i4,i4,i4,i2,u2").tolist()[:4] == (1, 2, 3, 4)


def test_the_compiler_is_asked_once_for_the_members_of_a_struct(module):
    passed(module.matrix, (tuple(range(9)), 1), DTYPES["matrix"])
    calls = bascule.cache.stats().nvrtc_calls
    for n in range(3):
        passed(module.matrix, (tuple(range(9)), n), DTYPES["matrix"])
    refused(module.matrix, (1, 2, 3))
    assert bascule.cache.stats().nvrtc_calls == calls


def test_a_bound_launch_keeps_the_tuple(module):
    out = bascule.zeros(40, "u1")
    launch = module.matrix[1, 1].bind((tuple(range(9)), 5), out)
    for _ in range(2):
        out.fill(0)
        launch()
        np.testing.assert_array_equal(out.copy_to_host().view("f4")[:9], range(9))


@pytest.mark.parametrize(
    ("name", "value", "error", "says"),
    [
        ("matrix", ((1, 2), 3), ValueError, "element 0 (of `Matrix`): the kernel declares `float[9]`, got 2 numbers. "),
        (
            "matrix",
            (5, 3),
            TypeError,
            "element 0 (of `Matrix`): the kernel declares `float[9]`, got 5. Pass a tuple of 9",
        ),
        ("matrix", (np.zeros(8), 3), ValueError, "`float[9]`, got 8 numbers. Pass a tuple of 9 numbers."),
        (
            "matrix",
            (np.zeros(9), 3.5),
            TypeError,
            "element 1 (of `Matrix`): the kernel declares `int`, got the float 3.5.",
        ),
        ("matrix", (np.zeros(9), 2**31), OverflowError, "`int`, which holds -2147483648 to 2147483647; got 2147483648"),
        (
            "matrix",
            ((0,) * 8 + (1j,), 3),
            TypeError,
            "element [0][8] (of `Matrix`): the kernel declares `float`, got the c",
        ),
        ("matrix", (np.zeros(9), "n"), TypeError, "a tuple whose element [1] is an object of type str"),
        ("matrix", [np.zeros(9), [3, object()]], TypeError, "a list whose element [1][1] is an object of type object"),
        ("matrix", 5, TypeError, "a tuple with a value for each member"),
        (
            "block_bytes",
            (1, 2),
            TypeError,
            "element 0 (of `Block`): the kernel declares `float*`, got 1. Pass a device array, bascule",
        ),
        ("derived", (1, 2), TypeError, "the members of the kernel's `Derived` have no order that a tuple could follow"),
        ("closed", (1, 2), TypeError, "the kernel's `Closed` has private members"),
        (
            "deep",
            (((1, 2.0), (70000, 1.0)), (0,) * 4, (0,) * 3, ((0, 0), (0, 0)), True),
            OverflowError,
            "element [0][1][0] (of `Inner`): the kernel declares `short`",
        ),
        ("vector", (1, 2, 3), ValueError, "the kernel declares `float4`, got 3 numbers. Pass a tuple of 4 numbers."),
        (
            "vector",
            np.zeros((2, 2)),
            ValueError,
            "the kernel declares `float4`, got 2 values. Pass a tuple of 4 numbers.",
        ),
        ("vector", (1, 2, 1e300, 4), OverflowError, "element 2 (of `float4`): the kernel declares `float`"),
        (
            "bytes4",
            np.array([0, 1, 2, 256]),
            OverflowError,
            "element 3 (of `uchar4`): the kernel declares `unsigned char`",
        ),
        (
            "array",
            np.zeros(4, "i2"),
            ValueError,
            "`cuda::std::array<short, 5>`, got 4 numbers. Pass a tuple of 5 numbers.",
        ),
        ("array", 1 + 2j, TypeError, "`cuda::std::array<short, 5>`, got the complex 1+2j. Pass a tuple of 5 numbers."),
        ("rows", ((1, 2, 3), (4, 5)), ValueError, "the kernel declares `cuda::std::array<float, 3>`, got 2 numbers"),
        ("dim", (1, 2), ValueError, "the kernel declares `dim3`, got 2 numbers. Pass a tuple of 3 numbers."),
        ("dim", (-1, 2, 3), OverflowError, "element 0 (of `dim3`): the kernel declares `unsigned int`, which holds 0"),
    ],
)
def test_a_wrong_length_type_or_value_names_the_member_and_what_it_wants(module, name, value, error, says):
    caught = refused(module[name], value)
    assert isinstance(caught, error)
    assert says in str(caught)


@pytest.mark.parametrize("more", [0, 1, 3])
def test_a_tuple_with_another_number_of_values_is_refused_before_the_members_are_known(more):
    kernel = bascule.compile("struct Two { int a; int b; }; __global__ void k(Two value, unsigned char* out) {}").k
    caught = refused(kernel, (1,) * more)
    assert isinstance(caught, ValueError)
    assert "Pass a tuple with a value for each member." in str(caught)


@pytest.mark.parametrize("name", ["vector", "matrix", "array", "dim", "deep"])
@pytest.mark.parametrize(
    "value",
    [np.zeros(3, "f4"), np.zeros((7, 7)), np.zeros(10**5), np.array(["a"] * 4), np.array(3.0), [0] * 10**5, {}, "abcd"],
    ids=lambda value: f"{type(value).__name__}-{np.shape(value)}",
)
def test_nothing_for_a_parameter_by_value_is_sent_to_the_device(module, name, value):
    text = str(refused(module[name], value))
    assert "device" not in text
    assert "Pass " in text or "pass " in text


def test_numbers_for_a_pointer_are_sent_to_the_device(module):
    for value in ([1, 2], (1, 2)):
        text = str(refused(module.bodies, value))
        assert "got 2 numbers in host memory. Make a device array of them: bascule.to_device(" in text


def test_a_template_takes_them_too(module):
    out = bascule.zeros(1, "f4")
    for value in (np.arange(4.0), [0, 1, 2, 3], (0, 1, 2, 3)):
        out.fill(0)
        module.templated[1, 1](value, out)
        assert out.copy_to_host()[0] == 1


# --- Fields at other offsets


def test_a_dtype_in_another_order_tells_where_each_field_is(module):
    fields = [("count", "i4"), ("mass", "f4"), ("position", "f8", (3,))]
    for kernel, value in [
        (module.body, np.zeros((), fields)[()]),
        (module.bodies, bascule.to_device(np.zeros(2, fields))),
    ]:
        text = str(refused(kernel, value))
        assert "field 'count' lies at byte 0 in the dtype and at byte 4 in the kernel's `Body`" in text
        assert "'mass' at byte 4 and at byte 0" in text
        assert "List the fields in the order of the struct: mass, count, position." in text
        assert "align" not in text


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("trailing", [("d", "f8"), ("c", "u1")]),
        ("trailing", [("c", "u1"), ("d", "f8")]),
        ("wide", [("n", "i4"), ("c", "i1")]),
        ("wide", [("c", "i1"), ("n", "i4")]),
        ("body", [("count", "i4"), ("mass", "f4")]),
        ("body", [("mass", "f4"), ("position", "f8", (3,)), ("count", "i4")]),
        ("matrix", [("n", "i4"), ("m", "f4", (9,))]),
    ],
)
def test_the_advice_helps(module, name, fields):
    """After following the message's advice the struct is accepted."""
    text = str(refused(module[name], np.zeros((), fields)[()]))
    given = {field[0]: field for field in fields}
    if "'offsets': [" in text:
        expression = text.rpartition("np.dtype(")[2].rpartition(")")[0]
        description = ast.literal_eval(expression.replace("[...]", "[]"))
        description["formats"] = [np.dtype([given[each]]).fields[each][0] for each in description["names"]]
        dtype = np.dtype(description)
    else:
        order = re.search(r"in the order of the struct[:,] ([\w, ]+?)(?:, and|\.)", text)
        names = order[1].split(", ") if order else list(given)
        dtype = np.dtype([given[each] for each in names], align="align=True" in text)
    module[name][1, 1](np.zeros((), dtype)[()], bascule.zeros(64, "u1"))


def test_a_ctypes_structure_is_compared_field_by_field(module, rng):
    position = rng.random(3)
    received = passed(module.body, Body(1.5, 7, tuple(position)), DTYPES["body"])
    assert (received["mass"], received["count"]) == (1.5, 7)
    np.testing.assert_array_equal(received["position"], position)
    text = str(refused(module.body, Swapped(7, 1.5, (1, 2, 3))))
    assert "field 'count' lies at byte 0 in the ctypes structure and at byte 4 in the kernel's `Body`" in text
    assert "in the order of the struct: mass, count, position." in text
    assert "dtype" not in text


def test_a_ctypes_structure_with_an_array_is_a_struct_with_one(module, rng):
    numbers = rng.random(9).astype("f4")
    received = passed(module.matrix, Matrix(tuple(numbers), 4), DTYPES["matrix"])
    np.testing.assert_array_equal(received["m"], numbers)
    assert received["n"] == 4


def test_a_ctypes_structure_with_other_fields_names_one(module):
    text = str(refused(module.body, Block(0, 1)))
    assert "the kernel's `Body` has no field 'data', and the ctypes structure has." in text


def test_a_ctypes_structure_with_a_device_pointer_goes_by_its_bytes(module):
    x = bascule.zeros(4, "f4")
    address, _ = x.__cuda_array_interface__["data"]
    module.block[1, 1](Block(address, 2))
    assert x.copy_to_host().tolist() == [0, 0, 2, 0]


class Bits(ctypes.Structure):
    _fields_ = (("mass", ctypes.c_float), ("count", ctypes.c_int, 4), ("rest", ctypes.c_int, 28))


class Outer(ctypes.Structure):
    _fields_ = (("bits", Bits * 2), ("n", ctypes.c_int))


class Derived(Block):
    _fields_ = (("next", ctypes.POINTER(ctypes.c_int)), ("tag", ctypes.c_char * 4))


class Reversed(ctypes.Structure):
    _fields_ = (("n", ctypes.c_int), ("data", ctypes.c_void_p))


@pytest.mark.parametrize("value", [Bits(1.0, 1), Outer()])
def test_bit_fields_of_ctypes_are_refused_with_their_names(module, value):
    text = str(refused(module.body, value))
    assert "field 'count' of the ctypes structure is a bit-field of 4 bits" in text
    assert "Pass bascule.raw_bytes(x)" in text
    with pytest.raises(bascule.ArgumentValueError, match="exactly 32 bytes"):
        module.body[1, 1](bascule.raw_bytes(value), bascule.zeros(64, "u1"))


def test_a_ctypes_structure_with_pointers_is_compared_field_by_field():
    module = bascule.compile("""
struct Block { float* data; int n; };
struct Chain : Block { int* next; char tag[4]; };
__global__ void block(Block b) { b.data[b.n] = b.n; }
__global__ void chain(Chain c) { c.data[c.n] = c.tag[1]; }""")
    x = bascule.zeros(4, "f4")
    address, _ = x.__cuda_array_interface__["data"]
    with pytest.raises(
        bascule.ArgumentTypeError, match="field 'n' lies at byte 0 in the ctypes structure and at byte 8"
    ):
        module.block[1, 1](Reversed(2, address))
    module.chain[1, 1](Derived(address, 2, None, b"ab"))
    assert x.copy_to_host().tolist() == [0, 0, 98, 0]


@pytest.mark.parametrize(
    "value",
    [np.longdouble("1e4000"), np.longdouble("-1e4000"), np.clongdouble(complex(1, 0)) * np.longdouble("1e4000")],
)
def test_a_long_double_beyond_the_doubles_is_refused(value):
    kind = "cuda::std::complex<double>" if np.iscomplexobj(value) else "double"
    kernel = bascule.compile(
        f"#include <cuda/std/complex>\n__global__ void put({kind}* out, {kind} value) {{ *out = value; }}"
    ).put
    out = bascule.zeros(1, "c16" if np.iscomplexobj(value) else "f8")
    with pytest.raises(OverflowError, match="argument 2 'value': .* is beyond the largest double"):
        kernel[1, 1](out, value)
    kernel[1, 1](out, type(value)(np.inf))
    assert np.isinf(out.copy_to_host()[0])
    kernel[1, 1](out, type(value)(0.1))
    assert out.copy_to_host()[0] == 0.1


def test_a_ctypes_union_names_raw_bytes(module):
    assert "bascule.raw_bytes" in str(refused(module.body, Either(1)))


@pytest.mark.parametrize("size", [14_552, 14_556, 20_000, 32_000])
def test_large_structures_go_by_tuple_array_and_scalar(size):
    count = size // 4 - 1
    kernel = bascule.compile(
        f"struct S {{ int v[{count}]; float last; }};\n"
        f"__global__ void ends(S s, double* out) {{ out[0] = s.v[0]; out[1] = s.v[{count - 1}]; out[2] = s.last; }}"
    ).ends
    values = np.arange(7, count + 7, dtype="i4")
    record = np.zeros((), [("v", "i4", (count,)), ("last", "f4")])
    record["v"], record["last"] = values, 2.5
    for given in ((values, 2.5), (values.tolist(), 2.5), record, record[()]):
        out = bascule.zeros(3, "f8")
        kernel[1, 1](given, out)
        assert out.copy_to_host().tolist() == [7, count + 6, 2.5]


def test_a_tuple_of_more_members_than_are_compared_names_the_limit():
    text = f"struct S {{ {' '.join(f'int f{i};' for i in range(401))} }};\n__global__ void k(S s) {{}}"
    with pytest.raises(ValueError, match=r"401 members is too long .* 400 is the limit.*bascule\.raw_bytes"):
        bascule.compile(text).k[1, 1](tuple(range(401)))


# --- Default arguments


def test_a_missing_argument_tells_that_default_arguments_are_not_used(module):
    x = bascule.zeros(1, "f4")
    attempts = itertools.chain(
        (lambda: module.defaults[1, 1](x), lambda: module.defaults[1, 1](x, 4), lambda: module.defaults[1, 1](p=x)),
        (lambda: module.template_defaults[1, 1](x),),
    )
    for attempt in attempts:
        with pytest.raises(TypeError, match="A launch does not use C\\+\\+ default arguments: pass every argument"):
            attempt()
    with pytest.raises(TypeError, match="takes 3 arguments, got 4") as caught:
        module.defaults[1, 1](x, 1, True, 2)
    assert "default arguments" not in str(caught.value)
    with pytest.raises(TypeError, match="takes 1 argument, got 0") as caught:
        module.block[1, 1]()
    assert "default arguments" not in str(caught.value)
    module.defaults[1, 1](x, 7, False)
    assert x.copy_to_host()[0] == 7
