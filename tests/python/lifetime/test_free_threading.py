"""Concurrent use of everything that has state: with a GIL, threads switch at any instruction; without one they run in
parallel."""

from __future__ import annotations

import gc
import sys
import sysconfig
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from child_process import run_python
from conftest import ForeignArray
from dlpack.capsules import native

import bascule

THREADS = 8
SECONDS = 0.25  # that the threads of a test run at least
SIZE = 64
SOURCE = """
__global__ void increment(float* p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] += 1;
}
__global__ void axpby(const float* x, const float* y, float* out, float a) {
    int i = threadIdx.x;
    out[i] = a * x[i] + y[i];
}
"""


@pytest.fixture(scope="module")
def kernels() -> bascule.Module:
    return bascule.compile(SOURCE)


@pytest.fixture(autouse=True)
def often_in_turn() -> Iterator[None]:
    """Makes threads switch a thousand times as often as usual, if there is a GIL. Afterwards no owner may be held."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)
    bascule.synchronize()
    gc.collect()
    assert bascule._bascule._owners_held() == 0


def at_once(*works: Callable[[], object]) -> None:
    """Runs each function in its own thread, all starting together; raises the first exception of any of them."""
    failures: list[BaseException] = []
    ready = threading.Barrier(len(works))

    def guarded(work: Callable[[], object]) -> None:
        try:
            ready.wait(30)
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def numbered(work: Callable[[int], object], count: int = THREADS) -> list[Callable[[], object]]:
    return [lambda i=i: work(i) for i in range(count)]


def rounds(at_least: int = 10) -> Iterator[int]:
    end = time.monotonic() + SECONDS
    number = 0
    while number < at_least or time.monotonic() < end:
        yield number
        number += 1


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has the GIL")
def test_importing_bascule_leaves_the_gil_off() -> None:
    program = "import sys, bascule; bascule.device_array(1, 'f4'); print(sys._is_gil_enabled())"
    ended = run_python("-W", "error", "-c", program, PYTHON_GIL=None)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "False\n", "")


def test_every_thread_gets_its_own_results_from_one_kernel(kernels: bascule.Module) -> None:
    """Each launch reads an array of its thread, passed in one of three ways, and an array that all threads share."""
    weights = np.random.default_rng(1).integers(0, 1000, SIZE).astype("f4")
    shared = bascule.to_device(weights, stream=bascule.stream())
    launcher = kernels.axpby[1, SIZE]

    def work(thread: int) -> None:
        rng = np.random.default_rng(thread)
        stream = bascule.stream()
        for number in rounds():
            values = rng.integers(0, 1000, SIZE).astype("f4")
            own = bascule.to_device(values, stream=stream)
            x = (own, ForeignArray(own), own.export(version=2))[number % 3]
            out = bascule.to_device(np.full(SIZE, np.nan, "f4"), stream=stream)
            launcher(x, shared, ForeignArray(out), float(thread))
            np.testing.assert_array_equal(out.copy_to_host(), np.float32(thread) * values + weights)

    at_once(*numbered(work))


def test_a_launchers_first_call_may_come_from_all_threads(kernels: bascule.Module) -> None:
    streams = [bascule.stream() for _ in range(THREADS)]
    arrays = [bascule.to_device(np.zeros(SIZE, "f4"), stream=stream) for stream in streams]
    made = 0
    for _ in rounds():
        made += 1
        launcher = kernels.increment.forall(SIZE)
        at_once(*numbered(lambda i, launcher=launcher: launcher(arrays[i], SIZE)))
    for array in arrays:
        np.testing.assert_array_equal(array.copy_to_host(), np.full(SIZE, made, "f4"))


@pytest.mark.parametrize("head", ["", "template <class T> "], ids=["function", "template"])
def test_a_text_that_all_threads_need_at_once_is_compiled_once(head: str) -> None:
    element = "T" if head else "float"
    text = f"{head}__global__ void negate_for_all({element}* p) {{ p[threadIdx.x] = -p[threadIdx.x]; }}"
    before = bascule.cache.stats()
    values = np.random.default_rng(2).random((THREADS, SIZE), dtype="f4")

    def work(thread: int) -> None:
        array = bascule.to_device(values[thread], stream=bascule.stream())
        bascule.compile(text).negate_for_all[1, SIZE](array)
        np.testing.assert_array_equal(array.copy_to_host(), -values[thread])

    at_once(*numbered(work))
    after = bascule.cache.stats()
    assert after.compiled - before.compiled == 1


def test_a_bound_launch_that_threads_bind_anew_launches_what_some_thread_bound(kernels: bascule.Module) -> None:
    """It is undefined which array a call increments, but it must increment all of exactly one."""
    arrays = [bascule.to_device(np.zeros(SIZE, "f4"), stream=bascule.stream()) for _ in range(THREADS)]
    bound = kernels.increment[1, SIZE].bind(arrays[0], SIZE)
    calls = [0] * THREADS

    def work(thread: int) -> None:
        for number in rounds():
            if number % 4 == 3:
                bound.rebind()
            else:
                bound.rebind(arrays[thread], SIZE)
            bound()
            assert "increment" in repr(bound)
            calls[thread] += 1

    at_once(*numbered(work))
    values = np.stack([array.copy_to_host() for array in arrays])
    assert (values == values[:, :1]).all(), "a launch did a part of its work"
    assert values[:, 0].sum() == sum(calls)


def test_one_bound_launch_may_be_called_by_all_threads_on_streams_of_their_own(kernels: bascule.Module) -> None:
    array = bascule.to_device(np.zeros(SIZE, "f4"), stream=bascule.stream())
    bound = kernels.increment[1, SIZE].bind(ForeignArray(array), SIZE)
    calls = [0] * THREADS
    alone = threading.Lock()  # orders the launches with the array's stream one after another

    def work(thread: int) -> None:
        with bascule.stream():
            for _ in rounds():
                with alone:
                    bound()
                calls[thread] += 1

    at_once(*numbered(work))
    np.testing.assert_array_equal(array.copy_to_host(), np.full(SIZE, sum(calls), "f4"))


def test_a_descriptor_that_another_thread_changes_is_read_whole(kernels: bascule.Module) -> None:
    """Some libraries always return the same dict. Here its keys come and go, and it describes one of two arrays."""
    stream = bascule.stream()
    arrays = [bascule.to_device(np.zeros(SIZE, "f4"), stream=stream) for _ in range(2)]
    interfaces = [array.__cuda_array_interface__ for array in arrays]
    fields = dict(interfaces[0], descr=[("", "<f4")])
    calls = [0] * THREADS
    done = threading.Event()

    class OneDict:
        __cuda_array_interface__ = fields

    def change() -> None:
        number = 0
        while not done.is_set():
            number += 1
            fields["data"] = interfaces[number % 2]["data"]
            fields["descr"][:] = [("", "".join(("<", "f4")))]
            for extra in range(number % 16):
                fields[f"key {number} {extra}"] = object()
            for extra in range(number % 16):
                del fields[f"key {number} {extra}"]

    def work(thread: int) -> None:
        x = OneDict()
        for _ in rounds():
            kernels.increment[1, SIZE](x, SIZE)
            calls[thread] += 1

    changing = threading.Thread(target=change)
    changing.start()
    try:
        at_once(*numbered(work))
    finally:
        done.set()
        changing.join()
    values = np.stack([array.copy_to_host() for array in arrays])
    assert (values == values[:, :1]).all()
    assert values[:, 0].sum() == sum(calls)


def test_one_of_the_threads_that_want_a_capsule_gets_it() -> None:
    values = np.random.default_rng(3).random(SIZE, dtype="f4")
    array = bascule.to_device(values, stream=bascule.stream())
    for _ in rounds(2):
        capsules = [array.__dlpack__(max_version=(1, 0)) for _ in range(100)]
        taken: list[list[bascule.DeviceArray]] = [[] for _ in capsules]
        refused: list[list[str]] = [[] for _ in capsules]

        def take(_: int, capsules=capsules, taken=taken, refused=refused) -> None:
            for number, capsule in enumerate(capsules):
                try:
                    taken[number].append(bascule.from_dlpack(capsule))
                except ValueError as error:
                    refused[number].append(str(error))

        at_once(*numbered(take))
        assert [len(arrays) for arrays in taken] == [1] * len(capsules)
        assert [len(messages) for messages in refused] == [THREADS - 1] * len(capsules)
        assert all("an earlier from_dlpack consumed it" in message for messages in refused for message in messages)
        np.testing.assert_array_equal(taken[0][0].copy_to_host(), values)


def test_c_code_of_all_threads_borrows_one_array_and_lends_its_own(kernels: bascule.Module) -> None:
    """DLPack's exchange table is used in both directions, with a new type and a new array in each round."""
    exchange_native = native()
    streams = [bascule.stream() for _ in range(THREADS)]
    for number in rounds():
        shape = (number % 3 + 2, 5)
        shared = bascule.to_device(np.zeros(shape, "f4"))
        kind = type(f"Tensor{number}", (exchange_native.Tensor,), {})
        seen: list[dict[str, object]] = []
        outs = [bascule.to_device(np.full(SIZE, number, "f4")) for _ in streams]

        def work(thread: int, shared=shared, kind=kind, seen=seen, outs=outs) -> None:
            seen.append(exchange_native.borrow(shared))
            pointer = outs[thread].__cuda_array_interface__["data"][0]
            kernels.increment[1, SIZE](kind(pointer, (SIZE,), owner=outs[thread]), SIZE)

        at_once(*numbered(work))
        assert seen == [seen[0]] * THREADS
        assert seen[0]["shape"] == shape
        assert seen[0]["data"] == shared.__cuda_array_interface__["data"][0]
        bascule.synchronize()
        for out in outs:
            np.testing.assert_array_equal(out.copy_to_host(), np.full(SIZE, number + 1, "f4"))


