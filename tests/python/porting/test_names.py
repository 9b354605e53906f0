"""Names that Bascule shares with Numba, CuPy, PyTorch and NumPy mean the same here."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from conftest import traced
from views.arrays import Exposed

import bascule

RECORD = np.dtype([("mass", "f4"), ("position", "f8", (3,)), ("inner", [("a", "i2"), ("b", "u1")])], align=True)


@pytest.mark.parametrize("shape", [5, (2, 3), (), (0, 4)])
@pytest.mark.parametrize("dtype", ["f4", "i8", "?", "c8", RECORD], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_zeros_ones_and_full_are_numpys(shape, dtype, order):
    given = [
        (bascule.zeros(shape, dtype, order=order), np.zeros(shape, dtype, order)),
        (bascule.ones(shape, dtype, order=order), np.ones(shape, dtype, order)),
    ]
    if dtype is not RECORD:
        given.append((bascule.full(shape, 1, dtype, order=order), np.full(shape, 1, dtype, order)))
    for x, expected in given:
        np.testing.assert_array_equal(x.copy_to_host(), expected)
        assert (x.dtype, x.shape) == (expected.dtype, expected.shape)
        assert (x.c_contiguous, x.f_contiguous) == (expected.flags.c_contiguous, expected.flags.f_contiguous)


def test_the_dtype_of_full_is_that_of_the_value_and_of_the_others_float32():
    assert bascule.full(2, 1.5).dtype == np.full(2, 1.5).dtype
    assert bascule.full(2, np.float32(1)).dtype == np.float32
    assert (
        bascule.zeros(2, "f4").dtype == bascule.ones(2, "f4").dtype == bascule.device_array(2, "f4").dtype == np.float32
    )
    with pytest.raises(TypeError, match="same_kind"):
        bascule.full(2, 1.5, "i4")
    with pytest.raises(ValueError, match=r"one value, got an array of shape \(3,\).*x\[\.\.\.\] = values"):
        bascule.full(2, [1, 2, 3])


@pytest.mark.parametrize("make", [bascule.device_array, bascule.pinned_array, bascule.managed_array])
def test_new_arrays_take_an_order(make):
    assert make((2, 3), "f4", order="F").strides == (4, 8)
    assert make((2, 3), "f4", order="C").strides == (12, 4)
    with pytest.raises(ValueError, match="`order` must be 'C' or 'F', got 'K'"):
        make((2, 3), order="K")


@pytest.mark.parametrize("host", [np.zeros((2, 3), "i2"), np.zeros((2, 3), order="F"), np.zeros(2, RECORD)], ids=str)
@pytest.mark.parametrize("where", [lambda x: x, bascule.to_device, Exposed], ids=["host", "own", "another library"])
def test_arrays_like_another_have_its_shape_dtype_and_order(host, where):
    if where is Exposed and host.dtype == RECORD:
        pytest.skip("a typestr does not tell fields")
    x = bascule.device_array_like(where(host))
    assert (x.shape, x.dtype, x.strides) == (host.shape, host.dtype, host.strides)
    np.testing.assert_array_equal(
        bascule.zeros_like(where(host + 1) if host.dtype != RECORD else x).copy_to_host(), host
    )


def test_new_arrays_are_filled_on_the_stream_that_they_are_bound_to():
    stream = bascule.stream()
    with bascule.stream(), traced() as operations:
        x = bascule.zeros(8, "f4", stream=stream)
    assert x.stream == stream
    assert [(o.kind, o.stream) for o in operations if o.kind == "fill"] == [("fill", stream.handle)]


def test_copy_to_host_takes_the_array_by_position():
    out = np.empty(3)
    assert bascule.to_device(np.arange(3.0)).copy_to_host(out) is out
    assert out.tolist() == [0, 1, 2]


def test_an_element_becomes_a_python_scalar():
    x = bascule.to_device(np.array([[1.5, 2.5], [3.5, 4.5]]))
    assert x.item(1, 0) == 3.5
    assert x[0, 1].item() == 2.5
    assert isinstance(x[:1, :1].item(), float)
    assert float(x[1, 1]) == 4.5
    assert int(bascule.to_device(np.array([7, 8]))[1]) == 8
    assert complex(bascule.to_device(np.array(1 + 2j, "c8"))) == 1 + 2j
    assert math.sqrt(bascule.to_device(np.array(16.0))) == 4
    with pytest.raises(ValueError, match=r"one element .* shape \(2, 2\)\. Use x\.item\(i\), or x\.copy_to_host"):
        x.item()
    with pytest.raises(TypeError, match=r"float\(x\) takes an array without axes, such as x\[3\].*\(1, 1\)"):
        float(x[:1, :1])
    with pytest.raises(TypeError, match="int"):
        int(bascule.to_device(np.array(1 + 2j)))


def test_a_field_of_structures_is_a_view():
    host = np.zeros((2, 4), RECORD)
    host["mass"] = np.arange(8).reshape(2, 4)
    host["position"] = np.arange(24).reshape(2, 4, 3)
    x = bascule.to_device(host)
    for key in ("mass", "position", "inner"):
        np.testing.assert_array_equal(x[key].copy_to_host(), host[key])
        assert (x[key].dtype, x[key].strides) == (host[key].dtype, host[key].strides)
    assert x["inner"]["b"].dtype == np.uint8
    x["mass"] = 7
    x[1:]["position"][..., 2] = np.float32(-1)
    x["inner"]["a"][0] = [1, 2, 3, 4]
    host["mass"] = 7
    host[1:]["position"][..., 2] = -1
    host["inner"]["a"][0] = [1, 2, 3, 4]
    np.testing.assert_array_equal(x.copy_to_host(), host)
    assert x[:0]["position"].shape == (0, 4, 3)


def test_a_kernel_takes_a_field_by_a_view():
    x = bascule.to_device(np.array([(1, (1, 2, 3), (0, 0)), (2, (4, 5, 6), (0, 0))], RECORD))
    add = bascule.compile(
        "__global__ void add(bascule::array_view<const double, 2> p, double* s) "
        "{ for (int i = 0; i < 2; ++i) for (int j = 0; j < 3; ++j) *s += p(i, j); }"
    ).add
    total = bascule.zeros((), "f8")
    add[1, 1](x["position"], total)
    assert total.item() == 21


def test_a_wrong_field_is_named():
    x = bascule.to_device(np.zeros(2, RECORD))
    with pytest.raises(ValueError, match="no field of name 'speed': the elements are .*mass: float32"):
        x["speed"]
    with pytest.raises(
        IndexError, match=r'x\["mass"\] selects a field of structures, and a float32 array .* no fields'
    ):
        bascule.zeros(3, "f4")["mass"]


def test_streams_and_events_have_the_names_of_other_libraries():
    first, second = bascule.stream(), bascule.stream()
    start, end = bascule.event(), bascule.event()
    start.record(first)
    second.wait_event(start)
    end.record(second)
    end.synchronize()
    assert start.elapsed_time(end) == start.elapsed(end) >= 0


@pytest.mark.parametrize(
    "options",
    [
        bascule.CompileOptions(),
        bascule.CompileOptions(
            std="c++20", defines={"N": 4, "FLAG": None, "TEXT": '"a b"'}, include_paths=["/tmp"],
            headers={"a.h": "int a;"}, lineinfo=True, debug=True, fast_math=True, max_registers=32, arch="sm_90a",
            extra=["--device-int128"],
        ),
    ],
)  # fmt: skip
def test_compile_options_can_be_pickled_and_copied(options):
    for again in (pickle.loads(pickle.dumps(options)), copy.copy(options), copy.deepcopy(options)):
        assert again == options
        assert repr(again) == repr(options)
        assert hash(again) == hash(options)
