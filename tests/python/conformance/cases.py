"""The table of cases: row of interface/CONFORMANCE.md, the producer's descriptor, the expected result.

A case starts from a good descriptor of eight elements and changes some fields. `At`, `Stream`, `Host`, `Freed` and
`Missing` stand for values that are known only when it runs. `says` are the parts of the message that a person
needs in addition to "argument 1 'p'".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import producers
from .kernels import ALIGNED, NESTED, PACKED
from .producers import Index

ACCEPTED = "accepted"
TYPE = "TypeError"
VALUE = "ValueError"
KEY = "KeyError"
LATER = "NotImplementedError"
OWN = "the producer's own"

EVERY = (0, 1, 2, 3)
SILENT = (0, 1, 2)  # the versions without streams
NONE = (None,)  # for cases about the version itself


MASKED = "bascule::masked_view<float>"
HALF = (True, False) * 4
BACKWARDS = {"shape": (8,), "typestr": "<t1", "strides": (-1,)}
MISALIGNED = {"shape": (8,), "typestr": "<i2", "strides": (3,)}


class Missing:
    """The key is omitted."""


@dataclass(frozen=True)
class At:
    """`data`: an offset in bytes from the start of the arrays, or from the start of the allocation."""

    offset: int = 0
    readonly: object = False
    kind: Callable[[int], object] = int
    container: Callable[..., object] = lambda *pair: pair
    of_allocation: bool = False


@dataclass(frozen=True)
class Stream:
    """`stream`: a stream made for the case."""

    kind: Callable[[int], object] = int


@dataclass(frozen=True)
class Mask:
    """`mask`: these values in device memory, exposed by a separate interface with some fields changed."""

    values: Any
    fields: dict[str, Any] = field(default_factory=dict)

    def array(self) -> np.ndarray:
        return np.asarray(self.values)


class Host:
    """`data`: an address of this process's own memory, which no driver knows."""


class Freed:
    """`data`: memory that was freed without Bascule's knowledge, after a kernel was prepared with memory next to it."""


@dataclass(frozen=True)
class Case:
    row: int
    gives: str
    outcome: str
    fields: dict[str, Any] = field(default_factory=dict)
    to: str = "float*"
    says: tuple[str, ...] = ()
    versions: tuple[int | None, ...] = EVERY
    make: Callable[[dict[str, Any]], object] | None = None  # makes the object from the good descriptor
    error: type[BaseException] | None = None  # for the outcome OWN
    means: tuple[tuple[int, ...], tuple[int, ...] | None] | None = None  # (shape, strides) of what the kernel touches
    memory: str = "device"
    settings: dict[str, Any] = field(default_factory=dict)  # for bascule.config
    valid: tuple[bool, ...] = ()  # which elements the kernel changes; () for all
    runs: bool = True  # False: bound and checked, but not launched
    placed: tuple[int, ...] = ()  # the devices of three arrays; the case runs in a separate process, two_devices.py
    launched_on: int | None = None  # the device of the stream on which the kernel is launched

    @property
    def id(self) -> str:
        return f"{self.row}-{self.gives}"


def good(row: int, gives: str, **options: Any) -> Case:
    names = ("to", "versions", "make", "means", "memory", "settings", "valid", "runs", "placed", "launched_on")
    rest = {name: options.pop(name) for name in names if name in options}
    return Case(row, gives, ACCEPTED, options, **rest)


def bad(row: int, gives: str, outcome: str, *says: str, **options: Any) -> Case:
    names = ("to", "versions", "make", "error", "memory", "settings", "placed", "launched_on")
    rest = {name: options.pop(name) for name in names if name in options}
    return Case(row, gives, outcome, options, says=says, **rest)


