"""NumPy arrays of any strides, copied to the device as another library's arrays; and random ones."""

from __future__ import annotations

import ctypes

import numpy as np

import bascule


def memory_of(host: np.ndarray) -> np.ndarray:
    """Every byte from the first to the last that `host` touches, gaps included."""
    if host.size == 0:
        return np.zeros(0, "u1")
    low, high = np.lib.array_utils.byte_bounds(host)
    return np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low)).copy()


class Exposed:
    """A device copy of `host` with the same strides; `fields` replace those of the interface."""

    def __init__(self, host: np.ndarray, **fields: object) -> None:
        self.host = host
        self.buffer = bascule.to_device(memory_of(host))
        self.offset = host.ctypes.data - np.lib.array_utils.byte_bounds(host)[0] if host.size else 0
        address, _ = self.buffer.__cuda_array_interface__["data"]
        self.fields = {
            "shape": host.shape,
            "strides": host.strides,
            "typestr": host.dtype.str,
            "data": (address + self.offset, False),
            "version": 3,
            "stream": None,
            **fields,
        }
        self.reads = 0

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        self.reads += 1
        return dict(self.fields)

    def values(self) -> np.ndarray:
        """Returns the current values, copied from the device."""
        memory = self.buffer.copy_to_host()
        return np.ndarray(self.host.shape, self.host.dtype, memory, self.offset, self.host.strides)


def strided(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Random values with random strides: axes in any order, positive and negative steps, gaps between elements."""
    order = rng.permutation(len(shape))
    steps = [int(step) for step in rng.integers(1, 4, len(shape))]
    base = np.empty([shape[axis] * step for axis, step in zip(order, steps, strict=True)], dtype)
    base.reshape(-1).view("u1")[...] = rng.integers(0, 256, base.nbytes)
    index = tuple(slice(None, None, step if rng.integers(2) else -step) for step in steps)
    view = base[index].transpose(np.argsort(order)) if shape else base
    assert view.shape == shape
    view[...] = rng.integers(0, 100, shape)
    return view
