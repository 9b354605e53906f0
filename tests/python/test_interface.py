"""Descriptors of any kind, exports, and views of what others own. The rows are in conformance/."""

from __future__ import annotations

import numpy as np
from conftest import ForeignArray
from hypothesis import given, settings
from hypothesis import strategies as st

import bascule

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
