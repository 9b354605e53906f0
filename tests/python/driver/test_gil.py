"""No driver function is called with the GIL.

The driver runs host functions under a lock that all its functions take, and functions that wait for work also wait for
host functions. A host function in Python needs the GIL, so a thread that calls the driver with it may wait for ever.
"""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import pytest
from child_process import PYTEST, printed_by

from .place import prints, run_on_driver

HERE = Path(__file__).parent
THREADS = {"BASCULE_EMULATED_SCHEDULE": "threads"}
CHECK = {"BASCULE_TEST_GIL": "1"}

# The beginning of the programs: the C type of a host function, the text of a kernel, and a switch interval so long that
# Python takes the GIL from no thread.
HOST_FUNCTION = """
call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
source = "__global__ void k(float* p) { p[threadIdx.x] += 1; }"
sys.setswitchinterval(1e6)  # Python does not take the GIL away from a thread
"""


def host_function(program: str) -> str:
    return HOST_FUNCTION + textwrap.dedent(program)


# --- The emulated driver is as strict as a real one may be


def test_a_call_waits_for_the_host_function_that_runs() -> None:
    printed = prints(
        host_function("""
            stream = bascule.stream()
            waited = []

            def ask():
                driver.cuCtxGetDevice(ctypes.byref(ctypes.c_int()))

            @call
            def function(_):
                asking = threading.Thread(target=ask)
                asking.start()
                asking.join(0.3)
                waited.append(asking.is_alive())

            driver.cuLaunchHostFunc(ctypes.c_void_p(stream.handle), function, None)
            stream.synchronize()
            print(waited)
            """),
        only_emulated="an H100's driver of CUDA 13.0 let cuCtxGetDevice return meanwhile",
        **THREADS,
    )
    assert printed == "[True]\n"


def test_others_call_the_driver_while_a_thread_waits_for_a_stream() -> None:
    """If a wait held the lock, it would prevent the host function that it waits for from running."""
    printed = prints(
        host_function("""
            stream, event = bascule.stream(), bascule.event()
            calls = []
            function = call(lambda _: calls.append(1))
            for wait in stream.synchronize, event.synchronize, bascule.synchronize:
                driver.cuLaunchHostFunc(ctypes.c_void_p(stream.handle), function, None)
                event.record(stream)
                wait()
                print(len(calls))
            """),
        **THREADS,
    )
    assert printed == "1\n2\n3\n"


def test_who_issues_more_operations_than_the_queue_holds_waits() -> None:
    printed = prints(
        host_function(
            """
                stream = bascule.stream()
                kernel = bascule.compile("__global__ void hold(volatile int* go) { while (*go == 0) {} }").hold
                go, x = bascule.pinned_array(1, "i4"), bascule.zeros(32, "f4")
                np.asarray(go)[0] = 0
                bascule.synchronize()
                kernel[1, 1, stream](go)
                handle, context = ctypes.c_void_p(stream.handle), ctypes.c_void_p()
                address = ctypes.c_uint64(x.__cuda_array_interface__["data"][0])
                driver.cuStreamGetCtx(handle, ctypes.byref(context))
                issued = []

                def issue():
                    driver.cuCtxSetCurrent(context)
                    for _ in range(1100):
                        driver.cuMemsetD8Async(address, 0, 1, handle)
                        issued.append(1)

                thread = threading.Thread(target=issue)
                thread.start()
                while len(issued) < 1023:  # and the kernel
                    time.sleep(0.001)
                thread.join(0.3)
                print(len(issued))
                np.asarray(go)[0] = 1
                thread.join()
                print(len(issued))
                """
        ),
        only_emulated="how many operations fit differs: 1,022 launches on an H100",
        **THREADS,
    )
    assert printed == "1023\n1100\n"


# Calls with the GIL, by ctypes.PyDLL: such a program never ends.
@pytest.mark.parametrize(
    "function",
    [
        "cuCtxGetDevice(ctypes.byref(ctypes.c_int()))",
        "cuMemGetInfo_v2(ctypes.byref(ctypes.c_size_t()), ctypes.byref(ctypes.c_size_t()))",
        "cuMemFree_v2(ctypes.c_uint64(0))",
    ],
)
def test_a_call_with_the_gil_never_returns(function: str) -> None:
    ended = run_on_driver(
        host_function(f"""
        import faulthandler
        stream = bascule.stream()
        holding = ctypes.PyDLL("libcuda.so.1")
        called = []
        function = call(called.append)
        faulthandler.dump_traceback_later(2, exit=True)
        holding.cuLaunchHostFunc(ctypes.c_void_p(stream.handle), function, None)
        while not called:
            holding.{function}
        """),
        **THREADS,
    )
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr


