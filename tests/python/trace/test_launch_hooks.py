"""Launch hooks: which launches call them, their arguments, and the effect of their exceptions."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from conftest import traced

import bascule

SOURCE = """
template <class T> __global__ void scale(T* p, float f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= f;
}
__global__ void twice(float* p) { p[threadIdx.x] *= 2; }
"""


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    module = bascule.compile(SOURCE)
    module.twice.prepare()
    return module


@pytest.fixture
def x() -> bascule.DeviceArray:
    return bascule.to_device(np.ones(64, "f4"))


def test_a_hook_is_told_of_the_launch(module, x):
    stream = bascule.stream()
    seen = []
    with bascule.add_launch_hook(before=seen.append):
        module.scale[(2, 1), 32, stream, 16](x, 2, 64)  # the place
    (record,) = seen
    assert isinstance(record, bascule.LaunchRecord)
    assert record.kernel == "scale<float>"
    assert record.signature == "void scale<float>(float* p, float f, int n)"
    assert (record.grid, record.block, record.shared_bytes) == ((2, 1, 1), (32, 1, 1), 16)
    assert record.stream == stream
    assert record.arguments == ("p", "f", "n")
    assert "test_launch_hooks.py:" in record.place
    assert "# the place" in record.place


@bascule.kernel("__global__ void add_one(float* p, int n) { for (auto i : bascule::grid_stride(n)) p[i] += 1; }")
def add_one(p, n):
    return n


def launch_in_every_way(module: bascule.Module, x: bascule.DeviceArray) -> list[str]:
    module.twice[1, 64](x)
    module.twice.launch(1, 64, (x,))
    module.twice[1, 64].bind(x)()
    module.twice.forall(64)(x)
    add_one(x, 64)
    module.scale[2, 32](x, 0.5, 64)
    with bascule.Graph() as graph:
        module.twice[1, 64](x)
    graph.launch()
    return ["twice"] * 4 + ["add_one", "scale<float>", "twice"]


def test_all_launches_call_hooks_before_and_after(module, x):
    launch_in_every_way(module, x)  # a capture forbids loading
    before, after = [], []
    with bascule.add_launch_hook(before=lambda launch: before.append(launch.kernel)):
        with bascule.add_launch_hook(after=lambda launch: after.append(launch.kernel)):
            expected = launch_in_every_way(module, x)
        module.twice[1, 64](x)
    assert after == expected
    assert before == [*expected, "twice"]


def test_kernels_of_bascule_itself_and_launches_of_hooks_call_none(module, x):
    calls = []

    def before(launch: bascule.LaunchRecord) -> None:
        calls.append(launch.kernel)
        module.twice[1, 64](x)

    with bascule.add_launch_hook(before=before):
        x[::2] = 3  # by a kernel
        x.astype("i4")
        module.twice[1, 64](x)
    assert calls == ["twice"]
    np.testing.assert_array_equal(x.copy_to_host(), np.tile(np.float32([12, 4]), 32))


def test_hooks_are_called_in_order_and_afterwards_in_the_opposite_order(module, x, emulated):
    order = []
    hooks = [
        bascule.add_launch_hook(
            before=lambda _, i=i: order.append(f"before {i}"), after=lambda _, i=i: order.append(f"after {i}")
        )
        for i in (1, 2)
    ]
    module.twice[1, 64](x)
    assert order == ["before 1", "before 2", "after 2", "after 1"]
    hooks[0].remove()
    hooks[0].remove()
    module.twice[1, 64](x)
    assert order[4:] == ["before 2", "after 2"]
    hooks[1].remove()
    module.twice[1, 64](x)
    assert len(order) == 6
    assert repr(hooks[1]) == "<bascule.LaunchHook removed>"


def test_before_runs_before_the_first_operation_and_after_behind_the_last(module):
    front, back = bascule.stream(), bascule.stream()
    x = bascule.to_device(np.ones(64, "f4"), stream=front)
    module.twice[1, 64, back](x)
    counts = []
    count = bascule._bascule._trace_length
    with (
        bascule.add_launch_hook(before=lambda _: counts.append(count()), after=lambda _: counts.append(count())),
        traced() as operations,
    ):
        module.twice[1, 64, back](x)
    assert [operation.kind for operation in operations] == ["record", "wait", "launch", "record", "wait"]
    assert counts == [0, 5]


def test_an_exception_before_refuses_the_launch_and_nothing_is_issued(module, x):
    def refuse(launch: bascule.LaunchRecord) -> None:
        raise PermissionError(f"no {launch.kernel}")

    after = []
    bound = module.twice[1, 64].bind(x)
    with bascule.add_launch_hook(before=refuse, after=after.append), traced() as operations:
        with pytest.raises(PermissionError, match="no twice"):
            module.twice[1, 64](x)
        with pytest.raises(PermissionError, match="no twice"):
            bound()
    assert operations == []
    assert after == []
    np.testing.assert_array_equal(x.copy_to_host(), np.ones(64, "f4"))


def test_a_refused_launch_keeps_no_array(module):
    import weakref

    class Owner:
        def __init__(self, array: bascule.DeviceArray) -> None:
            self.__cuda_array_interface__ = array.__cuda_array_interface__
            self.array = array

    owner = Owner(bascule.to_device(np.ones(64, "f4")))
    gone = weakref.ref(owner)
    with bascule.add_launch_hook(before=lambda _: 1 / 0), pytest.raises(ZeroDivisionError):
        module.twice[1, 64](owner)
    del owner
    assert gone() is None


def test_an_exception_afterwards_is_raised_and_the_launch_stands(module, emulated):
    front, back = bascule.stream(), bascule.stream()
    x = bascule.to_device(np.ones(64, "f4"), stream=front)
    others = []
    with (
        bascule.add_launch_hook(after=others.append),
        bascule.add_launch_hook(after=lambda _: 1 / 0),
        pytest.raises(ZeroDivisionError),
    ):
        module.twice[1, 64, back](x)
    assert len(others) == 1
    np.testing.assert_array_equal(x.copy_to_host(), np.full(64, 2, "f4"))  # read on `front`, which the launch made wait


def test_a_launch_that_checks_alone_calls_none(module, x):
    calls = []
    with bascule.add_launch_hook(before=calls.append):
        module.twice.forall(0)(x)
        with pytest.raises(TypeError):
            module.twice[1, 64](x, 3)
        module.twice[1, 64].explain(x)
    assert calls == []


def test_hooks_run_on_the_thread_that_launches(module):
    def work() -> None:
        stream = bascule.stream()
        x = bascule.to_device(np.ones(64, "f4"), stream=stream)
        for _ in range(20):
            module.twice[1, 64](x)
        stream.synchronize()
        mine.append(threading.get_ident())

    seen, mine = [], []
    threads = [threading.Thread(target=work) for _ in range(4)]
    with bascule.add_launch_hook(before=lambda _: seen.append(threading.get_ident())):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(seen) == sorted(mine * 20)


def test_hooks_and_a_trace_go_together(module, x):
    seen = []
    with bascule.add_launch_hook(after=seen.append), bascule.trace() as trace:
        module.twice[1, 64](x)
    assert len(seen) == 1
    assert [event["name"] for event in trace.events if event.get("cat") == "launch"] == ["launch twice"]


def test_what_is_not_a_function_is_refused():
    with pytest.raises(TypeError, match="`after` must be a function that takes a LaunchRecord"):
        bascule.add_launch_hook(after=3)
    with pytest.raises(TypeError, match="give `before`, `after` or both"):
        bascule.add_launch_hook()
