"""Objects that expose `__cuda_array_interface__` as no library should, for the rows on access."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any


class Producer:
    """Exposes what `read` returns, and counts how often it is read."""

    def __init__(self, read: Callable[[], object]) -> None:
        self.read = read
        self.reads = 0

    @property
    def __cuda_array_interface__(self) -> object:
        self.reads += 1
        return self.read()


def raising(error: BaseException) -> Callable[[dict[str, Any]], object]:
    def make(_good: dict[str, Any]) -> object:
        def read() -> object:
            raise error

        return Producer(read)

    return make


def masking_itself(good: dict[str, Any]) -> object:
    producer = Producer(lambda: {**good, "mask": producer})
    return producer


def exposing(value: object) -> Callable[[dict[str, Any]], object]:
    return lambda _good: Producer(lambda: value)


def as_mapping(kind: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    return lambda good: Producer(lambda: kind(good))


class Subclass(dict):
    """A subclass of dict."""


class DictLike(Mapping[str, Any]):
    """A minimal Mapping."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def __getitem__(self, key: str) -> Any:
        return self.fields[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


MAPPINGS = {
    "a dict subclass": Subclass,
    "a MappingProxyType": types.MappingProxyType,
    "a UserDict": collections.UserDict,
    "an OrderedDict": collections.OrderedDict,
    "a ChainMap": collections.ChainMap,
    "any other Mapping": DictLike,
}


def class_with_dict(good: dict[str, Any]) -> object:
    return type("Array", (), {"__cuda_array_interface__": good})


def class_with_property(_good: dict[str, Any]) -> object:
    return Producer


def changing(good: dict[str, Any]) -> object:
    """Returns a different dict at each read; only the first is right."""
    answers = [good, {**good, "shape": (-1,)}, {}]
    return Producer(lambda: answers.pop(0))


class Index:
    """An integer that has only `__index__`, which first runs an action."""

    def __init__(self, value: int, does: Callable[[], object] = lambda: None) -> None:
        self.value = value
        self.does = does

    def __index__(self) -> int:
        self.does()
        return self.value


def clearing(good: dict[str, Any]) -> object:
    fields = dict(good)
    fields["shape"] = (Index(good["shape"][0], fields.clear),)
    return Producer(lambda: fields)


def rewriting(good: dict[str, Any]) -> object:
    fields = dict(good)
    fields["shape"] = (Index(good["shape"][0], lambda: fields.update(data=(12, True), typestr="|O8", shape=(-5,))),)
    return Producer(lambda: fields)


def shrinking(good: dict[str, Any]) -> object:
    shape: list[object] = []
    shape.append(Index(good["shape"][0], shape.clear))
    return Producer(lambda: {**good, "shape": shape})


def getting(good: dict[str, Any]) -> object:
    """A Mapping that removes 'data' when 'shape' is read."""

    class Forgetful(DictLike):
        def __getitem__(self, key: str) -> Any:
            value = super().__getitem__(key)
            if key == "shape":
                del self.fields["data"]
            return value

    return Producer(lambda: Forgetful(dict(good)))


def failing_index(good: dict[str, Any]) -> object:
    def fail() -> None:
        raise ZeroDivisionError("of the producer")

    return Producer(lambda: {**good, "shape": (Index(8, fail),)})


class Liar(tuple):
    """A tuple whose `len` is too large."""

    def __len__(self) -> int:
        return 9


class Sequence:
    """A sequence with a length and elements that is neither tuple nor list."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> int:
        return 8


class WithDlpack(Producer):
    """Offers DLPack too, without an exchange table; using it would fail."""

    def __dlpack__(self, **_options: object) -> object:
        raise AssertionError("the interface comes first")

    def __dlpack_device__(self) -> tuple[int, int]:
        raise AssertionError("the interface comes first")