def test_threads_find_the_launchers_that_a_kernel_knows(kernels: bascule.Module) -> None:
    """The threads use the same key, keys that replace each other, and shared, separate and short-lived streams."""
    shared = bascule.stream()
    launched = [0] * THREADS
    arrays = [bascule.to_device(np.zeros(SIZE, "f4")) for _ in range(THREADS)]

    def work(thread: int) -> None:
        x, own = arrays[thread], bascule.stream()
        for number in rounds():
            for stream in (None, shared, own, bascule.stream()):
                kernels.increment[1, SIZE, stream](x, SIZE)
            kernels.increment[1 + (thread + number) % 40, 32](x, 0)
            kernels.increment.forall(SIZE)(x, SIZE)
            launched[thread] += 5

    at_once(*numbered(work))
    assert [array.copy_to_host().tolist() for array in arrays] == [[count] * SIZE for count in launched]


def test_settings_may_change_while_others_launch(kernels: bascule.Module) -> None:
    """Four threads change debugging, configuration, registered producers and the allocator."""
    done = threading.Event()

    def until_done(change: Callable[[int], object]) -> Callable[[], None]:
        def work() -> None:
            number = 0
            while not done.is_set():
                number += 1
                change(number)

        return work

    def configure(number: int) -> None:
        bascule.config.accept_newer_interface = number % 2 == 0
        bascule.config.check_memory = number % 3 == 0
        bascule.config.include_paths = []  # found again at the next compile

    def debug(number: int) -> None:
        with bascule.debug(sync=number % 2 == 0):
            kernels.increment[1, 1]

    def register(number: int) -> None:
        kind = type(f"Registered{number}", (), {})
        bascule.register_producer(kind, stream_of="spec")

    addresses: dict[int, bascule.DeviceArray] = {}

    def allocate(size: int, stream: bascule.Stream) -> int:
        array = bascule.pinned_array(max(size, 1), "u1")  # from the driver, whatever allocator is set
        address = array.__cuda_array_interface__["data"][0]
        addresses[address] = array
        return address

    functions = (allocate, lambda address, size, stream: addresses.pop(address))

    def change_allocator(number: int) -> None:
        assert bascule.set_allocator(functions if number % 2 else None) in (functions, None)
        assert bascule.get_allocator() in (functions, None)

    def work(thread: int) -> None:
        rng = np.random.default_rng(thread)
        stream = bascule.stream()
        for number in rounds():
            values = rng.random(SIZE, dtype="f4")
            array = bascule.to_device(values, stream=stream)
            x = (array, ForeignArray(array), array.export(version=2))[number % 3]
            bascule.compile(SOURCE).increment[1, SIZE](x, SIZE)
            np.testing.assert_array_equal(array.copy_to_host(), values + 1)

    changes = [configure, debug, register, change_allocator]
    changing = [threading.Thread(target=until_done(change)) for change in changes]
    for thread in changing:
        thread.start()
    try:
        at_once(*numbered(work, 4))
    finally:
        done.set()
        for thread in changing:
            thread.join()
        bascule.set_allocator(None)
        bascule.config.accept_newer_interface = bascule.config.check_memory = False
    bascule.synchronize()
    gc.collect()
    assert addresses == {}, "memory that its allocator did not get back"


