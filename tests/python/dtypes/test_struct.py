"""`bascule.struct`: NumPy's structured dtypes as CUDA C++, field for field."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import bascule

from .structures import HEADERS, change_fields, fill, poisoned, statements, structured_dtypes

COUNT = 3
numbers = itertools.count()


def kernels_for(dtypes):
    """Compiles a struct and a kernel for each dtype, with names of their own. Returns the kernels' names too."""
    text = [HEADERS]
    names = []
    for dtype in dtypes:
        name = f"S{next(numbers)}"
        names.append(name)
        body = "\n    ".join(statements(dtype, "p[i]", "q[i]"))
        text.append(bascule.struct(dtype, name))
        # The parameters are bytes, so that the compiler need not be asked for the fields of each struct.
        text.append(f"""__global__ void change_{name}(const unsigned char* from, unsigned char* to) {{
    const {name}* p = reinterpret_cast<const {name}*>(from);
    {name}* q = reinterpret_cast<{name}*>(to);
    const int i = threadIdx.x;
    {body}
}}""")
    return bascule.compile("\n".join(text)), [f"change_{name}" for name in names]


@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(structured_dtypes(), min_size=10, max_size=10))
def test_a_kernel_reads_and_writes_every_field_of_any_structure_and_nothing_between_them(dtypes):
    rng = np.random.default_rng(8)
    module, names = kernels_for(dtypes)
    for dtype, name in zip(dtypes, names, strict=True):
        values, out, expected = (poisoned(COUNT, dtype) for _ in range(3))
        fill(values, rng)
        change_fields(values, expected)
        array = bascule.to_device(out.view("u1"))
        module[name][1, COUNT](bascule.to_device(values.view("u1")), array)
        assert array.copy_to_host().tobytes() == expected.tobytes(), bascule.struct(dtype, "S")


PARTICLE = [
    ("kind", "u1"),
    ("at", [("x", "f4"), ("y", "f8")], (2,)),
    ("charge", "c8"),
    ("heat", "f2"),
    ("tag", "V3"),
    ("seen", "M8[us]"),
]


@pytest.mark.parametrize("align", [False, True], ids=["packed", "aligned"])
def test_an_array_of_structures_is_compared_with_the_struct_and_goes_through(align, rng):
    particle = PARTICLE if align else [field for field in PARTICLE if field[0] != "charge"]  # compiles in less time
    dtype = np.dtype(particle, align=align)
    body = "\n".join(statements(dtype, "p[i]", "q[i]"))
    source = bascule.struct(dtype, "Particle") + (
        f"__global__ void change(const Particle* p, Particle* q) {{ const int i = threadIdx.x; {body} }}"
    )
    values, expected = poisoned(COUNT, dtype), poisoned(COUNT, dtype)
    fill(values, rng)
    change_fields(values, expected)
    out = bascule.to_device(poisoned(COUNT, dtype))
    kernel = bascule.compile(source).change
    kernel[1, COUNT](bascule.to_device(values), out)
    assert out.copy_to_host().tobytes() == expected.tobytes()
    assert out.dtype == dtype
    other = np.dtype(particle, align=not align)
    with pytest.raises(TypeError, match=r"argument 1 'p'"):
        kernel[1, COUNT](bascule.to_device(poisoned(COUNT, other)), out)


def test_structures_inside_become_structs_of_their_own_once_each():
    point = np.dtype([("x", "f4"), ("y", "f4")])
    text = bascule.struct([("a", point), ("b", point, (2,)), ("c", [("x", "f4"), ("y", "i4")])], "Path")
    assert text.count("struct Path") == 3
    assert "Path_a b[2];" in text
    assert "Path_c c;" in text


def test_gaps_have_no_name_and_every_offset_is_asserted():
    dtype = np.dtype({"names": ["b", "a"], "formats": ["f8", "u1"], "offsets": [8, 2], "itemsize": 24})
    text = bascule.struct(dtype, "Gaps")
    lines = [line.strip() for line in text.splitlines()]
    assert lines[lines.index("struct Gaps {") :][:6] == [
        "struct Gaps {",
        "unsigned char : 8, : 8;",
        "unsigned char a;",
        "double b;",  # the compiler's offset
        "unsigned char : 8, : 8, : 8, : 8, : 8, : 8, : 8, : 8;",
        "};",
    ]
    assert "static_assert(sizeof(Gaps) == 24" in text
    assert "static_assert(offsetof(Gaps, a) == 2" in text
    assert "static_assert(offsetof(Gaps, b) == 8" in text
    assert "pragma" not in text


