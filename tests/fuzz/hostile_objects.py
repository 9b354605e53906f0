"""Passes objects to Bascule that lie, change while they are read, raise, call back and are changed by other threads.

Every outcome must be an ordinary exception, or an array whose fields all come from what the object returned. Anything
else (a crash, a SystemError, an exception that no object raised, a field of unknown origin) ends the run with the seed
that repeats it.

python hostile_objects.py --count 100000 --seed 1      tests/fuzz/hostile.sh runs it under AddressSanitizer
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gc
import math
import os
import random
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("BASCULE_DEVICE", "emulated")

import numpy as np

import bascule

SOURCE = """
__global__ void fill(float* p, int n) { for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = 1; }
__global__ void take(float* p, int n) {}
__global__ void view(bascule::array_view<const float, 2> p, double a, long long b) {}
template <class T> __global__ void any(T* p, T a) {}
struct Pair { float x, y; };
__global__ void pairs(const Pair* p, Pair q, float4 r) {}
"""
KEYS = ("shape", "typestr", "data", "version", "strides", "stream", "descr", "mask")


class HostileError(Exception):
    """Raised by hostile objects, as are the built-in exceptions with this mark."""


MARK = "raised by a hostile object"
RAISED: list[Callable[[], BaseException]] = [
    lambda: HostileError(MARK),
    lambda: AttributeError(MARK),
    lambda: RuntimeError(MARK),
    lambda: ValueError(MARK),
    lambda: TypeError(MARK),
    lambda: KeyError(MARK),
    lambda: StopIteration(MARK),
    lambda: MemoryError(MARK),
    lambda: OverflowError(MARK),
    lambda: KeyboardInterrupt(MARK),
    lambda: SystemExit(MARK),
    lambda: GeneratorExit(MARK),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, MARK),
    lambda: bascule.ArgumentError(MARK),
    lambda: UnprintableError(MARK),
]


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise HostileError(MARK)

    __repr__ = __str__


class World:
    """The true values that the objects of one run may return, and everything that they return."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.memory = bascule.to_device(np.zeros(64, "f4"))
        self.address = self.memory.__cuda_array_interface__["data"][0]
        self.depth = 0
        self.evil = 1.0  # the proportion of lies
        self.integers: set[int] = set()  # that were returned
        self.typestrs: set[str] = set()
        self.module = bascule.compile(SOURCE)
        self.targets: list[Any] = []

    # --- actions of an object that is read

    def mischief(self) -> None:
        """Does what a call into Python may do: nothing, raise, collect, switch threads, call Bascule, change values."""
        if self.random.random() > self.evil:
            return
        pick = self.random.random()
        if pick < 0.30:
            return
        if pick < 0.45:
            raise self.random.choice(RAISED)()
        if pick < 0.50:
            gc.collect(0)
        elif pick < 0.60:
            time.sleep(0)  # lets another thread run
        elif pick < 0.75 and self.depth < 3:
            self.depth += 1
            try:
                attack(self)
            finally:
                self.depth -= 1
        else:
            self.mutate()

    def mutate(self) -> None:
        """Changes what is being read, as far as it can be changed."""
        for target in self.random.sample(self.targets, min(2, len(self.targets))):
            with contextlib.suppress(KeyError, IndexError, RuntimeError):
                if isinstance(target, dict):
                    pick = self.random.randrange(4)
                    if pick == 0:
                        target.clear()
                    elif pick == 1:
                        target.popitem()
                    elif pick == 2:
                        target[self.random.choice(KEYS)] = self.value(self.random.choice(KEYS))
                    else:
                        target.update({f"key {i}": i for i in range(self.random.randrange(50))})
                elif isinstance(target, list):
                    if self.random.random() < 0.5:
                        target.clear()
                    else:
                        target.extend([1] * self.random.randrange(100))

    # --- values

    def integer(self, truth: int) -> Any:
        self.integers.add(truth)
        pick = self.random.random()
        if pick < 0.5 or self.random.random() > self.evil:
            return truth
        if pick < 0.6:
            return np.int64(truth) if -(2**63) <= truth < 2**63 else truth
        if pick < 0.8:
            return Index(self, truth)
        if pick < 0.9:
            number = self.random.choice([-1, 2**63, 2**64, -(2**70), 10**400])
            self.integers.add(number)
            return number
        return self.random.choice([None, True, 1.5, "7", b"x", [], Odd(self)])

    def value(self, key: str) -> Any:
        """A value for a key: true, hostile or nonsense; the true ones are recorded."""
        value = self.truth(key)
        if key in ("shape", "strides"):
            value = None if value is None else self.sequence([self.integer(each) for each in value])
        elif key == "data":
            value = self.sequence([self.integer(value[0]), self.random.choice([value[1], Index(self, int(value[1]))])])
        elif key in ("version", "stream"):
            value = None if value is None else self.integer(value)
        elif key == "typestr":
            self.typestrs.add(value)
            value = self.random.choice([value, value, Text(value)])
        elif key == "descr" and isinstance(value, list) and self.random.random() < 0.3:
            value.append(
                self.random.choice([Odd(self), ("a", value), ("a", "<f4", self.integer(2)), ("b", Text("|u1"))])
            )
            self.targets.append(value)
        return Odd(self) if self.random.random() < 0.05 * self.evil else value

    def truth(self, key: str) -> Any:
        choose = self.random.choice
        return {
            "shape": lambda: choose([(8,), (2, 4), (), (0,), (3, 0, 2), (64,)]),
            "typestr": lambda: choose(["<f4", "<i4", "|u1", "|V8", "<f2", "<V2"]),
            "data": lambda: (self.address + 16 * self.random.randrange(4), choose([False, True])),
            "version": lambda: choose([0, 1, 2, 3]),
            "strides": lambda: choose([None, None, (4,), (16, 4), (), (0,), (-4,)]),
            "stream": lambda: choose([None, None, 1, 2]),
            "descr": lambda: choose([None, [("", "<f4")], [("x", "<f4"), ("y", "<f4")], [("x", [("y", "<f8")])]]),
            "mask": lambda: choose([None, None, None, Odd(self)]),
        }[key]()

    def sequence(self, items: list[Any]) -> Any:
        pick = self.random.random()
        if pick < 0.5 or self.random.random() > self.evil:
            return tuple(items)
        if pick < 0.7:
            self.targets.append(items)
            return items
        if pick < 0.8:
            return LyingTuple(items)
        if pick < 0.9:
            return LyingList(items)
        return self.random.choice([iter(items), set(), Odd(self), {}, range(3), "ab", np.array([8])])

    def descriptor(self) -> Any:
        left_out = {key: 0.05 * self.evil if key in KEYS[:4] else 0.5 for key in KEYS}
        fields = {key: self.value(key) for key in KEYS if self.random.random() > left_out[key]}
        if self.random.random() < 0.1:
            fields = {Key(self, key) if self.random.random() < 0.5 else key: value for key, value in fields.items()}
        pick = self.random.random()
        if pick < 0.6:
            self.targets.append(fields)
            return fields
        if pick < 0.95:
            kind = self.random.choice([LyingDict, LyingMapping, types.MappingProxyType, collections.UserDict, dict])
            return kind(self, fields) if kind in (LyingDict, LyingMapping) else kind(fields)
        return self.random.choice([None, 5, [], [("shape", (2,))], "abc", Odd(self), lambda: fields, World])


