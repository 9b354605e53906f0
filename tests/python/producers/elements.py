"""Element types of the exported arrays: random values, kernels that compute with them, and the same in NumPy.

All results are exact in the type, so that they are compared without a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

import bascule

PARTICLE = np.dtype([("id", "<i4"), ("mass", "<f8")], align=True)
READING = np.dtype([("tag", "|u1"), ("value", "<f4")])

# Separate texts, because comparing a struct's fields compiles its text a second time.
HALVES = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
"""
STRUCTS = """
struct particle { int id; double mass; };
#pragma pack(push, 1)
struct reading { unsigned char tag; float value; };
#pragma pack(pop)
"""


@dataclass(frozen=True)
class Element:
    """How one type is spelled in C++, a computation with it there, and the same computation in NumPy."""

    name: str
    dtype: np.dtype
    cpp: str
    computed: str  # a C++ expression in `x`
    values: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    expected: Callable[[np.ndarray], np.ndarray]


def small_integers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(0, 40, shape)


def bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """The bits of numbers that bfloat16 represents exactly: the upper half of their float32."""
    return (np.asarray(values, "<f4").view("<u4") >> 16).astype("<u2")


def from_bfloat16_bits(bits: np.ndarray) -> np.ndarray:
    return (bits.astype("<u4") << 16).view("<f4")


def integer(dtype: str, cpp: str) -> tuple[str, Element]:
    return dtype, Element(
        name=f"integer_{dtype[1:]}",
        dtype=np.dtype(dtype),
        cpp=cpp,
        computed=f"static_cast<{cpp}>(x * 3 + 1)",
        values=lambda rng, shape: small_integers(rng, shape).astype(dtype),
        expected=lambda x: (x * 3 + 1).astype(dtype),
    )


def floating(dtype: str, cpp: str) -> tuple[str, Element]:
    return dtype, Element(
        name=f"floating_{dtype[1:]}",
        dtype=np.dtype(dtype),
        cpp=cpp,
        computed="x * 2 + 1",
        values=lambda rng, shape: small_integers(rng, shape).astype(dtype) / np.dtype(dtype).type(4),
        expected=lambda x: (x * 2 + 1).astype(dtype),
    )


def complex_numbers(dtype: str, cpp: str) -> tuple[str, Element]:
    return dtype, Element(
        name=f"complex_{dtype[1:]}",
        dtype=np.dtype(dtype),
        cpp=cpp,
        computed=f"make_{cpp}(1 - 2 * x.y, 2 * x.x)",
        values=lambda rng, shape: (small_integers(rng, shape) + 1j * small_integers(rng, shape)).astype(dtype),
        expected=lambda x: (x * 2j + 1).astype(dtype),
    )


