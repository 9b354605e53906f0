"""Strategies for `__cuda_array_interface__`: valid, nearly valid and hostile; and an independent reading of its rules.

`verdict(descriptor)` says what the interface's text and CONFORMANCE.md require for a descriptor. It shares nothing
with the parser: errors are found field by field, so if several fields are wrong, any of their errors may be raised.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

REQUIRED = ("shape", "typestr", "data", "version")
MAX_DIMENSIONS = 64
SIZES = {"b": {1}, "i": {1, 2, 4, 8}, "u": {1, 2, 4, 8}, "f": {1, 2, 4, 8}, "c": {8, 16}, "M": {8}, "m": {8}}
UNIT = r"[0-9]*(?:Y|M|W|D|h|m|s|ms|us|μs|ns|ps|fs|as)|generic"


@dataclass
class Verdict:
    """The exceptions that may be raised, or the array if it is valid."""

    errors: set[type[Exception]] = field(default_factory=set)
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dtype: np.dtype | None = None
    readonly: bool = False
    stream: int | None = None


class Number:
    """An integer that has only `__index__`, like other libraries' scalars."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value

    def __repr__(self) -> str:
        return f"Number({self.value})"


# --- Reading by the rules


def integer_of(value: Any) -> int | None:
    """Returns None if the value is not an integer; a bool does not count as one here."""
    if isinstance(value, (bool, np.bool_)) or value is None:
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def read_typestr(text: Any, verdict: Verdict) -> int:
    """Returns the item size, or 0 on an error."""
    if not isinstance(text, str):
        verdict.errors.add(TypeError)
        return 0
    if len(text) >= 3 and text[0] in "<>|=" and text[1] in "OSU":
        verdict.errors.add(TypeError)
        return 0
    found = re.fullmatch(rf"([<>|=])([biufcVMm])([1-9][0-9]{{0,8}})(?:\[({UNIT})\])?", text, re.ASCII)
    if not found:
        verdict.errors.add(ValueError)
        return 0
    order, kind, digits, unit = found.groups()
    size = int(digits)
    if (kind != "V" and size not in SIZES[kind]) or (unit and kind not in "Mm") or (order == ">" and size > 1):
        verdict.errors.add(ValueError)
        return 0
    if text[1:] == "f1":
        try:
            import ml_dtypes

            verdict.dtype = np.dtype(ml_dtypes.float8_e5m2)
        except ImportError:  # without ml_dtypes, NumPy sees bytes
            verdict.dtype = np.dtype("V1")
    else:
        try:
            verdict.dtype = np.dtype(text)
        except TypeError:  # a count of units that NumPy does not support
            verdict.errors.add(ValueError)
    return size


def read_integers(value: Any, verdict: Verdict) -> tuple[int, ...] | None:
    if not isinstance(value, (tuple, list)):
        verdict.errors.add(TypeError)
        return None
    if len(value) > MAX_DIMENSIONS:
        verdict.errors.add(ValueError)
        return None
    numbers = [integer_of(each) for each in value]
    if any(each is None for each in numbers):
        verdict.errors.add(TypeError)
    if any(each is not None and not -(2**63) <= each < 2**63 for each in numbers):
        verdict.errors.add(ValueError)
    return None if verdict.errors else tuple(each for each in numbers if each is not None)


def read_data(value: Any, verdict: Verdict) -> int | None:
    """Returns the address, or None if the pointer is not an integer or there is no pair."""
    if not isinstance(value, (tuple, list)):
        verdict.errors.add(TypeError)
        return None
    if len(value) != 2:
        verdict.errors.add(ValueError)
        return None
    pointer, readonly = value
    flag = bool(readonly) if isinstance(readonly, (bool, np.bool_)) else integer_of(readonly)
    if flag not in (0, 1):
        verdict.errors.add(TypeError)
    else:
        verdict.readonly = bool(flag)
    if pointer is None:
        return None
    address = integer_of(pointer)
    if address is None:
        verdict.errors.add(TypeError)
    elif not 0 <= address < 2**64:
        verdict.errors.add(ValueError)
    return address