# --- Bascule


def test_the_check_names_a_function_that_is_called_with_the_gil() -> None:
    ended = run_on_driver(
        "bascule.current_device(); bascule._bascule._call_with_gil(); print(bascule._bascule._calls_with_gil())",
        **CHECK,
    )
    assert (ended.stdout, ended.stderr) == (
        "{'cuCtxGetDevice': 1}\n",
        "bascule: cuCtxGetDevice was called with the GIL\n",
    )


PATHS = """
source = '''
__device__ float table[4];
__global__ void add(float* p, float f) { p[threadIdx.x] += f + table[0]; }
template <typename T> __global__ void twice(bascule::array_view<T> x) { x[threadIdx.x] *= 2; }
'''
module = bascule.compile(source)
add, twice = module.add, module.twice

def launches():
    stream = bascule.stream()
    x, y = bascule.to_device(np.ones(32, "f4"), stream=stream), bascule.to_device(np.ones(32, "f4"))
    for _ in range(130):  # beyond two markers
        add[1, 32](x, 1.0)
        add[1, 32, stream](y, 1.0)  # waits for the default stream
        twice[1, 32](x)
    bound = add[1, 32].bind(x, 1.0)
    bound()
    bound.rebind(y, 2.0)
    bound()
    add.forall(32)(x, 1.0)
    add.prepare()
    twice[1, 32].explain(y)
    for wrong in (np.ones(3), x[::2], "text"):
        try:
            add[1, 32](wrong, 1.0)
        except bascule.Error:
            pass
    try:
        add[1, 4096](x, 1.0)
    except bascule.Error:
        pass
    with stream:
        add[1, 32](x, 1.0)
        add[bascule.LaunchConfig(1, 32, cooperative=True)](y, 1.0)
    hook = bascule.add_launch_hook(before=lambda launch: None, after=lambda launch: None)
    add[1, 32](x, 1.0)
    hook.remove()
    with bascule.debug(sync=True):
        add[1, 32](x, 1.0)
    with bascule.trace():
        add[1, 32](x, 1.0)

def kernels():
    bascule.synchronize()
    add.attributes, add.occupancy(64), add.best_block(), add.ptx, add.signature, add.origin
    repr(add), repr(add[1, 32]), repr(module), repr(bascule.current_device())
    add.get_global("table").copy_from_host(np.ones(4, "f4"))
    float(module.add.get_global("table")[1])

def memory():
    x = bascule.zeros((4, 4), "f4")
    x[1:3, ::2] = 3
    x.copy(order="F"), x.astype("f8"), x.fill(1), x.T.copy(), repr(x), x.item(2, 2)
    x.copy_from_host(np.ones((4, 4), "f4"))
    for kind in bascule.pinned_array, bascule.managed_array:
        y = kind((4, 4), "f4")
        x.copy_to_host(out=y)
        x.copy_to_host(out=y, stream=bascule.stream())
        bascule.synchronize()
        bascule.pointer_attributes(y)
        bascule.to_device(y.T)
    bascule.device_array_like(x), bascule.ones(3, "f4"), bascule.full(3, 2.0)
    try:
        bascule.device_array(1 << 50, "f4")
    except bascule.OutOfMemoryError:
        pass
    try:
        bascule.pointer_attributes(8)
    except ValueError:
        pass
    pool = bascule.zeros(1024, "f4")
    def allocate(nbytes, stream):
        return pool.__cuda_array_interface__["data"][0]
    bascule.set_allocator((allocate, lambda address, nbytes, stream: None))
    bascule.zeros(32, "f4")
    bascule.set_allocator(None)

def streams():
    stream, event, end = bascule.stream(priority=-1), bascule.event(), bascule.event()
    event.record(stream)
    add[1, 32, stream](bascule.zeros(32, "f4"), 1.0)
    end.record(stream)
    bascule.default_stream().wait(event)
    bascule.external_stream(stream.handle).wait_event(event)
    event.wait()
    stream.query(), event.query(), stream.priority, repr(stream), repr(event)
    stream.synchronize(), end.synchronize(), event.elapsed(end)
    device = bascule.current_device()
    device.stream_priorities, device.attributes, device.pci_bus_id, device.total_memory, device.free_memory
    bascule.device(0), bascule.current_stream()
    try:
        bascule.event().elapsed(end)
    except bascule.Error:
        pass

def graphs():
    x, y, stream = bascule.zeros(32, "f4"), bascule.zeros(32, "f4", stream=bascule.stream()), bascule.stream()
    twice.prepare(x)
    with bascule.Graph() as graph:
        add[1, 32](x, 1.0)
        add[1, 32](y, 1.0)
        try:
            x.copy_to_host()
        except bascule.Error:
            pass
    graph.launch(), graph.launch(stream), len(graph), repr(graph)
    with graph.update():
        add[1, 32](x, 2.0)
        add[1, 32](y, 2.0)
    graph.launch()
    try:
        with graph.update():
            raise KeyError
    except KeyError:
        pass
    bascule.synchronize()

def exchange():
    class Foreign:
        def __init__(self, array):
            self.array = array
            self.__cuda_array_interface__ = array.__cuda_array_interface__
    x, pinned = bascule.zeros(32, "f4"), bascule.pinned_array(32, "f4")
    add[1, 32](Foreign(x), 1.0)
    add[1, 32](Foreign(pinned), 1.0)
    bascule.as_cuda_array(Foreign(x)).copy_to_host()
    np.from_dlpack(pinned)
    view = bascule.from_dlpack(x)
    reader = bascule.stream()
    x.__dlpack__(stream=reader.handle), x.__dlpack_device__()
    add[1, 32](view, 1.0)

for run in (launches, kernels, memory, streams, graphs, exchange):
    run()
    gc.collect()
bascule.synchronize()
del module, add, twice
gc.collect()
print(bascule._bascule._calls_with_gil())
"""


