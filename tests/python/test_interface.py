"""Reading `__cuda_array_interface__`: rows of the conformance list that a launch meets, for every version."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import ForeignArray, Missing, traced
from hypothesis import given, settings
from hypothesis import strategies as st

import bascule

VERSIONS = [0, 1, 2, 3]


@pytest.fixture(scope="module")
def fill() -> bascule.Kernel:
    return bascule.compile("__global__ void fill(float* p, int n) { if (threadIdx.x < n) p[threadIdx.x] = 1; }").fill


@pytest.fixture(scope="module")
def view() -> bascule.Kernel:
    return bascule.compile(
        "__global__ void view(bascule::array_view<float> p, int n) { if (threadIdx.x < n) p[threadIdx.x] = 1; }"
    ).view


def launch(kernel, **changes):
    array = bascule.to_device(np.zeros(8, "f4"))
    foreign = ForeignArray(array, **changes)
    kernel[1, 32](foreign, 8)
    return array.copy_to_host(), foreign


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


GOOD = [
    {},
    {"shape": [8]},
    {"shape": (np.int64(8),)},
    {"strides": None},
    {"strides": (4,)},
    {"strides": Missing},
    {"unknown": object()},
    {"mask": None},
    {"descr": None},
    {"stream": None},
    {"stream": 1},
    {"stream": 2},
    {"stream": np.int64(1)},
    {"stream": Missing},
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("changes", GOOD, ids=str)
def test_a_valid_descriptor_is_launched_on(fill, version, changes):
    result, _ = launch(fill, version=version, **changes)
    assert (result == 1).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_property_is_read_exactly_once_a_launch(fill, version):
    array = bascule.to_device(np.zeros(8, "f4"))
    foreign = ForeignArray(array, version=version)
    for launches in range(1, 4):
        fill[1, 32](foreign, 8)
        assert foreign.reads == launches


BAD = [
    ({"version": Missing}, KeyError, "version"),
    ({"version": None}, TypeError, "version"),
    ({"version": "3"}, TypeError, "version"),
    ({"version": 3.0}, TypeError, "version"),
    ({"version": True}, TypeError, "version"),
    ({"version": -1}, ValueError, "version"),
    ({"version": 4}, ValueError, "version"),
    ({"shape": Missing}, KeyError, "shape"),
    ({"shape": None}, TypeError, "shape"),
    ({"shape": 3}, TypeError, "shape"),
    ({"shape": "ab"}, TypeError, "shape"),
    ({"shape": (8.0,)}, TypeError, "shape"),
    ({"shape": (True,)}, TypeError, "shape"),
    ({"shape": (np.True_,)}, TypeError, "shape"),
    ({"shape": (-1,)}, ValueError, "shape"),
    ({"shape": (-1, -1)}, ValueError, "shape"),
    ({"shape": (2**32, 2**32)}, ValueError, "shape"),
    ({"shape": (2**63,)}, ValueError, "shape"),
    ({"shape": (1,) * 65}, ValueError, "64"),
    ({"typestr": Missing}, KeyError, "typestr"),
    ({"typestr": ">f4"}, ValueError, ">f4"),
    ({"typestr": ""}, ValueError, "typestr"),
    ({"typestr": "f4"}, ValueError, "f4"),
    ({"typestr": "<f"}, ValueError, "<f"),
    ({"typestr": "<fX"}, ValueError, "<fX"),
    ({"typestr": "<f-4"}, ValueError, "<f-4"),
    ({"typestr": "<f3"}, ValueError, "<f3"),
    ({"typestr": "<i16"}, ValueError, "<i16"),
    ({"typestr": "<f" + "4" * 50}, ValueError, "typestr"),
    ({"typestr": "<f\0"}, ValueError, "typestr"),
    ({"typestr": "<f\N{DIGIT FOUR}\N{SNOWMAN}"}, ValueError, "typestr"),
    ({"typestr": "<f\ud800"}, ValueError, "typestr"),
    ({"typestr": b"<f4"}, TypeError, "typestr"),
    ({"typestr": None}, TypeError, "typestr"),
    ({"typestr": "|O8"}, TypeError, "O8"),
    ({"typestr": "|S5"}, TypeError, "S5"),
    ({"data": Missing}, KeyError, "data"),
    ({"data": None}, TypeError, "data"),
    ({"data": 0}, TypeError, "data"),
    ({"data": ()}, ValueError, "data"),
    ({"data": (1,)}, ValueError, "data"),
    ({"data": (1, False, 0)}, ValueError, "data"),
    ({"data": (None, False)}, TypeError, "data"),
    ({"data": (0, False)}, ValueError, "data"),
    ({"data": (-1, False)}, ValueError, "data"),
    ({"data": (2**64, False)}, ValueError, "data"),
    ({"data": (True, False)}, TypeError, "data"),
    ({"data": (1.0, False)}, TypeError, "data"),
    ({"data": ("1", False)}, TypeError, "data"),
    ({"data": (4096, None)}, TypeError, "data"),
    ({"data": (4096, 2)}, TypeError, "data"),
    ({"data": (2**64 - 8, False)}, ValueError, "data"),
    ({"strides": 42}, TypeError, "strides"),
    ({"strides": (None,)}, TypeError, "strides"),
    ({"strides": (4, 4)}, ValueError, "strides"),
    ({"strides": (2**63,)}, ValueError, "strides"),
    ({"stream": 0}, ValueError, "stream"),
    ({"stream": True}, TypeError, "stream"),
    ({"stream": 1.0}, TypeError, "stream"),
    ({"stream": "1"}, TypeError, "stream"),
    ({"stream": -1}, ValueError, "stream"),
    ({"stream": 2**64}, ValueError, "stream"),
    ({"mask": object()}, NotImplementedError, "masked_view"),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("changes", "error", "part"), BAD, ids=lambda value: str(value)[:40])
def test_a_wrong_descriptor_is_an_error_that_names_the_argument_and_the_key(
    fill, version, changes, error, part, emulated
):
    changes = {"version": version, **changes}
    fill.prepare()
    array = bascule.to_device(np.zeros(8, "f4"))
    with traced() as operations, pytest.raises(error) as caught:
        fill[1, 32](ForeignArray(array, **changes), 8)
    assert isinstance(caught.value, bascule.ArgumentError)
    assert "argument 1 'p'" in str(caught.value)
    assert part.replace("\0", "") in str(caught.value)
    assert operations == []
    assert (array.copy_to_host() == 0).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_zero_size_array_may_have_any_pointer_and_strides(fill, version):
    for changes in (
        {"data": (0, False)},
        {"data": (None, False)},
        {"data": (12345, False)},
        {"shape": (2**63 - 1, 0)},
        {"strides": (3,)},
    ):
        fields = {"shape": (0,), "version": version, **changes}
        fill[1, 32](ForeignArray(bascule.device_array(8), **fields), 0)


def test_big_endian_single_bytes_are_bytes():
    kernel = bascule.compile("__global__ void k(unsigned char* p) { p[threadIdx.x] = 3; }").k
    array = bascule.to_device(np.zeros(32, "u1"))
    kernel[1, 32](ForeignArray(array, typestr=">u1"))
    assert (array.copy_to_host() == 3).all()


def test_read_only_goes_to_const_parameters_alone(fill):
    read = bascule.compile("__global__ void read(const float* p, float* out) { out[0] = p[0]; }").read
    array = bascule.to_device(np.full(8, 5, "f4"))
    address = array.__cuda_array_interface__["data"][0]
    out = bascule.device_array(1)
    for flag in (True, np.True_, 1):
        read[1, 1](ForeignArray(array, data=(address, flag)), out)
        assert out.copy_to_host()[0] == 5
        with pytest.raises(ValueError, match="argument 1 'p'.*read-only"):
            fill[1, 32](ForeignArray(array, data=(address, flag)), 8)


def test_axes_of_one_element_may_have_any_stride(fill):
    array = bascule.to_device(np.zeros((1, 8), "f4"))
    fill[1, 32](ForeignArray(array, shape=(1, 8), strides=(12345, 4)), 8)
    assert (array.copy_to_host() == 1).all()


def test_a_strided_array_is_refused_for_a_raw_pointer_and_array_view_is_suggested(fill, view):
    array = bascule.to_device(np.zeros(16, "f4"))
    every_other = ForeignArray(array, shape=(8,), strides=(8,))
    with pytest.raises(ValueError, match="argument 1 'p'.*array_view"):
        fill[1, 32](every_other, 8)
    view[1, 32](every_other, 8)
    np.testing.assert_array_equal(array.copy_to_host(), np.tile([1, 0], 8))


def test_a_stride_of_eight_items_is_not_mistaken_for_contiguous(fill):
    array = bascule.to_device(np.zeros(64, "f4"))
    with pytest.raises(ValueError, match="array_view"):
        fill[1, 32](ForeignArray(array, shape=(8,), strides=(32,)), 8)


def test_a_broadcast_view_is_refused_where_it_would_be_written(view):
    read = bascule.compile(
        "__global__ void sum(bascule::array_view<const float> p, float* out) {"
        " float s = 0; for (int i = 0; i < p.size(); ++i) s += p[i]; *out = s; }"
    ).sum
    array = bascule.to_device(np.full(8, 5, "f4"))
    broadcast = ForeignArray(array, shape=(8,), strides=(0,))
    out = bascule.device_array(())
    read[1, 1](broadcast, out)
    assert out.copy_to_host() == 40
    with pytest.raises(ValueError, match="argument 1 'p'"):
        view[1, 32](broadcast, 8)


def test_a_misaligned_pointer_is_refused(fill):
    array = bascule.to_device(np.zeros(16, "f4"))
    address = array.__cuda_array_interface__["data"][0]
    with pytest.raises(ValueError, match="argument 1 'p'.*align"):
        fill[1, 32](ForeignArray(array, shape=(8,), data=(address + 1, False)), 8)


def test_a_property_that_raises_keeps_its_own_exception(fill):
    class Raising:
        def __init__(self, error):
            self.error = error

        @property
        def __cuda_array_interface__(self):
            raise self.error

    for error in (RuntimeError("requires grad"), KeyboardInterrupt(), ZeroDivisionError("0")):
        with pytest.raises(type(error)) as caught:
            fill[1, 32](Raising(error), 8)
        assert caught.value is error
    with pytest.raises(TypeError, match="not on a GPU"):
        fill[1, 32](Raising(AttributeError("not on a GPU")), 8)


@pytest.mark.parametrize("descriptor", [None, [("shape", (8,))], dict, 5])
def test_a_descriptor_that_is_no_dict_is_a_type_error(fill, descriptor):
    class Odd:
        __cuda_array_interface__ = descriptor

    with pytest.raises(TypeError, match="must be a dict"):
        fill[1, 32](Odd(), 8)


def test_a_class_is_not_its_instance(fill):
    with pytest.raises(TypeError, match="instance"):
        fill[1, 32](ForeignArray, 8)


def test_mappings_are_read_through_one_snapshot(fill):
    import collections
    import types

    array = bascule.to_device(np.zeros(8, "f4"))
    fields = array.__cuda_array_interface__

    class Sub(dict):
        pass

    for kind in (Sub, types.MappingProxyType, collections.UserDict):

        class Odd:
            __cuda_array_interface__ = kind(fields)

        fill[1, 32](Odd(), 8)


def test_a_dict_that_changes_while_it_is_read_is_one_snapshot_or_an_error(fill):
    array = bascule.to_device(np.zeros(8, "f4"))
    fields = dict(array.__cuda_array_interface__)

    class Clearing(Index):
        def __index__(self):
            fields.clear()
            return 8

    fields["shape"] = (Clearing(8),)

    class Odd:
        __cuda_array_interface__ = fields

    fill[1, 32](Odd(), 8)
    assert (array.copy_to_host() == 1).all()


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=5), st.just(())
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple), max_leaves=6
)
keys = st.sampled_from(["shape", "typestr", "data", "version", "strides", "mask", "stream", "descr"])


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(keys, values, max_size=8))
def test_any_descriptor_is_taken_or_refused_with_an_error_of_ours(fields):
    class Odd:
        __cuda_array_interface__ = fields

    try:
        bascule.as_cuda_array(Odd())
    except bascule.ArgumentError:
        pass


@settings(max_examples=200, deadline=None)
@given(
    shape=st.lists(st.integers(0, 5), max_size=4).map(tuple),
    typestr=st.sampled_from(["|b1", "<i2", "<u4", "<f2", "<f4", "<f8", "<c8", "<c16", "|V6"]),
)
def test_what_is_exported_is_read_back_the_same(shape, typestr):
    array = bascule.device_array(shape, typestr)
    again = bascule.as_cuda_array(array)
    assert again.shape == shape
    assert again.dtype == np.dtype(typestr)
    assert again.strides == np.empty(shape, typestr).strides or array.size == 0
    assert again.stream == array.stream
    exported = again.__cuda_array_interface__
    assert exported["version"] == 3
    assert exported["strides"] is None
    assert exported["stream"] == 1
    if 0 in shape:
        assert exported["data"][0] == 0


def test_a_view_keeps_its_owner_alive_and_takes_over_its_stream():
    import gc
    import weakref

    stream = bascule.stream()
    array = bascule.device_array(8, stream=stream)
    foreign = ForeignArray(array)
    view = bascule.as_cuda_array(foreign)
    unordered = bascule.as_cuda_array(foreign, sync=False)
    alive = weakref.ref(foreign)
    assert view.stream.handle == stream.handle
    assert unordered.stream is None
    assert unordered.__cuda_array_interface__["stream"] is None
    del foreign, unordered
    gc.collect()
    assert alive() is not None
    del view
    gc.collect()
    assert alive() is None


def test_a_descriptor_alone_makes_a_view():
    array = bascule.to_device(np.arange(8, dtype="f4"))
    view = bascule.from_cuda_array_interface(array.__cuda_array_interface__, owner=array)
    np.testing.assert_array_equal(view.copy_to_host(), np.arange(8))