CASES: list[Case] = [
    # --- access
    bad(1, "no attribute", TYPE, "object", make=lambda _: object()),
    bad(1, "AttributeError", TYPE, "not on a GPU", make=producers.raising(AttributeError("not on a GPU"))),
    bad(2, "RuntimeError", OWN, "grad", make=producers.raising(RuntimeError("requires grad")), error=RuntimeError),
    bad(3, "ZeroDivisionError", OWN, make=producers.raising(ZeroDivisionError("0")), error=ZeroDivisionError),
    bad(3, "KeyboardInterrupt", OWN, make=producers.raising(KeyboardInterrupt()), error=KeyboardInterrupt),
    bad(3, "KeyError", OWN, "torch", make=producers.raising(KeyError("torch")), error=KeyError),
    bad(4, "None", TYPE, "must be a dict", "None", make=producers.exposing(None)),
    bad(4, "a list of pairs", TYPE, "must be a dict", "[('shape'", make=producers.exposing([("shape", (8,))])),
    bad(4, "a function", TYPE, "must be a dict", "built-in function", make=producers.exposing(len)),
    bad(4, "the dict of a class", TYPE, "class Array", "instance", make=producers.class_with_dict),
    bad(4, "the property of a class", TYPE, "class Producer", "instance", make=producers.class_with_property),
    bad(5, "an empty dict", KEY, "no 'version'", make=producers.exposing({}), versions=NONE),
    *(good(6, kind, make=producers.as_mapping(make)) for kind, make in producers.MAPPINGS.items()),
    good(7, "a key of a later version", colour="red"),
    good(7, "keys that are not strings", make=lambda fields: producers.Producer(lambda: {**fields, 5: 6, None: 7})),
    good(8, "a property that counts its reads"),
    good(9, "another dict at each read", make=producers.changing),
    good(10, "a dict that is emptied while it is read", make=producers.clearing),
    good(10, "a dict that is rewritten while it is read", make=producers.rewriting),
    good(10, "a shape that shrinks while it is read", make=producers.shrinking),
    bad(10, "a Mapping that forgets while it is read", OWN, "data", make=producers.getting, error=KeyError),
    bad(10, "an extent whose __index__ raises", OWN, make=producers.failing_index, error=ZeroDivisionError),
    good(11, "__dlpack__ beside the interface", make=lambda fields: producers.WithDlpack(lambda: fields)),
    # --- version
    *(good(12, f"{kind.__name__}", version=kind) for kind in (int, np.int8, np.int64, np.uint64, Index)),
    bad(13, "nothing", KEY, "no 'version'", version=Missing, versions=NONE),
    *(
        bad(14, text, TYPE, "'version'", text, version=value, versions=NONE)
        for text, value in [("None", None), ("'3'", "3"), ("3.0", 3.0), ("True", True)]
    ),
    bad(14, "numpy.True_", TYPE, "'version'", "True", version=np.True_, versions=NONE),
    bad(14, "-1", VALUE, "'version'", "-1", version=-1, versions=NONE),
    bad(14, "-2**70", VALUE, "'version'", str(-(2**70)), version=-(2**70), versions=NONE),
    bad(15, "4", VALUE, "'version'", "4", "accept_newer_interface", version=4, versions=NONE),
    bad(15, "2**70", VALUE, "'version'", str(2**70), version=2**70, versions=NONE),
    good(15, "4, opted in", version=4, versions=NONE, settings={"accept_newer_interface": True}),
    # --- shape
    good(16, "a tuple", shape=(8,)),
    good(16, "()", shape=()),
    good(16, "a tuple of 64 extents", shape=(1,) * 63 + (8,)),
    bad(17, "nothing", KEY, "no 'shape'", shape=Missing),
    *(
        bad(17, text, TYPE, "'shape'", text, shape=value)
        for text, value in [("None", None), ("3", 3), ("'ab'", "ab"), ("8.0", (8.0,)), ("{8}", {8}), ("b'8'", b"8")]
    ),
    bad(17, "a range", TYPE, "'shape'", "range", shape=range(8, 9)),
    good(18, "a list", shape=[8]),
    *(good(19, f"numpy.{kind.__name__}", shape=(kind(8),)) for kind in (np.int32, np.int64, np.uint8, np.uint64)),
    good(19, "an object with __index__", shape=(Index(8),)),
    bad(19, "True", TYPE, "'shape'", "True", shape=(True,)),
    bad(19, "numpy.True_", TYPE, "'shape'", "True", shape=(np.True_,)),
    *(
        bad(20, str(shape), VALUE, "'shape'", str(shape), shape=shape)
        for shape in [(-1,), (-1, -1), (0, -1), (-(2**63),), (-2, 4, -1)]
    ),
    bad(21, "(2**32, 2**32)", VALUE, "'shape'", str((2**32, 2**32)), shape=(2**32, 2**32)),
    bad(21, "(2**63,)", VALUE, "'shape'", str(2**63), shape=(2**63,)),
    bad(21, "(-2**63 - 1,)", VALUE, "'shape'", str(-(2**63) - 1), shape=(-(2**63) - 1,)),
    bad(21, "(2**62,) of <f8", VALUE, "'shape'", str(2**62), shape=(2**62,), typestr="<f8", to="double*"),
    good(21, "(2**63 - 1, 0)", shape=(2**63 - 1, 0)),
    good(21, "5 * 10**8 of <f8", shape=(5 * 10**8,), to="double*", means=((8,), None)),
    bad(22, "65 dimensions", VALUE, "'shape'", "65", "64", shape=(1,) * 65),
    bad(22, "10**5 dimensions", VALUE, "'shape'", "100000", shape=[1] * 10**5),
    bad(22, "a __len__ that lies", TYPE, "'shape'", "__len__", shape=producers.Liar((8,))),
    bad(22, "a sequence of its own type", TYPE, "'shape'", "Sequence", shape=producers.Sequence()),
    # --- typestr
    *(
        good(23, typestr, typestr=typestr, to=to)
        for typestr, to in [
            ("|b1", "bool*"),
            ("|u1", "unsigned char*"),
            ("|i1", "signed char*"),
            ("<i2", "short*"),
            ("<i4", "int*"),
            ("<i8", "long long*"),
            ("<u2", "unsigned short*"),
            ("<u4", "unsigned int*"),
            ("<u8", "unsigned long long*"),
            ("<f2", "__half*"),
            ("<f4", "float*"),
            ("<f8", "double*"),
            ("<c8", "float2*"),
            ("<c16", "double2*"),
        ]
    ),
    bad(24, ">f4", VALUE, "'typestr'", ">f4", "big-endian", typestr=">f4"),
    bad(24, ">V2", VALUE, "'typestr'", ">V2", typestr=">V2", to="__nv_bfloat16*"),
    good(24, ">u1", typestr=">u1", to="unsigned char*"),
    good(25, "|V2 to __nv_bfloat16", typestr="|V2", to="__nv_bfloat16*"),
    good(25, "<V2 to __nv_bfloat16", typestr="<V2", to="__nv_bfloat16*"),
    bad(25, "<V2 to unsigned short", TYPE, "unsigned short*", "2 opaque bytes", typestr="<V2", to="unsigned short*"),
    bad(25, "<V2 to __half", TYPE, "__half*", "2 opaque bytes", typestr="<V2", to="__half*"),
    good(26, "|V5 to a structure of 5 bytes", typestr="|V5", to="five*"),
    bad(26, "|V6 to a structure of 5 bytes", TYPE, "five*", "6 opaque bytes", typestr="|V6", to="five*"),
    bad(26, "|V4 to float", TYPE, "float*", "4 opaque bytes", typestr="|V4"),
    good(27, "structures in structures, subarrays, padding", typestr=NESTED.str, descr=NESTED.descr, to="nested*"),
    bad(27, "a descr of fewer bytes", VALUE, "'descr'", "7 bytes", typestr="|V8", descr=PACKED.descr, to="packed*"),
    bad(27, "a descr of more bytes", VALUE, "'descr'", "12 bytes", typestr="|V7", descr=ALIGNED.descr, to="packed*"),
    good(28, "a packed structure", typestr=PACKED.str, descr=PACKED.descr, to="packed*"),
    good(28, "an aligned structure", typestr=ALIGNED.str, descr=ALIGNED.descr, to="aligned*"),
    bad(28, "packed to aligned", TYPE, "aligned*", "7 bytes", typestr=PACKED.str, descr=PACKED.descr, to="aligned*"),
    bad(28, "aligned to packed", TYPE, "packed*", "12 bytes", typestr=ALIGNED.str, descr=ALIGNED.descr, to="packed*"),
    good(29, "None", descr=None),
    good(29, "the typestr again", descr=[("", "<f4")]),
    bad(29, "42", TYPE, "'descr'", "42", descr=42),
    bad(29, "fields that contradict <f4", VALUE, "'descr'", "<f4", descr=[("a", "<i2"), ("b", "<i2")]),
    bad(29, "another typestr", VALUE, "'descr'", "<f4", descr=[("", "<i4")]),
    bad(30, "|O8", TYPE, "'typestr'", "|O8", typestr="|O8"),
    bad(30, "O in descr", TYPE, "'descr'", "|O8", "'a'", typestr="|V8", descr=[("a", "|O8")], to="packed*"),
    good(31, "<M8[ns]", typestr="<M8[ns]", to="long long*"),
    good(31, "<m8[us]", typestr="<m8[us]", to="long long*"),
    good(31, "<m8[25s]", typestr="<m8[25s]", to="long long*"),
    bad(31, "<M8[ns] to double", TYPE, "double*", "datetime64", typestr="<M8[ns]", to="double*"),
    bad(31, "<m8[us] to unsigned long long", TYPE, "timedelta64", typestr="<m8[us]", to="unsigned long long*"),
    bad(31, "<M8[parsecs]", VALUE, "'typestr'", "<M8[parsecs]", typestr="<M8[parsecs]", to="long long*"),
    bad(32, "|S5", TYPE, "'typestr'", "|S5", typestr="|S5"),
    bad(32, "<U4", TYPE, "'typestr'", "<U4", typestr="<U4"),
    bad(32, "<t1", VALUE, "bit", "masks", typestr="<t1", to="unsigned char*"),
    bad(32, "|t1", VALUE, "bit", "masks", typestr="|t1", to="unsigned char*"),
    bad(33, "nothing", KEY, "no 'typestr'", typestr=Missing),
    *(
        bad(33, f'"{text}"', VALUE, "'typestr'", f'"{text}"', typestr=text)
        for text in ["", "f4", "<f", "<fX", "<f-4", "<f+4", "<f 4", "<f04", "<f3", "<i16", "<c4", "<b2", "<x4", "!f4"]
    ),
    bad(33, "fifty digits", VALUE, "'typestr'", "<f" + "4" * 50, typestr="<f" + "4" * 50),
    bad(33, "a thousand digits", VALUE, "'typestr'", "<f" + "4" * 58 + "...", typestr="<f" + "4" * 1000),
    bad(33, "a NUL", VALUE, "'typestr'", r"<f\x00", typestr="<f\0"),
    bad(33, "digits of another script", VALUE, "'typestr'", "<f\u0664", typestr="<f\N{ARABIC-INDIC DIGIT FOUR}"),
    bad(33, "a lone surrogate", VALUE, "'typestr'", r"<f\\ud800", typestr="<f\ud800"),
    bad(33, "bytes", TYPE, "'typestr'", "b'<f4'", typestr=b"<f4"),
    bad(33, "None", TYPE, "'typestr'", "None", typestr=None),
    bad(33, "42", TYPE, "'typestr'", "42", typestr=42),
    # --- data
    bad(34, "nothing", KEY, "no 'data'", data=Missing),
    bad(34, "None", TYPE, "'data'", "None", data=None),
    bad(34, "0", TYPE, "'data'", "0", data=0),
    bad(34, "()", VALUE, "'data'", "()", data=()),
    bad(34, "(1,)", VALUE, "'data'", "(1,)", data=(1,)),
    bad(34, "(1, False, 0)", VALUE, "'data'", "(1, False, 0)", data=(1, False, 0)),
    bad(34, "[1]", VALUE, "'data'", "[1]", data=[1]),
    good(34, "a list of two", data=At(container=lambda *pair: list(pair))),
    good(35, "None, empty", shape=(0,), data=(None, False)),
    bad(35, "None", TYPE, "'data'", "None", data=(None, False)),
    good(36, "0, empty", shape=(0,), data=(0, False)),
    good(37, "an address that is none, empty", shape=(0,), data=(12345, False)),
    bad(38, "0", VALUE, "'data'", "(0, ", data=(0, False)),
    *(
        bad(39, text, VALUE, "'data'", str(value), data=(value, False))
        for text, value in [("-1", -1), ("2**64", 2**64), ("-2**64", -(2**64))]
    ),
    *(
        bad(39, text, TYPE, "'data'", text, data=(value, False))
        for text, value in [("True", True), ("4096.0", 4096.0), ("'4096'", "4096"), ("b'4096'", b"4096")]
    ),
    *(good(39, f"numpy.{kind.__name__}", data=At(kind=kind)) for kind in (np.int64, np.uint64)),
    good(40, "False", data=At(readonly=False)),
    good(40, "0", data=At(readonly=0)),
    good(40, "numpy.False_", data=At(readonly=np.False_)),
    *(
        bad(40, text, TYPE, "'data'", text, data=At(readonly=flag))
        for text, flag in [("None", None), ("2", 2), ("-1", -1), ("'no'", "no"), ("0.0", 0.0), (str(2**64), 2**64)]
    ),
    *(good(41, f"{flag} to const", data=At(readonly=flag), to="const float*") for flag in (True, 1)),
    *(bad(41, f"{flag}", VALUE, "`float*`", "read-only", data=At(readonly=flag)) for flag in (True, 1)),
    bad(41, "numpy.True_", VALUE, "`float*`", "read-only", data=At(readonly=np.True_)),
    bad(42, "2**64 - 8", VALUE, "'data'", hex(2**64 - 8), "64-bit", data=(2**64 - 8, False)),
    bad(42, "8 with stride -4", VALUE, "'data'", "0x8", data=(8, False), strides=(-4,)),
    bad(42, "an odd address", VALUE, "`float*`", "aligned", "4 bytes", data=At(1)),
    # --- strides
    good(43, "nothing", strides=Missing),
    good(43, "None", strides=None),
    good(43, "those of C order", strides=(4,)),
    good(43, "those of C order, two axes", shape=(2, 4), strides=[16, 4]),
    bad(43, "8 times those of C order", VALUE, "(32,)", "array_view", strides=(32,)),
    bad(
        44,
        "Fortran order",
        VALUE,
        "(4, 8)",
        "array_view",
        "C-contiguous copy",
        'x.ravel("K")',
        shape=(2, 4),
        strides=(4, 8),
    ),
    good(44, "Fortran order, to array_view", shape=(2, 4), strides=(4, 8), to="bascule::array_view<float, 2>"),
    good(44, "every other, to array_view", strides=(8,), to="bascule::array_view<float>"),
    good(44, "transposed, to array_view", shape=(4, 3), strides=(4, 16), to="bascule::array_view<float, 2>"),
    bad(44, "every other", VALUE, "(8,)", "array_view", strides=(8,)),
    good(45, "-4, to array_view", strides=(-4,), data=At(28), to="bascule::array_view<float>"),
    bad(45, "-4", VALUE, "(-4,)", "array_view", strides=(-4,), data=At(28)),
    good(46, "0, to a const view", strides=(0,), to="bascule::array_view<const float>"),
    bad(46, "0, to a view", VALUE, "broadcast", "const", strides=(0,), to="bascule::array_view<float>"),
    bad(46, "0", VALUE, "(0,)", "array_view", strides=(0,), to="const float*"),
    good(47, "() of no axes", shape=(), strides=()),
    bad(47, "two for one axis", VALUE, "'strides'", "(4, 4)", strides=(4, 4)),
    bad(47, "none for one axis", VALUE, "'strides'", "()", strides=()),
    bad(47, "one for none", VALUE, "'strides'", "(4,)", shape=(), strides=(4,)),
    good(48, "any for an axis of one", shape=(1, 8), strides=(12345, 4)),
    good(48, "any for an empty array", shape=(0, 8), strides=(3, -7)),
    good(49, "8 of a structure of 6 bytes", typestr="|V6", strides=(8,), to="bascule::array_view<shorts>"),
    bad(49, "6, to array_view", VALUE, "stride", "4 bytes", strides=(6,), to="bascule::array_view<float>"),
    bad(49, "6, to span", VALUE, "array_view", strides=(6,), to="cuda::std::span<float>"),
    bad(49, "8, to span", VALUE, "array_view", strides=(8,), to="cuda::std::span<float>"),
    bad(49, "6", VALUE, "(6,)", "array_view", strides=(6,)),
    good(49, "6 for an axis of one", shape=(1,), strides=(6,), to="bascule::array_view<float>"),
    good(49, "4, to span", strides=(4,), to="cuda::std::span<float>"),
    bad(50, "42", TYPE, "'strides'", "42", strides=42),
    bad(50, "(None,)", TYPE, "'strides'", "None", strides=(None,)),
    bad(50, "(4.0,)", TYPE, "'strides'", "4.0", strides=(4.0,)),
    bad(50, "(2**63,)", VALUE, "'strides'", str(2**63), strides=(2**63,)),
    bad(50, "(2**62,)", VALUE, "'strides'", str(2**62), strides=(2**62,)),
    # --- mask
    good(51, "None", mask=None),
    bad(51, "a mask", LATER, "mask", "masked_view", mask=object()),
    bad(51, "a mask, to array_view", LATER, "mask", "masked_view", mask=object(), to="bascule::array_view<float>"),
    good(52, "no mask, to masked_view", to=MASKED),
    *(
        good(52, f"{dtype} as long as the array", mask=Mask(np.array(HALF, dtype)), to=MASKED, valid=HALF)
        for dtype in ("|b1", "|i1", "|u1", "<i2", "<u4", "<i8")
    ),
    good(52, "any integer but 0 is true", mask=Mask(np.array(HALF, "<i4") * -256), to=MASKED, valid=HALF),
    *(
        good(
            52,
            f"bits as {typestr}",
            mask=Mask([0b01010101], {"shape": (8,), "typestr": typestr}),
            to=MASKED,
            valid=HALF,
        )
        for typestr in ("<t1", "|t1")
    ),
    good(52, "one element for all", mask=Mask([True]), to=MASKED),
    good(52, "no dimensions", mask=Mask(np.array(True)), to=MASKED),
    good(52, "one element for all, false", mask=Mask([False]), to=MASKED, valid=(False,) * 8),
    good(52, "every other byte", mask=Mask([True, False] * 8, {"shape": (8,), "strides": (2,)}), to=MASKED),
    good(52, "a mask of another version", mask=Mask(HALF, {"version": 0}), to=MASKED, valid=HALF),
    bad(52, "no interface", TYPE, "'mask'", "object", mask=object(), to=MASKED),
    bad(52, "a mask of a mask", VALUE, "'mask'", "Fill", mask=Mask(HALF, {"mask": Mask(HALF)}), to=MASKED),
    bad(52, "itself", VALUE, "'mask'", make=producers.masking_itself, to=MASKED),
    bad(52, "floats", TYPE, "'mask'", "float32", "x != 0", mask=Mask(np.ones(8, "f4")), to=MASKED),
    bad(52, "too short", VALUE, "'mask'", "(7,)", "(8,)", mask=Mask([True] * 7), to=MASKED),
    bad(52, "more dimensions", VALUE, "'mask'", "(1, 8)", mask=Mask([[True] * 8]), to=MASKED),
    bad(
        52,
        "64 bytes for 64 elements",
        VALUE,
        "'mask'",
        "bit an element",
        shape=(64,),
        mask=Mask(np.ones(64, "u1")),
        to=MASKED,
    ),
    bad(52, "bits with strides", VALUE, "'mask'", "bits", mask=Mask([1] * 8, BACKWARDS), to=MASKED),
    bad(52, "misaligned", VALUE, "'mask'", "aligned", mask=Mask(np.zeros(24, "u1"), MISALIGNED), to=MASKED),
    bad(52, "a shape that is none", TYPE, "the array's 'mask'", "'shape'", mask=Mask(HALF, {"shape": 8}), to=MASKED),
    # --- stream
    good(53, "nothing", stream=Missing),
    good(53, "None", stream=None),
    bad(54, "0", VALUE, "'stream'", "0", "None", stream=0),
    good(55, "1", stream=1),
    good(55, "2", stream=2),
    good(55, "a handle", stream=Stream(), versions=(3,)),
    good(55, "a handle as numpy.uint64", stream=Stream(np.uint64), versions=(3,)),
    good(55, "3", stream=3, runs=False),
    good(55, "2**64 - 1", stream=2**64 - 1, runs=False),
    *(
        bad(56, text, TYPE, "'stream'", text, "later one may name an event", stream=value)
        for text, value in [("True", True), ("1.0", 1.0), ("'1'", "1"), ("(1,)", (1,))]
    ),
    bad(56, "-1", VALUE, "'stream'", "-1", stream=-1),
    bad(56, "2**64", VALUE, "'stream'", str(2**64), stream=2**64),
    good(57, "a handle", stream=Stream(), versions=SILENT),
    # --- provenance
    bad(58, "host memory", VALUE, "'data'", "0x", "host memory", data=Host),
    good(59, "pinned memory", memory="pinned"),
    good(59, "managed memory", memory="managed"),
    good(59, "memory of a pool", memory="pool"),
    good(60, "arrays of another device", placed=(1, 1, 1)),
    good(60, "arrays of another device, with its stream", placed=(1, 1, 1), launched_on=1),
    bad(60, "arrays of two devices", VALUE, "device 0", "device 1", placed=(0, 0, 1)),
    bad(60, "arrays of two devices, another first", VALUE, "device 1", "device 0", placed=(1, 0, 0)),
    bad(60, "a stream of another device", VALUE, "device 0", "device 1", placed=(0, 0, 0), launched_on=1),
    good(61, "memory that is there", settings={"check_memory": True}),
    bad(61, "freed memory", VALUE, "'data'", "0x", "freed", data=Freed, settings={"check_memory": True}),
    good(62, "the end of an allocation", data=At(4096 - 32, of_allocation=True), settings={"check_memory": True}),
    bad(
        62,
        "beyond the end",
        VALUE,
        "'data'",
        "0x",
        "allocation",
        data=At(4096 - 28, of_allocation=True),
        settings={"check_memory": True},
    ),
    bad(
        62,
        "before the start",
        VALUE,
        "'data'",
        "allocation",
        data=At(24, of_allocation=True),
        strides=(-4,),
        to="bascule::array_view<float>",
        settings={"check_memory": True},
    ),
]
