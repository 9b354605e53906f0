"""Random descriptors: Bascule accepts exactly those that an independent implementation of the rules accepts."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np
import pytest
from descriptors import hostile, nearly_valid, valid, verdict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bascule

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fuzz"))
import hostile_objects


@functools.cache
def memory():
    """Allocated by the first test, not at the import: tests that run in between may destroy the context."""
    return bascule.to_device(np.arange(4096, dtype="u1"))


def known():
    first = memory().__cuda_array_interface__["data"][0]
    return range(first, first + 4096)


VALID = st.deferred(lambda: valid(known()))
MANY = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), max_examples=150
)


def outcome(descriptor, fast):
    """What the launch path reads from the descriptor, or the class and message of its error."""
    try:
        return bascule._bascule._parse(descriptor, 1, fast)
    except Exception as error:
        return type(error), str(error)


def check(descriptor):
    assert outcome(descriptor, True) == outcome(descriptor, False)  # the fast path, or the general path alone
    expected = verdict(descriptor, known())
    if expected.errors:
        with pytest.raises(tuple(expected.errors)) as caught:
            bascule.from_cuda_array_interface(descriptor, owner=memory())
        assert isinstance(caught.value, bascule.ArgumentError)
        return
    array = bascule.from_cuda_array_interface(descriptor, owner=memory())
    assert array.shape == expected.shape
    assert array.strides == expected.strides
    assert array.dtype == expected.dtype
    assert array.readonly == expected.readonly
    if expected.stream is not None:
        assert array.stream.handle == expected.stream
    again = array.__cuda_array_interface__
    np.testing.assert_array_equal(again["shape"], expected.shape)


@MANY
@given(VALID)
def test_a_valid_descriptor_is_taken_as_numpy_would_describe_it(descriptor):
    assert not verdict(descriptor, known()).errors
    check(descriptor)


@pytest.mark.parametrize("typestr", ["<f4", "|u1", "<i8", "<f2", "<c8", "|b1", ">u1", "<f1", "<i3", "<u9"])
@pytest.mark.parametrize("shape", [(), (8,), (2, 3), (1, 4), (4, 1), (0,), (2, 0), (1,) * 64, (2**40, 2**40)])
@pytest.mark.parametrize("order", ["none", "C", "F", "gap", "any"])
@pytest.mark.parametrize("interned", [True, False])
def test_the_fast_path_makes_the_same_of_a_descriptor_as_the_general_path(typestr, shape, order, interned, rng):
    itemsize = int(typestr[2:])
    packed = tuple(np.cumprod([itemsize, *shape[:0:-1]], dtype=object)[::-1]) if shape else ()
    strides = {"none": None, "C": packed, "F": packed[::-1], "gap": tuple(2 * s for s in packed), "any": None}[order]
    descriptor = {
        "shape": shape,
        "typestr": typestr,
        "data": (known().start + int(rng.integers(0, 64)), bool(rng.integers(0, 2))),
        "version": int(rng.integers(0, 5)),
        "strides": strides,
        "stream": [None, 0, 1, 2, 2**40, 2**70, True][rng.integers(0, 7)],
        "descr": [None, [("", typestr)], [("", "<f8")], [("a", typestr)], []][rng.integers(0, 5)],
        "mask": None,
        "unknown": object(),
    }
    if order == "any":
        for key in rng.permutation(list(descriptor))[: rng.integers(0, 4)]:
            del descriptor[str(key)]
    if not interned:
        descriptor = {"".join(list(key)): value for key, value in descriptor.items()}
    assert outcome(descriptor, True) == outcome(descriptor, False)


def test_where_the_keys_of_one_dict_were_is_not_believed_of_the_next(rng):
    fields = {
        "shape": (8,),
        "typestr": "<f4",
        "data": (known().start, False),
        "version": 3,
        "strides": (4,),
        "stream": 1,
        "descr": [("", "<f4")],
        "mask": None,
    }
    kinds = set()
    for _ in range(500):
        descriptor = {str(key): fields[str(key)] for key in rng.permutation(list(fields))}
        for key in map(str, rng.permutation(list(fields))[: rng.integers(0, 3)]):
            value = descriptor.pop(key)  # its entry in the dict stays, but is empty
            other = {0: None, 1: key, 2: "".join(list(key)), 3: "x" + key[1:]}[int(rng.integers(0, 4))]
            if other is not None:
                descriptor[other] = value
        if rng.integers(0, 2):
            descriptor = dict(list(descriptor.items()))  # no entry is empty
        expected = outcome(descriptor, False)
        assert outcome(descriptor, True) == expected
        assert outcome(descriptor, True) == expected  # the keys are where they were
        kinds.add(type(expected))
    assert kinds == {str, tuple}  # accepted and refused


@MANY
@given(st.deferred(lambda: nearly_valid(known())))
def test_a_descriptor_with_one_wrong_field_is_refused_for_that_field(descriptor):
    check(descriptor)


@MANY
@given(st.deferred(lambda: hostile(known())))
def test_a_descriptor_with_many_wrong_fields_is_refused_for_one_of_them(descriptor):
    check(descriptor)


@MANY
@given(VALID.filter(lambda each: np.prod([int(n.__index__()) for n in each["shape"]]) > 0))
def test_the_elements_are_where_numpy_finds_them(descriptor):
    array = bascule.from_cuda_array_interface(descriptor, owner=memory())
    address = descriptor["data"][0].__index__()
    host = np.ndarray(
        array.shape, f"V{array.dtype.itemsize}", np.arange(4096, dtype="u1"), address - known().start, array.strides
    )
    assert array.copy_to_host().tobytes() == host.tobytes()


@given(st.integers(0, 2**32))
@settings(max_examples=4, deadline=None, derandomize=True, database=None)
def test_hostile_objects_end_in_an_ordinary_exception_or_a_consistent_array(seed):
    outcomes = hostile_objects.run(1000, seed)
    assert outcomes["taken"] > 50
    assert outcomes["ArgumentTypeError"] > 100


def test_a_field_from_nowhere_would_be_noticed():
    world = hostile_objects.World(1)
    world.integers = {4, world.address}
    world.typestrs = {"<f4"}
    with pytest.raises(AssertionError, match="nobody said the shape"):
        hostile_objects.check(world, world.memory)
