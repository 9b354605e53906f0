"""Structured dtypes: valid values of `descr`, what a DeviceArray keeps of it, and how often the compiler is asked."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import bascule

PARTICLE = np.dtype(
    [("kind", "u1"), ("at", [("x", "f4"), ("y", "f4")], (2,)), ("mass", "f8"), ("id", "i2", (3,))], align=True
)
SOURCE = """
struct Place { float x, y; };
struct Particle { unsigned char kind; Place at[2]; double mass; short id[3]; };
__global__ void mass(const Particle* p, double* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = p[i].mass * p[i].at[1].y + p[i].id[2];
}
__global__ void one(Particle p, double* out) { out[0] = p.mass + p.kind; }
"""


def particles(count=5):
    rng = np.random.default_rng(11)
    host = np.zeros(count, PARTICLE)
    host["kind"] = rng.integers(0, 255, count)
    host["at"]["y"] = rng.integers(-8, 8, (count, 2))
    host["mass"] = rng.integers(0, 99, count) / 4  # exact, also with fused operations
    host["id"] = rng.integers(-99, 99, (count, 3))
    return host


class Described:
    """A foreign array whose descriptor is given by the test."""

    def __init__(self, array, **changes):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}


def test_an_array_of_structures_comes_back_with_the_names_of_its_fields():
    host = particles()
    array = bascule.to_device(host)
    assert array.dtype == host.dtype
    assert array.copy_to_host().dtype == host.dtype
    np.testing.assert_array_equal(array.copy_to_host(), host)
    assert bascule.device_array(3, PARTICLE).dtype == PARTICLE


def test_an_exported_descr_is_numpys():
    fields = bascule.to_device(particles()).__cuda_array_interface__
    assert fields["typestr"] == f"|V{PARTICLE.itemsize}"
    assert np.dtype(fields["descr"]).itemsize == PARTICLE.itemsize
    assert "descr" not in bascule.to_device(np.zeros(3, "f4")).__cuda_array_interface__


def test_structures_are_computed_with():
    host = particles(100)
    out = bascule.to_device(np.full(100, np.nan))
    bascule.compile(SOURCE).mass[1, 32](bascule.to_device(host), out, 100)
    np.testing.assert_array_equal(out.copy_to_host(), host["mass"] * host["at"]["y"][:, 1] + host["id"][:, 2])


def test_the_compiler_is_asked_once_for_each_struct_and_dtype():
    module = bascule.compile(SOURCE + "// once")
    array, out = bascule.to_device(particles()), bascule.to_device(np.zeros(5))
    module.mass[1, 32](array, out, 5)
    calls = bascule.cache.stats().nvrtc_calls
    for _ in range(3):
        module.mass[1, 32](array, out, 5)
        module.mass[1, 32](bascule.to_device(particles()), out, 5)
    assert bascule.cache.stats().nvrtc_calls == calls


def test_preparing_compares_fields_too():
    wrong = np.dtype([("kind", "u1"), ("pad", "V23"), ("mass", "f8"), ("end", "V8")])
    kernel = bascule.compile(SOURCE).mass
    with pytest.raises(bascule.ArgumentError, match=r"argument 1 'p'.*no field 'pad'"):
        kernel.prepare(bascule.to_device(np.zeros(5, wrong)), bascule.to_device(np.zeros(5)), 5)


@pytest.mark.parametrize(
    ("descr", "error", "says"),
    [
        (42, TypeError, "list"),
        ([("a", "<f4", 2, 3)], TypeError, "list"),
        ([["a", "<f4"]], TypeError, "list"),
        ([(1, "<f4")], TypeError, "list"),
        ([("a", 5)], TypeError, "list"),
        ([("a", "<f4", "x")], TypeError, "list"),
        ([("a", "<f4")], ValueError, "4 bytes"),
        ([("a", "<f4"), ("b", "<f8")], ValueError, "12 bytes"),
        ([("a", "<f4"), ("a", "<f4")], ValueError, "two fields"),
        ([("a", "|O8")], TypeError, "Python objects"),
        ([("s", [("a", "|O8")])], TypeError, "Python objects"),
        ([("a", "|S8")], TypeError, "strings"),
        ([("a", ">f8")], ValueError, ">f8"),
        ([("a", "<f8", (-1,))], ValueError, "negative"),
        ([("a", "<f8", 2**70)], ValueError, "2**63"),
    ],
    ids=str,
)
def test_a_wrong_descr_is_refused(descr, error, says):
    kernel = bascule.compile("struct P { double a; }; __global__ void k(P* p) {}").k
    with pytest.raises(error, match="descr") as caught:
        kernel[1, 1](Described(bascule.to_device(np.zeros(3, "V8")), descr=descr))
    assert says in str(caught.value)


def test_a_descr_that_holds_itself_is_refused():
    descr = []
    descr.append(("a", descr))
    kernel = bascule.compile("struct P { double a; }; __global__ void k(P* p) {}").k
    with pytest.raises(ValueError, match="deep"):
        kernel[1, 1](Described(bascule.to_device(np.zeros(3, "V8")), descr=descr))


def test_a_descr_that_contradicts_a_plain_typestr_is_refused():
    kernel = bascule.compile("__global__ void k(float* p) {}").k
    array = bascule.to_device(np.zeros(3, "f4"))
    for fine in (None, [("", "<f4")], [("", "=f4")]):
        kernel[1, 1](Described(array, descr=fine))
    for descr in ([("", "<i4")], [("a", "<f4")], [("", "<f4", (2,))], []):
        with pytest.raises(ValueError, match="contradicts"):
            kernel[1, 1](Described(array, descr=descr))


def test_titles_are_not_names():
    kernel = bascule.compile("struct P { double a; }; __global__ void k(P* p) {}").k
    kernel[1, 1](Described(bascule.to_device(np.zeros(3, "V8")), descr=[(("a title", "a"), "<f8")]))


def test_fields_that_overlap_are_passed_as_bytes_alone():
    overlapping = np.dtype({"names": ["a", "b"], "formats": ["f8", "f4"], "offsets": [0, 0]})
    kernel = bascule.compile(SOURCE).one
    with pytest.raises(TypeError, match="overlap.*raw_bytes"):
        kernel[1, 1](np.zeros(1, overlapping)[0], bascule.to_device(np.zeros(1)))


def test_raw_bytes_are_taken_from_anything_that_lends_its_memory():
    kernel = bascule.compile(SOURCE).one
    host = particles(1)
    expected = host["mass"] + host["kind"]

    class Block(ctypes.Structure):
        _fields_ = [("all", ctypes.c_ubyte * PARTICLE.itemsize)]

    for buffer in (
        host.tobytes(),
        bytearray(host),
        memoryview(host.tobytes()),
        host,
        host[0],
        Block.from_buffer_copy(host),
    ):
        out = bascule.to_device(np.zeros(1))
        kernel[1, 1](bascule.raw_bytes(buffer), out)
        np.testing.assert_array_equal(out.copy_to_host(), expected)
    with pytest.raises(TypeError, match="raw_bytes takes bytes"):
        bascule.raw_bytes(5)
    assert len(bascule.raw_bytes(b"abc")) == 3
    assert bytes(bascule.raw_bytes(b"abc")) == b"abc"


def test_a_parameter_list_longer_than_the_c_library_demangles_is_read():
    name = "a_name_that_goes_on_for_quite_a_while_so_that_few_of_them_fill_a_kilobyte"
    types = "".join(f"struct {name}_{i} {{ int v; }};" for i in range(40))
    parameters = ", ".join(f"{name}_{i} p{i}" for i in range(40))
    total = " + ".join(f"p{i}.v" for i in range(40))
    kernel = bascule.compile(f"{types} __global__ void k({parameters}, int* out) {{ out[0] = {total}; }}").k
    out = bascule.to_device(np.zeros(1, "i4"))
    kernel[1, 1](*(bascule.raw_bytes(np.int32(i * i)) for i in range(40)), out)
    assert out.copy_to_host()[0] == sum(i * i for i in range(40))
    assert kernel.signature.endswith(f"{name}_39 p39, int* out)")
