"""Rules 7 to 10 for operations on arrays other than launches, if a stream is gone: nothing is begun or lost.

For each driver call failing in turn, see tests/runtime/every_call_fails_test.cpp.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from conftest import ForeignArray, traced
from raw_driver import call, current, driver
from scene import unordered

import bascule

COUNT = 32
GONE = 0xDEAD0  # not a stream
KINDS = ("record", "wait", "launch", "copy", "fill", "graph launch")

Work = Callable[[bascule.DeviceArray, bascule.DeviceArray], object]

# Operations on x, which another library computes on a destroyed stream, and y, which is ready.
READS: dict[str, Work] = {
    "copy": lambda x, y: x.copy(stream=y.stream),
    "copy of every second element": lambda x, y: x[::2].copy(stream=y.stream),
    "astype": lambda x, y: x.astype("f8", stream=y.stream),
    "copy_to_host": lambda x, y: x.copy_to_host(stream=y.stream),
    "copy_to_host of every second element": lambda x, y: x[::2].copy_to_host(stream=y.stream),
    "copy_to_host to pinned memory": lambda x, y: x.copy_to_host(
        out=bascule.pinned_array(COUNT, "f4"), stream=y.stream
    ),
    "assignment": lambda x, y: y.__setitem__(slice(None), x),
    "assignment of every second element": lambda x, y: y.__setitem__(slice(None, None, 2), x[::2]),
    "from_dlpack": lambda x, y: bascule.from_dlpack(x, stream=y.stream),
}
WRITES: dict[str, Work] = {
    "fill": lambda x, y: x.fill(1, stream=y.stream),
    "fill of every second element": lambda x, y: x[::2].fill(1, stream=y.stream),
    "fill of what no pattern holds": lambda x, y: x.view("c16").fill(1 + 2j, stream=y.stream),
    "copy_from_host": lambda x, y: x.copy_from_host(np.ones(COUNT, "f4"), stream=y.stream),
    "copy_from_host of every second element": lambda x, y: x[::2].copy_from_host(
        np.ones(COUNT // 2, "f4"), stream=y.stream
    ),
}
ALL = READS | WRITES


@pytest.fixture(autouse=True)
def nothing_is_held() -> Iterator[None]:
    yield
    bascule.synchronize()
    assert bascule._bascule._owners_held() == 0


@pytest.fixture(scope="module")
def loaded() -> None:
    """Compiles and loads the kernels of the operations, and fills the pool of events."""
    stream = bascule.stream()
    x, y = (bascule.to_device(np.ones(COUNT, "f4"), stream=stream) for _ in range(2))
    for work in ALL.values():
        work(x, y)


@pytest.fixture
def y(loaded) -> bascule.DeviceArray:
    array = bascule.to_device(np.zeros(COUNT, "f4"), stream=bascule.stream())
    array.stream.synchronize()
    return array


def on_a_stream_that_is_gone(values: np.ndarray) -> bascule.DeviceArray:
    array = bascule.to_device(values)
    bascule.synchronize()
    return bascule.as_cuda_array(ForeignArray(array, stream=GONE))


def context() -> int:
    found = ctypes.c_void_p()
    call("cuCtxGetCurrent", ctypes.byref(found))
    return found.value or 0


@pytest.mark.usefixtures("stale_handles")
@pytest.mark.parametrize("what", ALL)
def test_rule_8_an_array_whose_stream_is_gone_is_not_touched(what, y, rng):
    values = rng.random(COUNT, dtype="f4")
    x = on_a_stream_that_is_gone(values)
    before = context()
    with traced() as operations, pytest.raises(bascule.CudaError, match=hex(GONE)):
        ALL[what](x, y)
    touched = [o for o in operations if o.kind in KINDS and o.stream == GONE]
    assert touched == []
    assert context() == before
    np.testing.assert_array_equal(unordered(x).copy_to_host(stream=y.stream), values)
    np.testing.assert_array_equal(y.copy_to_host(), np.zeros(COUNT, "f4"))
    y.fill(3)  # its stream is unchanged
    assert (y.copy_to_host() == 3).all()


@pytest.mark.usefixtures("stale_handles")
@pytest.mark.parametrize("what", ALL)
def test_rule_9_what_goes_to_a_stream_that_is_gone_is_not_begun(what, y, rng):
    values = rng.random(COUNT, dtype="f4")
    x = bascule.to_device(values, stream=bascule.stream())
    x.stream.synchronize()
    target = bascule.as_cuda_array(ForeignArray(y, stream=GONE))
    before = context()
    with traced() as operations, pytest.raises(bascule.CudaError, match=hex(GONE)):
        ALL[what](x, target)
    assert [o for o in operations if o.kind in KINDS and o.stream == GONE] == []
    assert context() == before
    np.testing.assert_array_equal(x.copy_to_host(), values)
    np.testing.assert_array_equal(y.copy_to_host(), np.zeros(COUNT, "f4"))


@pytest.mark.usefixtures("stale_handles")
def test_a_stream_that_is_gone_is_named_by_whatever_was_to_happen_there(y):
    stream = bascule.as_cuda_array(ForeignArray(y, stream=GONE)).stream
    kernel = bascule.compile('extern "C" __global__ void touch(float* x) { x[0] = 1; }').touch
    kernel[1, 1](y)
    with bascule.Graph() as graph:
        kernel[1, 1](unordered(y))
    for work in (
        lambda: kernel[1, 1, stream](unordered(y)),
        lambda: graph.launch(stream),
        lambda: bascule.event().record(stream),
        lambda: stream.wait(bascule.event()),
        stream.synchronize,
        stream.query,
        lambda: stream.priority,
    ):
        with pytest.raises(bascule.CudaError, match=rf"stream {GONE:#x} \(is it still alive\?\)"):
            work()


@pytest.mark.usefixtures("stale_handles")
@pytest.mark.parametrize("what", ALL)
def test_memory_that_a_failed_operation_made_is_given_back(what, y):
    x = on_a_stream_that_is_gone(np.ones(COUNT, "f4"))
    with traced() as operations:
        for _ in range(3):
            with pytest.raises(bascule.CudaError):
                ALL[what](x, y)
        bascule.synchronize()
        gc.collect()  # the exception holds frames
        bascule.synchronize()  # frees memory that is bound to another library's stream
    made = sum(o.kind == "allocate" for o in operations)
    given_back = sum(o.kind == "free" for o in operations)
    assert made == given_back


def test_a_free_that_fails_is_told_and_leaves_everything_else_as_it_is(capfd, y):
    """Other code has freed the memory, as a double free in another library would."""
    x = bascule.to_device(np.ones(COUNT, "f4"), stream=y.stream)
    y.stream.synchronize()
    driver()
    with current(bascule.device(0)):
        call("cuMemFree_v2", ctypes.c_uint64(x.__cuda_array_interface__["data"][0]))
    before = context()
    del x
    gc.collect()
    bascule.synchronize()  # the address was exported, so that this wait for the device frees the memory
    assert "bascule: freeing memory failed: cuMemFreeAsync returned CUDA_ERROR_INVALID_VALUE" in capfd.readouterr().err
    assert context() == before
    y.fill(4)
    assert (y.copy_to_host() == 4).all()
