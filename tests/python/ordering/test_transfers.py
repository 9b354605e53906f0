"""Rules 1 to 10 for copies, fills, conversions and frees: each operation on an array waits for the array's stream, and
the stream waits for the operation."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import ForeignArray, traced
from plain_launches import ordered

import bascule

COUNT = 64
SLOW = """
__global__ void write(float* p, float value) { p[threadIdx.x] = value; }
__global__ void keep(const float* p, float* out) { out[threadIdx.x] = p[threadIdx.x]; }
"""


@pytest.fixture(scope="module")
def kernels() -> bascule.Module:
    module = bascule.compile(SLOW)
    module.write.prepare()
    module.keep.prepare()
    return module


def array(stream: Any, value: float = 1) -> bascule.DeviceArray:
    return bascule.to_device(np.full(COUNT, value, "f4"), stream=stream)


def ordering(action: Callable[[], object]) -> list[tuple[str, int]]:
    with traced() as operations:
        action()
    wanted = ("record", "wait", "launch", "copy", "fill")
    return [(operation.kind, operation.stream) for operation in operations if operation.kind in wanted]


# For each name, an operation on the array x, issued on the stream c, and the kind of the operation in the trace.
ONE_ARRAY = {
    "fill": (lambda x, c: x.fill(2, stream=c), "fill"),
    "fill of every second": (lambda x, c: x[::2].fill(2, stream=c), "launch"),
    "copy": (lambda x, c: x.copy(stream=c), "copy"),
    "copy of every second": (lambda x, c: x[::2].copy(stream=c), "launch"),
    "astype": (lambda x, c: x.astype("f8", stream=c), "launch"),
    "astype of its own type": (lambda x, c: x.astype("f4", stream=c), "copy"),
    "copy_to_host": (lambda x, c: x.copy_to_host(stream=c), "copy"),
    "copy_from_host": (lambda x, c: x.copy_from_host(np.zeros(COUNT, "f4"), stream=c), "copy"),
}


@pytest.mark.parametrize("name", ONE_ARRAY)
def test_rules_2_and_3_hold_for_what_is_done_to_one_array(name):
    action, work = ONE_ARRAY[name]
    p, c = bascule.stream(), bascule.stream()
    x = array(p)
    action(x, c)
    assert ordering(lambda: action(x, c)) == ordered(c, p, kind=work)
    assert ordering(lambda: action(x, p)) == [(work, p.handle)]
    assert ordering(lambda: action(x, None)) == [(work, p.handle)]
    bascule.synchronize()  # later work must be ordered by other means
    silent = bascule.as_cuda_array(x, sync=False)  # rules 1 and 6
    assert ordering(lambda: action(silent, c)) == [(work, c.handle)]


@pytest.mark.parametrize("step", [1, 2])
def test_rules_2_and_4_hold_for_assignments_between_arrays(step):
    p, q, c = bascule.stream(), bascule.stream(), bascule.stream()
    work = "copy" if step == 1 else "launch"
    part = slice(None, None, step)
    x, y, z = array(p), array(q), array(p)
    x[part] = y[part]
    with c:
        assert ordering(lambda: x.__setitem__(part, y[part])) == ordered(c, q, p, kind=work)
        assert ordering(lambda: x.__setitem__(part, z[part])) == ordered(c, p, kind=work)
    assert ordering(lambda: x.__setitem__(part, z[part])) == [(work, p.handle)]
    default = bascule.legacy_default_stream()
    assert ordering(lambda: x.__setitem__(part, y[part])) == ordered(default, q, p, kind=work)


def test_a_foreign_array_is_assigned_after_its_own_stream():
    p, q = bascule.stream(), bascule.stream()
    x, y = array(p), ForeignArray(array(q))
    with p:
        assert ordering(lambda: x.__setitem__(slice(None), y)) == ordered(p, q, kind="copy")


def test_a_pinned_array_that_is_filled_from_a_device_array_is_ordered_with_its_own_stream():
    p, q, c = bascule.stream(), bascule.stream(), bascule.stream()
    x, out = array(p), bascule.pinned_array(COUNT, "f4", stream=q)
    assert ordering(lambda: x.copy_to_host(out=out, stream=c)) == ordered(c, p, q, kind="copy")
    assert ordering(lambda: x.copy_to_host(out=out, stream=q)) == ordered(q, p, kind="copy")
    same = bascule.pinned_array(COUNT, "f4", stream=p)
    assert ordering(lambda: x.copy_to_host(out=same)) == [("copy", p.handle)]


def test_a_pinned_array_that_is_copied_to_the_device_is_read_after_its_own_stream():
    p, q = bascule.stream(), bascule.stream()
    x, values = array(p), bascule.pinned_array(COUNT, "f4", stream=q)
    assert ordering(lambda: x.copy_from_host(values)) == ordered(p, q, kind="copy")
    with p:
        assert ordering(lambda: bascule.to_device(values)) == ordered(p, q, kind="copy")


def test_what_a_kernel_still_writes_to_pinned_memory_is_what_is_copied(kernels):
    p, q = bascule.stream(), bascule.stream()
    x, pinned = array(p), bascule.pinned_array(COUNT, "f4", stream=q)
    np.asarray(pinned)[:] = -1
    kernels.write[1, COUNT, q](pinned, 7)
    x.copy_from_host(pinned)
    assert (x.copy_to_host() == 7).all()
    kernels.write[1, COUNT, q](pinned, 8)
    assert (bascule.to_device(pinned, stream=p).copy_to_host() == 8).all()


def test_numpy_rearranges_pinned_memory_only_after_its_stream(kernels):
    p, q = bascule.stream(), bascule.stream()
    pinned = bascule.pinned_array((8, 8), "f4", stream=q)
    np.asarray(pinned)[:] = -1
    kernels.write[1, COUNT, q](pinned.ravel(), 9)
    assert (bascule.to_device(pinned[:, ::2], stream=p).copy_to_host() == 9).all()
    x = bascule.to_device(np.zeros((8, 4), "f4"), stream=p)
    kernels.write[1, COUNT, q](pinned.ravel(), 10)
    x.copy_from_host(pinned[:, ::2])
    assert (x.copy_to_host() == 10).all()


def test_what_reads_pinned_memory_is_done_before_it_is_filled(kernels):
    p, q = bascule.stream(), bascule.stream()
    x, out, read = array(p, 5), bascule.pinned_array(COUNT, "f4", stream=q), bascule.device_array(COUNT, "f4", stream=q)
    np.asarray(out)[:] = 3
    kernels.keep[1, COUNT, q](out, read)
    x.copy_to_host(out=out, stream=p)
    p.synchronize()
    assert (np.asarray(out) == 5).all()
    assert (read.copy_to_host() == 3).all()


def test_values_on_their_way_to_a_strided_array_arrive_in_order(rng):
    p, c = bascule.stream(), bascule.stream()
    x = bascule.to_device(np.zeros((8, 8), "f4"), stream=p)
    values = rng.random((8, 4), "f4")
    x[:, ::2].copy_from_host(values, stream=c)
    result = x.copy_to_host()
    assert (result[:, ::2] == values).all()
    assert (result[:, 1::2] == 0).all()


def test_a_refused_argument_leaves_the_trace_empty():
    p, c = bascule.stream(), bascule.stream()
    x, y = array(p), bascule.device_array(3, "f4", stream=c)

    def refused() -> None:
        with pytest.raises(ValueError, match="shape"):
            x[:] = y
        with pytest.raises(ValueError, match="shape"):
            x.copy_from_host(np.zeros(3, "f4"), stream=c)
        with pytest.raises(TypeError, match="stream"):
            x.fill(1, stream="c")
        with pytest.raises(ValueError, match="out"):
            x.copy_to_host(out=np.zeros(3, "f4"), stream=c)

    assert ordering(refused) == []


class Memory:
    """An allocator that records each free with its stream, and keeps the memory."""

    def __init__(self) -> None:
        self.taken: dict[int, bascule.DeviceArray] = {}
        self.freed: list[tuple[int, int]] = []

    def allocate(self, size: int, stream: bascule.Stream) -> int:
        memory = bascule.pinned_array(size, "u1", stream=stream)
        address = int(bascule.pointer_attributes(memory).device_address)
        self.taken[address] = memory
        return address

    def deallocate(self, address: int, _size: int, stream: bascule.Stream) -> None:
        self.freed.append((address, stream.handle))

    def array(self, stream: bascule.Stream) -> bascule.DeviceArray:
        before = bascule.set_allocator((self.allocate, self.deallocate))
        try:
            return bascule.device_array(COUNT, "f4", stream=stream)
        finally:
            bascule.set_allocator(before)


@pytest.mark.parametrize(
    "use",
    [
        lambda x, c, kernels: kernels.write[1, COUNT, c](x, 1),
        lambda x, c, kernels: kernels.write[1, COUNT, c].bind(x, 1)(),
        lambda x, c, kernels: x.fill(1, stream=c),
        lambda x, c, kernels: x[::2].fill(1, stream=c),
        lambda x, c, kernels: x.copy(stream=c),
        lambda x, c, kernels: x.astype("f8", stream=c),
        lambda x, c, kernels: x.copy_from_host(np.zeros(COUNT, "f4"), stream=c),
    ],
    ids=["launch", "bound launch", "fill", "fill of every second", "copy", "astype", "copy_from_host"],
)
def test_memory_is_freed_on_its_own_stream_after_that_waits_for_its_users(kernels, use):
    p, c = bascule.stream(), bascule.stream()
    memory = Memory()
    use(memory.array(p), c, kernels)
    c.synchronize()
    memory.freed.clear()
    x = memory.array(p)
    with traced() as operations:
        use(x, c, kernels)
        del x
    assert ("wait", p.handle) in [(operation.kind, operation.stream) for operation in operations]
    assert memory.freed == []  # still in use on c
    c.synchronize()
    gc.collect()
    assert [stream for _, stream in memory.freed] == [p.handle]


def test_a_view_keeps_the_memory_of_the_array_that_it_was_made_of(kernels):
    p, c = bascule.stream(), bascule.stream()
    memory = Memory()
    x = memory.array(p)
    part = x[::2]
    del x
    part.fill(1, stream=c)
    del part
    assert memory.freed == []
    c.synchronize()
    gc.collect()
    assert len(memory.freed) == 1
