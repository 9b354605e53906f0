"""`bascule.emulated.reset()`: after a fault the emulated device is usable again, without its arrays."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from child_process import PYTEST, run_python

import bascule

pytestmark = pytest.mark.usefixtures("emulated")

SOURCE = """
__device__ int total = 5;
__global__ void past(int* p) { p[-1] = 1; }
__global__ void add(int* p, int n) { p[threadIdx.x] += n + total; }
__global__ void stop(volatile int* p) { p[0] = 1; while (p[1] == 0) {} }
"""
LOST = "lost when the device was reset"


@pytest.fixture
def module() -> bascule.Module:
    return bascule.compile(SOURCE)


def zeros() -> bascule.DeviceArray:
    return bascule.to_device(np.zeros(64, "i4"))


def launch_and_wait(launch: Callable[[], object]) -> None:
    launch()
    bascule.synchronize()


def fault(module: bascule.Module) -> None:
    with pytest.raises(bascule.CudaError, match="past"):
        launch_and_wait(lambda: module.past[1, 1](zeros()))
    with pytest.raises(bascule.CudaError, match=r"or call bascule.emulated.reset\(\)"):
        zeros()


def test_after_a_fault_new_arrays_work_with_the_same_kernels(module: bascule.Module) -> None:
    fault(module)
    bascule.emulated.reset()
    x = zeros()
    module.add[1, 64](x, 1)
    assert (x.copy_to_host() == 6).all()
    fault(module)  # and a second time
    bascule.emulated.reset()
    assert (zeros().copy_to_host() == 0).all()


def test_without_a_fault_it_drops_the_arrays_as_well(module: bascule.Module) -> None:
    x = zeros()
    bascule.emulated.reset()
    with pytest.raises(bascule.CudaError, match=LOST):
        x.copy_to_host()


USES = {
    "a launch": lambda module, x: module.add[1, 64](x, 1),
    "a copy to the host": lambda module, x: x.copy_to_host(),
    "a copy from the host": lambda module, x: x.copy_from_host(np.zeros(64, "i4")),
    "a fill": lambda module, x: x.fill(0),
    "a conversion": lambda module, x: x.astype("f4"),
    "a copy": lambda module, x: x.copy(),
    "a view": lambda module, x: module.add[1, 32](x[32:], 1),
}


@pytest.mark.parametrize("use", USES)
def test_an_array_of_before_is_an_error_that_names_its_allocation(module: bascule.Module, use: str) -> None:
    x = zeros()
    fault(module)
    bascule.emulated.reset()
    with pytest.raises(bascule.CudaError, match=rf"256-byte allocation made at .*test_reset.py:\d+, which was {LOST}"):
        launch_and_wait(lambda: USES[use](module, x))
    assert (zeros().copy_to_host() == 0).all(), "the error does not cost the context"


class Foreign:
    def __init__(self, array: bascule.DeviceArray) -> None:
        self.array, self.__cuda_array_interface__ = array, dict(array.__cuda_array_interface__)


@pytest.mark.parametrize("launched_before", [False, True])
def test_an_array_of_before_as_another_librarys_is_an_error(module: bascule.Module, launched_before: bool) -> None:
    x = Foreign(zeros())
    if launched_before:
        module.add[1, 64](x, 1)
    bascule.emulated.reset()
    with pytest.raises(bascule.CudaError, match=LOST):
        module.add[1, 64](x, 1)
    with pytest.raises(bascule.CudaError, match=LOST):
        bascule.as_cuda_array(x)
    with pytest.raises(bascule.CudaError, match=LOST):
        bascule.from_cuda_array_interface(x.__cuda_array_interface__)
    assert (zeros().copy_to_host() == 0).all()


@pytest.mark.parametrize("schedule", ["threads", "lazy", "eager"])
def test_calls_of_other_threads_are_before_a_reset_or_after_it(schedule: str) -> None:
    script = Path(__file__).with_name("resets_in_threads.py")
    done = run_python(script, "1", BASCULE_EMULATED_SCHEDULE=schedule, BASCULE_EMULATED_CHECKS="memory")
    assert done.returncode == 0, done.stderr
    right, refused, wrong, faults = map(int, done.stdout.split())
    assert right > 0
    assert refused > 0
    assert (wrong, faults, done.stderr) == (0, 0, "")


def test_a_reset_in_a_signal_handler_ends_what_it_interrupts_with_an_error(module: bascule.Module) -> None:
    """With the schedule `lazy` the waiting thread itself runs the kernel, so that the reset cannot wait for its end."""
    flags = bascule.pinned_array(2, "i4")
    np.asarray(flags)[:] = 0
    module.stop.prepare()
    previous = signal.signal(signal.SIGALRM, lambda *_: bascule.emulated.reset())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(bascule.CudaError, match="reset"):
            launch_and_wait(lambda: module.stop[1, 1](flags))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        bascule.emulated.reset()
    assert (zeros().copy_to_host() == 0).all()


def test_bound_launches_and_graphs_of_before_are_errors(module: bascule.Module) -> None:
    x = zeros()
    bound = module.add[1, 64].bind(x, 1)
    bound()
    with bascule.Graph() as graph:
        module.add[1, 64](x, 1)
    graph.launch()
    bascule.synchronize()
    bascule.emulated.reset()
    with pytest.raises(bascule.CudaError, match=LOST):
        bound()
    with pytest.raises(bascule.CudaError, match="made before the device was reset: make it again"):
        graph.launch()
    assert (zeros().copy_to_host() == 0).all()


def test_streams_events_variables_and_host_memory_go_on(module: bascule.Module) -> None:
    stream, start, end = bascule.stream(), bascule.event(), bascule.event()
    pinned = bascule.pinned_array(64, "i4")
    np.asarray(pinned)[:] = 3
    module.get_global("total").fill(7)
    bascule.synchronize()
    fault(module)
    bascule.emulated.reset()
    x = bascule.to_device(np.zeros(64, "i4"), stream=stream)
    start.record(stream)
    module.add[1, 64, stream](x, 1)
    module.add[1, 64, stream](pinned, 1)
    end.record(stream)
    end.synchronize()
    assert (x.copy_to_host() == 8).all()
    assert (np.asarray(pinned) == 11).all()


def test_pending_work_is_dropped_and_what_waits_for_it_ends(module: bascule.Module) -> None:
    x, y, stream = zeros(), zeros(), bascule.stream()
    event = bascule.event()
    bascule.synchronize()
    if os.environ["BASCULE_EMULATED_SCHEDULE"] == "lazy":
        module.stop[1, 1, stream](x)
    event.record(stream)
    module.add[1, 64, stream](y, 1)
    bascule.emulated.reset()
    stream.synchronize()
    event.synchronize()
    assert event.query()
    assert stream.query()


def test_a_kernel_that_another_thread_runs_ends(module: bascule.Module) -> None:
    flags = bascule.pinned_array(2, "i4")
    seen = np.asarray(flags)
    seen[:] = 0
    module.stop.prepare()
    bascule.synchronize()
    outcome: list[BaseException | None] = []

    def work() -> None:
        try:
            module.stop[1, 1](flags)
            bascule.synchronize()
            outcome.append(None)
        except bascule.CudaError as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while not seen[0]:
        pass
    bascule.emulated.reset()
    thread.join()
    assert len(outcome) == 1
    assert (zeros().copy_to_host() == 0).all()


def test_dropped_arrays_give_their_memory_and_addresses_back() -> None:
    """Arrays lost by resets, and arrays dropped before, have more memory in total than the device."""
    program = """