def read_stream(value: Any, verdict: Verdict) -> None:
    if value is None:
        return
    handle = integer_of(value)
    if handle is None:
        verdict.errors.add(TypeError)
    elif not 0 < handle < 2**64:
        verdict.errors.add(ValueError)
    verdict.stream = handle


def read_version(value: Any, verdict: Verdict) -> None:
    version = integer_of(value)
    if version is None:
        verdict.errors.add(TypeError)
    elif not 0 <= version <= 3:
        verdict.errors.add(ValueError)


def check_together(verdict: Verdict, itemsize: int, address: int | None, known: range) -> None:
    """Checks that concern several fields: size, strides, the range of addresses, and `address` in `known`."""
    shape, strides = verdict.shape, verdict.strides
    if len(strides) != len(shape) or any(extent < 0 for extent in shape):
        verdict.errors.add(ValueError)
        return
    size = int(np.prod(shape, dtype=object))
    if size == 0:
        verdict.strides = c_strides(shape, itemsize)
        return
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) + itemsize
    if address is None:
        verdict.errors.add(TypeError)
    elif address not in known or address + low < 0 or address + high > 2**64:
        verdict.errors.add(ValueError)
    if size * itemsize >= 2**63 or any(abs((n - 1) * s) >= 2**63 for n, s in zip(shape, strides, strict=True)):
        verdict.errors.add(ValueError)


def c_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = [itemsize] * len(shape)
    for d in range(len(shape) - 1, 0, -1):
        strides[d - 1] = strides[d] * shape[d]
    return tuple(strides)


def verdict(descriptor: dict[str, Any], known: range) -> Verdict:
    """Returns the verdict. `known` is the range of addresses that the device knows."""
    result = Verdict()
    if any(key not in descriptor for key in REQUIRED):
        result.errors.add(KeyError)
        return result
    read_version(descriptor["version"], result)
    itemsize = read_typestr(descriptor["typestr"], result)
    shape = read_integers(descriptor["shape"], result)
    if shape is not None and any(extent < 0 for extent in shape):
        result.errors.add(ValueError)
    address = read_data(descriptor["data"], result)
    read_stream(descriptor.get("stream"), result)
    strides = descriptor.get("strides")
    steps = None if strides is None else read_integers(strides, result)
    if result.errors or shape is None:
        # Several fields may also be wrong together, and that ValueError may be raised instead.
        result.errors |= {ValueError} if shape is not None else set()
        return result
    result.shape = shape
    result.strides = c_strides(shape, itemsize) if steps is None else steps
    check_together(result, itemsize, address, known)
    return result


# --- Making descriptors

VALID_TYPESTRS = [
    *("|b1", "|u1", "<i2", "=i4", "<i8", "<f2", "<f4", "<f8", "<c8", "<c16", ">u1", "<V2", "|V2", "|V16", "<f1"),
    *("<M8[ns]", "<m8[25s]", "<M8", "<M8[μs]", "=m8[generic]"),
]
WRONG_TYPESTRS = [
    *("", "<", "f4", "<f", "<fX", "<f-4", "<f3", "<i16", ">f4", ">M8[s]", "<c4", "<f04", "|V0", "<F4", "<f4 ", "<f4\0"),
    *("<M8[xs]", "<M8[", "<M8[]", "<f4[s]", "<M8[2147483648s]", "|O8", "|S5", "<U4", "é", "<f٤", "|V" + "9" * 40),
]
HUGE = [2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30]


def integers(value: int) -> st.SearchStrategy[Any]:
    """The same integer in the types that people use."""
    forms = [st.just(value), st.just(value), st.just(Number(value))]
    if -(2**63) <= value < 2**63:
        forms.append(st.just(np.int64(value)))
    return st.one_of(forms)


def sequences(values: tuple[int, ...]) -> st.SearchStrategy[Any]:
    items = st.tuples(*map(integers, values))
    return st.one_of(items, items, items.map(list))


