"""Random structured dtypes, and kernels that read and write every field of them.

The CUDA C++ types are in this file's own table: what `bascule.struct` writes must agree with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

HEADERS = """
#include <cuda/std/complex>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
"""


@dataclass(frozen=True)
class Leaf:
    dtype: np.dtype
    cpp: str
    change: str  # a C++ expression in v

    def changed(self, values: np.ndarray) -> np.ndarray:
        """The same change on NumPy values; the change `v ^ 1` is made to their bits, also of times."""
        if self.change == "-v":
            return -values
        if self.change == "!v":
            return ~values
        return (values.view(f"u{self.dtype.itemsize}") ^ np.uint64(1).astype(f"u{self.dtype.itemsize}")).view(
            self.dtype
        )


def leaf(dtype: object, cpp: str, change: str) -> Leaf:
    return Leaf(np.dtype(dtype), cpp, change)


FLIP = "v ^ 1"
LEAVES = [
    leaf("?", "bool", "!v"),
    leaf("i1", "signed char", FLIP),
    leaf("u1", "unsigned char", FLIP),
    leaf("i2", "short", FLIP),
    leaf("u2", "unsigned short", FLIP),
    leaf("i4", "int", FLIP),
    leaf("u4", "unsigned int", FLIP),
    leaf("i8", "long long", FLIP),
    leaf("u8", "unsigned long long", FLIP),
    leaf("f2", "__half", "-v"),
    leaf("f4", "float", "-v"),
    leaf("f8", "double", "-v"),
    leaf("c8", "cuda::std::complex<float>", "-v"),
    leaf("c16", "cuda::std::complex<double>", "-v"),
    leaf("M8[us]", "long long", FLIP),
    leaf("m8[3s]", "long long", FLIP),
    leaf(ml_dtypes.bfloat16, "__nv_bfloat16", "-v"),
    leaf(ml_dtypes.float8_e4m3fn, "__nv_fp8_e4m3", "-v"),
]
LEAF_OF = {each.dtype: each for each in LEAVES}
OPAQUE = [np.dtype("V1"), np.dtype("V5"), np.dtype("V16")]
NAMES = ["x", "y", "mass", "Place", "position_0", "_lower", "id", "value", "Record_x"]


@st.composite
def structured_dtypes(draw: st.DrawFn, depth: int = 2) -> np.dtype:
    """Draws a structured dtype: packed, aligned, or with gaps and in any order; with structures and arrays inside."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    plain = st.sampled_from([each.dtype for each in LEAVES] + OPAQUE)
    element = st.one_of(plain, plain, structured_dtypes(depth - 1)) if depth > 0 else plain
    shape = st.sampled_from([(), (), (), (3,), (2, 2)])
    formats = [(draw(element), draw(shape)) for _ in names]
    how = draw(st.sampled_from(["packed", "aligned", "gaps"]))
    if how != "gaps":
        return np.dtype([(name, *each) for name, each in zip(names, formats, strict=True)], align=how == "aligned")
    offsets, end = [], 0
    for each in formats:
        offsets.append(end + draw(st.integers(0, 5)))
        end = offsets[-1] + np.dtype(each).itemsize
    order = draw(st.permutations(range(len(names))))
    return np.dtype(
        {
            "names": [names[i] for i in order],
            "formats": [formats[i] for i in order],
            "offsets": [offsets[i] for i in order],
            "itemsize": end + draw(st.integers(0, 5)),
        }
    )


def statements(dtype: np.dtype, source: str, target: str, depth: int = 0) -> Iterator[str]:
    """Yields C++ that assigns each field of `source`, changed, to that of `target`."""
    for name in dtype.names:
        field = dtype.fields[name][0]
        element, shape = field.subdtype or (field, ())
        loops = "".join(f"for (int i{depth + d} = 0; i{depth + d} < {n}; ++i{depth + d}) " for d, n in enumerate(shape))
        place = f".{name}" + "".join(f"[i{depth + d}]" for d in range(len(shape)))
        inner = depth + len(shape)
        if element.names is not None:
            body = " ".join(statements(element, source + place, target + place, inner))
        elif element in LEAF_OF:
            row = LEAF_OF[element]
            change = "v" if row.cpp == "__nv_fp8_e4m3" else row.change
            flip = "v.__x ^= 0x80; " if row.cpp == "__nv_fp8_e4m3" else ""
            body = f"{row.cpp} v = {source}{place}; {flip}{target}{place} = static_cast<{row.cpp}>({change});"
        else:
            n = element.itemsize
            body = f"for (int b = 0; b < {n}; ++b) {target}{place}[b] = {source}{place}[{n - 1} - b];"
        yield f"{loops}{{ {body} }}"


def change_fields(values: np.ndarray, out: np.ndarray) -> None:
    """The same in NumPy: sets `out`'s fields from those of `values`; bytes between fields stay unchanged."""
    for name in values.dtype.names:
        field = values[name]
        if field.dtype.names is not None:
            change_fields(field, out[name])
        elif field.dtype in LEAF_OF:
            out[name] = LEAF_OF[field.dtype].changed(np.ascontiguousarray(field))
        else:
            n = field.dtype.itemsize
            reversed_bytes = np.frombuffer(field.tobytes(), "u1").reshape(-1, n)[:, ::-1]
            out[name] = np.frombuffer(reversed_bytes.tobytes(), field.dtype).reshape(field.shape)


def fill(values: np.ndarray, rng: np.random.Generator) -> None:
    """Fills numbers with small non-zero ones that every type can represent; bools and bytes are random."""
    for name in values.dtype.names:
        field = values[name]
        if field.dtype.names is not None:
            fill(field, rng)
        elif field.dtype not in LEAF_OF:
            field[...] = np.frombuffer(rng.bytes(field.nbytes), field.dtype).reshape(field.shape)
        elif field.dtype.kind == "b":
            field[...] = rng.integers(0, 2, field.shape)
        elif field.dtype.kind == "c":
            field[...] = rng.integers(1, 9, field.shape) + 1j * rng.integers(1, 9, field.shape)
        else:
            field[...] = rng.integers(1, 9, field.shape).astype("i8").astype(field.dtype)


def poisoned(count: int, dtype: np.dtype) -> np.ndarray:
    """Returns an array in which every byte is 0xA5, gaps included; NumPy's own copies leave gaps undefined."""
    return np.frombuffer(bytearray(b"\xa5" * (count * dtype.itemsize)), dtype)
