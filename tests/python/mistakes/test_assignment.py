"""Assignment converts by NumPy's casting rule 'same_kind', broadcasts, and never truncates silently."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import traced
from views.arrays import Exposed

import bascule

VALUES = [2.7, [1.5, 2.5, 3.5], np.float32(2), np.array(2.5), np.array([1.0, 2.0, 3.0]), 1j, float("nan")]


def assign(x, value):
    x[:] = value


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize(
    "write", [assign, lambda x, value: x.copy_from_host(np.broadcast_to(value, 3).tolist())], ids=["assign", "copy"]
)
def test_floats_and_complex_numbers_are_not_assigned_to_integers(value, write):
    x = bascule.to_device(np.full(3, 9, "i4"))
    with pytest.raises(TypeError, match=r"values to int32 elements: the casting rule is 'same_kind'.*\.astype"):
        write(x, value)
    assert (x.copy_to_host() == 9).all()


def test_a_number_fills_by_the_same_rule():
    x = bascule.to_device(np.full(3, 9, "i4"))
    with pytest.raises(TypeError, match="float64 values to int32 elements"):
        x.fill(2.7)
    x.fill(True)
    assert (x.copy_to_host() == 1).all()


@pytest.mark.parametrize("kind", ["b1", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("to", ["b1", "u1", "i4", "i8", "f4", "f8", "c8"])
@pytest.mark.parametrize("where", ["host", "device", "another library"])
def test_arrays_are_converted_exactly_where_numpys_rule_allows(kind, to, where):
    source = np.array([0, 1, 2], kind)
    given = {"host": lambda x: x, "device": bascule.to_device, "another library": Exposed}[where](source)
    x, expected = bascule.to_device(np.full((2, 3), 1, to)), np.full((2, 3), 1, to)
    if np.can_cast(kind, to, "same_kind"):
        x[:] = given
        np.copyto(expected, source)
    else:
        with pytest.raises(TypeError, match=rf"{np.dtype(kind)} values to {np.dtype(to)} elements"):
            x[:] = given
    np.testing.assert_array_equal(x.copy_to_host(), expected)


def test_integers_that_are_not_in_an_array_are_checked_against_the_range():
    x = bascule.to_device(np.zeros(3, "u1"))
    for value in (7, [1, 2, 255], np.int64(9), (np.int64(1), True, 3)):
        x[:] = value
        np.testing.assert_array_equal(x.copy_to_host(), np.broadcast_to(value, 3).astype("u1"))
    for value in (-1, 256, [0, 0, 256], np.int64(-1)):
        with pytest.raises(OverflowError, match="uint8"):
            x[:] = value


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("shape", [(4,), (1, 4), (3, 1), (1, 1, 4), (1,), ()])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_and_columns_are_repeated(where, shape, dtype):
    values = np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)
    expected = np.zeros((3, 8), "f4")
    x = bascule.to_device(expected)
    x[:, ::2] = values if where == "host" else bascule.to_device(values)
    expected[:, ::2] = values
    np.testing.assert_array_equal(x.copy_to_host(), expected)


def test_a_row_of_the_array_itself_is_read_before_it_is_written():
    host = np.arange(12.0).reshape(3, 4)
    x = bascule.to_device(host)
    x[:] = x[1]
    np.testing.assert_array_equal(x.copy_to_host(), np.broadcast_to(host[1], (3, 4)))


def test_a_row_from_the_host_is_repeated_on_the_device():
    x = bascule.to_device(np.zeros((500, 4), "f4"))
    x[:] = np.zeros(4, "f4")  # compiles
    bascule.synchronize()
    with traced() as operations:
        x[:] = np.arange(4, dtype="f8")
        bascule.synchronize()
    assert [o.kind for o in operations if o.kind in ("copy", "launch")] == ["copy", "launch"]
    np.testing.assert_array_equal(x.copy_to_host(), np.broadcast_to(np.arange(4, dtype="f4"), (500, 4)))


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 3, 4), (0,)])
@pytest.mark.parametrize("where", [lambda x: x, bascule.to_device], ids=["host", "device"])
def test_a_shape_that_does_not_fit_is_named(shape, where):
    x = bascule.to_device(np.zeros((3, 4)))
    with pytest.raises(
        ValueError, match=r"of shape .* to elements of shape \(3, 4\): .* must be equal, or 1"
    ) as caught:
        x[:] = where(np.zeros(shape))
    assert str(shape) in str(caught.value)


def test_assigning_a_masked_row_changes_the_values_alone():
    x = bascule.to_device(np.ma.array(np.zeros((2, 3)), mask=[[1, 0, 0], [0, 0, 1]]))
    x[:] = bascule.to_device(np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]))
    np.testing.assert_array_equal(x.copy_to_host().data, [[1, 2, 3], [1, 2, 3]])
    np.testing.assert_array_equal(x.copy_to_host().mask, [[1, 0, 0], [0, 0, 1]])


def test_structures_are_not_converted():
    x = bascule.to_device(np.zeros(3, [("a", "i4"), ("b", "f4")]))
    for value in (np.zeros(3, [("b", "f4"), ("a", "i4")]), np.zeros(3)):
        with pytest.raises(ValueError, match="dtype"):
            x[:] = value
        with pytest.raises(ValueError, match="only numbers are converted"):
            x[:] = bascule.to_device(value)
    x[:] = (1, 2.5)
    assert x.copy_to_host().tolist() == [(1, 2.5)] * 3
