"""A table of kernels: how a parameter is declared, what is passed for it, and the expected result.

A row that succeeds is launched; its kernel stores what it received, and that is compared with bytes that NumPy or
`struct` made. Rows come from the tables and rules of the design, not from the code.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import bascule

RNG = np.random.default_rng(20261121)


@dataclass(frozen=True)
class Row:
    """`k` is the kernel; its last parameter is `unsigned char* out` if `received` is given.

    Rows with equal `types` are compiled in one text, so that a header is read once.
    """

    claim: str
    types: str
    source: str
    arguments: Callable[[], tuple[Any, ...]]
    signature: str | None = None
    received: bytes | None = None
    padding: frozenset[int] = frozenset()  # bytes of `received` that a copy in C++ may omit
    error: type[Exception] | None = None
    says: tuple[str, ...] = ()


ROWS: list[Row] = []

COPY = """
template <class T> __device__ void write(unsigned char*& out, const T& value) {
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(&value);
    for (int i = 0; i < (int)sizeof(T); ++i) *out++ = bytes[i];
}
"""


def padding_of(dtype: Any) -> frozenset[int]:
    """The offsets of the bytes of an element that no field covers."""
    covered = np.zeros(1, dtype)
    fill(covered)
    return frozenset(np.flatnonzero(covered.view("u1") == 0).tolist())


def fill(array: np.ndarray) -> None:
    """Sets every bit of every field."""
    if array.dtype.names is None:
        array[...] = np.frombuffer(b"\xff" * array.dtype.itemsize, array.dtype)[0]
        return
    for name in array.dtype.names:
        fill(array[name])


def value(claim, declared, argument, received, *, spelled=None, shown=None, types="", struct=None):
    """Adds a row: the kernel receives exactly these bytes by value. The dtype `struct` shows what is padding."""
    source = f"__global__ void k({declared} value, unsigned char* out) {{ write(out, value); }}"
    signature = f"void k({shown or f'{spelled or declared} value'}, unsigned char* out)"
    padding = frozenset() if struct is None else padding_of(struct)
    ROWS.append(Row(claim, types, source, lambda: (argument,), signature, bytes(received), padding))


def pointer(claim, declared, host, *, spelled=None, types="", name=None, count=None, element="p[i]", received=None):
    """Adds a row: the kernel reads the elements of `host`, which is copied to the device."""
    host = np.asarray(host)
    expected = host.tobytes() if received is None else received
    count = host.shape[0] if count is None else count
    body = f"for (int i = 0; i < {count}; ++i) write(out, {element});"
    parameter = f"{declared} p" if name is None else name
    source = f"__global__ void k({parameter}, unsigned char* out) {{ {body} }}"
    spelled = f"{spelled or declared} p" if name is None else (spelled or name)
    ROWS.append(
        Row(
            claim, types, source, lambda: (bascule.to_device(host),), f"void k({spelled}, unsigned char* out)", expected
        )
    )


def kernel(claim, source, signature, arguments, received, types=""):
    """Adds a row with a kernel whose full source is given."""
    ROWS.append(Row(claim, types, source, arguments, signature, bytes(received)))


def refused(claim, declared, argument, error, *says, types=""):
    """Adds a row: the launch is refused with an error whose message contains each of `says`."""
    source = f"__global__ void k({declared} p) {{}}"
    arguments = lambda: (argument() if callable(argument) else argument,)  # noqa: E731
    ROWS.append(Row(claim, types, source, arguments, error=error, says=says))


def device(*arguments: Any, **options: Any) -> Callable[[], bascule.DeviceArray]:
    """An array on the device, made when the row runs."""
    return lambda: bascule.to_device(np.array(*arguments, **options))


def zeros(dtype: Any, shape: Any = 8) -> Callable[[], bascule.DeviceArray]:
    return lambda: bascule.to_device(np.zeros(shape, dtype))


class Foreign:
    """An array of another library, with a descriptor in which some fields are changed."""

    def __init__(self, array: bascule.DeviceArray, **changes: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = dict(array.__cuda_array_interface__) | changes


def read_only(array: bascule.DeviceArray) -> Foreign:
    return Foreign(array, data=(array.__cuda_array_interface__["data"][0], True))


# --- Scalars: each C++ type, at the ends of its range

INTEGERS = [
    ("signed char", "b"),
    ("unsigned char", "B"),
    ("short", "h"),
    ("unsigned short", "H"),
    ("int", "i"),
    ("unsigned int", "I"),
    ("long", "q"),
    ("unsigned long", "Q"),
    ("long long", "q"),
    ("unsigned long long", "Q"),
]
for cuda_type, code in INTEGERS:
    bits = 8 * struct.calcsize(code)
    low, high = (0, 2**bits - 1) if code.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    value(f"the largest {cuda_type} arrives", cuda_type, high, struct.pack(f"<{code}", high))
    value(f"the smallest {cuda_type} arrives", cuda_type, low, struct.pack(f"<{code}", low))
    refused(f"one more than the largest {cuda_type} overflows", cuda_type, high + 1, OverflowError, f"`{cuda_type}`")
    refused(f"one less than the smallest {cuda_type} overflows", cuda_type, low - 1, OverflowError, f"`{cuda_type}`")

value("size_t is an unsigned long", "size_t", 2**40, struct.pack("<Q", 2**40), spelled="unsigned long")
value("plain char takes negative numbers", "char", -128, b"\x80")
value("wchar_t is a signed integer of 32 bits", "wchar_t", -5, struct.pack("<i", -5))
value("char16_t is unsigned", "char16_t", 65535, b"\xff\xff")
value("char32_t is unsigned", "char32_t", 2**32 - 1, b"\xff" * 4)
value("const on the parameter itself vanishes", "const int", 7, struct.pack("<i", 7), spelled="int")
value("True is 1 into an int", "int", True, struct.pack("<i", 1))
value("a NumPy integer goes into a wider one", "long long", np.int32(-3), struct.pack("<q", -3))
value("a NumPy integer goes into a narrower one that holds it", "short", np.int64(-3), struct.pack("<h", -3))
value("a NumPy bool is 0 or 1 into an int", "int", np.True_, struct.pack("<i", 1))
value("True goes into bool", "bool", True, b"\x01")
value("0 goes into bool", "bool", 0, b"\x00")
value("1 goes into bool", "bool", 1, b"\x01")
refused("2 does not go into bool", "bool", 2, OverflowError, "`bool`", "0, 1")
refused("a float does not go into bool", "bool", 1.0, TypeError, "`bool`")
refused("a float does not go into an int, even 2.0", "int", 2.0, TypeError, "`int`", "2.0")
refused("a NumPy float64 does not go into an int", "int", np.float64(2), TypeError, "`int`")
refused("a NumPy integer that does not fit overflows", "unsigned char", np.int64(300), OverflowError, "0 to 255")
refused("a complex does not go into an int", "int", 1j, TypeError, "`int`")
refused("an integer of more than 64 bits overflows", "unsigned long long", 2**70, OverflowError, "unsigned long long")
refused("a string is no number", "int", "3", TypeError, "`int`", "str")
refused("None is no number", "int", None, TypeError, "None", "a number")
refused("a host array of no dimensions is not a scalar", "float", np.array(1.0), TypeError, "x.item()")
refused("an array is not a scalar", "float", zeros("f4"), TypeError, "`float`", "pass a scalar")

value("a Python float becomes a float", "float", 0.1, struct.pack("<f", 0.1))
value("a Python float stays a double", "double", 0.1, struct.pack("<d", 0.1))
value("an int becomes a float", "float", 2, struct.pack("<f", 2))
value("an int of 65 bits becomes a float", "float", 2**64, struct.pack("<f", 2.0**64))
value("an int of 100 bits becomes a double", "double", 3**60, struct.pack("<d", float(3**60)))
value("a bool becomes a float", "float", True, struct.pack("<f", 1))
value("an int that no float is gets the nearest", "float", 2**24 + 1, struct.pack("<f", 2.0**24))
value("NaN passes into a float", "float", float("nan"), struct.pack("<f", float("nan")))
value("infinity passes into a float", "float", float("inf"), struct.pack("<f", float("inf")))
value("minus infinity passes into a double", "double", -float("inf"), struct.pack("<d", -float("inf")))
value("a NumPy float64 becomes a float", "float", np.float64(1 / 3), np.float32(1 / 3).tobytes())
value("a NumPy float32 becomes a double", "double", np.float32(0.1), np.float64(np.float32(0.1)).tobytes())
value("a NumPy float16 becomes a float", "float", np.float16(0.1), np.float32(np.float16(0.1)).tobytes())
refused("a double beyond float would become infinite", "float", 1e39, OverflowError, "`float`")
refused("an int beyond double would become infinite", "double", 10**400, OverflowError, "`double`")
refused("an int beyond float would become infinite", "float", 2**128, OverflowError, "`float`")
refused("a complex does not go into a double", "double", 1j, TypeError, "x.real")

HALF = "#include <cuda_fp16.h>\n"
BFLOAT = "#include <cuda_bf16.h>\n"
value("a float becomes a half", "__half", 0.1, np.float16(0.1).tobytes(), types=HALF)
value("the largest half arrives", "half", 65504, np.float16(65504).tobytes(), spelled="__half", types=HALF)
refused(
    "a number that would round to infinity overflows a half", "__half", 65520, OverflowError, "`__half`", types=HALF
)
value("infinity passes into a half", "__half", float("inf"), b"\x00\x7c", types=HALF)
value("a float becomes a bfloat16, to nearest", "__nv_bfloat16", 1.01, b"\x81\x3f", types=BFLOAT)
value("an int of more than 64 bits becomes a bfloat16", "__nv_bfloat16", 2**100, b"\x80\x71", types=BFLOAT)
refused("a number beyond bfloat16 overflows", "__nv_bfloat16", 2**128, OverflowError, "`__nv_bfloat16`", types=BFLOAT)

# These share one text, which takes seconds to compile.
CUDA_STD = "".join(f"#include <cuda/std/{name}>\n" for name in ("array", "complex", "mdspan", "span"))
value(
    "a complex arrives in single precision",
    "cuda::std::complex<float>",
    1 - 2j,
    np.complex64(1 - 2j).tobytes(),
    types=CUDA_STD,
)
value(
    "a float becomes a complex without an imaginary part",
    "cuda::std::complex<double>",
    0.1,
    np.complex128(0.1).tobytes(),
    types=CUDA_STD,
)

# --- Enumerations are the integers under them

ENUMS = "enum Colour { red, green }; enum class Small : unsigned char { a }; enum class Flag : bool { no, yes };\n"
value("an enum is the integer that the compiler chose", "Colour", -1, struct.pack("<i", -1), types=ENUMS)
value("an enum class has the range that it declares", "Small", 255, b"\xff", types=ENUMS)
refused("an enum class overflows as its integer does", "Small", 256, OverflowError, "`Small`", "0 to 255", types=ENUMS)
refused("an enum of bool takes 0 and 1", "Flag", 2, OverflowError, "`Flag`", types=ENUMS)
refused("a float does not go into an enum", "Colour", 1.0, TypeError, "`Colour`", types=ENUMS)
pointer("arrays of the integer go where enums are pointed to", "const Small*", np.arange(5, dtype="u1"), types=ENUMS)

# --- Pointers: equal types

for cuda_type, dtype in [
    ("bool", "?"),
    ("signed char", "i1"),
    ("unsigned char", "u1"),
    ("short", "i2"),
    ("unsigned short", "u2"),
    ("int", "i4"),
    ("unsigned int", "u4"),
    ("long long", "i8"),
    ("unsigned long long", "u8"),
    ("float", "f4"),
    ("double", "f8"),
]:
    pointer(
        f"a {np.dtype(dtype)} array goes to {cuda_type}*",
        f"{cuda_type}*",
        RNG.integers(0, 2, 7).astype(dtype),
    )
pointer("long is long long for int64", "const long*", np.arange(-3, 4, dtype="i8"))
pointer("size_t is for uint64", "const size_t*", np.arange(5, dtype="u8"), spelled="const unsigned long*")
pointer("a bool array is bytes of 0 and 1", "const unsigned char*", np.array([True, False, True]))
pointer("plain char takes int8", "const char*", np.arange(-2, 3, dtype="i1"))
pointer("plain char takes uint8", "const char*", np.arange(250, 255, dtype="u1"))
pointer("datetime64 goes to a signed integer of 64 bits", "const long long*", np.array(["2026-11-21"], "M8[ns]"))
pointer("timedelta64 goes to long", "const long*", np.array([5, -7], "m8[us]"))
pointer("__restrict__ vanishes", "const float* __restrict__", np.arange(3, dtype="f4"), spelled="const float*")
pointer("volatile stays in the signature", "volatile float*", np.arange(3, dtype="f4"), element="(float)p[i]")
pointer("float16 goes to __half*", "const __half*", np.arange(4, dtype="f2"), types=HALF)
pointer(
    "two opaque bytes go to __nv_bfloat16*", "const __nv_bfloat16*", np.arange(4, dtype="u2").view("V2"), types=BFLOAT
)
pointer(
    "complex64 goes to complex<float>*", "const cuda::std::complex<float>*", np.array([1 + 2j], "c8"), types=CUDA_STD
)
pointer(
    "void* takes every dtype", "const void*", np.arange(3, dtype="i2"), count=6, element="((const unsigned char*)p)[i]"
)
for cuda_type, dtype in [
    ("float", "f8"),
    ("double", "f4"),
    ("float", "i4"),
    ("int", "u4"),
    ("unsigned int", "i4"),
    ("int", "i8"),
    ("long long", "u8"),
    ("bool", "u1"),
    ("bool", "i1"),
    ("signed char", "u1"),
    ("signed char", "?"),
    ("char", "?"),
    ("unsigned char", "i1"),
    ("float", "c8"),
    ("unsigned long long", "M8[s]"),
    ("double", "M8[s]"),
    ("int", "m8[s]"),
]:
    name = {"M8[s]": "datetime64", "m8[s]": "timedelta64"}.get(dtype) or str(np.dtype(dtype))
    refused(f"{name} does not go to {cuda_type}*", f"{cuda_type}*", zeros(dtype), TypeError, f"`{cuda_type}*`", name)
refused("float16 is no bfloat16", "__nv_bfloat16*", zeros("f2"), TypeError, "`__nv_bfloat16*`", "float16", types=BFLOAT)
refused("two opaque bytes are no half", "__half*", zeros("V2"), TypeError, "`__half*`", "`__nv_bfloat16*`", types=HALF)
refused("an integer is no address", "float*", 4096, TypeError, "bascule.raw_pointer(address)")
refused("a host array is no device array", "float*", np.zeros(3, "f4"), TypeError, "bascule.to_device(x)")
refused("a tuple is not an array", "float*", (1.0, 2.0), TypeError, "`float*`", "a device array")
refused(
    "a read-only array is not written to",
    "float*",
    lambda: read_only(bascule.to_device(np.zeros(3, "f4"))),
    ValueError,
    "read-only",
    "declare the elements const",
)
refused(
    "a strided array has no raw pointer",
    "float*",
    lambda: Foreign(bascule.to_device(np.zeros(8, "f4")), shape=(4,), strides=(8,)),
    ValueError,
    "`bascule::array_view<float>`",
)
kernel(
    "None is a null pointer",
    "__global__ void k(float* p, unsigned char* out) { write(out, (unsigned long long)p); }",
    "void k(float* p, unsigned char* out)",
    lambda: (None,),
    bytes(8),
)
kernel(
    "a raw pointer arrives as it is",
    "__global__ void k(void* p, unsigned char* out) { write(out, (unsigned long long)p); }",
    "void k(void* p, unsigned char* out)",
    lambda: (bascule.raw_pointer(0xDEADBEEF),),
    struct.pack("<Q", 0xDEADBEEF),
)
kernel(
    "addresses go as an array of uint64 where pointers are pointed to",
    "__global__ void k(float** p, unsigned char* out) { write(out, (unsigned long long)p[1]); }",
    "void k(float** p, unsigned char* out)",
    lambda: (bascule.to_device(np.array([1, 77], "u8")),),
    struct.pack("<Q", 77),
)
refused("an array of numbers is not an array of pointers", "float**", zeros("f4"), TypeError, "`float**`", "uint64")
FUNCTION = "typedef int (*Function)(int);\n"
value(
    "a function's address is a raw pointer that a kernel wrote down",
    "Function",
    bascule.raw_pointer(5),
    struct.pack("<Q", 5),
    shown="int (*value)(int)",
    types=FUNCTION,
)
refused("an array is no function", "Function", zeros("i4"), TypeError, "`int (*)(int)`", "template", types=FUNCTION)
refused(
    "a struct that is not defined has no layout", "struct Hidden*", zeros("V8"), TypeError, "`Hidden`", "not defined"
)
kernel(
    "rows of four floats are an array whose last axis has four",
    """
    __global__ void k(const float (*p)[4], unsigned char* out) {
        for (int i = 0; i < 12; ++i) write(out, p[i / 4][i % 4]);
    }
    """,
    "void k(const float (*p)[4], unsigned char* out)",
    lambda: (bascule.to_device(np.arange(12, dtype="f4").reshape(3, 4)),),
    np.arange(12, dtype="f4").tobytes(),
)


# --- Vector types

value("a float4 is a tuple of four", "float4", (1, 2.5, True, np.float32(4)), np.array([1, 2.5, 1, 4], "f4").tobytes())
value("a float3 has no padding", "float3", (1.0, 2.0, 3.0), np.arange(1, 4, dtype="f4").tobytes())
value("a uchar4 checks each element's range", "uchar4", (0, 255, 1, 2), bytes([0, 255, 1, 2]))
value("a longlong2 arrives", "longlong2", (-1, 2**62), np.array([-1, 2**62], "i8").tobytes())
value("a double1 is a tuple of one", "double1", (0.1,), np.array([0.1]).tobytes())
value("a dim3 is three unsigned integers", "dim3", (4, 5, 6), np.array([4, 5, 6], "u4").tobytes())
value("a half2 is a tuple of two", "__half2", (1.5, -2), np.array([1.5, -2], "f2").tobytes(), types=HALF)
value("a bfloat162 is a tuple of two", "__nv_bfloat162", (1.0, -2.0), b"\x80\x3f\x00\xc0", types=BFLOAT)
value(
    "a structured scalar of four floats is a float4",
    "float4",
    np.array([(1, 2, 3, 4)], "f4,f4,f4,f4")[0],
    np.arange(1, 5, dtype="f4").tobytes(),
)
value("a complex number is a float2, as cuFloatComplex", "float2", 1 - 2j, np.complex64(1 - 2j).tobytes())
refused("a tuple of three is no float4", "float4", (1, 2, 3), ValueError, "`float4`", "tuple of 4 numbers")
refused("a number is no float4", "float4", 1.0, TypeError, "`float4`", "tuple of 4 numbers")
refused("an element of a tuple keeps the rules", "int2", (1, 2.0), TypeError, "element 1", "`int2`")
refused("an element of a tuple keeps its range", "char2", (1, 128), OverflowError, "element 1", "-128 to 127")
refused("a structured scalar of doubles is no float2", "float2", np.array([(1, 2)], "f8,f8")[0], TypeError, "`float2`")

pointer("a last axis of four is a float4", "const float4*", np.arange(12, dtype="f4").reshape(3, 4))
pointer("a last axis of three is a float3", "const float3*", np.arange(12, dtype="f4").reshape(4, 3))
pointer("one float4 has one axis", "const float4*", np.arange(4, dtype="f4"), count=1)
pointer("a batch of images of uchar4", "const uchar4*", np.arange(48, dtype="u1").reshape(2, 6, 4), count=12)
pointer("complex numbers are float2, as cuFloatComplex", "const float2*", np.array([1 + 2j, 3 - 4j], "c8"))
pointer("half2 is a last axis of two", "const __half2*", np.arange(6, dtype="f2").reshape(3, 2), types=HALF)
pointer("structures of two doubles are double2", "const double2*", np.array([(1, 2), (3, 4)], "f8,f8"))
refused("a last axis of three is no float4", "float4*", zeros("f4", (2, 3)), TypeError, "`float4`", "last axis")
refused("doubles are no float4", "float4*", zeros("f8", (2, 4)), TypeError, "`float4`", "float32", "last axis of 4")
refused(
    "a float4 is aligned to 16 bytes",
    "const float4*",
    lambda: Foreign(
        array := bascule.to_device(np.zeros(12, "f4")),
        shape=(2, 4),
        data=(array.__cuda_array_interface__["data"][0] + 4, False),
    ),
    ValueError,
    "aligned to the 16 bytes",
)
refused(
    "the elements of a float4 lie side by side",
    "float4*",
    lambda: Foreign(bascule.to_device(np.zeros(32, "f4")), shape=(4, 4), strides=(4, 16)),
    ValueError,
    "side by side",
)

# --- Structures: fields are compared with the compiler's

STRUCTS = """
struct Point { float x; double y; };
struct Body { Point at; unsigned char tags[3]; float v[2][3]; int id; };
#pragma pack(push, 1)
struct Packed { float x; double y; };
#pragma pack(pop)
struct alignas(32) Wide { int n; };
struct Base { int a; };
struct Derived : Base { float b; };
struct Node { Node* next; int key; };
struct Enumerated { enum class Kind : short { none } kind; bool flag; };
class Closed { float x_; public: double y; };
struct Bits { unsigned low : 3; unsigned high : 29; };
union Either { int i; float f; };
template <class T, int N> struct Box { T items[N]; };
namespace ns { struct Inner { short s; }; }
namespace { struct Hidden { int i; }; }
struct Half { __HALF__ h; float4 q; };
""".replace("__HALF__", "short")
POINT = np.dtype([("x", "f4"), ("y", "f8")], align=True)
PACKED = np.dtype([("x", "f4"), ("y", "f8")])
BODY = np.dtype([("at", POINT), ("tags", "u1", (3,)), ("v", "f4", (2, 3)), ("id", "i4")], align=True)


def structures(dtype: Any, count: int = 3) -> np.ndarray:
    """Elements of random bytes, each 0 or 1, in every field and in the padding."""
    bytes_ = RNG.integers(0, 2, count * np.dtype(dtype).itemsize).astype("u1")
    return bytes_.view(dtype)


def in_table(claim: str, declared: str, dtype: Any, struct: Any = None) -> None:
    """Adds a row by value and one by pointer. `struct` has all fields, if `dtype` names fewer."""
    host = structures(dtype)
    value(f"{claim}, by value", declared, host[0], host[0].tobytes(), types=STRUCTS, struct=struct or dtype)
    pointer(f"{claim}, by pointer", f"const {declared}*", host, types=STRUCTS)


in_table("an aligned struct is an aligned dtype", "Point", POINT)
in_table("a packed struct is a packed dtype", "Packed", PACKED)
in_table("structs hold structs, arrays and arrays of arrays", "Body", BODY)
in_table(
    "alignment beyond the members' is padding at the end", "Wide", {"names": ["n"], "formats": ["i4"], "itemsize": 32}
)
in_table("a base's fields come first", "Derived", [("a", "i4"), ("b", "f4")])
in_table("a pointer in a struct is a uint64", "Node", np.dtype([("next", "u8"), ("key", "i4")], align=True))
in_table(
    "enumerations and bools in a struct are their integers",
    "Enumerated",
    np.dtype([("kind", "i2"), ("flag", "?")], align=True),
)
in_table("an instance of a template is a struct", "Box<float, 3>", [("items", "f4", (3,))])
in_table("a struct in a namespace", "ns::Inner", [("s", "i2")])
in_table(
    "a field may be left out: its bytes are passed",
    "Point",
    {"names": ["y"], "formats": ["f8"], "offsets": [8], "itemsize": 16},
    POINT,
)
value(
    "raw bytes are a struct of that size",
    "Point",
    bascule.raw_bytes(bytes(range(16))),
    bytes(range(16)),
    types=STRUCTS,
    struct=POINT,
)
value("raw bytes are a union", "Either", bascule.raw_bytes(np.float32(1)), np.float32(1).tobytes(), types=STRUCTS)
value(
    "raw bytes are a class with private members",
    "Closed",
    bascule.raw_bytes(bytes(16)),
    bytes(16),
    types=STRUCTS,
    struct=POINT,
)
value(
    "raw bytes are an opaque struct of 128 bytes, as CUtensorMap",
    "const __grid_constant__ Map",
    bascule.raw_bytes(bytes(range(128))),
    bytes(range(128)),
    spelled="Map",
    types="struct alignas(64) Map { unsigned long long opaque[16]; };\n",
)
pointer("opaque bytes of that size go to a pointer to a struct", "const Point*", structures("V16"), types=STRUCTS)
kernel(
    "a struct of a nameless namespace is spelled without it",
    "__global__ void k(Hidden value, unsigned char* out) { write(out, value); }",
    "void k(Hidden value, unsigned char* out)",
    lambda: (np.array([(7,)], [("i", "i4")])[0],),
    struct.pack("<i", 7),
    types=STRUCTS,
)
for by, parameter in [("value", "Point"), ("pointer", "const Point*")]:

    def given(dtype: Any, by: str = by) -> Callable[[], Any]:
        return (lambda: structures(dtype)[0]) if by == "value" else (lambda: bascule.to_device(structures(dtype)))

    refused(
        f"another offset is told, by {by}",
        parameter,
        given({"names": ["x", "y"], "formats": ["f4", "f8"], "offsets": [0, 4], "itemsize": 16}),
        TypeError,
        *("'y'", "byte 8", "`Point`", "byte 4", "align=True"),
        types=STRUCTS,
    )
    refused(
        f"another type is told, by {by}",
        parameter,
        given(np.dtype([("x", "i4"), ("y", "f8")], align=True)),
        TypeError,
        *("'x'", "`float`", "int32"),
        types=STRUCTS,
    )
    refused(
        f"a field that the struct lacks is told, by {by}",
        parameter,
        given(np.dtype([("x", "f4"), ("z", "f8")], align=True)),
        TypeError,
        *("no field 'z'", "`Point`"),
        types=STRUCTS,
    )
    refused(
        f"another shape is told, by {by}",
        parameter,
        given(np.dtype([("x", "f4", (1,)), ("y", "f8")], align=True)),
        TypeError,
        *("'x'", "()", "(1,)"),
        types=STRUCTS,
    )
    refused(
        f"another size is told, by {by}",
        parameter,
        given(PACKED),
        (ValueError, TypeError),
        *("12 bytes", "16"),
        types=STRUCTS,
    )
refused(
    "a difference inside a nested struct names the path",
    "const Body*",
    lambda: bascule.to_device(
        structures(
            {
                "names": list(BODY.names),
                "formats": [np.dtype([("x", "f4"), ("y", "i8")], align=True)]
                + [BODY.fields[name][0] for name in BODY.names[1:]],
                "offsets": [BODY.fields[name][1] for name in BODY.names],
                "itemsize": BODY.itemsize,
            }
        )
    ),
    TypeError,
    "'at.y'",
    "`double`",
    "int64",
    types=STRUCTS,
)
refused(
    "private members are no fields",
    "const Closed*",
    lambda: bascule.to_device(
        structures({"names": ["x_", "y"], "formats": ["f4", "f8"], "offsets": [0, 8], "itemsize": 16})
    ),
    TypeError,
    "private",
    "raw_bytes",
    types=STRUCTS,
)
refused(
    "bit-fields are no fields",
    "Bits",
    lambda: structures([("low", "u4")])[0],
    TypeError,
    "bit-fields",
    "raw_bytes",
    types=STRUCTS,
)
refused("a number is no struct", "Point", 1, TypeError, "`Point`", "raw_bytes", types=STRUCTS)
refused(
    "a structured scalar is no union",
    "Either",
    lambda: structures([("i", "i4")])[0],
    TypeError,
    "`Either`",
    "raw_bytes",
    types=STRUCTS,
)
refused(
    "raw bytes of another size are told",
    "Point",
    bascule.raw_bytes(bytes(12)),
    ValueError,
    "12 bytes",
    "exactly 16",
    types=STRUCTS,
)
refused("raw bytes are no number", "int", bascule.raw_bytes(bytes(4)), TypeError, "pass a number")
refused(
    "an array of numbers is not an array of structs",
    "Point*",
    zeros("f4"),
    TypeError,
    "`Point*`",
    "16 bytes",
    types=STRUCTS,
)
refused(
    "opaque bytes of another size are no struct",
    "Point*",
    zeros("V8"),
    TypeError,
    "`Point*`",
    "16 bytes",
    types=STRUCTS,
)
refused("None is no struct", "Point", None, TypeError, "None", types=STRUCTS)

# --- Views and spans


def view(claim, declared, array, received, body, *, spelled=None, types=""):
    """Adds a row: `body` stores the view's elements in logical order, whatever the strides."""
    kernel(
        claim,
        f"__global__ void k({declared} v, unsigned char* out) {{ {body} }}",
        f"void k({spelled or declared} v, unsigned char* out)",
        lambda: (array(),),
        received,
        types,
    )


