"""How PyArrow, mpi4py and ArrayViews read an exported interface: which keys, in which order, of which types.

Written from the sources that their JSON files name. Each function takes any mapping, so that reads can be recorded. The
types that a compiled consumer requires are in its file and checked separately.
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from producers.catalogue import DIRECTORY


@dataclass(frozen=True)
class Consumer:
    """A file: the reads in order, and the types that the consumer requires."""

    library: str
    kind: str
    mapping: str
    sources: dict[str, dict[str, Any]]
    reads: list[dict[str, Any]]
    release: str = ""

    @property
    def in_order(self) -> list[tuple[str, str]]:
        return [(read["by"], read["key"]) for read in self.reads]

    def insisted_on(self, interface: Any) -> list[str]:
        """The fields of `interface` without exactly the type that this consumer requires; subclasses do not count."""
        found = []
        if self.mapping and type(interface).__name__ != self.mapping:
            found.append(f"the interface is a {type(interface).__name__}")
        for read in self.reads:
            value = interface.get(read["key"])
            if read["types"] and type(value).__name__ not in read["types"]:
                found.append(f"{read['key']} is a {type(value).__name__}")
        return found


def consumer(name: str) -> Consumer:
    return Consumer(**json.loads((DIRECTORY / f"{name}.json").read_text(encoding="utf-8")))


class Reads(dict[str, Any]):
    """An interface that records how it was read."""

    def __init__(self, interface: dict[str, Any]) -> None:
        super().__init__(interface)
        self.in_order: list[tuple[str, str]] = []

    def __getitem__(self, key: str) -> Any:
        self.in_order.append(("[]", key))
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.in_order.append(("get", key))
        return super().get(key, default)


@dataclass(frozen=True)
class Memory:
    """The memory that a consumer reads from an interface."""

    address: int
    nbytes: int


def pyarrow_reads(interface: Any) -> Memory:
    """`Context.buffer_from_object`: the span of the array, in any order, if it has no gaps."""
    address = interface["data"][0]
    if address is None:
        return Memory(0, 0)
    shape, strides = interface["shape"], interface.get("strides")
    itemsize = np.dtype(interface["typestr"]).itemsize
    whole = itemsize * math.prod(shape)
    low, high = 0, whole
    if strides:
        reach = [stride * (extent - 1) for stride, extent in zip(strides, shape, strict=True)]
        low, high = sum(min(step, 0) for step in reach), itemsize + sum(max(step, 0) for step in reach)
        if 0 in shape:
            low = high = 0
    if high - low != whole:
        raise ValueError("array data is non-contiguous")
    return Memory(address + low, high - low)


def mpi4py_reads(interface: Any, *, writable: bool = True) -> Memory:
    """A message's buffer: contiguous in C or Fortran order, without a mask, of native byte order."""
    (address, readonly), typestr, shape = interface["data"], interface["typestr"], interface["shape"]
    strides, descr, mask = interface.get("strides"), interface.get("descr"), interface.get("mask")
    size, itemsize = math.prod(shape), int(typestr[2:])
    if address is None and size == 0:
        address = 0
    if typestr[0] not in "<|":
        raise BufferError(f"typestr {typestr!r} with non-native or unrecognized byte order")
    if mask is not None:
        raise BufferError("cannot handle masked arrays")
    if strides is not None and not any(follows(shape, strides, itemsize, order) for order in "CF"):
        raise BufferError("buffer is not contiguous")
    if readonly and writable:
        raise BufferError("buffer is not writable")
    if descr is not None and descr != [("", typestr)]:
        warnings.warn("ignoring 'descr' key", RuntimeWarning, stacklevel=2)
    return Memory(address, size * itemsize)


def follows(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, order: str) -> bool:
    """True if elements are contiguous in this order; axes of length one may have any stride."""
    step = itemsize
    axes = list(zip(shape, strides, strict=True))
    for extent, stride in axes if order == "F" else reversed(axes):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


def arrayviews_reads(interface: Any, nbytes: int) -> Memory:
    """A view of bytes, for versions of PyArrow without `buffer_from_object` (which is used otherwise).

    It takes the number of bytes from `alloc_size`, which only Numba's arrays have: `ours` is passed as a view by Numba.
    """
    address = interface["data"][0]
    strides = interface.get("strides")
    if strides is not None and strides != (1,):
        raise AssertionError(repr(strides))
    return Memory(address, nbytes)
