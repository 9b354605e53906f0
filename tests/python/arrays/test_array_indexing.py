"""Indexing and shapes of DeviceArray compared with NumPy: same shape, strides, offset and values, same errors."""

from __future__ import annotations

import importlib.util
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bascule

BOUNDS = st.one_of(
    st.none(), st.integers(-8, 8), st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63), 2**80, -(2**80)])
)
STEPS = st.one_of(
    st.none(), st.integers(-4, 4).filter(bool), st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63), 2**80])
)
ENTRIES = st.one_of(
    st.integers(-6, 6),
    st.integers(-3, 3).map(np.int64),
    st.builds(slice, BOUNDS, BOUNDS, STEPS),
    st.just(Ellipsis),
    st.none(),
)
SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


def pair(shape: tuple[int, ...], dtype: str = "i4") -> tuple[np.ndarray, bascule.DeviceArray]:
    host = np.random.default_rng(7).integers(0, 100, shape).astype(dtype)
    return host, bascule.to_device(host)


def place(array: object) -> int:
    interface = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return interface["data"][0]


def assert_same_view(device, host, device_base, host_base) -> None:
    assert device.shape == host.shape
    assert device.dtype == host.dtype
    assert device.size == host.size
    if host.size:
        assert device.strides == host.strides
        assert place(device) - place(device_base) == place(host) - place(host_base)
    assert device.c_contiguous == host.flags.c_contiguous
    assert device.f_contiguous == host.flags.f_contiguous


@settings(max_examples=400, deadline=None)
@given(shape=SHAPES, index=st.lists(ENTRIES, max_size=5).map(tuple))
def test_an_index_names_what_it_names_in_numpy(shape, index):
    host, device = pair(shape)
    try:
        expected = host[index]
    except IndexError:
        with pytest.raises(IndexError):
            device[index]
        return
    got = device[index]
    if not isinstance(expected, np.ndarray):  # NumPy returns a number, Bascule a 0-d view
        assert got.shape == ()
        assert got.copy_to_host() == expected
        return
    assert_same_view(got, expected, device, host)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
    first=st.builds(slice, BOUNDS, BOUNDS, STEPS),
    second=st.builds(slice, BOUNDS, BOUNDS, STEPS),
)
def test_slices_of_slices_read_the_same_values(shape, first, second):
    host, device = pair(shape)
    np.testing.assert_array_equal(device[first].T[..., second].copy_to_host(), host[first].T[..., second])


MESSAGES = [
    ((3,), IndexError, "index 3 is out of bounds for axis 0 with size 3"),
    ((-(2**63),), IndexError, "index -9223372036854775808 is out of bounds for axis 0 with size 3"),
    ((0, -5), IndexError, "index -5 is out of bounds for axis 1 with size 4"),
    ((0, 0, 0), IndexError, "too many indices for array: array is 2-dimensional, but 3 were indexed"),
    ((..., ...), IndexError, "an index can only have a single ellipsis"),
    ((None,) * 63, IndexError, "number of dimensions must be within"),
    ((1.0,), IndexError, "only integers, slices"),
    (("a",), IndexError, "only integers, slices"),
]


@pytest.mark.parametrize(("index", "error", "message"), MESSAGES, ids=[m[2][:30] for m in MESSAGES])
def test_a_wrong_index_is_refused_in_numpys_words(index, error, message):
    host, device = pair((3, 4))
    with pytest.raises(error, match=message):
        host[index]
    with pytest.raises(error, match=message):
        device[index]


def test_an_integer_beyond_64_bits_is_an_index_error():
    for index in (2**70, (-(2**70), 0)):
        with pytest.raises(IndexError, match="cannot fit 'int' into an index-sized integer"):
            pair((3, 4))[1][index]


def test_a_step_of_zero_is_a_value_error():
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        pair((3,))[1][::0]


@pytest.mark.parametrize("index", [[0, 1], np.array([0, 1]), True, np.array([True, False, True]), (slice(None), [1])])
def test_what_would_copy_is_refused_with_a_hint(index):
    with pytest.raises(NotImplementedError, match=r"would need a copy: use .*\."):
        pair((3, 4))[1][index]


