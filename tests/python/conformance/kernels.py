"""The parameters that descriptors are bound to. Each kernel adds one to every element, or copies them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import bascule

PACKED = np.dtype([("tag", "u1"), ("a", "<f4"), ("b", "<i2")])
ALIGNED = np.dtype([("tag", "u1"), ("a", "<f4"), ("b", "<i2")], align=True)
NESTED = np.dtype([("a", "<f4"), ("inside", [("x", "<i2", (3,)), ("y", "<i2")]), ("b", "<f8", (2,))], align=True)

STRUCTURES = """
struct __attribute__((packed)) packed { unsigned char tag; float a; short b; };
struct aligned { unsigned char tag; float a; short b; };
struct inner { short x[3]; short y; };
struct nested { float a; inner inside; double b[2]; };
struct five { unsigned char a[5]; };
struct shorts { short a, b, c; };
"""
HEADERS = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda/std/span>
"""


def add_one(values: np.ndarray) -> np.ndarray:
    return values + values.dtype.type(1)


def add_one_to_bfloat16(values: np.ndarray) -> np.ndarray:
    numbers = (values.astype("u4") << 16).view("f4") + np.float32(1)
    return (numbers.view("u4") >> 16).astype("u2")  # exact for the small integers used here


def add_one_to(field: str) -> Callable[[np.ndarray], np.ndarray]:
    def change(values: np.ndarray) -> np.ndarray:
        values = values.copy()
        values[field] += 1
        return values

    return change


@dataclass(frozen=True)
class Parameter:
    """A declared array, the statement that its kernel runs for the element `i`, and the same in NumPy.

    dtype : the elements' dtype in NumPy and, unless a case says otherwise, in the descriptor.
    copies : the elements are const, and are copied to a second array of floats.
    """

    declaration: str
    dtype: np.dtype
    statement: str = "p[i] = p[i] + 1"
    change: Callable[[np.ndarray], np.ndarray] = add_one
    copies: bool = False

    @property
    def name(self) -> str:
        return "k_" + "".join(c if c.isalnum() else "_" for c in self.declaration)

    @property
    def source(self) -> str:
        out, statement = (", float* out", "out[i] = p[i]") if self.copies else ("", self.statement)
        return (
            f"__global__ void {self.name}({self.declaration} p{out}, int n)"
            f" {{ int i = threadIdx.x; if (i < n) {statement}; }}\n"
        )


def parameter(declaration: str, dtype: object, *rest: object, **options: object) -> Parameter:
    return Parameter(declaration, np.dtype(dtype), *rest, **options)


FIVE = np.dtype([("a", "u1"), ("", "V4")])
SHORTS = np.dtype([("a", "<i2"), ("", "V4")])

PARAMETERS = {
    entry.declaration: entry
    for entry in [
        parameter("bool*", "?", "p[i] = !p[i]", np.logical_not),
        parameter("signed char*", "i1"),
        parameter("short*", "i2"),
        parameter("int*", "i4"),
        parameter("long long*", "i8"),
        parameter("unsigned char*", "u1"),
        parameter("unsigned short*", "u2"),
        parameter("unsigned int*", "u4"),
        parameter("unsigned long long*", "u8"),
        parameter("__half*", "f2", "p[i] = __hadd(p[i], __float2half(1.0f))"),
        parameter("float*", "f4"),
        parameter("double*", "f8"),
        parameter("float2*", "c8", "p[i].x += 1"),
        parameter("double2*", "c16", "p[i].x += 1"),
        parameter("__nv_bfloat16*", "u2", "p[i] = __float2bfloat16(__bfloat162float(p[i]) + 1)", add_one_to_bfloat16),
        parameter("five*", FIVE, "p[i].a[0] += 1", add_one_to("a")),
        parameter("packed*", PACKED, "p[i].a += 1", add_one_to("a")),
        parameter("aligned*", ALIGNED, "p[i].a += 1", add_one_to("a")),
        parameter("nested*", NESTED, "p[i].a += 1", add_one_to("a")),
        parameter("const float*", "f4", copies=True),
        parameter("bascule::array_view<float>", "f4"),
        parameter("bascule::array_view<const float>", "f4", copies=True),
        parameter("bascule::array_view<float, 2>", "f4", "p(i / p.extent(1), i % p.extent(1)) += 1"),
        parameter("bascule::array_view<shorts>", SHORTS, "p[i].a += 1", add_one_to("a")),
        parameter("bascule::masked_view<float>", "f4", "if (p.valid(i)) p[i] = p[i] + 1"),
        parameter("cuda::std::span<float>", "f4"),
    ]
}


def needs_headers(declaration: str) -> bool:
    return any(name in declaration for name in ("half", "bfloat16", "span"))


@functools.cache
def module(headers: bool) -> bascule.Module:
    """Compiles one of two texts. Structures, whose layouts need a second compile, are in the one without headers."""
    chosen = [entry.source for entry in PARAMETERS.values() if needs_headers(entry.declaration) == headers]
    return bascule.compile((HEADERS if headers else STRUCTURES) + "".join(chosen))


@functools.cache
def kernel_of(parameter: Parameter) -> bascule.Kernel:
    """Returns the loaded kernel, so that only the launch remains."""
    return getattr(module(needs_headers(parameter.declaration)), parameter.name).prepare()
