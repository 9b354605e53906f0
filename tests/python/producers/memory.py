"""Real device memory for a committed dict: the bytes of a NumPy view, laid out as the library lays them out."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

import bascule
from producers.catalogue import Export, Exposing, bind

POISON = 0xCD
# An address that must never be read: the library gave it for an array without elements.
NOWHERE = 0x7000


COPY = """
__global__ void copy(const unsigned char* from, unsigned char* to, long long bytes) {
    for (auto i : bascule::grid_stride(bytes)) to[i] = from[i];
}
"""


class DeviceCopy:
    """A device copy of the memory that `view` spans: poisoned until it is written, with poison on both sides."""

    MARGIN = 256

    def __init__(self, view: np.ndarray) -> None:
        self._view = view
        low, high = np.lib.array_utils.byte_bounds(view) if view.size else (0, 0)
        self._offset = view.__array_interface__["data"][0] - low if view.size else 0
        span = np.frombuffer(ctypes.string_at(low, high - low), "u1") if view.size else np.empty(0, "u1")
        self._span = np.pad(span, self.MARGIN, constant_values=POISON)
        self._staged = bascule.to_device(self._span)
        self._array = bascule.to_device(np.full(self._span.size, POISON, "u1"))
        bascule.synchronize()

    @property
    def address(self) -> int:
        """The address of the view's first element."""
        return address_of(self._array) + self.MARGIN + self._offset

    def write(self, stream: bascule.Stream) -> None:
        """Writes on `stream` without other ordering, because addresses name no stream that others could wait for."""
        staged, array = (bascule.raw_pointer(address_of(memory)) for memory in (self._staged, self._array))
        bascule.compile(COPY).copy[1, 256, stream](staged, array, self._span.size)

    def bytes_after(self, change: Any) -> np.ndarray:
        """The expected bytes after the view's elements, and nothing else, were replaced by `change(elements)`."""
        span = self._span.copy()
        inside = np.ndarray(
            self._view.shape, self._view.dtype, span, self.MARGIN + self._offset, strides=self._view.strides
        )
        if inside.size:
            inside[...] = change(inside.copy())
        return span

    def bytes_now(self) -> np.ndarray:
        bascule.synchronize()
        return self._array.copy_to_host()


class Produced:
    """An export on real memory: the object, the memory, and the stream that the dict names."""

    def __init__(self, export: Export, view: np.ndarray, mask: np.ndarray | None = None) -> None:
        assert export.interface is not None
        self._named = export.interface.get("stream")
        self.stream = self._stream_of_writing()
        self.memory = DeviceCopy(view)
        self.mask = None if mask is None else bascule.to_device(mask)
        self.interface = bind(export.interface, self._place)
        self.object = Exposing(self.interface, owner=self)

    def write(self) -> None:
        """Writes as the library would: asynchronously on the stream that it names; without one, until complete."""
        self.memory.write(self.stream)
        if self._named is None:
            self.stream.synchronize()

    def _stream_of_writing(self) -> bascule.Stream:
        if self._named is None or self._named == "<stream>":
            return bascule.stream()
        return bascule.external_stream(self._named)

    def _place(self, placeholder: str) -> int:
        if placeholder == "<pointer>":
            return self.memory.address
        if placeholder == "<anything>":
            return NOWHERE
        if placeholder == "<stream>":
            return self.stream.handle
        assert placeholder == "<mask pointer>", placeholder
        assert self.mask is not None
        return address_of(self.mask)


def address_of(array: bascule.DeviceArray) -> int:
    address: int = array.__cuda_array_interface__["data"][0]
    return address