LINE = "for (int i = 0; i < (int)v.size(); ++i) write(out, v[i]);"
PLANE = "for (int i = 0; i < (int)v.extent(0); ++i) for (int j = 0; j < (int)v.extent(1); ++j) write(out, {});"
MATRIX = np.arange(12, dtype="f4").reshape(3, 4)
view(
    "a view steps over strides",
    "bascule::array_view<const float>",
    lambda: Foreign(bascule.to_device(np.arange(8, dtype="f4")), shape=(4,), strides=(8,)),
    np.arange(0, 8, 2, dtype="f4").tobytes(),
    LINE,
)
view(
    "a view steps backwards",
    "bascule::array_view<float, 1>",
    lambda: Foreign(
        a := bascule.to_device(np.arange(4, dtype="f4")),
        strides=(-4,),
        data=(a.__cuda_array_interface__["data"][0] + 12, False),
    ),
    np.arange(4, dtype="f4")[::-1].tobytes(),
    LINE,
    spelled="bascule::array_view<float>",
)
view(
    "a view has two dimensions in Fortran order",
    "bascule::array_view<const float, 2>",
    lambda: bascule.to_device(np.asfortranarray(MATRIX)),
    MATRIX.tobytes(),
    PLANE.format("v(i, j)"),
)
view(
    "a view of float4 leaves the last axis to its elements",
    "bascule::array_view<const float4>",
    lambda: bascule.to_device(MATRIX),
    MATRIX.tobytes(),
    LINE,
)
BODIES = structures(POINT)
view(
    "a view of structs",
    "bascule::array_view<const Point>",
    lambda: bascule.to_device(BODIES),
    BODIES.tobytes(),
    LINE,
    types=STRUCTS,
)
refused(
    "a view has its rank",
    "bascule::array_view<float, 2>",
    zeros("f4"),
    ValueError,
    "2 dimensions",
    "`bascule::array_view<float>`",
)
refused(
    "a view has its elements' type",
    "bascule::array_view<float>",
    zeros("f8"),
    TypeError,
    "`bascule::array_view<double>`",
)
refused("a view needs a shape", "bascule::array_view<float>", bascule.raw_pointer(16), TypeError, "shape")
refused(
    "a view of structs compares fields",
    "bascule::array_view<Point>",
    lambda: bascule.to_device(structures(np.dtype([("x", "f4"), ("y", "i8")], align=True))),
    TypeError,
    "'y'",
    types=STRUCTS,
)
refused(
    "a broadcast axis is not written to",
    "bascule::array_view<float>",
    lambda: Foreign(bascule.to_device(np.zeros(1, "f4")), shape=(4,), strides=(0,)),
    ValueError,
    "broadcast",
)

