"""The stream of an operation: the given one, the current one, the one that every array names, or the default."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from child_process import printed_by
from conftest import ForeignArray, traced
from plain_launches import ordered

import bascule

KERNELS = """
__global__ void add(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
__global__ void nothing(int i) {}
"""


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    return bascule.compile(KERNELS)


@pytest.fixture(scope="module")
def add(module: bascule.Module) -> bascule.Kernel:
    return module.add.prepare()


@pytest.fixture
def per_thread() -> Iterator[None]:
    bascule.config.default_stream = "per-thread"
    try:
        yield
    finally:
        bascule.config.default_stream = "legacy"


def ones(stream: Any = None) -> bascule.DeviceArray:
    return bascule.to_device(np.ones(32, "f4"), stream=stream)


def used(kinds: str, action: Callable[[], object]) -> list[int]:
    """Runs `action`, and returns the streams of its operations of these kinds ("copy launch")."""
    with traced() as operations:
        action()
    return [operation.stream for operation in operations if operation.kind in kinds.split()]


def test_the_stream_given_wins_over_the_current_one_and_over_the_arrays(add):
    p, c, current = bascule.stream(), bascule.stream(), bascule.stream()
    arrays = [ones(p) for _ in range(3)]
    with current:
        assert used("launch", lambda: add[1, 32, c](*arrays)) == [c.handle]
        assert used("launch", lambda: add[1, 32](*arrays)) == [current.handle]
    assert used("launch", lambda: add[1, 32](*arrays)) == [p.handle]


def test_a_current_stream_waits_for_the_arrays_stream_which_waits_in_turn(add):
    p, current = bascule.stream(), bascule.stream()
    arrays = [ones(p) for _ in range(3)]
    with current, traced() as operations:
        add[1, 32](*arrays)
    kinds = [(o.kind, o.stream) for o in operations if o.kind in ("record", "wait", "launch")]
    assert kinds == ordered(current, p)


def test_everything_that_takes_no_stream_goes_to_the_current_one():
    p, current = bascule.stream(), bascule.stream()
    x, y = ones(p), ones(p)
    host = np.zeros(32, "f4")
    actions: dict[str, Callable[[], object]] = {
        "fill": lambda: x.fill(2),
        "strided fill": lambda: x[::2].fill(3),
        "copy": lambda: x.copy(),
        "strided copy": lambda: x[::2].copy(),
        "astype": lambda: x.astype("f8"),
        "number": lambda: x.__setitem__(slice(0, 4), 5),
        "assignment": lambda: x.__setitem__(slice(None), y),
        "host values": lambda: x.__setitem__(slice(None), host),
        "copy_from_host": lambda: x.copy_from_host(host),
        "copy_to_host": lambda: x.copy_to_host(),
        "to_device": lambda: bascule.to_device(host),
    }
    for action in actions.values():
        action()  # the first time compiles
    for name, action in actions.items():
        with current:
            assert used("launch copy fill", action) == [current.handle], name
        outside = [1] if name == "to_device" else [p.handle]
        assert used("launch copy fill", action) == outside, name


def test_new_arrays_are_bound_to_the_current_stream():
    x = ones()
    with bascule.stream() as current:
        made = [
            bascule.device_array(3, "f4"),
            bascule.pinned_array(3, "f4"),
            bascule.managed_array(3, "f4"),
            ones(),
            bascule.from_dlpack(x),
            bascule.as_cuda_array(ForeignArray(x, stream=None)),
            x.copy(),
            x.astype("f8"),
        ]
        assert [array.stream for array in made] == [current] * len(made)
        assert bascule.current_stream() is current
    assert bascule.current_stream() is None
    assert bascule.device_array(3, "f4").stream == bascule.default_stream()


def test_two_arrays_on_two_streams_are_copied_on_the_default_stream_in_either_order():
    p, q = bascule.stream(), bascule.stream()
    x, y = ones(p), ones(q)
    assert used("copy", lambda: x.__setitem__(slice(None), y)) == [1]
    assert used("copy", lambda: y.__setitem__(slice(None), x)) == [1]
    z = ones(p)
    assert used("copy", lambda: x.__setitem__(slice(None), z)) == [p.handle]


def test_blocks_nest_and_one_stream_may_be_entered_again(add):
    p, q = bascule.stream(), bascule.stream()
    arrays = [ones() for _ in range(3)]
    seen = []

    def launch() -> None:
        seen.extend(used("launch", lambda: add[1, 32](*arrays)))

    with p:
        launch()
        with q:
            launch()
            with p:
                launch()
            launch()
        launch()
    launch()
    assert seen == [p.handle, q.handle, p.handle, q.handle, p.handle, 1]


def test_an_exception_leaves_the_block():
    p, q = bascule.stream(), bascule.stream()
    with pytest.raises(ZeroDivisionError), p, q:
        raise ZeroDivisionError
    assert bascule.current_stream() is None


def test_leaving_out_of_order_is_refused_and_changes_nothing():
    p, q = bascule.stream(), bascule.stream()
    with p:
        with pytest.raises(ValueError, match="opposite order"):
            q.__exit__(None, None, None)
        assert bascule.current_stream() is p
    with pytest.raises(ValueError, match="opposite order"):
        p.__exit__(None, None, None)


@pytest.mark.usefixtures("unordered")
def test_each_thread_has_a_current_stream_of_its_own(add):
    streams = [bascule.stream() for _ in range(8)]
    arrays = [ones() for _ in range(3)]
    barrier = threading.Barrier(len(streams))
    seen: dict[int, list[bascule.Stream | None]] = {}

    def work(index: int) -> None:
        mine = [bascule.current_stream()]
        with streams[index]:
            barrier.wait()
            mine.append(bascule.current_stream())
            add[1, 32](*arrays)
            barrier.wait()
        mine.append(bascule.current_stream())
        seen[index] = mine

    with bascule.stream(), traced() as operations:
        threads = [threading.Thread(target=work, args=(index,)) for index in range(len(streams))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == {index: [None, streams[index], None] for index in range(len(streams))}
    launches = sorted(o.stream for o in operations if o.kind == "launch")
    assert launches == sorted(stream.handle for stream in streams)


def test_each_task_has_a_current_stream_of_its_own_and_begins_with_its_makers():
    async def work(stream: bascule.Stream, turns: int) -> list[bascule.Stream | None]:
        seen = [bascule.current_stream()]
        with stream:
            for _ in range(turns):
                await asyncio.sleep(0)
                seen.append(bascule.current_stream())
        seen.append(bascule.current_stream())
        return seen

    async def main() -> None:
        p, q, outer = bascule.stream(), bascule.stream(), bascule.stream()
        with outer:
            first, second = await asyncio.gather(work(p, 3), work(q, 5))
            assert bascule.current_stream() is outer
        assert first == [outer, p, p, p, outer]
        assert second == [outer, q, q, q, q, q, outer]

    asyncio.run(main())


def test_a_bound_launch_goes_to_what_is_current_when_it_is_called(add):
    p, q = bascule.stream(), bascule.stream()
    arrays = [ones() for _ in range(3)]
    with p:
        bound = add[1, 32].bind(*arrays)
        assert used("launch", bound) == [p.handle]
    assert used("launch", bound) == [1]
    with q:
        assert used("launch", bound) == [q.handle]
    given = add[1, 32, p].bind(*arrays)
    with q:
        assert used("launch", given) == [p.handle]
    del bound, given


def test_a_bound_launch_keeps_its_arrays_until_every_stream_that_it_ran_on_is_done(add):
    p, q = bascule.stream(), bascule.stream()
    freed: list[int] = []
    before = bascule.set_allocator((lambda size, _stream: _take(size), lambda address, _n, _s: freed.append(address)))
    try:
        arrays = [bascule.device_array(32, "f4") for _ in range(3)]
    finally:
        bascule.set_allocator(before)
    bound = add[1, 32].bind(*arrays)
    for stream in (p, q, p):
        with stream:
            bound()
    del bound, arrays
    p.synchronize()
    assert freed == []
    q.synchronize()
    assert len(freed) == 3


_memory: list[bascule.DeviceArray] = []


def _take(size: int) -> int:
    _memory.append(bascule.pinned_array(size, "u1"))
    return int(bascule.pointer_attributes(_memory[-1]).device_address)


def test_the_default_stream_is_configured(add, per_thread):
    arrays = [bascule.as_cuda_array(ForeignArray(ones(1)), sync=False) for _ in range(3)]
    assert bascule.default_stream().handle == 2
    assert used("launch", lambda: add[1, 32](*arrays)) == [2]
    assert used("launch", lambda: add[1, 32, 0](*arrays)) == [2]
    assert used("launch", lambda: add[1, 32, 1](*arrays)) == [1]
    assert bascule.device_array(3, "f4").stream.handle == 2
    with pytest.raises(ValueError, match="per-thread"):
        bascule.config.default_stream = "per_thread"
    assert bascule.config.default_stream == "per-thread"


def test_priorities_are_those_of_the_device():
    least, most = bascule.current_device().stream_priorities
    assert most < least
    assert bascule.stream(priority=most).priority == most
    assert bascule.stream().priority == 0
    for wrong in (most - 1, least + 1):
        with pytest.raises(ValueError, match=rf"priority. is {wrong}.*from {least}.*to {most}"):
            bascule.stream(priority=wrong)


class Protocol:
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> object:
        return self.answer


@pytest.mark.parametrize("answer", [(1, 7), (0,), (0, 7, 0), [0, 7], 7, (0, "7"), ("0", 7), (False, 7)])
def test_a_stream_protocol_of_another_version_or_form_is_refused(answer):
    with pytest.raises(ValueError, match=r"version 0 of the protocol.*handle"):
        bascule.external_stream(Protocol(answer))


def test_the_null_stream_of_another_library_is_the_legacy_default_stream(per_thread):
    assert bascule.external_stream(Protocol((0, 0))).handle == 1
    assert bascule.external_stream(0).handle == 2  # in Bascule 0 means its default stream


def test_an_external_stream_keeps_its_owner_and_is_current_like_any_other(add):
    owned = bascule.stream()
    assert owned.__cuda_stream__() == (0, owned.handle)
    owner = Protocol((0, owned.handle))
    kept = weakref.ref(owner)
    stream = bascule.external_stream(owner)
    del owner
    arrays = [ones() for _ in range(3)]
    with stream:
        assert used("launch", lambda: add[1, 32](*arrays)) == [owned.handle]
    assert kept() is not None
    assert bascule.external_stream(stream) == stream
    with pytest.raises(TypeError, match="None"):
        bascule.external_stream(None)


def test_events_are_recorded_on_the_current_stream():
    event = bascule.event()
    with bascule.stream() as current:
        assert used("record", event.record) == [current.handle]
        assert used("wait", event.wait) == [current.handle]
    assert used("record", event.record) == [1]


def test_the_time_between_events_is_refused_where_there_is_none():
    stream = bascule.stream()
    x = ones(stream)
    start, end, untimed = bascule.event(), bascule.event(), bascule.event(timing=False)
    with pytest.raises(ValueError, match="never recorded"):
        start.elapsed(end)
    start.record(stream)
    x.fill(2)
    end.record(stream)
    untimed.record(stream)
    with pytest.raises(ValueError, match="second event was created with timing=False"):
        start.elapsed(untimed)
    with pytest.raises(ValueError, match="first event was created with timing=False"):
        untimed.elapsed(end)
    stream.synchronize()
    assert start.elapsed(end) >= 0


HELD = """
import numpy as np, bascule
kernel = bascule.compile("__global__ void hold(volatile int* flag) { while (*flag == 0) {} }").hold.prepare()
flag = bascule.pinned_array(1, "i4")
seen = np.asarray(flag)
seen[0] = 0
stream = bascule.stream()
start, end = bascule.event(), bascule.event()
start.record(stream)
kernel[1, 1, stream](flag)
end.record(stream)
start.synchronize()
try:
    start.elapsed(end)
except ValueError as error:
    print(error)
seen[0] = 1
end.synchronize()
assert start.elapsed(end) > 0
"""


def test_an_event_that_has_not_happened_yet_has_no_time():
    printed = printed_by("-c", HELD, BASCULE_EMULATED_SCHEDULE="threads")
    assert printed.strip() == "elapsed: the second event has not happened yet. Wait for it first: end.synchronize()."


def test_a_launch_without_arrays_goes_to_the_current_stream_or_the_default(module):
    nothing = module.nothing.prepare()[1, 1]
    assert used("launch", lambda: nothing(1)) == [1]
    with bascule.stream() as current:
        assert used("launch", lambda: nothing(1)) == [current.handle]
    assert used("launch", lambda: nothing(1)) == [1]


@pytest.mark.usefixtures("unordered")
def test_sync_false_of_one_launch_ignores_every_stream(add):
    p, c = bascule.stream(), bascule.stream()
    arrays = [ones(p), ForeignArray(ones(p)), ones(p)]
    quiet = add[1, 32, c].options(sync=False)

    def operations(action: Callable[[], object]) -> list[tuple[str, int]]:
        with traced() as trace:
            action()
        return [(o.kind, o.stream) for o in trace if o.kind in ("record", "wait", "launch")]

    assert operations(lambda: quiet(*arrays)) == [("launch", c.handle)]
    assert operations(quiet.bind(*arrays)) == [("launch", c.handle)]
    assert operations(lambda: add.launch(1, 32, tuple(arrays), stream=c, sync=False)) == [("launch", c.handle)]
    assert len(operations(lambda: add[1, 32, c](*arrays))) == 5
    assert len(operations(lambda: quiet.options(sync=True)(*arrays))) == 5
    with pytest.raises(ValueError, match="stream"):
        quiet(arrays[0], ForeignArray(ones(p), stream=0), arrays[2])
    with pytest.raises(TypeError, match="no option 'synch'"):
        add[1, 32].options(synch=False)
    with pytest.raises(TypeError, match=r"`cooperative` belongs to .*LaunchConfig\(grid, block, cooperative="):
        add[1, 32].options(cooperative=True)
    with pytest.raises(TypeError, match="`sync` must be True or False"):
        add[1, 32].options(sync=0)


def test_what_a_kernel_was_compiled_to_can_be_read_in_the_block():
    kernel = bascule.compile("template <class T> __global__ void read_in_a_block(T* p) { *p = 1; }").read_in_a_block
    with bascule.stream(), bascule.device(0):
        assert "read_in_a_block" in kernel.instantiate("int").ptx
        assert bascule.compile("__global__ void another_in_a_block() {}").another_in_a_block.ptx