class Index:
    """An object whose __index__ runs an action, and returns its value, True or a str."""

    def __init__(self, world: World, value: int) -> None:
        self.world, self.value = world, value

    def __index__(self) -> int:
        self.world.mischief()
        return self.world.random.choice([self.value, self.value, True, Text("x")])  # type: ignore[return-value]

    def __repr__(self) -> str:
        self.world.mischief()
        return self.world.random.choice(["index", "\ud800", "x" * 100_000, "\0"])


class Odd:
    """An object of no known kind that runs an action whenever it is used."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __repr__(self) -> str:
        self.world.mischief()
        return "odd"

    __str__ = __repr__

    def __getattr__(self, name: str) -> Any:
        self.world.mischief()
        raise AttributeError(MARK)

    def __float__(self) -> float:
        self.world.mischief()
        return 1.0

    def __len__(self) -> int:
        self.world.mischief()
        return -1

    def __iter__(self) -> Iterator[Any]:
        self.world.mischief()
        return iter([Odd(self.world)])

    def __bool__(self) -> bool:
        self.world.mischief()
        return False


class Text(str):
    """A str that is equal to any object half of the time."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return random.random() < 0.5

    __hash__ = str.__hash__


class Key(str):
    """A key that runs an action when it is compared."""

    world: World

    def __new__(cls, world: World, text: str) -> Key:
        self = super().__new__(cls, text)
        self.world = world
        return self

    def __eq__(self, other: object) -> bool:
        if self.world.depth < 3 and self.world.random.random() < 0.1:
            self.world.mutate()
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class LyingTuple(tuple):
    __slots__ = ()

    def __len__(self) -> int:
        return 2**62

    def __iter__(self) -> Iterator[Any]:
        raise HostileError(MARK)

    def __getitem__(self, index: Any) -> Any:
        raise HostileError(MARK)