EXTENTS = "cuda::std::extents<int, cuda::std::dynamic_extent, 4>"
view(
    "a span has the array's length",
    "cuda::std::span<const float>",
    lambda: bascule.to_device(MATRIX[0]),
    MATRIX[0].tobytes(),
    LINE,
    types=CUDA_STD,
)
view(
    "a span of fixed length",
    "cuda::std::span<float, 4>",
    lambda: bascule.to_device(MATRIX[1]),
    MATRIX[1].tobytes(),
    LINE,
    types=CUDA_STD,
)
INDEX = PLANE.format("v.data_handle()[v.mapping()(i, j)]")
view(
    "an mdspan with a fixed extent, rows first",
    f"cuda::std::mdspan<const float, {EXTENTS}>",
    lambda: bascule.to_device(MATRIX),
    MATRIX.tobytes(),
    INDEX,
    types=CUDA_STD,
)
view(
    "an mdspan, columns first",
    "cuda::std::mdspan<float, cuda::std::dextents<long, 2>, cuda::std::layout_left>",
    lambda: bascule.to_device(np.asfortranarray(MATRIX)),
    MATRIX.tobytes(),
    INDEX,
    types=CUDA_STD,
    spelled="cuda::std::mdspan<float, cuda::std::extents<long, cuda::std::dynamic_extent, "
    "cuda::std::dynamic_extent>, cuda::std::layout_left>",
)
view(
    "an mdspan with strides",
    f"cuda::std::mdspan<const float, {EXTENTS}, cuda::std::layout_stride>",
    lambda: Foreign(bascule.to_device(np.arange(24, dtype="f4")), shape=(3, 4), strides=(8, 24)),
    np.arange(24, dtype="f4").reshape(4, 3, 2)[:, :, 0].T.tobytes(),
    INDEX,
    types=CUDA_STD,
)
refused(
    "a span needs elements without gaps",
    "cuda::std::span<float>",
    lambda: Foreign(bascule.to_device(np.zeros(8, "f4")), shape=(4,), strides=(8,)),
    ValueError,
    "`bascule::array_view<float>`",
    types=CUDA_STD,
)
refused(
    "a span of fixed length refuses another",
    "cuda::std::span<float, 4>",
    zeros("f4", 5),
    ValueError,
    "5 elements",
    types=CUDA_STD,
)
refused(
    "a span has one dimension", "cuda::std::span<float>", zeros("f4", (2, 2)), ValueError, "1 dimension", types=CUDA_STD
)
refused("a span's elements have its type", "cuda::std::span<float>", zeros("f8"), TypeError, "float64", types=CUDA_STD)
refused(
    "an mdspan's fixed extent is checked",
    f"cuda::std::mdspan<float, {EXTENTS}>",
    zeros("f4", (3, 5)),
    ValueError,
    "Axis 1",
    "5",
    types=CUDA_STD,
)
refused(
    "rows first refuses columns first",
    f"cuda::std::mdspan<const float, {EXTENTS}>",
    lambda: bascule.to_device(np.asfortranarray(MATRIX)),
    ValueError,
    "C order",
    types=CUDA_STD,
)
