"""Objects that change while they are read: the result is a consistent descriptor or an error, never a crash."""

from __future__ import annotations

import random
import sys
import threading
from typing import Any

import pytest

import bascule
from bascule._errors import ArgumentTypeError

from .producers import Producer

parse = bascule._bascule._parse


def described(size: int) -> dict[str, Any]:
    """A descriptor in which each field depends on `size`, so that a mixture of two shows."""
    return {
        "shape": (size, size),
        "typestr": "<f4" if size % 2 else "<f8",
        "data": (0x1000 * size, False),
        "version": 3,
        "strides": (8 * size * size, 8),
    }


EXPECTED = {parse(described(size)) for size in range(1, 9)}


@pytest.fixture
def busy_interpreter():
    """Makes threads take turns as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("busy_interpreter")
def test_a_dict_that_another_thread_rewrites_is_read_as_it_was_at_one_moment() -> None:
    shared: dict[str, Any] = described(1)
    stop = threading.Event()

    def rewrite() -> None:
        generator = random.Random(20261121)
        while not stop.is_set():
            shared.update(described(generator.randint(1, 8)))
            del shared["strides"]
            shared.clear()

    def resize() -> None:
        generator = random.Random(7)
        while not stop.is_set():
            for i in range(generator.randint(1, 64)):
                shared[f"key {i}"] = i

    threads = [threading.Thread(target=work) for work in (rewrite, resize)]
    for thread in threads:
        thread.start()
    answers, errors = set(), 0
    try:
        for _ in range(20_000):
            try:
                answers.add(parse(shared))
            except bascule.ArgumentError:
                errors += 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    whole = {text.split(" with strides")[0] for text in EXPECTED}
    assert {text.split(" with strides")[0] for text in answers} <= whole
    assert len(answers) + errors > 0


class Mutating:
    """An integer that modifies its container when it is read, in a different way each time."""

    def __init__(self, value: int, generator: random.Random, victims: list[Any]) -> None:
        self.value = value
        self.generator = generator
        self.victims = victims

    def __index__(self) -> int:
        victim = self.generator.choice(self.victims)
        action = self.generator.randrange(5)
        if action == 0:
            victim.clear()
        elif action == 1 and isinstance(victim, dict):
            victim.update(shape=None, typestr=None, data=None, version=None, strides=None, stream=None, descr=None)
        elif action == 1:
            del victim[:]
            victim += [object()] * 1000
        elif action == 2:
            raise self.generator.choice([ValueError, KeyboardInterrupt, SystemExit, MemoryError, RecursionError])
        elif action == 3:
            return self.generator.choice([-1, 2**70, -(2**70), 0])
        return self.value


def test_integers_that_mutate_the_dict_and_its_lists_never_crash() -> None:
    generator = random.Random(20261121)
    for _ in range(3000):
        victims: list[Any] = []

        def integer(value: int, victims: list[Any] = victims) -> Mutating:
            return Mutating(value, generator, victims)

        shape = [integer(2), integer(3), integer(4)]
        strides = [integer(96), integer(32), integer(8)]
        data = [integer(0x1000), integer(0)]
        fields = {
            "version": integer(3),
            "shape": shape,
            "typestr": "<f8",
            "data": data,
            "strides": strides,
            "stream": integer(1),
        }
        victims += [fields, shape, strides, data]
        try:
            text = parse(fields)
        except (bascule.ArgumentError, ValueError, KeyboardInterrupt, SystemExit, MemoryError, RecursionError):
            continue
        assert text.startswith(("a float64 array of shape (",))


class Unprintable:
    """An object whose repr raises `error`."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        raise self.error


@pytest.mark.parametrize("key", ["shape", "typestr", "data", "version", "strides", "stream", "descr"])
def test_values_that_cannot_be_printed_are_named_by_their_type(key: str) -> None:
    with pytest.raises(ArgumentTypeError, match=rf"'{key}'.*Unprintable"):
        parse({**described(1), key: Unprintable(ZeroDivisionError())})


@pytest.mark.parametrize("key", ["shape", "typestr", "data", "version", "strides", "stream", "descr"])
def test_an_interrupt_while_a_message_is_made_is_no_message(key: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        parse({**described(1), key: Unprintable(KeyboardInterrupt())})


def test_an_attribute_error_without_words_is_an_error_like_any_other() -> None:
    class SilentError(AttributeError):
        def __str__(self) -> str:
            raise ZeroDivisionError("of the producer")

    class SurrogateError(AttributeError):
        def __str__(self) -> str:
            return "half a \ud83d"

    kernel = bascule.compile("__global__ void fill(float* p) { p[threadIdx.x] = 1; }").fill

    def failing(error: BaseException) -> Producer:
        def read() -> object:
            raise error

        return Producer(read)

    with pytest.raises(ZeroDivisionError):
        kernel[1, 1](failing(SilentError()))
    with pytest.raises(ArgumentTypeError, match=r"half a .ud83d"):
        kernel[1, 1](failing(SurrogateError()))


def test_a_setting_of_the_wrong_type_is_refused_and_keeps_its_value() -> None:
    for name, value in {
        "accept_newer_interface": False,
        "check_memory": False,
        "cuda_array_interface_sync": True,
    }.items():
        with pytest.raises(TypeError):
            setattr(bascule.config, name, "yes")
        assert getattr(bascule.config, name) is value