@pytest.mark.parametrize(
    ("installed", "named"),
    [
        (["cupy", "torch"], "cupy.asarray(x), which views it without a copy"),
        (["torch"], "torch.as_tensor(x, device='cuda'), which views it without a copy"),
        ([], "x.copy_to_host() and NumPy"),
    ],
)
def test_what_can_compute_with_an_array_is_named_where_it_can_be_used(installed, named, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name in installed else None)
    if bascule.current_device().emulated:  # no other library can use it
        named = "x.copy_to_host() and NumPy"
    x = pair((3,))[1]
    with pytest.raises(NotImplementedError, match=re.escape(f"use {named}.")):
        x[[0, 1]]
    with pytest.raises(TypeError, match=re.escape(f"(+): use {named}, or write a kernel.")):
        x + 1


def test_a_view_keeps_the_memory():
    host, device = pair((100,))
    view = device[10:20]
    del device
    np.testing.assert_array_equal(view.copy_to_host(), host[10:20])


@settings(max_examples=200, deadline=None)
@given(
    shape=SHAPES,
    index=st.lists(st.builds(slice, BOUNDS, BOUNDS, STEPS), max_size=3).map(tuple),
    transposed=st.booleans(),
    target=st.lists(st.integers(-1, 8), max_size=4).map(tuple),
)
def test_reshape_is_numpys_view_or_an_error(shape, index, transposed, target):
    host, device = pair(shape)
    if len(index) > len(shape):
        index = index[: len(shape)]
    host_view, device_view = (
        host[(*index, ...)],
        device[index],
    )  # the ellipsis makes the result an array, not a number
    if transposed:
        host_view, device_view = host_view.T, device_view.T
    try:
        expected = host_view.reshape(target)
    except ValueError:
        with pytest.raises(ValueError):
            device_view.reshape(target)
        return
    if expected.size and not np.shares_memory(expected, host):
        with pytest.raises(ValueError, match=r"x\.copy\(\)\.reshape"):
            device_view.reshape(target)
        return
    got = device_view.reshape(target)
    assert got.shape == expected.shape
    if expected.size:
        long_axes = [d for d, extent in enumerate(expected.shape) if extent > 1]
        assert [got.strides[d] for d in long_axes] == [expected.strides[d] for d in long_axes]
        assert place(got) - place(device) == place(expected) - place(host)


def test_reshape_says_what_does_not_fit():
    _, device = pair((2, 3))
    with pytest.raises(ValueError, match=r"cannot reshape an array of size 6 into shape \(4,\)"):
        device.reshape(4)
    with pytest.raises(ValueError, match="only specify one unknown dimension"):
        device.reshape(-1, -1)
    with pytest.raises(ValueError, match="only -1 may be negative"):
        device.reshape(-2, 3)
    with pytest.raises(TypeError):
        device.reshape(2.0, 3)
    assert device.reshape(3, 2).shape == device.reshape([3, -1]).shape == (3, 2)
    assert device.ravel().shape == (6,)
    with pytest.raises(ValueError, match="copy"):
        device.T.ravel()


def test_transpose_takes_numpys_axes():
    host, device = pair((2, 3, 4))
    for axes in [(), (None,), (2, 0, 1), ((2, 0, 1),), (-1, 0, 1), ([1, 2, 0],)]:
        assert_same_view(device.transpose(*axes), host.transpose(*axes), device, host)
    assert_same_view(device.T, host.T, device, host)
    for axes in [(0, 1), (0, 1, 1), (0, 1, 3)]:
        with pytest.raises(ValueError):
            host.transpose(*axes)
        with pytest.raises(ValueError, match="ax"):
            device.transpose(*axes)


@settings(max_examples=150, deadline=None)
@given(
    shape=SHAPES,
    index=st.lists(st.builds(slice, BOUNDS, BOUNDS, STEPS), max_size=3).map(tuple),
    source=st.sampled_from(["u1", "i2", "f4", "f8", "V6", "c16"]),
    target=st.sampled_from(["u1", "u2", "i4", "f8", "V3", "V12", [("a", "u1"), ("b", "<i2", 3)]]),
)
def test_another_dtype_is_viewed_by_numpys_rules(shape, index, source, target):
    host = np.zeros(shape, source)
    device = bascule.to_device(host)
    index = index[: len(shape)]
    try:
        expected = host[(*index, ...)].view(target)
    except ValueError:
        with pytest.raises(ValueError):
            device[index].view(target)
        return
    assert_same_view(device[index].view(target), expected, device, host)


def test_attributes_are_numpys():
    host, device = pair((3, 4), "f8")
    view, expected = device[::2, 1:], host[::2, 1:]
    for name in ("shape", "strides", "ndim", "size", "itemsize", "nbytes", "dtype"):
        assert getattr(view, name) == getattr(expected, name)
    assert len(view) == len(expected)
    with pytest.raises(TypeError, match="0-dimensional"):
        len(view[0, 0])
