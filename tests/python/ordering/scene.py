"""The parts of the ordering tests' programs: streams, arrays of other libraries, and what touches which bytes."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

import numpy as np

import bascule
from bascule import _bascule

N = 32  # elements of an array

_SUMS = "\n".join(
    f"__global__ void sum{k}(int* out, {', '.join(f'const int* a{i}' for i in range(k))}, int n) {{\n"
    f"    int i = threadIdx.x;\n"
    f"    if (i < n) out[i] = {' + '.join(f'a{i}[i]' for i in range(k))};\n}}"
    for k in range(1, 9)
)
TEXT = (
    _SUMS
    + """
__global__ void set(int* out, int value, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = value + i;
}
__global__ void bump(int* p, int n) {
    int i = threadIdx.x;
    if (i < n) p[i] += 1;
}
__global__ void swap_two(int* p, int* q, int n) {
    int i = threadIdx.x;
    if (i < n) { int kept = p[i]; p[i] = q[i]; q[i] = kept; }
}
__global__ void read(const int* in, int n) {
    int i = threadIdx.x;
    if (i < n) { int value = *(const volatile int*)(in + i); if (value == 0x7fffffff) __trap(); }
}
__global__ void accumulate(int* total, const int* in, int n) {
    int i = threadIdx.x;
    if (i < n) atomicAdd(total, in[i]);
}
__global__ void count(int* total) { atomicAdd(total, 1); }
__global__ void set_byte(unsigned char* p, int i) { p[i] = 7; }
__global__ void copy_view(bascule::array_view<int> out, bascule::array_view<const int> in) {
    int i = threadIdx.x;
    if (i < in.extent(0)) out(i) = in(i);
}
__global__ void set_view(bascule::array_view<int> out, int value) {
    int i = threadIdx.x;
    if (i < out.extent(0)) out(i) = value;
}
__global__ void sum_valid(bascule::masked_view<const int> in, int* out) {
    int i = threadIdx.x;
    if (i < in.extent(0)) out[i] = in.valid(i) ? in(i) : -1;
}
template <typename T>
__global__ void shift(T* out, const T* in, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = in[(i + 1) % n];
}
"""
)


@functools.cache
def kernels() -> bascule.Module:
    return bascule.compile(TEXT)


class Foreign:
    """An array of another library, which names the stream that it works on."""

    def __init__(self, array: bascule.DeviceArray, stream: int | None, **changes: object) -> None:
        self.array = array
        self._fields = dict(array.__cuda_array_interface__) | {"version": 3, "stream": stream} | changes

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return dict(self._fields)


def handle_of(stream: bascule.Stream | int) -> int:
    return stream if isinstance(stream, int) else stream.handle


def _beside(stream: bascule.Stream | int) -> AbstractContextManager[object]:
    """The device of the stream; the one that was entered for those that are known by number."""
    return nullcontext() if isinstance(stream, int) else stream.device


def unordered(array: bascule.DeviceArray | Foreign) -> bascule.DeviceArray:
    """A view that brings no stream: what another library's own work on it looks like to us."""
    return bascule.as_cuda_array(array, sync=False)


def bytes_of(array: object) -> frozenset[int]:
    """The addresses of an array's bytes."""
    view = bascule.as_cuda_array(array, sync=False)
    first = view.__cuda_array_interface__["data"][0]
    starts = np.zeros(view.shape, dtype=np.int64)
    for axis, (extent, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        steps = np.arange(extent, dtype=np.int64) * stride
        starts += steps.reshape([-1 if axis == d else 1 for d in range(view.ndim)])
    return frozenset(first + int(start) + byte for start in starts.ravel() for byte in range(view.itemsize))


@dataclass(frozen=True)
class Touch:
    """The operations from `start` to `end` of the trace read and write these bytes."""

    start: int
    end: int
    thread: int
    reads: frozenset[int]
    writes: frozenset[int]


@dataclass
class Scene:
    """One run of a program: what it touches is noted beside the trace; only who issued it, where bytes are known."""

    notes_bytes: bool = True
    peer: bool = False  # its launches reach the other device's memory
    touches: list[Touch] = field(default_factory=list)
    kept: list[object] = field(default_factory=list)

    def stream(self, device: int = 0) -> bascule.Stream:
        with bascule.device(device):
            self.kept.append(bascule.stream())
        return self.kept[-1]

    def streams(self, count: int, device: int = 0) -> list[bascule.Stream]:
        return [self.stream(device) for _ in range(count)]

    def launcher(self, kernel: str, stream: bascule.Stream | int | None) -> bascule.Launcher:
        """For one block of N threads."""
        launcher = kernels()[kernel][1, N, stream]
        return launcher.options(peer=True) if self.peer else launcher

    def array(self, stream: bascule.Stream | int, n: int = N, dtype: str = "i4") -> bascule.DeviceArray:
        """An array of ours, bound to `stream`; nothing is in it yet."""
        with _beside(stream):
            self.kept.append(bascule.device_array(n, dtype, stream=stream))
        return self.kept[-1]

    def foreign(self, stream: bascule.Stream | int, n: int = N) -> Foreign:
        """An array of another library that works on `stream`."""
        with _beside(stream):
            self.kept.append(Foreign(bascule.device_array(n, "i4"), handle_of(stream)))
        return self.kept[-1]

    @contextmanager
    def touching(self, reads: Sequence[object] = (), writes: Sequence[object] = ()) -> Iterator[None]:
        """What the block issues reads and writes these arrays."""
        start = _bascule._trace_length()
        try:
            yield
        finally:
            self.touches.append(
                Touch(
                    start,
                    _bascule._trace_length(),
                    threading.get_ident(),
                    frozenset().union(*map(bytes_of, reads)) if self.notes_bytes else frozenset(),
                    frozenset().union(*map(bytes_of, writes)) if self.notes_bytes else frozenset(),
                )
            )

    # --- What other libraries do on streams of their own, ordering nothing

    def produce(self, stream: bascule.Stream | int, *arrays: object) -> None:
        for array in arrays:
            with self.touching(writes=[array]):
                self.launcher("set", stream)(unordered(array), 3, bascule.as_cuda_array(array, sync=False).size)

    def consume(self, stream: bascule.Stream | int, *arrays: object) -> None:
        for array in arrays:
            with self.touching(reads=[array]):
                self.launcher("read", stream)(unordered(array), bascule.as_cuda_array(array, sync=False).size)

    # --- What Bascule orders

    def sum(self, stream: bascule.Stream | int | None, out: object, *arrays: object) -> None:
        """out = the sum of the arrays, launched on `stream`."""
        with self.touching(reads=arrays, writes=[out]):
            self.launcher(f"sum{len(arrays)}", stream)(out, *arrays, N)

    def bump(self, stream: bascule.Stream | int | None, array: object) -> None:
        with self.touching(reads=[array], writes=[array]):
            self.launcher("bump", stream)(array, N)