import gc, bascule
past = bascule.compile("__global__ void past(int* p) { p[-1] = 1; }").past
size = 8 << 20
for number in range(5):
    kept, dropped = (bascule.device_array(size, "u1") for _ in range(2))
    try:
        past[1, 1](bascule.device_array(64, "i4"))
        bascule.synchronize()
        raise SystemExit("no fault")
    except bascule.CudaError:
        pass
    del dropped
    gc.collect()
    bascule.emulated.reset()
    if number == 4:
        bascule.device_array(4 * size, "u1")  # what was lost counts as free at once
    del kept
    gc.collect()
"""
    ended = run_python("-c", program, BASCULE_EMULATED_MEMORY="64MiB")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_faults_of_a_checked_index_are_told_anew_after_a_reset() -> None:
    source = "__global__ void k(bascule::array_view<int, 1> v, int i) { v(i) = 1; }"
    kernel = bascule.compile(source, options=bascule.CompileOptions(debug=True)).k
    for index in (64, 99):
        with pytest.raises(bascule.CudaError, match=rf"\b{index}\b"):
            launch_and_wait(lambda index=index: kernel[1, 1](zeros(), index))
        bascule.emulated.reset()


def test_a_test_that_faults_leaves_a_device_for_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        f"""
import bascule, numpy as np
module = bascule.compile({SOURCE!r})
def test_one():
    module.past[1, 1](bascule.to_device(np.zeros(4, "i4")))
    bascule.synchronize()
def test_two():
    x = bascule.to_device(np.zeros(4, "i4"))
    module.add[1, 4](x, 1)
    assert (x.copy_to_host() == 6).all()
"""
    )
    run = run_python(*PYTEST, "-p", "bascule.pytest_plugin", "test_it.py", cwd=tmp_path)
    assert "1 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert "FAILED test_it.py::test_one" in run.stdout
