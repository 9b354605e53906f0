"""Kernels, copies and NumPy use the same memory of pinned and managed arrays."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from conftest import traced

import bascule

MAKERS = [bascule.pinned_array, bascule.managed_array]


@pytest.mark.parametrize("make", MAKERS)
def test_kernels_and_numpy_share_the_memory(make, scale, rng):
    host = rng.standard_normal(100).astype("f4")
    x = make(100, "f4")
    seen = np.asarray(x)
    seen[:] = host
    scale[1, 128](x, 3, 100)
    bascule.synchronize()
    np.testing.assert_array_equal(seen, host * np.float32(3))
    assert x.host_accessible
    assert seen.__array_interface__["data"][0] == x.__array_interface__["data"][0]


@pytest.mark.parametrize("make", MAKERS)
def test_views_are_seen_where_they_lie(make):
    x = make((4, 6), "i4")
    np.asarray(x)[:] = np.arange(24).reshape(4, 6)
    view = x[::-1, 1::2].T
    np.testing.assert_array_equal(np.asarray(view), np.arange(24).reshape(4, 6)[::-1, 1::2].T)
    np.testing.assert_array_equal(view.copy_to_host(), np.asarray(view))
    assert np.asarray(view, dtype="f8").dtype == "f8"
    assert np.array(view) is not None
    copied = np.array(x)
    copied[:] = -1
    assert np.asarray(x)[0, 1] == 1
    with pytest.raises(ValueError):
        np.asarray(x, dtype="f8", copy=False)


@pytest.mark.parametrize("make", MAKERS)
def test_numpys_view_keeps_the_memory(make):
    seen = np.asarray(make(1000, "f8"))
    gc.collect()
    seen[:] = 2.5
    others = [np.asarray(make(1000, "f8")) for _ in range(10)]
    for other in others:
        other[:] = 0
    assert (seen == 2.5).all()


@pytest.mark.parametrize("make", MAKERS)
def test_they_are_copied_from_and_to(make, rng):
    host = rng.standard_normal((5, 7))
    device = bascule.to_device(host)
    x = make((5, 7), "f8")
    assert device.copy_to_host(out=x) is x
    np.testing.assert_array_equal(np.asarray(x), host)
    np.testing.assert_array_equal(bascule.to_device(x).copy_to_host(), host)
    back = bascule.device_array((5, 7), "f8")
    back.copy_from_host(x)
    np.testing.assert_array_equal(back.copy_to_host(), host)
    x.fill(1)
    back[:] = x
    assert (back.copy_to_host() == 1).all()


@pytest.mark.parametrize("make", MAKERS)
def test_they_are_freed_after_their_last_use(make, scale):
    x = make(64, "f4")
    np.asarray(x)[:] = 1
    gc.collect()
    bascule.synchronize()  # frees what earlier tests have left
    with traced() as operations:
        scale[1, 64](x, 2, 64)
        del x
        gc.collect()
        bascule.synchronize()
        bascule.synchronize()
    kinds = [o.kind for o in operations]
    assert kinds[0] == "launch"
    assert kinds.count("free") == 1


@pytest.mark.lazy
def test_a_copy_to_pinned_memory_on_a_stream_is_not_waited_for(emulated):
    stream = bascule.stream()
    device = bascule.to_device(np.arange(64.0), stream=stream)
    out = bascule.pinned_array(64, "f8")
    np.asarray(out)[:] = -1
    device.fill(7)
    with traced() as operations:
        device.copy_to_host(out=out, stream=stream)
        seen = np.asarray(out).copy()
    assert "synchronize" not in [o.kind for o in operations]
    assert (seen == -1).all()  # under the lazy policy nothing has run yet
    stream.synchronize()
    assert (np.asarray(out) == 7).all()
    with traced() as operations:
        device.copy_to_host(out=np.asarray(out))
    assert "synchronize" in [o.kind for o in operations]


def test_empty_ones_hold_no_memory():
    for make in MAKERS:
        x = make((0, 3), "f4")
        assert x.__cuda_array_interface__["data"][0] == 0
        assert np.asarray(x).shape == (0, 3)


def test_device_memory_does_not_become_a_numpy_array_by_itself():
    x = bascule.to_device(np.arange(3))
    assert not x.host_accessible
    assert not hasattr(x, "__array_interface__")
    for convert in (np.asarray, np.array, bascule.to_device):
        with pytest.raises(TypeError, match=r"x\.copy_to_host\(\)"):
            convert(x)


# --- Unsupported operations


def test_iteration_and_truth_name_copy_to_host():
    x = bascule.to_device(np.arange(3))
    for action in (lambda: list(x), lambda: 2 in x, lambda: bool(x), lambda: [*x]):
        with pytest.raises(TypeError, match=r"copy_to_host\(\)"):
            action()