@st.composite
def valid(draw: st.DrawFn, memory: range) -> dict[str, Any]:
    """A descriptor of elements inside `memory`, of any version and layout, with up to four dimensions."""
    typestr = draw(st.sampled_from(VALID_TYPESTRS))
    itemsize = int(re.findall(r"\d+", typestr)[0])
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    step = itemsize * draw(st.integers(1, 2))
    strides, low, high = [0] * len(shape), 0, itemsize
    for axis in draw(st.permutations(range(len(shape)))):
        strides[axis] = step * draw(st.sampled_from([1, 1, -1, 0]))
        reach = (max(shape[axis], 1) - 1) * strides[axis]
        low, high = low + min(reach, 0), high + max(reach, 0)
        step *= max(shape[axis], 1)
    if high - low > len(memory):
        shape, strides, low, high = (2,), [itemsize], 0, 2 * itemsize
    explicit = draw(st.booleans())
    if not explicit:
        low, high = 0, itemsize * max(1, int(np.prod(shape)))
        if high > len(memory):
            shape = (2,)
    fields: dict[str, Any] = {
        "shape": draw(sequences(shape)),
        "typestr": typestr,
        "data": draw(st.sampled_from([(memory[-low], False), [memory[-low], True], (Number(memory[-low]), 1)])),
        "version": draw(integers(draw(st.integers(0, 3)))),
    }
    if explicit:
        fields["strides"] = draw(sequences(tuple(strides[: len(shape)])))
    for key, values in (("strides", [None]), ("stream", [None, 1, 2]), ("descr", [None]), ("mask", [None])):
        if key not in fields and draw(st.booleans()):
            fields[key] = draw(st.sampled_from(values))
    if draw(st.booleans()):
        fields["a key of the future"] = draw(st.sampled_from([None, 7, "x"]))
    return dict(draw(st.permutations(list(fields.items()))))


def wrong_values(key: str, memory: range) -> st.SearchStrategy[Any]:
    """Values that a field must not have, and some that it may have."""
    numbers = st.one_of(st.sampled_from(HUGE), st.sampled_from([-n for n in HUGE]), st.integers(-3, 9))
    nonsense = st.sampled_from([None, True, 3.0, "3", b"<f4", 42, (), [], (2,), object(), {"a": 1}, np.bool_(1)])
    some = st.lists(st.one_of(numbers, nonsense), max_size=3)
    special: dict[str, st.SearchStrategy[Any]] = {
        "version": numbers,
        "shape": st.one_of(some, some.map(tuple), st.lists(numbers, max_size=3).map(tuple), st.just((1,) * 65)),
        "strides": st.one_of(some, some.map(tuple), st.lists(numbers, max_size=3).map(tuple), st.just((0,) * 65)),
        "typestr": st.one_of(st.sampled_from(WRONG_TYPESTRS), st.sampled_from(VALID_TYPESTRS), st.text(max_size=6)),
        "data": st.one_of(
            st.tuples(st.one_of(numbers, nonsense, st.just(memory[0])), st.one_of(st.booleans(), numbers, nonsense)),
            some,
        ),
        "stream": st.sampled_from([0, -1, 2**64, 1, 2, True, 1.0, "1", Number(0)]),
    }
    return st.one_of(special[key], special[key], nonsense)


@st.composite
def nearly_valid(draw: st.DrawFn, memory: range) -> dict[str, Any]:
    """A valid descriptor with one field missing or changed."""
    fields = draw(valid(memory))
    key = draw(st.sampled_from([*REQUIRED, "strides", "stream"]))
    if key in REQUIRED and draw(st.integers(0, 7)) == 0:
        del fields[key]
    else:
        fields[key] = draw(wrong_values(key, memory))
    return fields


@st.composite
def hostile(draw: st.DrawFn, memory: range) -> dict[str, Any]:
    """A descriptor with several fields changed at once."""
    fields = draw(valid(memory))
    for key in draw(st.lists(st.sampled_from([*REQUIRED, "strides", "stream"]), min_size=2, unique=True)):
        fields[key] = draw(wrong_values(key, memory))
    return fields
