"""Rule 15 of runtime/streams/ORDER.md: the owners of a launch's arrays are kept at least until it is complete, and at
most until the next synchronisation."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from child_process import run_python
from conftest import ForeignArray

import bascule

SOURCE = """
__global__ void increment(float* p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += 1;
}
__global__ void sum(const float* a, const float* b, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i] + b[i];
}
"""
MIB = 1 << 20


@pytest.fixture(scope="module")
def kernels() -> bascule.Module:
    return bascule.compile(SOURCE)


@pytest.fixture(autouse=True)
def nothing_held() -> Iterator[None]:
    """Every test begins and ends without kept owners."""
    bascule.synchronize()
    gc.collect()
    assert bascule._bascule._owners_held() == 0
    yield
    bascule.synchronize()
    assert bascule._bascule._owners_held() == 0


class Allocator:
    """Reports which addresses are in use, for arrays that do not support weak references."""

    def __init__(self) -> None:
        self.arrays: dict[int, bascule.DeviceArray] = {}
        self.freed: list[int] = []

    def allocate(self, size: int, stream: bascule.Stream) -> int:
        before = bascule.set_allocator(None)
        array = bascule.device_array(max(size, 1), "u1")
        bascule.set_allocator(before)
        address = array.export(stream=None).__cuda_array_interface__["data"][0]
        self.arrays[address] = array
        return address

    def deallocate(self, address: int, size: int, stream: bascule.Stream) -> None:
        self.freed.append(address)
        # A kernel that still reads it now reads poison, not the old values.
        self.arrays.pop(address).fill(0xA5, stream=bascule.stream())


@pytest.fixture
def allocator() -> Iterator[Allocator]:
    made = Allocator()
    before = bascule.set_allocator((made.allocate, made.deallocate))
    yield made
    bascule.set_allocator(before)


def foreign(values: np.ndarray, stream: bascule.Stream | None = None) -> ForeignArray:
    return ForeignArray(bascule.to_device(values, stream=stream))


def alive(references: list[weakref.ref]) -> list[bool]:
    gc.collect()
    return [reference() is not None for reference in references]


@pytest.mark.lazy
def test_an_owner_lives_until_the_kernel_ran_and_is_gone_after_the_next_synchronisation(kernels, emulated, rng):
    stream = bascule.stream()
    a, b = rng.random((2, 64), dtype="f4")
    out = bascule.pinned_array(64, "f4", stream=stream)
    seen = np.asarray(out)
    seen[:] = np.nan
    x, y = foreign(a, stream), foreign(b, stream)
    owners = [weakref.ref(x), weakref.ref(y)]
    kernels.sum[1, 64, stream](x, y, out)
    del x, y
    assert alive(owners) == [True, True]
    assert np.isnan(seen).all(), "under the lazy policy nothing has run yet"
    stream.synchronize()
    assert alive(owners) == [False, False]
    np.testing.assert_array_equal(seen, a + b)


def test_an_owner_is_gone_after_the_devices_synchronisation_too(kernels):
    x = foreign(np.zeros(64, "f4"), bascule.stream())
    owner = weakref.ref(x)
    kernels.increment[1, 64](x, 64)
    del x
    assert alive([owner]) == [True]
    bascule.synchronize()
    assert alive([owner]) == [False]


def test_a_copy_to_the_host_lets_go_what_it_waited_for(kernels):
    stream = bascule.stream()
    x, y = foreign(np.zeros(64, "f4"), stream), bascule.to_device(np.zeros(64, "f4"), stream=stream)
    owner = weakref.ref(x)
    kernels.sum[1, 64, stream](x, x, y)
    del x
    assert alive([owner]) == [True]
    y.copy_to_host()
    assert alive([owner]) == [False]


def test_an_owner_of_a_launch_that_raised_lives_until_the_next_synchronisation(kernels, emulated):
    """The stream does not exist: the driver refuses the launch after Bascule has checked everything."""
    x = foreign(np.zeros(64, "f4"))
    owner = weakref.ref(x)
    with pytest.raises(bascule.CudaError):
        kernels.increment[1, 64, 0xDEAD0](x, 64)
    del x
    bascule.synchronize()
    assert alive([owner]) == [False]


def test_an_owner_of_a_launch_whose_geometry_is_refused_is_not_lost(kernels):
    stream = bascule.stream()
    x = foreign(np.zeros(64, "f4"), stream)
    owner = weakref.ref(x)
    with pytest.raises(ValueError, match="block"):
        kernels.increment[1, 4096, stream](x, 64)
    del x
    stream.synchronize()
    assert alive([owner]) == [False]


def test_an_owner_of_a_refused_argument_is_let_go_at_once(kernels):
    stream = bascule.stream()
    x = foreign(np.zeros(64, "f4"), stream)
    stream.synchronize()  # nothing is kept for the copy
    owner = weakref.ref(x)
    with pytest.raises(TypeError, match="parameter|argument"):
        kernels.increment[1, 64](x, "no number")
    del x
    assert alive([owner]) == [False]
    assert bascule._bascule._owners_held() == 0


def test_each_stream_keeps_its_own_owners(kernels):
    streams = [bascule.stream() for _ in range(4)]
    arrays = [foreign(np.zeros(64, "f4"), stream) for stream in streams]
    owners = [weakref.ref(array) for array in arrays]
    for stream, array in zip(streams, arrays, strict=True):
        kernels.increment[1, 64, stream](array, 64)
    del arrays, array
    for done, stream in enumerate(streams, 1):
        stream.synchronize()
        assert alive(owners) == [False] * done + [True] * (4 - done)


def test_an_array_on_two_streams_lives_as_long_as_the_later_one(kernels):
    first, second = bascule.stream(), bascule.stream()
    x = foreign(np.zeros(64, "f4"), first)
    owner = weakref.ref(x)
    kernels.increment[1, 64, first](x, 64)
    kernels.increment[1, 64, second](x, 64)
    del x
    first.synchronize()
    assert alive([owner]) == [True]
    second.synchronize()
    assert alive([owner]) == [False]


def test_threads_on_one_stream_and_on_their_own_lose_no_owner(kernels):
    shared = bascule.stream()
    owners: list[weakref.ref] = []
    failures: list[BaseException] = []
    everybody = threading.Barrier(8)

    def work() -> None:
        try:
            for stream in (shared, bascule.stream(), bascule.per_thread_default_stream()) * 5:
                x = foreign(np.zeros(64, "f4"), stream)
                owners.append(weakref.ref(x))
                kernels.increment[1, 64, stream](x, 64)
                del x
            everybody.wait(30)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    bascule.synchronize()
    assert not any(alive(owners))
    assert len(owners) == 8 * 15


def test_the_owners_of_a_stream_that_goes_are_kept_until_its_work_is_done(kernels):
    stream = bascule.stream()
    x = foreign(np.zeros(64, "f4"), stream)
    owner = weakref.ref(x)
    kernels.increment[1, 64, stream](x, 64)
    del x, stream
    bascule.synchronize()
    assert alive([owner]) == [False]


def test_a_binding_keeps_its_arrays_and_its_last_launch_does(kernels, emulated):
    stream = bascule.stream()
    x = foreign(np.zeros(64, "f4"), stream)
    array = x.array
    owner = weakref.ref(x)
    bound = kernels.increment[1, 64, stream].bind(x, 64)
    del x
    bound()
    stream.synchronize()
    assert alive([owner]) == [True], "it may be launched again"
    bound()
    del bound
    assert alive([owner]) == [True], "the last launch has not run"
    stream.synchronize()
    assert alive([owner]) == [False]
    np.testing.assert_array_equal(array.copy_to_host(), np.full(64, 2, "f4"))


def test_a_binding_that_was_never_launched_lets_go_at_once(kernels):
    x = foreign(np.zeros(64, "f4"))
    owner = weakref.ref(x)
    bound = kernels.increment[1, 64].bind(x, 64)
    del x, bound
    assert alive([owner]) == [False]


def test_rebind_keeps_the_arrays_of_launches_before_it(kernels, emulated):
    stream = bascule.stream()
    x, y = (foreign(np.zeros(64, "f4"), stream) for _ in range(2))
    old, new = weakref.ref(x), weakref.ref(y)
    bound = kernels.increment[1, 64, stream].bind(x, 64)
    bound()
    del x
    bound.rebind(y, 64)
    del y
    assert alive([old, new]) == [True, True]
    stream.synchronize()
    assert alive([old, new]) == [False, True]
    del bound
    assert alive([new]) == [False]


ASKS_ABOUT_A_STREAM = ("cuStreamIsCapturing", "cuStreamGetCaptureInfo", "cuEventRecord", "cuStreamSynchronize")


class StreamOfOthers:
    """A stream of another library, which may destroy it at any time."""

    def __init__(self) -> None:
        bascule.device_array(1, "f4")  # makes a context current in this thread
        self.driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
        handle = ctypes.c_void_p()
        assert self.driver.cuStreamCreate(ctypes.byref(handle), 1) == 0
        assert handle.value is not None
        self.handle = handle.value

    def destroy(self) -> None:
        assert self.driver.cuStreamSynchronize(ctypes.c_void_p(self.handle)) == 0
        assert self.driver.cuStreamDestroy_v2(ctypes.c_void_p(self.handle)) == 0


def calls_about_streams() -> dict[str, int]:
    return {name: bascule._bascule._driver_calls(name) for name in ASKS_ABOUT_A_STREAM}


def launch_bound_to_a_handle(kernels, handle: int, array: ForeignArray):
    bound = kernels.increment[1, 64, handle].bind(array, 64)
    bound()
    return bound


def launch_bound_to_an_object_with_a_handle(kernels, handle: int, array: ForeignArray):
    bound = kernels.increment[1, 64, bascule.external_stream(handle)].bind(array, 64)
    bound()
    return bound


def launch_bound_on_the_current_stream(kernels, handle: int, array: ForeignArray):
    bound = kernels.increment[1, 64].bind(array, 64)
    with bascule.external_stream(handle):
        bound()
    return bound


def launch_bound_on_the_producers_stream(kernels, handle: int, array: ForeignArray):
    bascule.synchronize()  # its values are ready, whatever stream it names
    array.changes["stream"] = handle
    bound = kernels.increment[1, 64].bind(array, 64)
    bound()
    return bound


def launch_before_a_rebind(kernels, handle: int, array: ForeignArray):
    bound = launch_bound_to_a_handle(kernels, handle, array)
    bound.rebind(array, 64)
    return bound


@pytest.mark.parametrize(
    "launch",
    [
        launch_bound_to_a_handle,
        launch_bound_to_an_object_with_a_handle,
        launch_bound_on_the_current_stream,
        launch_bound_on_the_producers_stream,
        launch_before_a_rebind,
    ],
)
def test_a_binding_that_goes_asks_nothing_about_a_stream_that_others_may_have_destroyed(
    kernels: bascule.Module, emulated: None, launch: Callable
) -> None:
    """Using the handle of a destroyed stream is undefined behaviour: a driver need not check it."""
    stream = StreamOfOthers()
    x = foreign(np.zeros(64, "f4"))
    owner = weakref.ref(x)
    bound = launch(kernels, stream.handle, x)
    bascule.synchronize()
    memory = x.array  # noqa: F841 - freeing it would ask the driver about its stream
    del x
    stream.destroy()
    before = calls_about_streams()
    del bound
    gc.collect()
    assert calls_about_streams() == before
    assert alive([owner]) == [False]


def test_a_binding_keeps_its_arrays_while_a_stream_of_others_works(kernels, emulated):
    stream = StreamOfOthers()
    x = foreign(np.zeros(64, "f4"))
    array = x.array
    owner = weakref.ref(x)
    bound = kernels.increment[1, 64, stream.handle].bind(x, 64)
    del x
    bound()
    bound()
    del bound  # on other libraries' streams every launch records a marker event, so that `bound` waits for none
    bascule.synchronize()
    assert alive([owner]) == [False]
    stream.destroy()
    np.testing.assert_array_equal(array.copy_to_host(), np.full(64, 2, "f4"))


@pytest.mark.lazy
def test_a_bound_launch_keeps_the_stream_that_its_array_is_bound_to(kernels, emulated):
    stream = bascule.stream()
    x = bascule.to_device(np.zeros(64, "f4"), stream=stream)
    bound = kernels.increment[1, 64].bind(x, 64)
    stream.synchronize()
    del stream, x
    for _ in range(3):
        bound()
    held = bascule._bascule._owners_held()
    del bound
    gc.collect()
    assert (held, bascule._bascule._owners_held()) == (0, 1), "handed over once, when the binding goes"


def twice(x: bascule.DeviceArray) -> bascule.DeviceArray:
    return x.copy("F").copy("C")


def spread(x: bascule.DeviceArray) -> bascule.DeviceArray:
    y = bascule.device_array(x.shape, x.dtype, stream=x.stream)
    y[...] = x
    return y


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda x: x.astype("f8").astype("i4"), lambda v: v.astype("i4")),
        (lambda x: x[::2, ::3].copy(), lambda v: v[::2, ::3]),
        (twice, lambda v: v),
        (spread, lambda v: v),
    ],
    ids=["astype", "strided copy", "copy of a copy", "assignment"],
)
def test_temporaries_live_until_the_operations_on_them_ran(
    allocator: Allocator, emulated: None, rng, operation: Callable, expected: Callable
) -> None:
    """Freed memory is overwritten, so that a free before the operations have run would change the result."""
    values = rng.integers(0, 100, (30, 30)).astype("f4")
    stream = bascule.stream()
    x = bascule.to_device(values, stream=stream)
    result = operation(x)
    del x
    gc.collect()
    assert allocator.freed == [], "nothing has run yet, so nothing may be given back"
    stream.synchronize()
    gc.collect()
    assert len(allocator.arrays) == 1
    np.testing.assert_array_equal(result.copy_to_host(), expected(values))


def test_a_fill_keeps_its_array(allocator: Allocator, emulated: None) -> None:
    stream = bascule.stream()
    x = bascule.device_array((16, 16), "f8", stream=stream)
    x[::2].fill(3)
    del x
    gc.collect()
    assert allocator.freed == []
    stream.synchronize()
    gc.collect()
    assert len(allocator.freed) == 1


def records(action: Callable[[], None]) -> int:
    before = bascule._bascule._driver_calls("cuEventRecord")
    action()
    return bascule._bascule._driver_calls("cuEventRecord") - before


def test_a_marker_stands_for_64_launches_or_for_64_mebibytes(kernels, emulated):
    stream = bascule.stream()
    small = bascule.to_device(np.zeros(64, "f4"), stream=stream)
    large = ForeignArray(bascule.device_array(16 * MIB, "u1", stream=stream).view("f4"))
    launcher = kernels.increment[1, 64, stream]

    def launches(array: object, count: int) -> Callable[[], None]:
        return lambda: [launcher(array, 64) for _ in range(count)] and None

    launches(small, 64)()
    assert records(launches(small, 640)) == 10
    assert records(launches(large, 40)) == 10
    stream.synchronize()


def test_large_temporaries_go_back_without_any_synchronisation(kernels, emulated):
    """The launches use 512 MiB in all; after their kernels have run, at most 128 MiB are still held."""
    stream = bascule.stream()
    owners = []
    for _ in range(32):
        x = ForeignArray(bascule.device_array(4 * MIB, "f4", stream=stream))
        owners.append(weakref.ref(x))
        kernels.increment[1, 64, stream](x, 64)
        del x
        run_what_is_pending(stream)
    assert sum(alive(owners)) <= 8
    stream.synchronize()


def run_what_is_pending(stream: bascule.Stream) -> None:
    """Runs the work as another library would that waits for an event: Bascule does not notice that it is complete."""
    event = bascule.event()
    event.record(stream)
    event.synchronize()


HELD = """
import threading, time
import numpy as np
import bascule
kernel = bascule.compile("__global__ void wait(volatile int* go, int* runs) { while (*go == 0) {} *runs += 1; }").wait
stream = bascule.stream()
go = bascule.pinned_array(1, "i4", stream=stream)
runs = bascule.to_device(np.zeros(1, "i4"), stream=stream)
stream.synchronize()  # of the copy nothing is kept
flag = np.asarray(go)
flag[0] = 0
held = bascule._bascule._owners_held
launcher, launches, most = kernel[1, 1, stream], 3000, 0

def waits():
    return bascule._bascule._driver_calls("cuEventSynchronize")

before = waits()

def release():
    global most
    # Until the main thread waits in a launch; it has launched everything if it never does.
    while waits() == before and held() < launches:  # each launch keeps the flag
        time.sleep(0.001)
    most = held()
    flag[0] = 1

thread = threading.Thread(target=release)
thread.start()
for _ in range(launches):
    launcher(go, runs)
thread.join()
print(most, runs.copy_to_host()[0])
"""


def test_the_host_waits_for_the_oldest_launch_before_the_drivers_queue_is_full(emulated):
    """The first kernel waits for the host. With a full queue the host would wait for the kernel: a deadlock."""
    run = run_python("-c", HELD, BASCULE_EMULATED_SCHEDULE="threads", BASCULE_EMULATED_TIMEOUT="10")
    assert (run.returncode, run.stderr) == (0, "")
    most, runs = map(int, run.stdout.split())
    assert runs == 3000
    assert 512 < most < 1024