def particles(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    made = np.zeros(shape, PARTICLE)
    made["id"], made["mass"] = small_integers(rng, shape), rng.random(shape)
    return made


def readings(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    made = np.zeros(shape, READING)
    made["tag"], made["value"] = small_integers(rng, shape), small_integers(rng, shape)
    return made


def heavier(x: np.ndarray) -> np.ndarray:
    made = np.zeros_like(x)
    made["id"], made["mass"] = x["id"] + 100, x["mass"] * 2
    return made


def louder(x: np.ndarray) -> np.ndarray:
    made = np.zeros_like(x)
    made["tag"], made["value"] = x["tag"] + 1, x["value"] * 2
    return made


ELEMENTS = dict(
    [
        integer("|i1", "signed char"),
        integer("|u1", "unsigned char"),
        integer("<u2", "unsigned short"),
        integer("<i4", "int"),
        integer("<i8", "long long"),
        floating("<f4", "float"),
        floating("<f8", "double"),
        complex_numbers("<c8", "float2"),
        complex_numbers("<c16", "double2"),
    ]
)
ELEMENTS["|b1"] = Element(
    "boolean", np.dtype("?"), "bool", "!x", lambda rng, shape: np.asarray(rng.random(shape) < 0.5), np.logical_not
)
ELEMENTS["<M8[ns]"] = Element(
    "time",
    np.dtype("<M8[ns]"),
    "long long",
    "x + 1000",
    lambda rng, shape: small_integers(rng, shape).astype("<M8[ns]"),
    lambda x: x + np.timedelta64(1, "us"),
)
ELEMENTS["<f2"] = Element(
    "half",
    np.dtype("<f2"),
    "__half",
    "__float2half(__half2float(x) * 2 + 1)",
    lambda rng, shape: small_integers(rng, shape).astype("<f2"),
    lambda x: (x * 2 + 1).astype("<f2"),
)
ELEMENTS["bfloat16"] = Element(
    "bfloat16",
    np.dtype("<u2"),
    "__nv_bfloat16",
    "__float2bfloat16(__bfloat162float(x) * 2 + 1)",
    lambda rng, shape: bfloat16_bits(small_integers(rng, shape)),
    lambda x: bfloat16_bits(from_bfloat16_bits(x) * 2 + 1),
)
ELEMENTS["particle"] = Element("particle", PARTICLE, "particle", "particle{x.id + 100, x.mass * 2}", particles, heavier)
ELEMENTS["reading"] = Element(
    "reading", READING, "reading", "reading{static_cast<unsigned char>(x.tag + 1), x.value * 2}", readings, louder
)

# For every type, kernels that compute from a contiguous array or a view into C order, and others that do so in place.
KERNELS = """
__device__ {T} {name}_of({T} x) {{ return {computed}; }}

__global__ void {name}_flat(const {T}* x, unsigned char* out, long long count) {{
    for (auto i : bascule::grid_stride(count)) reinterpret_cast<{T}*>(out)[i] = {name}_of(x[i]);
}}
__global__ void {name}_flat_in_place({T}* x, long long count) {{
    for (auto i : bascule::grid_stride(count)) x[i] = {name}_of(x[i]);
}}
__global__ void {name}_view1(bascule::array_view<const {T}> x, unsigned char* out) {{
    for (auto i : bascule::grid_stride(x.size())) reinterpret_cast<{T}*>(out)[i] = {name}_of(x[i]);
}}
__global__ void {name}_view1_in_place(bascule::array_view<{T}> x) {{
    for (auto i : bascule::grid_stride(x.size())) x[i] = {name}_of(x[i]);
}}
"""
KERNELS_OF_TWO_DIMENSIONS = """
__global__ void {name}_view2(bascule::array_view<const {T}, 2> x, unsigned char* out) {{
    for (auto i : bascule::grid_stride(x.size()))
        reinterpret_cast<{T}*>(out)[i] = {name}_of(x(i / x.extent(1), i % x.extent(1)));
}}
__global__ void {name}_view2_in_place(bascule::array_view<{T}, 2> x) {{
    for (auto i : bascule::grid_stride(x.size())) {{
        {T}& element = x(i / x.extent(1), i % x.extent(1));
        element = {name}_of(element);
    }}
}}
"""
KERNELS_OF_THREE_DIMENSIONS = """
__global__ void {name}_view3(bascule::array_view<const {T}, 3> x, unsigned char* out) {{
    const long long rows = x.extent(1), columns = x.extent(2);
    for (auto i : bascule::grid_stride(x.size()))
        reinterpret_cast<{T}*>(out)[i] = {name}_of(x(i / columns / rows, i / columns % rows, i % columns));
}}
__global__ void {name}_view3_in_place(bascule::array_view<{T}, 3> x) {{
    const long long rows = x.extent(1), columns = x.extent(2);
    for (auto i : bascule::grid_stride(x.size())) {{
        {T}& element = x(i / columns / rows, i / columns % rows, i % columns);
        element = {name}_of(element);
    }}
}}
"""


def kernel_text(element: Element, ndim: int) -> str:
    texts = [KERNELS, KERNELS_OF_TWO_DIMENSIONS, KERNELS_OF_THREE_DIMENSIONS][:ndim]
    return "".join(text.format(T=element.cpp, name=element.name, computed=element.computed) for text in texts)


class Programs:
    """Kernels for each (element, number of dimensions) that the exports have, by name."""

    def __init__(self, wanted: Iterable[tuple[str, int]]) -> None:
        dimensions: dict[str, int] = {}
        for name, ndim in wanted:
            dimensions[name] = max(1, ndim, dimensions.get(name, 0))
        self._modules = []
        for heading, struct in [(HALVES, False), (STRUCTS, True)]:
            texts = [
                kernel_text(ELEMENTS[name], ndim)
                for name, ndim in sorted(dimensions.items())
                if (ELEMENTS[name].dtype.names is not None) == struct
            ]
            if texts:
                self._modules.append(bascule.compile(heading + "".join(texts)))

    def __getitem__(self, name: str) -> bascule.Kernel:
        for module in self._modules:
            if name in module.kernels:
                return module[name]
        raise KeyError(name)
