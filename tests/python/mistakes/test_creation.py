"""Arrays that cannot be made: the message is about the called function, not about the array interface."""

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
            lambda: bascule.device_array(3, "f4").astype("U4"),
            TypeError,
            "the dtype is <U4, and devices have no Python objects and strings: use numbers, or bytes ('V8').",
        ),
        (
            lambda: bascule.device_array(4.0, "f4"),
            TypeError,
            "`shape` must be an int or a tuple of ints, got 4.0 (float).",
        ),
        (
            lambda: bascule.zeros((4, 2.5), "f4"),
            TypeError,
            "`shape` must be an int or a tuple of ints, got 2.5 (float).",
        ),
        (
            lambda: bascule.pinned_array("4", "f4"),
            TypeError,
            "`shape` must be an int or a tuple of ints, got '4' (str).",
        ),
        (lambda: bascule.managed_array(None, "f4"), TypeError, "`shape` must be an int or a tuple of ints, got None"),
        (lambda: bascule.device_array((3, -4), "f4"), ValueError, "`shape` is (3, -4): an extent cannot be negative."),
        (
            lambda: bascule.device_array((1,) * 70, "f4"),
            ValueError,
            "`shape` has 70 entries, and an array has at most 64 dimensions.",
        ),
        (lambda: bascule.device_array(2**70, "f4"), OverflowError, f"`shape` has {2**70}, which does not fit 64 bits."),
        (
            lambda: bascule.device_array((2**40, 2**40), "f4"),
            ValueError,
            f"an array of shape ({2**40}, {2**40}) and dtype float32 would have more than 2**63 bytes.",
        ),
        (
            lambda: bascule.device_array((2**40, 2**40), "f4", order="F"),
            ValueError,
            f"an array of shape ({2**40}, {2**40}) and dtype float32 would have more than 2**63 bytes.",
        ),
        (
            lambda: bascule.device_array(4, "f4").reshape(2.0, 2),
            TypeError,
            "`shape` must be an int or a tuple of ints, got 2.0 (float).",
        ),
        (
            lambda: bascule.device_array((4, 1), "f4").transpose("yx"),
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
    x = bascule.device_array(1, "f4")
    with pytest.raises(bascule.ArgumentError, match=r"a sparse tensor has no interface: call to_dense\(\)"):
        kernel(Sparse(), 1)
    with pytest.raises(bascule.ArgumentError, match=r"a sparse tensor has no interface: call to_dense\(\)"):
        bascule.as_cuda_array(Sparse())
    for arguments in [(object(), 1), ([1.0], 1), (x, Sparse()), (x, object())]:
        with pytest.raises(bascule.ArgumentError) as caught:
            kernel(*arguments)
        assert "says" not in str(caught.value)
        assert "has no attribute" not in str(caught.value)


TWO = np.array([2, 3])


@pytest.mark.parametrize("shape", [TWO, TWO.astype("u1"), range(2, 4), np.array([[2], [3]])[:, 0], [np.int64(2), 3]])
def test_a_shape_may_be_any_sequence_of_integers(shape):
    assert bascule.zeros(shape, "f4").shape == (2, 3)
    assert bascule.device_array(shape, "f4").shape == (2, 3)
    assert bascule.zeros(6, "f4").reshape(shape).shape == (2, 3)
    assert bascule.zeros(np.array(4), "f4").shape == (4,)
    assert bascule.zeros((2, 3), "f4").transpose(np.array([1, 0])).shape == (3, 2)


def test_a_grid_and_a_block_may_be_any_sequence_of_integers():
    kernel = bascule.compile("__global__ void k(int* x) { atomicAdd(x, 1); }").k
    x = bascule.zeros(1, "i4")
    config = bascule.LaunchConfig(TWO, np.array([4, 1, 1]))
    assert (config.grid, config.block) == ((2, 3, 1), (4, 1, 1))
    kernel[TWO, np.int64(4)](x)
    kernel[np.ceil(np.array([7, 9]) / 4).astype(int), range(4, 5)](x)
    kernel[np.array(6), 4](x)
    assert x.item() == 3 * 24


@pytest.mark.parametrize("shape", [np.array([[2, 3]]), np.array([2.0, 3.0]), [[2, 3]], ["2"], "23", 2.5, None, {2: 3}])
def test_a_shape_of_something_else_is_named(shape):
    kernel = bascule.compile("__global__ void k(int* x) {}").k
    x = bascule.zeros(6, "i4")
    for call in (
        lambda: bascule.zeros(shape, "f4"),
        lambda: bascule.device_array(shape, "f4"),
        lambda: x.reshape(shape),
    ):
        with pytest.raises(bascule.ArgumentTypeError, match="`shape` must be an int or a tuple of ints, got"):
            call()
    with pytest.raises(bascule.ArgumentTypeError, match="`grid` must be an integer"):
        kernel[shape, 32]


@pytest.mark.parametrize("name", ["zeros", "ones", "device_array", "pinned_array", "managed_array"])
def test_an_array_without_a_dtype_is_float64_as_numpys(name):
    assert getattr(bascule, name)(3).dtype == np.zeros(3).dtype == np.float64
    assert getattr(bascule, name)(3, "f4").dtype == np.float32
