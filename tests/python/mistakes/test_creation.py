"""Arrays that cannot be made: the message is about what was called, and not about the array interface."""

from __future__ import annotations

import numpy as np
import pytest

import bascule


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (
            lambda: bascule.to_device(np.array([object()])),
            TypeError,
            "the dtype is object, and devices have no Python objects and strings: use numbers, or bytes ('V8').",
        ),
        (
            lambda: bascule.to_device(["a", "b"]),
            TypeError,
            "the dtype is <U1, and devices have no Python objects and strings: use numbers, or bytes ('V8').",
        ),
        (
            lambda: bascule.to_device(np.arange(3, dtype=">f4")),
            ValueError,
            "the dtype is >f4, and devices are little-endian: convert the array first, x.astype('<f4').",
        ),
        (
            lambda: bascule.to_device(np.zeros(3, np.longdouble)),
            ValueError,
            "the dtype is float128, and devices have no such type: use numbers of 1 to 8 bytes, or complex ones of up "
            "to 16.",
        ),
        (
            lambda: bascule.to_device(np.zeros(2, [("x", "f4"), ("name", "U3")])),
            TypeError,
            "field 'name' has the dtype <U3, and devices have no Python objects and strings: use numbers, or bytes "
            "('V8').",
        ),
        (
            lambda: bascule.to_device(np.zeros(2, [("x", [("y", ">i2")])])),
            ValueError,
            "field 'x.y' has the dtype >i2, and devices are little-endian: convert the array first, x.astype('<i2').",
        ),
        (
            lambda: bascule.device_array(3, "O"),
            TypeError,
            "the dtype is object, and devices have no Python objects and strings: use numbers, or bytes ('V8').",
        ),
        (
            lambda: bascule.device_array(3).astype("U4"),
            TypeError,
            "the dtype is <U4, and devices have no Python objects and strings: use numbers, or bytes ('V8').",
        ),
        (
            lambda: bascule.device_array(4.0),
            TypeError,
            "`shape` must be an int or a tuple of ints, got 4.0 (float).",
        ),
        (
            lambda: bascule.zeros((4, 2.5)),
            TypeError,
            "`shape` must be an int or a tuple of ints, got 2.5 (float).",
        ),
        (
            lambda: bascule.pinned_array("4"),
            TypeError,
            "`shape` must be an int or a tuple of ints, got '4' (str).",
        ),
        (lambda: bascule.managed_array(None), TypeError, "`shape` must be an int or a tuple of ints, got None"),
        (lambda: bascule.device_array((3, -4)), ValueError, "`shape` is (3, -4): an extent cannot be negative."),
        (
            lambda: bascule.device_array((1,) * 70),
            ValueError,
            "`shape` has 70 entries, and an array has at most 64 dimensions.",
        ),
        (lambda: bascule.device_array(2**70), OverflowError, f"`shape` has {2**70}, which does not fit 64 bits."),
        (
            lambda: bascule.device_array((2**40, 2**40)),
            ValueError,
            f"an array of shape ({2**40}, {2**40}) and dtype float32 would have more than 2**63 bytes.",
        ),
        (
            lambda: bascule.device_array((2**40, 2**40), order="F"),
            ValueError,
            f"an array of shape ({2**40}, {2**40}) and dtype float32 would have more than 2**63 bytes.",
        ),
        (
            lambda: bascule.device_array(4).reshape(2.0, 2),
            TypeError,
            "`shape` must be an int or a tuple of ints, got 2.0 (float).",
        ),
        (
            lambda: bascule.device_array((4, 1)).transpose("yx"),
            TypeError,
            "`axes` must be an int or a tuple of ints, got 'yx' (str).",
        ),
    ],
)
def test_the_message_names_the_dtype_or_the_shape(make, kind, message):
    with pytest.raises(bascule.ArgumentError) as caught:
        make()
    assert isinstance(caught.value, kind)
    assert str(caught.value).startswith(message)
    assert "interface" not in str(caught.value)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(2**30, 2**30, 0), (0, 2**30, 2**30), [2, 0], (), 0, np.int32(0)])
def test_empty_arrays_and_shapes_like_numpys_stay(shape, order):
    expected = np.zeros(shape, "u1", order=order)
    made = bascule.device_array(shape, "u1", order=order)
    assert (made.shape, made.size) == (expected.shape, expected.size)


def test_a_missing_file_is_an_os_error():
    with pytest.raises(FileNotFoundError) as missing:
        bascule.compile(file="no such file.cu")
    assert isinstance(missing.value, bascule.FileError)
    assert (missing.value.errno, missing.value.filename) == (2, "no such file.cu")
    assert str(missing.value) == "cannot read the file no such file.cu: No such file or directory."


def test_a_file_that_cannot_be_read_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="Is a directory") as unreadable:
        bascule.compile(file=tmp_path)
    assert isinstance(unreadable.value, bascule.Error)
    assert not isinstance(unreadable.value, FileNotFoundError)
    assert unreadable.value.filename == str(tmp_path)


class Sparse:
    @property
    def __cuda_array_interface__(self):
        raise AttributeError("a sparse tensor has no interface: call to_dense()")


def test_the_objects_own_words_are_quoted_where_they_help():
    kernel = bascule.compile("__global__ void k(float* p, int n) {}").k[1, 1]
    x = bascule.device_array(1)
    with pytest.raises(bascule.ArgumentError, match=r"a sparse tensor has no interface: call to_dense\(\)"):
        kernel(Sparse(), 1)
    with pytest.raises(bascule.ArgumentError, match=r"a sparse tensor has no interface: call to_dense\(\)"):
        bascule.as_cuda_array(Sparse())
    for arguments in [(object(), 1), ([1.0], 1), (x, Sparse()), (x, object())]:
        with pytest.raises(bascule.ArgumentError) as caught:
            kernel(*arguments)
        assert "says" not in str(caught.value)
        assert "has no attribute" not in str(caught.value)
