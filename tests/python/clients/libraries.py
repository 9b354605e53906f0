"""One interface to numba-cuda and cuda.core with the few operations that the tests need, by each library's own API."""

from __future__ import annotations

from typing import Any

import numpy as np

import bascule

BLOCK = 128

# y[i] = 3 y[i] + x[i]: the order of two such updates changes the result.
UPDATE = """
extern "C" __global__ void update(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 3 * y[i] + x[i];
}
"""


def updated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.float32(3) * y + x


def grid_of(count: int) -> int:
    return (count + BLOCK - 1) // BLOCK


def address_of(array: Any) -> int:
    return array.__cuda_array_interface__["data"][0]


class NumbaCuda:
    """numba-cuda, whose arrays name their stream."""

    name = "numba-cuda"

    def __init__(self) -> None:
        from numba import cuda

        @cuda.jit
        def update(x, y):
            i = cuda.grid(1)
            if i < y.size:
                y[i] = np.float32(3) * y[i] + x[i]

        self.cuda = cuda
        self.kernel = update

    def stream(self) -> Any:
        return self.cuda.stream()

    def to_device(self, host: np.ndarray, stream: Any) -> Any:
        return self.cuda.to_device(host, stream=stream)

    def update(self, stream: Any, x: Any, y: Any) -> None:
        x, y = (self.cuda.as_cuda_array(each, sync=False) for each in (x, y))
        self.kernel[grid_of(y.size), BLOCK, stream](x, y)

    def to_host(self, array: Any, stream: Any) -> np.ndarray:
        host = array.copy_to_host(stream=stream)
        stream.synchronize()
        return host

    def wait_for(self, stream: Any, ours: bascule.Stream) -> None:
        """Makes `stream` wait for `ours`, with an event of Numba's."""
        event = self.cuda.event(timing=False)
        event.record(self.cuda.external_stream(ours.handle))
        event.wait(stream)


class Typed:
    """A buffer of cuda.core as an array that names its stream, which a buffer itself does not."""

    def __init__(self, buffer: Any, count: int, stream: Any) -> None:
        self.buffer = buffer
        self.count = count
        self.stream = stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": (self.count,),
            "typestr": "<f4",
            "data": (int(self.buffer.handle), False),
            "stream": int(self.stream.handle),
        }


class CudaCore:
    name = "cuda.core"

    def __init__(self) -> None:
        from cuda import core

        self.core = core
        self.device = core.Device(0)
        self.device.set_current()
        self.kernel = core.Program(UPDATE, "c++").compile("ptx").get_kernel("update")

    def stream(self) -> Any:
        return self.device.create_stream()

    def pinned(self, count: int) -> tuple[Any, np.ndarray]:
        buffer = self.core.LegacyPinnedMemoryResource().allocate(4 * count)
        return buffer, np.from_dlpack(buffer).view(np.float32)

    def to_device(self, host: np.ndarray, stream: Any) -> Any:
        pinned, elements = self.pinned(host.size)
        elements[:] = host
        buffer = self.device.allocate(host.nbytes, stream=stream)
        buffer.copy_from(pinned, stream=stream)
        array = Typed(buffer, host.size, stream)
        array.source = pinned  # the copy reads it when it runs
        return array

    def update(self, stream: Any, x: Any, y: Any) -> None:
        count = y.__cuda_array_interface__["shape"][0]
        config = self.core.LaunchConfig(grid=grid_of(count), block=BLOCK)
        self.core.launch(stream, config, self.kernel, address_of(x), address_of(y), np.int32(count))

    def to_host(self, array: Any, stream: Any) -> np.ndarray:
        pinned, elements = self.pinned(array.count)
        pinned.copy_from(array.buffer, stream=stream)
        stream.sync()
        return elements.copy()

    def wait_for(self, stream: Any, ours: bascule.Stream) -> None:
        """Makes `stream` wait for `ours`. cuda.core records an event on it, because it has `__cuda_stream__`."""
        stream.wait(ours)


LIBRARIES = {library.name: library for library in (NumbaCuda, CudaCore)}