@pytest.mark.parametrize(
    ("dtype", "pragma"),
    [
        (np.dtype([("a", "u1"), ("b", "f8")], align=True), None),
        (np.dtype([("a", "f4"), ("b", "i4")]), None),
        (np.dtype([("a", "u1"), ("b", "f8")]), "pack(push, 1)"),
        (np.dtype([("a", "i2"), ("b", "f8")]), "pack(push, 2)"),
        (np.dtype([("a", "f4"), ("b", "f8")]), "pack(push, 4)"),
        (np.dtype([("b", "f8"), ("a", "f4")]), "pack(push, 4)"),
        (np.dtype([("a", "f8"), ("b", "c16")], align=True), "pack(push, 8)"),
    ],
    ids=str,
)
def test_a_struct_is_packed_no_tighter_than_its_fields_need(dtype, pragma):
    text = bascule.struct(dtype)
    assert (pragma in text) if pragma else ("pragma" not in text)
    assert text.count("struct Record {") == 1


def test_only_what_a_struct_needs_is_included():
    assert bascule.struct([("a", "f4")]).count("#include") == bascule.struct([("a", "f4")]).count("<cstddef>") == 1
    assert bascule.struct([("a", "f2"), ("b", [("c", "c8")])]).startswith(
        "#include <cstddef>\n#include <cuda/std/complex>\n#include <cuda_fp16.h>\n"
    )


OVERLAP = {"names": ["a", "b"], "formats": ["f8", "f4"], "offsets": [0, 4]}


@pytest.mark.parametrize(
    ("dtype", "error", "says"),
    [
        ([("a", "O")], TypeError, ["'a'", "Python objects"]),
        ([("s", [("a", "f4"), ("name", "S8")])], TypeError, ["'s.name'", "strings"]),
        ([("a", "U4", (2,))], TypeError, ["'a'", "strings"]),
        ([("a", ">f4")], ValueError, ["'a'", ">f4"]),
        ([("a", "f16")], ValueError, ["'a'", "float128"]),
        (OVERLAP, ValueError, ["'b'", "overlaps", "'a'"]),
        ([("s", OVERLAP)], ValueError, ["'s.b'", "overlaps"]),
        ([("class", "f4")], ValueError, ["'class'", "keyword"]),
        ([("not", "f4")], ValueError, ["'not'", "keyword"]),
        ([("a b", "f4")], ValueError, ["'a b'", "identifier"]),
        ([("größe", "f4")], ValueError, ["'größe'", "identifier"]),
        ([("1st", "f4")], ValueError, ["'1st'", "identifier"]),
        ([("__device__", "f4")], ValueError, ["'__device__'", "underscores"]),
        ([("Record", "f4")], ValueError, ["'Record'", "name"]),
        ([("a", "f4", (0,))], ValueError, ["'a'", "empty array"]),
        ([("a", "int4")], ValueError, ["'a'", "int4"]),
        ("f4", ValueError, ["no fields"]),
        ([], ValueError, ["no fields"]),
    ],
    ids=str,
)
def test_what_no_cpp_struct_can_have_is_refused_by_the_name_of_the_field(dtype, error, says):
    with pytest.raises(error) as caught:
        bascule.struct(dtype)
    assert isinstance(caught.value, bascule.ArgumentError)
    for words in says:
        assert words in str(caught.value)


@pytest.mark.parametrize("name", ["float", "two words", "", "__mine", "ns::Particle"])
def test_a_name_that_no_struct_can_have_is_refused(name):
    with pytest.raises(ValueError, match="name"):
        bascule.struct([("a", "f4")], name)


def test_a_class_that_may_lie_unaligned_is_read_by_conversion():
    text = bascule.struct([("k", "u1"), ("h", "f2"), ("z", "c16", (2,))])
    assert "bascule::unaligned<__half> h;" in text
    assert "bascule::unaligned<cuda::std::complex<double>> z[2];" in text