def test_an_allocator_may_be_set_and_asked_for_by_all_threads() -> None:
    """Only the setting keeps the functions alive, so that an unsafe reader would use freed ones."""

    def work(thread: int) -> None:
        for _ in rounds():
            before = bascule.set_allocator((lambda *_: 0, lambda *_: None))
            for setting in (before, bascule.get_allocator()):
                assert setting is None or setting[1](thread) is None

    try:
        at_once(*numbered(work))
    finally:
        bascule.set_allocator(None)


def test_a_producer_may_be_registered_while_its_arrays_are_read() -> None:
    """Two threads register different functions each time; all of them name the right stream."""
    stream = bascule.stream()
    array = bascule.to_device(np.zeros(SIZE, "f4"), stream=stream)
    fields = array.export(version=2).__cuda_array_interface__
    kinds = [type(f"Producer{number}", (), {"__cuda_array_interface__": fields}) for number in range(4)]

    def register() -> None:
        for kind in kinds:
            bascule.register_producer(kind, stream_of=lambda _: stream.handle)

    def work(thread: int) -> None:
        for number in rounds():
            if thread < 2:
                register()
            else:
                assert bascule.as_cuda_array(kinds[number % 4]()).stream == stream

    register()
    at_once(*numbered(work))


def test_the_last_references_may_go_on_other_threads(kernels: bascule.Module) -> None:
    """Half of the threads launch and pass on what they made; the others drop it, or synchronise if there is nothing."""
    given: list[object] = []
    owners: list[weakref.ref] = []
    done = threading.Event()

    def make(thread: int) -> None:
        stream = bascule.stream()
        with stream:
            for _ in rounds():
                x = ForeignArray(bascule.to_device(np.zeros(SIZE, "f4"), stream=stream))
                owners.append(weakref.ref(x))
                bound = kernels.increment[1, SIZE].bind(x, SIZE)
                bound()
                kernels.increment[1, SIZE](x, SIZE)
                capsule = x.array.__dlpack__()
                given.extend((bound, capsule, x))

    def drop(thread: int) -> None:
        while not done.is_set():
            try:
                given.pop()
            except IndexError:
                bascule.synchronize()

    dropping = [threading.Thread(target=drop, args=(i,)) for i in range(THREADS // 2)]
    for thread in dropping:
        thread.start()
    try:
        at_once(*numbered(make, THREADS // 2))
    finally:
        done.set()
        for thread in dropping:
            thread.join()
    given.clear()
    bascule.synchronize()
    gc.collect()
    assert len(owners) >= THREADS // 2 * 10
    assert not any(owner() is not None for owner in owners)
