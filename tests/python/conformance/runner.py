"""Runs one case: builds the descriptor, passes it to a kernel, and checks the result."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

import bascule
from bascule import emulated

from .cases import ACCEPTED, KEY, LATER, OWN, TYPE, VALUE, At, Case, Freed, Host, Mask, Missing, Stream
from .driver import BYTES, Memory
from .kernels import PARAMETERS, Parameter, kernel_of
from .producers import Producer

BUILTINS = {TYPE: TypeError, VALUE: ValueError, KEY: KeyError, LATER: NotImplementedError}
START = 1024  # where the arrays of most cases begin: strides may be negative
THREADS = 64


@functools.cache
def memory_of(kind: str) -> Memory:
    return Memory(kind)


@contextmanager
def configured(settings: dict[str, Any]) -> Iterator[None]:
    before = {name: getattr(bascule.config, name) for name in settings}
    for name, value in settings.items():
        setattr(bascule.config, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(bascule.config, name, value)


class Run:
    """A case at one version."""

    def __init__(self, case: Case, version: int | None) -> None:
        self.case = case
        self.version = version
        self.parameter: Parameter = PARAMETERS[case.to]
        self.memory = memory_of(case.memory)
        self.stream: bascule.Stream | None = None
        self.kept: list[object] = []
        self.offset = START
        self.argument = self.make_argument()

    # --- the descriptor

    def make_argument(self) -> object:
        fields = {
            "shape": (8,),
            "typestr": self.parameter.dtype.str,
            "data": (self.memory.address + START, False),
            "version": 3 if self.version is None else self.version,
        }
        for key, value in self.case.fields.items():
            fields[key] = self.given(key, value)
        fields = {key: value for key, value in fields.items() if value is not Missing}
        if self.case.make is not None:
            return self.case.make(fields)
        return Producer(lambda: dict(fields))

    def given(self, key: str, value: Any) -> object:
        if key == "version" and callable(value) and value is not Missing:
            return value(self.version)
        if isinstance(value, At):
            self.offset = value.offset if value.of_allocation else START + value.offset
            return value.container(value.kind(self.memory.address + self.offset), value.readonly)
        if isinstance(value, Stream):
            self.stream = bascule.stream()
            return value.kind(self.stream.handle)
        if isinstance(value, Mask):
            return self.mask(value)
        if value is Host:
            host = np.zeros(64, "f4")
            self.kept.append(host)
            return (host.ctypes.data, False)
        if value is Freed:
            return (self.freed_address(), False)
        return value

    def mask(self, mask: Mask) -> Producer:
        """Returns a producer that exposes the mask. This object keeps the memory, as a library's array would."""
        values = bascule.to_device(mask.array())
        self.kept.append(values)
        fields = {"shape": mask.array().shape, "typestr": mask.array().dtype.str, "version": 3}
        fields |= {"data": values.__cuda_array_interface__["data"], **mask.fields}
        if "mask" in fields:
            fields["mask"] = self.mask(fields["mask"])
        return Producer(lambda: dict(fields))

    def freed_address(self) -> int:
        """Returns a freed address. A kernel prepared with memory next to it has shown the block to be device memory."""
        memory, neighbour = Memory(), Memory()
        fields = {"shape": (8,), "typestr": "<f4", "data": (neighbour.address, False), "version": 3}
        self.kernel().prepare(Producer(lambda: fields), 8)
        self.kept.append(neighbour)
        memory.free()
        return memory.address

    # --- the expected result

    def arguments(self) -> tuple[object, ...]:
        if not self.parameter.copies:
            return (self.argument, self.count)
        self.out = bascule.to_device(np.full(THREADS, -1, "f4"))
        return (self.argument, self.out, self.count)

    @property
    def layout(self) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        if self.case.means is not None:
            return self.case.means
        shape = self.case.fields.get("shape", (8,))
        strides = self.case.fields.get("strides")
        shape = tuple(int(extent.__index__()) for extent in shape)
        return shape, None if strides is None or strides is Missing or 0 in shape else tuple(strides)

    @property
    def count(self) -> int:
        if self.case.outcome != ACCEPTED:
            return 8
        return int(np.prod(self.layout[0], dtype=int))

    def kernel(self) -> bascule.Kernel:
        return kernel_of(self.parameter)

    def check(self) -> None:
        """Raises AssertionError if the result is not the one in the table."""
        with configured(self.case.settings):
            if self.case.outcome == ACCEPTED:
                self.check_accepted()
            else:
                self.check_refused()

    def check_binds(self) -> None:
        """Checks the same without a launch, because a mutant might accept anything."""
        with configured(self.case.settings):
            arguments = self.arguments()
            if self.case.outcome == ACCEPTED:
                self.kernel().prepare(*arguments)
            else:
                self.expect_error(lambda: self.kernel().prepare(*arguments))

    def check_refused(self) -> None:
        arguments = self.arguments()
        launcher = self.kernel()[1, THREADS]
        self.memory.write(np.zeros(BYTES, "u1"))
        bascule.synchronize()
        with emulated.trace() as operations:
            self.expect_error(lambda: launcher(*arguments))
        assert operations == [], f"operations were issued before the error: {operations}"
        assert not self.memory.read(np.dtype("u1"), BYTES).any()

    def expect_error(self, action: Any) -> None:
        case = self.case
        try:
            action()
        except BaseException as error:
            raised = error
        else:
            raise AssertionError(f"{case.id} was accepted; expected {case.outcome}")
        message = str(raised)
        if case.outcome == OWN:
            assert type(raised) is case.error, f"{case.id}: {type(raised).__name__}: {message}"
        else:
            assert isinstance(raised, BUILTINS[case.outcome]), f"{case.id}: {type(raised).__name__}: {message}"
            assert isinstance(raised, bascule.ArgumentError), f"{case.id}: {type(raised).__name__}: {message}"
            assert "argument 1 'p': " in message, message
            assert (raised.index, raised.name) == (0, "p")
            assert len(message) < 700, message
        for part in case.says:
            assert part in message, f"{case.id}: {message!r} does not say {part!r}"

    def check_accepted(self) -> None:
        arguments = self.arguments()
        if not self.case.runs:
            self.kernel().prepare(*arguments)
            return
        launcher = self.kernel()[1, THREADS]
        before = self.contents()
        self.memory.write(before)
        bascule.synchronize()
        with emulated.trace() as operations:
            launcher(*arguments)
        self.check_order([o for o in operations if o.kind in ("record", "wait", "launch")])
        if self.case.row != 9 and isinstance(self.argument, Producer):
            assert self.argument.reads == 1, f"the property was read {self.argument.reads} times"
        self.check_elements(before)

    def check_order(self, operations: list[emulated.Operation]) -> None:
        """Checks that the launch runs on the stream that the array names, or on the default stream."""
        given = self.case.fields.get("stream")
        expected = self.stream.handle if self.stream is not None else given if isinstance(given, int) else 1
        launches = [o for o in operations if o.kind == "launch"]
        assert [o.stream for o in launches] == [expected], operations

    def contents(self) -> np.ndarray:
        dtype = self.parameter.dtype
        values = np.zeros(BYTES // dtype.itemsize, dtype)
        numbers = np.random.default_rng(20261121).integers(1, 50, values.size)
        if dtype == np.dtype("u2") and "bfloat16" in self.parameter.declaration:
            values[...] = numbers.astype("f4").view("u4") >> 16
        elif dtype.names:
            values[dtype.names[0] if "a" not in dtype.names else "a"] = numbers
        else:
            values[...] = numbers % 2 == 0 if dtype.kind == "b" else numbers
        return values

    def logical(self, contents: np.ndarray) -> np.ndarray:
        """Returns the elements that the descriptor describes, as a NumPy view of these bytes."""
        shape, strides = self.layout
        data = contents.view("u1")
        if 0 in shape:
            return np.empty(0, self.parameter.dtype)
        dtype = self.parameter.dtype
        start = np.ndarray((1,), dtype, data.data, self.offset)
        return as_strided(start, shape, np.empty(shape, dtype).strides if strides is None else strides)

    def check_elements(self, before: np.ndarray) -> None:
        data = bytearray(before.tobytes())
        raw = np.frombuffer(data, "u1")
        elements = self.logical(raw)
        if self.parameter.copies:
            np.testing.assert_array_equal(self.out.copy_to_host()[: self.count], elements.ravel())
        else:
            changed = self.parameter.change(elements)
            elements[...] = np.where(self.case.valid, changed, elements) if self.case.valid else changed
        after = self.memory.read(np.dtype("u1"), raw.size)
        np.testing.assert_array_equal(after, raw)