class LyingList(list):
    def __len__(self) -> int:
        return -5

    def __iter__(self) -> Iterator[Any]:
        self.clear()
        raise HostileError(MARK)


class LyingDict(dict):
    def __init__(self, world: World, fields: dict[Any, Any]) -> None:
        super().__init__(fields)
        self.world = world

    def keys(self) -> Any:
        self.world.mischief()
        return self.world.random.choice([super().keys(), ["shape", "nothing"], iter("abc"), None])

    def __getitem__(self, key: Any) -> Any:
        self.world.mischief()
        return super().__getitem__(key)


class LyingMapping(collections.abc.Mapping):
    def __init__(self, world: World, fields: dict[Any, Any]) -> None:
        self.world, self.fields = world, fields

    def __getitem__(self, key: Any) -> Any:
        self.world.mischief()
        return self.fields[key]

    def __iter__(self) -> Iterator[Any]:
        for key in list(self.fields):
            self.world.mischief()
            yield key

    def __len__(self) -> int:
        return 2**40


class Array:
    """Exposes an interface or something else, and replaces it at one read in five."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.descriptor = world.descriptor()

    @property
    def __cuda_array_interface__(self) -> Any:
        pick = self.world.random.random()
        if pick < 0.05:
            self.world.mischief()
        if pick > 0.8:
            self.descriptor = self.world.descriptor()
        return self.descriptor


class StructuredLiar:
    """A host array and NumPy scalar in one: reading an attribute may do anything."""

    def __init__(self, world: World) -> None:
        self.world = world

    __array_interface__ = property(lambda self: self.world.mischief())
    dtype = property(lambda self: self.world.mischief())
    ndim = property(lambda self: self.world.mischief() or 0)


def argument(world: World) -> Any:
    pick = world.random.random()
    if pick < 0.7:
        return Array(world)
    numbers = [None, 1, 2.5, True, 10**400, np.float32(3), Index(world, 3), LyingTuple([1.0])]
    structures = [(1.0, Index(world, 2)), (1.0, 2, 3, 4), np.void(b"12345678"), np.zeros(1, "f4,f4")[0], b"12345678"]
    return world.random.choice([*numbers, *structures, world.memory, Odd(world), StructuredLiar(world)])


def attack(world: World) -> None:
    """Passes one object; raises its exception, or AssertionError for an array that no object described."""
    pick = world.random.random()
    if pick < 0.35:
        check(world, bascule.as_cuda_array(Array(world), sync=world.random.random() < 0.8))
    elif pick < 0.6:
        check(world, bascule.from_cuda_array_interface(world.descriptor(), sync=world.random.random() < 0.8))
    elif pick < 0.68:
        bascule.struct(
            world.random.choice([Odd(world), world.descriptor(), [("a", Text("f4")), (Key(world, "b"), "O")]])
        )
    else:
        kernel = world.module[world.random.choice(["take", "view", "any", "pairs"])]
        count = {"take": 2, "any": 2}.get(kernel.name, 3)
        if world.random.random() < 0.05:
            count += 1
        arguments = [argument(world) for _ in range(count)]
        if kernel.name == "take" and count == 2 and world.random.random() < 0.8:
            arguments[1] = world.random.choice([0, 4, Index(world, 4)])
        launcher = kernel[1, 32]
        if world.random.random() < 0.1:
            launcher.bind(*arguments)()
        else:
            launcher(*arguments)


def check(world: World, array: bascule.DeviceArray) -> None:
    fields = array.__cuda_array_interface__
    shape, strides, dtype = array.shape, array.strides, array.dtype
    # 1, 4 and 8 are written by mutators and the other thread; 1 is the value of True.
    said = world.integers | {1, 2, 4, 8}
    assert said.issuperset(shape), f"nobody said the shape {shape}"
    assert len(strides) == len(shape) == array.ndim
    assert array.size == math.prod(shape)
    assert array.nbytes == array.size * dtype.itemsize
    assert dtype.itemsize in {np.dtype(typestr).itemsize for typestr in world.typestrs}, f"nobody said {dtype}"
    packed = tuple(dtype.itemsize * math.prod(shape[d + 1 :]) for d in range(len(shape)))
    assert strides == packed or said.issuperset(strides), f"nobody said the strides {strides}"
    address, readonly = fields["data"]
    assert address == 0 or address in said, f"nobody said the address {address:#x}"
    assert readonly == array.readonly
    assert fields["version"] == 3
    assert fields["stream"] is None or fields["stream"] in said


def is_ordinary(error: BaseException) -> bool:
    """True for every Exception but AssertionError and SystemError, and for a BaseException of a hostile object."""
    if isinstance(error, (AssertionError, SystemError)):
        return False
    if isinstance(error, Exception):
        return True
    return MARK in error.args


def disturb(world: World, turns: threading.Semaphore, stop: threading.Event) -> None:
    """Runs in another thread and changes the dicts and lists that are being read: a burst on each request."""
    while turns.acquire() and not stop.is_set():
        for _ in range(20):
            for target in world.targets[-4:]:
                with contextlib.suppress(BaseException):
                    if isinstance(target, dict):
                        target["shape"] = [8] if random.random() < 0.5 else (2, 4)
                        target.pop("stream", None)
                        target["strides"] = None
                    else:
                        target.append(4)
                        target.pop()
            time.sleep(0)


def still_works(world: World) -> None:
    """Checks that a normal launch still works."""
    memory = bascule.to_device(np.zeros(40, "f4"))
    world.module.fill[1, 32](memory, 33)
    np.testing.assert_array_equal(memory.copy_to_host(), np.r_[np.ones(33), np.zeros(7)].astype("f4"))


def run(count: int, seed: int, *, first: int = 0, report: bool = False) -> collections.Counter[str]:
    """Passes `count` objects; returns the outcomes by name. Raises AssertionError for one that is not ordinary."""
    outcomes: collections.Counter[str] = collections.Counter()
    world = World(seed)
    turns, stop = threading.Semaphore(0), threading.Event()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=disturb, args=(world, turns, stop), daemon=True)
    thread.start()
    warnings.simplefilter("ignore", DeprecationWarning)  # for __index__ that returns a bool
    started = time.monotonic()
    try:
        for i in range(first, first + count):
            world.random.seed(f"{seed} {i}")
            world.targets.clear()
            world.integers.clear()
            world.typestrs.clear()
            world.evil = world.random.choice((0.1, 0.4, 1.0))
            # Only for some objects, because constant thread switches are slow on a busy machine.
            if i % 20 == 0:
                turns.release()
            try:
                attack(world)
                outcomes["taken"] += 1
            except BaseException as error:
                if not is_ordinary(error):
                    raise AssertionError(f"object {i} of seed {seed}: {type(error).__name__}: {error}") from error
                outcomes[type(error).__name__] += 1
            assert world.depth == 0
            if i % 1000 == 999:
                still_works(world)
            if report and i % 20_000 == 19_999:
                print(f"{i + 1} objects, {time.monotonic() - started:.0f} s", flush=True)
    finally:
        stop.set()
        turns.release()
        thread.join()
        sys.setswitchinterval(interval)
    still_works(world)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first object: to repeat one alone")
    options = parser.parse_args()
    outcomes = run(options.count, options.seed, first=options.first, report=True)
    print(
        f"{options.count} hostile objects, seed {options.seed}: "
        + ", ".join(f"{n} {k}" for k, n in outcomes.most_common())
    )


if __name__ == "__main__":
    main()
