"""Parts of the ordering tests' programs: streams, arrays of other libraries, and the bytes that operations touch."""

from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

import numpy as np
from raw_driver import BlockingStream

import bascule
from bascule import _bascule

N = 32  # elements of an array

Stream = bascule.Stream | int
# Names of streams: see Scene.named.
P, Q, C, D = "p", "q", "c", "d"
LEGACY, PER_THREAD, NEAR_LEGACY, NEAR_PER_THREAD = "p legacy", "p per-thread", "c legacy", "c per-thread"
BLOCKING, OTHER_BLOCKING = "p blocking", "q blocking"  # the legacy default stream waits for them, and they for it
MEMORY = {"device": bascule.device_array, "pinned": bascule.pinned_array, "managed": bascule.managed_array}

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
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = value + i;
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
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        if (*(const volatile int*)(in + i) == 0x7fffffff) __trap();
}
__global__ void count(int* total) { atomicAdd(total, 1); }
__global__ void copy_view(bascule::array_view<int> out, bascule::array_view<const int> in) {
    int i = threadIdx.x;
    if (i < in.extent(0)) out(i) = in(i);
}
template <typename T>
__global__ void set_view(bascule::array_view<T> out, int value) {
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

    def __init__(self, array: bascule.DeviceArray, stream: Stream | None, **changes: object) -> None:
        self.array = array
        self.stream = stream
        handle = None if stream is None else handle_of(stream)
        fields = dict(array.export(stream=None).__cuda_array_interface__)  # from now on any stream may use the memory
        self._fields = fields | {"stream": handle} | changes

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return dict(self._fields)


def handle_of(stream: Stream) -> int:
    return stream if isinstance(stream, int) else stream.handle


def device_of(stream: Stream) -> AbstractContextManager[object]:
    """A context manager that enters the stream's device, or keeps the current one for a stream given by handle."""
    return nullcontext() if isinstance(stream, int) else stream.device


def unordered(array: bascule.DeviceArray | Foreign) -> bascule.DeviceArray:
    """A view that names no stream, so that Bascule orders nothing: it stands for another library's own work."""
    return bascule.as_cuda_array(array, sync=False)


def searching_for_races() -> AbstractContextManager[None]:
    """Makes a race in the block an error on the emulated device. On a GPU no races are found."""
    return bascule.emulated.checks(races=True) if bascule.current_device().emulated else nullcontext()


def release_owners(devices: int) -> None:
    """Releases the arrays and streams that launches keep: each remaining one slows down the search for races."""
    for number in range(devices):
        with bascule.device(number):
            bascule.synchronize()


def in_a_thread(work: Callable[[], object]) -> None:
    """Runs `work` in a new thread, on the current device, and waits for it."""
    in_threads([work])


def in_threads(works: Sequence[Callable[[], object]]) -> None:
    """Runs each function in its own thread, on the current device, all at once; raises the first error."""
    failures: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(run, work)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


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
    """One run of a program on one device or on two; notes which bytes each operation of the trace touches."""

    devices: int = 1
    notes_bytes: bool = True  # false: only which thread issued which operation
    names: dict[str, bascule.Stream] = field(default_factory=dict)
    touches: list[Touch] = field(default_factory=list)
    kept: list[object] = field(default_factory=list)

    @property
    def far(self) -> bascule.Device:
        """The last device, on which the first of several streams is; with two devices, not the current one."""
        return bascule.device(self.devices - 1)

    def stream(self) -> bascule.Stream:
        """A stream of the first device."""
        return self._stream_of(bascule.device(0))

    def named(self, name: Stream | str | None) -> Stream | None:
        """The program's stream of that name, made at first use; handles are returned as they are.

        On two devices, streams whose name begins with c or d are on the first one, all others on the far one.
        """
        if isinstance(name, str) and name not in self.names:
            with bascule.device(0) if name[0] in "cd" else self.far:
                self.names[name] = self._new_stream(name.partition(" ")[2])
        return self.names[name] if isinstance(name, str) else name

    def _new_stream(self, kind: str) -> bascule.Stream:
        if kind == "blocking":
            self.kept.append(BlockingStream())
            return bascule.external_stream(self.kept[-1].handle)
        return bascule.external_stream({"legacy": 1, "per-thread": 2}[kind]) if kind else bascule.stream()

    def streams(self, count: int) -> list[bascule.Stream]:
        """New streams. On two devices they alternate, beginning with the far one."""
        return [self._stream_of(self.far if k % 2 == 0 else bascule.device(0)) for k in range(count)]

    def _stream_of(self, device: bascule.Device) -> bascule.Stream:
        with device:
            self.kept.append(bascule.stream())
        return self.kept[-1]

    def default_stream(self, handle: int) -> bascule.Stream:
        """A default stream of the far device: 1 is the legacy default stream, 2 the calling thread's."""
        with self.far:
            return bascule.external_stream(handle)

    def link(self, before: bascule.Stream, after: bascule.Stream) -> None:
        """Orders what is issued on `after` from now on after everything on `before`."""
        with before.device:
            event = bascule.event()
        event.record(before)
        event.wait(after)
        self.kept.append(event)

    def array(self, stream: Stream, n: int = N, dtype: str = "i4", memory: str = "device") -> bascule.DeviceArray:
        """An array of Bascule's, bound to `stream`, uninitialized."""
        with device_of(stream):
            self.kept.append(MEMORY[memory](n, dtype, stream=stream))
        return self.kept[-1]

    def foreign(self, stream: Stream, n: int = N) -> Foreign:
        """An array of another library that works on `stream`."""
        with device_of(stream):
            self.kept.append(Foreign(bascule.device_array(n, "i4"), stream))
        return self.kept[-1]

    def launcher(self, kernel: str, stream: Stream | None) -> bascule.Launcher:
        """A launcher for one block of N threads, which can access the memory of both devices."""
        launcher = kernels()[kernel][1, N, stream]
        return launcher.options(peer=True) if self.devices > 1 else launcher

    def graph(self, stream: Stream, kernel: str, *arguments: object) -> bascule.Graph:
        """A graph of one launch on the device of `stream`; capturing it touches no memory."""
        with device_of(stream), self.touching():
            kernels()[kernel].prepare()
            with bascule.Graph() as graph:
                self.launcher(kernel, None)(*arguments)
        self.kept.append(graph)
        return graph

    @contextmanager
    def touching(self, reads: Sequence[object] = (), writes: Sequence[object] = ()) -> Iterator[None]:
        """Notes that the operations of the block read and write these arrays."""
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

    # --- What other libraries do on their own streams, ordering nothing

    def produce(self, stream: Stream, *arrays: object) -> None:
        for array in arrays:
            words = unordered(array).view("i4")
            with self.touching(writes=[words]):
                self.launcher("set", stream)(words, 3, words.size)

    def consume(self, stream: Stream, *arrays: object) -> None:
        for array in arrays:
            words = unordered(array).view("i4")
            with self.touching(reads=[words]):
                self.launcher("read", stream)(words, words.size)

    @contextmanager
    def between(self, reads: Sequence[object] = (), writes: Sequence[object] = ()) -> Iterator[None]:
        """Puts the block's operations between operations of other libraries on the arrays' streams.

        Those write the arrays before the block, and right after it overwrite what it read and read what it wrote: each
        missing wait is a race.
        """
        for array in (*reads, *writes):
            self.produce(array.stream, array)
        with self.touching(reads, writes):
            yield
        for array in reads:
            self.produce(array.stream, array)
        for array in writes:
            self.consume(array.stream, array)

    # --- What Bascule orders

    def sum(self, stream: Stream | None, *arrays: object, out: object = None) -> None:
        """out = the sum of the arrays, launched on `stream`; `out` defaults to a new array on `stream`."""
        out = self.array(stream) if out is None else out
        with self.touching(reads=arrays, writes=[out]):
            self.launcher(f"sum{len(arrays)}", stream)(out, *arrays, N)

    def bump(self, stream: Stream | None, array: object) -> None:
        with self.touching(writes=[array]):
            self.launcher("bump", stream)(array, N)