@pytest.mark.parametrize("device", ["cuda", "emulated"])
def test_no_path_calls_the_driver_with_the_gil(device: str) -> None:
    assert prints(PATHS, **CHECK, BASCULE_DEVICE=device) == "{}\n"


def test_a_launch_lets_a_host_function_take_the_gil() -> None:
    printed = prints(
        host_function("""
            kernel, x = bascule.compile(source).k, bascule.zeros(32, "f4")
            for launch in (lambda: kernel[1, 32](x)), kernel[1, 32].bind(x):
                called = []
                function = call(called.append)
                launch()
                driver.cuLaunchHostFunc(None, function, None)
                while not called:
                    launch()
            print("called")
            """),
        **THREADS,
    )
    assert printed == "called\n"


@pytest.mark.parametrize(
    "last",
    [
        "x = bascule.zeros(32, 'f4')",
        "x = bascule.pinned_array(32, 'f4')",
        "x = bascule.managed_array(32, 'f4')",
        "x = bascule.stream()",
        "x = bascule.event()",
        "x = bascule.compile(source)\nx.k.prepare()",
    ],
)
def test_an_object_that_goes_waits_for_a_host_function_without_the_gil(last: str) -> None:
    """On the emulated device, a free of device or pinned memory and an unload once never returned."""
    program = f"""
stream, calls = bascule.stream(), []
function = call(calls.append)
{last}
driver.cuLaunchHostFunc(ctypes.c_void_p(stream.handle), function, None)
del x
gc.collect()
stream.synchronize()
print(len(calls))
"""
    assert prints(host_function(program), **THREADS) == "1\n"


# --- The suite, with a host function in flight all the time

SOME = ["graphs/test_graph.py", "lifetime/test_owners.py"]
MORE = ["launches", "graphs", "arrays", "lifetime/test_owners.py", "lifetime/test_reset.py"]


LONG = pytest.mark.skipif("LONG_TESTS" not in os.environ, reason="takes half a minute: .ci/run --long")


@pytest.mark.parametrize("tests", [SOME, pytest.param(MORE, marks=[pytest.mark.slow, LONG])], ids=["some", "more"])
def test_the_suite_runs_while_a_host_function_waits_for_the_gil(tests: list[str]) -> None:
    root = HERE.parent
    paths = os.pathsep.join([str(root), *filter(None, sys.path)])
    command = [*PYTEST, "-p", "driver.host_functions", *tests]
    printed_by(*command, timeout=900, cwd=root, PYTHONPATH=paths, **THREADS, **CHECK)
