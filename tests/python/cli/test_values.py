"""The forms of a kernel's arguments on the command line."""

import numpy as np
import pytest

import bascule
from bascule._command.parser import UsageError
from bascule._command.values import split_values


def value(text):
    positional, named = split_values([text])
    assert not named
    return positional[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", 2),
        ("-2", -2),
        ("0x1f", 31),
        ("007", 7),
        ("2.5", 2.5),
        ("1e3", 1000.0),
        ("inf", float("inf")),
        ("true", True),
        ("false", False),
        ("1+2j", 1 + 2j),
        ("1,2.5", (1, 2.5)),
        ("null", None),
        ("nullptr", None),
    ],
)
def test_numbers_tuples_and_null(text, expected):
    got = value(text)
    assert (type(got), got) == (type(expected), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zeros:3", np.zeros(3, "f4")),
        ("zeros:2x3:f8", np.zeros((2, 3))),
        ("zeros:0", np.zeros(0, "f4")),
        ("zeros:2:f4,i4", np.zeros(2, "f4,i4")),
        ("full:2:x=f4,n=i4:1.5,2", np.array([(1.5, 2)] * 2, [("x", "f4"), ("n", "i4")])),
        ("ones:2x1x2:u1", np.ones((2, 1, 2), "u1")),
        ("full:2:i8:-7", np.array([-7, -7])),
        ("full:1:bool:true", np.array([True])),
        ("full:2:c8:1+2j", np.full(2, 1 + 2j, "c8")),
        ("full:2:f4,i4:1.5,2", np.array([(1.5, 2)] * 2, "f4,i4")),
        ("arange:4", np.arange(4, dtype="f4")),
        ("arange:2x2:i4", np.arange(4, dtype="i4").reshape(2, 2)),
        ("arange:300:u1", np.arange(300).astype("u1")),
        ("ones:2:>f4", np.ones(2, ">f4")),
    ],
)
def test_arrays_that_are_described(text, expected):
    got = value(text)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert (got == expected).all()


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "c16", "i1", "u8", "bool", ">i4"])
def test_random_arrays_are_the_same_each_time_and_differ_by_seed(dtype):
    first, again, other = value(f"random:500:{dtype}"), value(f"random:500:{dtype}:0"), value(f"random:500:{dtype}:1")
    assert first.dtype == np.dtype(dtype)
    assert (first == again).all()
    assert (first != other).any()
    if first.dtype.kind in "fc":
        assert (np.abs(first) <= np.sqrt(2)).all()
    elif first.dtype.kind == "i":
        assert first.min() < 0 < first.max()


def test_arrays_in_files(tmp_path):
    for array in (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((3, 2), "i2")), np.zeros(3, "f4,i4")):
        np.save(tmp_path / "a.npy", array)
        got = value(str(tmp_path / "a.npy"))
        assert (got.dtype, got.shape) == (array.dtype, array.shape)
        assert (got == array).all()


def npy(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode("latin1") + b"\0" * 64


def npy_of(descr: str = "'<f4'", shape: str = "(4,)", order: str = "False") -> bytes:
    return npy(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n")


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"text", b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }\n"),
        *(npy("{'descr': "), npy("(" * 5000), npy("[" * 9000 + "]" * 9000), npy("\0" * 50), npy("{1, 2}")),
        *(npy("{1: 2, 'descr': '<f4', 'fortran_order': False, 'shape': (4,)}"), npy("{'descr': '<f4'}")),
        *(npy_of(shape="(-4,)"), npy_of(shape="(10**18,)"), npy_of(shape="(1" + "0" * 21 + ",)"), npy_of(shape="4")),
        *(npy_of(shape="(True,)"), npy_of(shape=str((1,) * 70)), npy_of(order="3")),
        *(npy_of("('<f4',)"), npy_of("5"), npy_of("[('a', '<f4'), ('a', '<f4')]"), npy_of("'<M8[xx]'")),
        npy_of("{'names': ['a'], 'formats': ['<f4'], 'offsets': [-1]}"),
    ],
)
def test_a_file_that_is_not_an_array_is_an_error_that_names_it(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(bascule.Error, match=r"a\.npy cannot be read as an array that numpy\.save wrote"):
        value(str(tmp_path / "a.npy"))


def test_objects_in_files_are_not_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([print, None], object), allow_pickle=True)
    with pytest.raises(bascule.Error, match="cannot be read"):
        value(str(tmp_path / "a.npy"))


def test_names_come_last_and_once():
    positional, named = split_values(["1", "b=2", "c=zeros:2"])
    assert split_values(["p=zeros:2:x=f4"])[1]["p"].dtype.names == ("x",)
    assert (positional, named["b"], named["c"].shape) == ([1], 2, (2,))
    with pytest.raises(UsageError, match="'3' has no name"):
        split_values(["b=2", "3"])
    with pytest.raises(UsageError, match="'b' is given twice"):
        split_values(["b=2", "b=3"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("two", "neither a number nor a .npy file nor an array such as zeros:1024:f4"),
        ("", "neither a number"),
        ("2.5f", "write 2.5"),
        ("10u", "write 10"),
        ("1,x", "neither a number"),
        ("zeros", "neither a number"),
        ("zeros:", "the shape '' is not a number"),
        ("zeros:-3", "the shape '-3'"),
        ("zeros:3,4", "the shape '3,4'"),
        ("zeros:" + "x".join("1" * 65), "the shape"),
        ("zeros:99999999999x99999999999:f8", "zeros:SHAPE:DTYPE"),
        ("zeros:3:f9", "'f9' is not a dtype"),
        ("zeros:3:O", "'O' is not a dtype"),
        ("zeros:3:x=f4,n", "'x=f4,n' is not a dtype"),
        ("zeros:3:x=f4,x=f4", "'x=f4,x=f4' is not a dtype"),
        ("zeros:3:str", "'str' is not a dtype"),
        ("zeros:3:", "'' is not a dtype"),
        ("zeros:3:(", "'(' is not a dtype"),
        ("zeros:3:f4,(", "'f4,(' is not a dtype"),
        ("zeros:3:=", "'=' is not a dtype"),
        ("zeros:3:[('a'", "is not a dtype"),
        ("zeros:3:f4:1", "write zeros:SHAPE:DTYPE"),
        ("full:3:f4", "write full:SHAPE:DTYPE:VALUE"),
        ("full:3:f4:x", "neither a number"),
        ("full:3:u1:300", "300 out of bounds"),
        ("full:3:i4:1+2j", "full:SHAPE:DTYPE:VALUE"),
        ("full:3:i4:2.5", "2.5 is not an integer"),
        ("random:3:f4:x", "the seed 'x'"),
        ("random:3:f4,i4", "no random values"),
        ("__file__", "numpy.save"),
    ],
)
def test_what_is_none_of_the_forms_is_said_in_a_sentence(text, said):
    with pytest.raises(UsageError) as error:
        value(__file__ if text == "__file__" else text)
    assert said in str(error.value)
