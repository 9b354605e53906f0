"""No public operation ends a graph capture that other code has begun: a table of all, for every mode and thread.

An operation works, or it raises an error that says that a capture is in progress; the capture continues either way. A
public name without a row fails, so a new operation needs one.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import itertools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from child_process import printed_by
from conftest import ForeignArray, require_tensor_maps

import bascule

from .conftest import Capture

PROGRAM = """
__device__ int counter = 3;
__global__ void shift(float* x) { x[threadIdx.x] += 1; }
template <class T> __global__ void scale(T* x, T by) { x[threadIdx.x] *= by; }
struct alignas(64) CUtensorMap { char opaque[128]; };
__global__ void look(const CUtensorMap*) {}
__global__ void sample(cudaTextureObject_t t, float* out) { out[threadIdx.x] = tex2D<float>(t, 0.5f, 0.5f); }
"""
MODES = {"global": 0, "thread-local": 1, "relaxed": 2}


class World:
    """The objects that operations use. All were used before, so that only the operation itself is new to the driver."""

    def __init__(self) -> None:
        self.stream, self.event, self.end = bascule.stream(), bascule.event(), bascule.event()
        self.host = np.arange(64, dtype="f4").reshape(8, 8)
        self.x = bascule.to_device(self.host)
        self.big = np.zeros(2 << 20, "u1")
        self.module = bascule.compile(PROGRAM)
        self.variables = bascule.compile("__device__ int counter = 3; __global__ void k() { counter = 4; }")
        self.kernel = self.module.shift.prepare()
        self.launcher = self.kernel[1, 32]
        self.bound = self.launcher.bind(self.x)
        self.rule = bascule.kernel(PROGRAM, name="shift")(lambda x: 32)
        self.rule(self.x)
        self.array = bascule.cuda_array(self.host, surface=True)
        self.texture, self.surface = bascule.texture(self.array), bascule.surface(self.array)
        with bascule.Graph() as self.graph:
            self.launcher(self.x)
        self.graph.launch()
        self.event.record(self.stream)
        self.end.record(self.stream)
        self.pool = bascule.memory_pool()
        self.numbers = itertools.count()
        self.ptx_only = bascule.CompileOptions(arch="compute_80")  # every device links it
        self.bits = bascule.to_device(np.ma.MaskedArray(self.host, self.host > 3))
        bascule.synchronize()

    def new_text(self) -> str:
        return f"__global__ void fresh_{next(self.numbers)}(float* x) {{ x[threadIdx.x] += 1; }}"

    def new_kernel(self) -> bascule.Kernel:
        module = bascule.compile(self.new_text())
        return module[module.kernels[0]]


def dropped(make: Callable[[], object]) -> None:
    """Makes an object and drops it at once."""
    make()


def shared_and_dropped() -> None:
    for _ in range(70):  # more than are freed at once
        _ = bascule.device_array(1 << 10, "f4").__cuda_array_interface__


def tensor_map(w: World) -> bascule.TensorMap:
    require_tensor_maps()
    return bascule.tensor_map(w.x, (8, 8))


def captured_in_a_graph(w: World) -> None:
    with bascule.Graph():
        w.launcher(w.x)


# Each row: a public name, with a description after a colon, and the action.
OPERATIONS: dict[str, Callable[[World], Any]] = {
    "as_cuda_array": lambda w: bascule.as_cuda_array(ForeignArray(w.x)),
    "benchmark": lambda w: bascule.benchmark(w.launcher, w.x, repeat=2),
    "compile": lambda w: bascule.compile(w.new_text()),
    "cuda_array": lambda w: bascule.cuda_array(w.host),
    "current_device": lambda w: repr(bascule.current_device()),
    "current_stream": lambda w: bascule.current_stream(),
    "default_stream": lambda w: bascule.default_stream(),
    "device": lambda w: bascule.device(0).__enter__().__exit__(None, None, None),
    "device_array": lambda w: dropped(lambda: bascule.device_array(100, "f4")),
    "device_array: larger than the pool": lambda w: dropped(lambda: bascule.device_array(48 << 20, "u1")),
    "device_array: shared and dropped": lambda w: shared_and_dropped(),
    "device_array_like": lambda w: bascule.device_array_like(w.x),
    "device_count": lambda w: bascule.device_count(),
    "devices": lambda w: bascule.devices(),
    "event": lambda w: bascule.event(),
    "external_stream": lambda w: bascule.external_stream(w.stream.handle),
    "from_cuda_array_interface": lambda w: bascule.from_cuda_array_interface(w.x.__cuda_array_interface__),
    "from_dlpack": lambda w: bascule.from_dlpack(w.x),
    "full": lambda w: bascule.full(8, 2.0),
    "get_allocator": lambda w: bascule.get_allocator(),
    "is_cuda_array": lambda w: bascule.is_cuda_array(w.x),
    "kernel": lambda w: bascule.kernel(w.new_text())(lambda x: 32)(w.x),
    "legacy_default_stream": lambda w: bascule.legacy_default_stream(),
    "link": lambda w: bascule.link([w.new_text(), "__device__ int other;"], options=w.ptx_only),
    "load_module": lambda w: bascule.load_module(w.kernel.ptx),
    "managed_array": lambda w: dropped(lambda: bascule.managed_array(100, "f4")),
    "memory_pool": lambda w: repr(bascule.memory_pool()),
    "ones": lambda w: bascule.ones(8, "f4"),
    "per_thread_default_stream": lambda w: bascule.per_thread_default_stream(),
    "pinned_array": lambda w: dropped(lambda: bascule.pinned_array(100, "f4")),
    "pointer_attributes": lambda w: bascule.pointer_attributes(w.x),
    "raw_pointer": lambda w: bascule.raw_pointer(w.x.__cuda_array_interface__["data"][0]),
    "set_allocator": lambda w: bascule.set_allocator(None),
    "stream": lambda w: dropped(bascule.stream),
    "surface": lambda w: dropped(lambda: bascule.surface(w.array)),
    "synchronize": lambda w: bascule.synchronize(),
    "tensor_map": lambda w: dropped(lambda: tensor_map(w)),
    "tensor_map: in device memory": lambda w: w.module.look[1, 1](tensor_map(w)),
    "texture": lambda w: dropped(lambda: bascule.texture(w.array)),
    "to_device": lambda w: bascule.to_device(w.host),
    "to_device: 2 MiB": lambda w: bascule.to_device(w.big),
    "trace": lambda w: traced(w),
    "zeros": lambda w: bascule.zeros(8, "f4"),
    "zeros_like": lambda w: bascule.zeros_like(w.x),
    "BitMask.copy_to_host": lambda w: w.bits.mask.copy_to_host(),
    "BoundLaunch": lambda w: w.bound(),
    "BoundLaunch.rebind": lambda w: w.launcher.bind(w.x).rebind(x=w.x),
    "CudaArray.copy_from": lambda w: w.array.copy_from(w.host),
    "CudaArray.copy_to_host": lambda w: w.array.copy_to_host(),
    "Device.attribute": lambda w: bascule.current_device().attribute("warp_size"),
    "Device.attributes": lambda w: bascule.current_device().attributes,
    "Device.free_memory": lambda w: bascule.current_device().free_memory,
    "Device.pci_bus_id": lambda w: bascule.current_device().pci_bus_id,
    "Device.stack_bytes": lambda w: bascule.current_device().stack_bytes,
    "Device.stack_bytes: set": lambda w: setattr(bascule.current_device(), "stack_bytes", 2048),
    "Device.stream_priorities": lambda w: bascule.current_device().stream_priorities,
    "Device.total_memory": lambda w: bascule.current_device().total_memory,
    "DeviceArray": lambda w: repr(w.x),
    "DeviceArray.astype": lambda w: w.x.astype("f8"),
    "DeviceArray.copy": lambda w: w.x[::2].copy(),
    "DeviceArray.copy_from_host": lambda w: w.x.copy_from_host(w.host),
    "DeviceArray.copy_to_host": lambda w: w.x.copy_to_host(),
    "DeviceArray.copy_to_host: to an array": lambda w: w.x.copy_to_host(out=np.empty_like(w.host)),
    "DeviceArray.export": lambda w: w.x.export(version=2),
    "DeviceArray.fill": lambda w: w.x.fill(1),
    "DeviceArray.item": lambda w: w.x[0, 0].item(),
    "DeviceArray.mask": lambda w: w.bits.mask,
    "DeviceArray.ravel": lambda w: w.x.ravel(),
    "DeviceArray.reshape": lambda w: w.x.reshape(64),
    "DeviceArray.transpose": lambda w: w.x.transpose(),
    "DeviceArray.view": lambda w: w.x.view("i4"),
    "Event.elapsed": lambda w: w.event.elapsed(w.end),
    "Event.elapsed_time": lambda w: w.event.elapsed_time(w.end),
    "Event.query": lambda w: w.event.query(),
    "Event.record": lambda w: bascule.event().record(w.stream),
    "Event.synchronize": lambda w: w.event.synchronize(),
    "Event.wait": lambda w: w.event.wait(w.stream),
    "Graph": captured_in_a_graph,
    "Graph.launch": lambda w: w.graph.launch(),
    "Graph.launch: for the first time": lambda w: first_launch(w),
    "Graph.update": lambda w: updated(w),
    "Kernel.attributes": lambda w: w.kernel.attributes,
    "Kernel.best_block": lambda w: w.kernel.best_block(),
    "Kernel.explain": lambda w: w.kernel.explain(w.x),
    "Kernel.forall": lambda w: w.kernel.forall(32)(w.x),
    "Kernel.get_global": lambda w: w.kernel.get_global("counter"),
    "Kernel.instantiate": lambda w: w.module.scale.instantiate("float"),
    "Kernel.launch": lambda w: w.kernel.launch(1, 32, (w.x,)),
    "Kernel.occupancy": lambda w: w.kernel.occupancy(32),
    "Kernel.overload": lambda w: w.kernel.overload("float*"),
    "Kernel.parameter_layout": lambda w: w.kernel.parameter_layout,
    "Kernel.prepare": lambda w: w.new_kernel().prepare(),
    "Kernel.set_cache_preference": lambda w: w.kernel.set_cache_preference("shared"),
    "Kernel.shared_bytes_for": lambda w: w.kernel.shared_bytes_for(1, 32),
    "LaunchRule": lambda w: w.rule(w.x),
    "LaunchRule.prepare": lambda w: w.rule.prepare(w.x),
    "Launcher": lambda w: w.launcher(w.x),
    "Launcher: a template": lambda w: w.module.scale[1, 32](w.x.astype("f8"), 2),
    "Launcher: of new code": lambda w: w.new_kernel()[1, 32](w.x),
    "Launcher: on a stream": lambda w: w.kernel[1, 32, w.stream](w.x),
    "Launcher.bind": lambda w: w.launcher.bind(w.x)(),
    "Launcher.explain": lambda w: w.launcher.explain(w.x),
    "Launcher.options": lambda w: w.launcher.options(sync=False)(w.x),
    "MemoryPool.release_threshold": lambda w: w.pool.release_threshold,
    "MemoryPool.release_threshold: set": lambda w: setattr(w.pool, "release_threshold", w.pool.release_threshold),
    "MemoryPool.reserved_bytes": lambda w: w.pool.reserved_bytes,
    "MemoryPool.trim": lambda w: w.pool.trim(),
    "MemoryPool.used_bytes": lambda w: w.pool.used_bytes,
    "Module.get_function": lambda w: w.module.get_function("shift"),
    "Module.get_global": lambda w: w.variables.get_global("counter").copy_to_host(),
    "Module.instantiate": lambda w: w.module.instantiate({"scale": ["double"]}),
    "Module.precompile": lambda w: w.module.precompile({"scale": ["float"]}, workers=1, progress=False),
    "Stream.launch_host_function": lambda w: w.stream.launch_host_function(lambda: None),
    "Stream.query": lambda w: w.stream.query(),
    "Stream.synchronize": lambda w: w.stream.synchronize(),
    "Stream.wait": lambda w: w.stream.wait(w.event),
    "Stream.wait_event": lambda w: w.stream.wait_event(w.event),
}
# Public names that use no driver: values, settings, and what is known without it.
HOST_ONLY = {
    *("__version__", "add_launch_hook", "cache", "config", "debug", "emulated", "plot_timeline", "raw_bytes"),
    *("register_producer", "require_gpu", "struct"),
    *("CudaArray", "Device", "Event", "Kernel", "MemoryPool", "Module", "Stream", "Surface", "TensorMap"),
    "Texture",
    *("ArgumentExplanation", "BenchmarkResult", "BitMask", "CompileOptions", "Diagnostic", "Explanation"),
    *("ExportedArray", "LaunchConfig", "LaunchHook", "LaunchRecord", "PointerAttributes", "Trace"),
    *(
        "Device.arch",
        "Device.compute_capability",
        "Device.emulated",
        "Device.multiprocessors",
        "Device.name",
        "Device.ordinal",
    ),
    *("DeviceArray.T", "Kernel.compile_ms", "Kernel.cubin", "Kernel.is_template", "Kernel.load_ms", "Kernel.log"),
    *("Kernel.lowered_name", "Kernel.name", "Kernel.origin", "Kernel.parameters", "Kernel.ptx", "Kernel.signature"),
    *("Kernel.source", "LaunchRule.instantiate", "LaunchRule.kernel", "LaunchRule.overload", "Module.kernels"),
    *("Module.source", "Stream.handle", "Stream.priority", "TensorMap.box", "TensorMap.bytes", "TensorMap.encoded"),
    *("TensorMap.element_strides", "TensorMap.fill", "TensorMap.im2col", "TensorMap.interleave"),
    *("TensorMap.l2_promotion", "TensorMap.swizzle"),
}
VALUES = {  # properties with these names only read a value, in every class
    *("array", "c_contiguous", "channels", "cube", "device", "dtype", "f_contiguous", "handle", "host_accessible"),
    *("itemsize", "layered", "nbytes", "ndim", "readonly", "shape", "size", "stream", "strides"),
}


def traced(w: World) -> None:
    with bascule.trace():
        w.launcher(w.x)


def first_launch(w: World) -> None:
    with bascule.Graph() as graph:
        w.launcher(w.x)
    graph.launch()


def updated(w: World) -> None:
    with w.graph.update():
        w.launcher(w.x)


def public_names() -> Iterator[str]:
    for name in bascule.__all__:
        value = getattr(bascule, name)
        if isinstance(value, type) and issubclass(value, BaseException):
            continue
        yield name
        if isinstance(value, type) and name not in HOST_ONLY - {row.partition(".")[0] for row in OPERATIONS}:
            for attribute in dir(value):
                if not attribute.startswith("_") and attribute not in VALUES:
                    yield f"{name}.{attribute}"


def test_every_public_name_has_a_row() -> None:
    rows = {row.partition(":")[0] for row in OPERATIONS}
    names = {name for name in public_names() if not isinstance(getattr(bascule, name, None), types.ModuleType)}
    assert names - rows - HOST_ONLY == set(), "add a row to OPERATIONS, or to HOST_ONLY what asks nothing of the driver"
    assert rows - set(public_names()) == set(), "rows without a public name"


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    """Another thread, always the same one."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(bascule.current_device().__repr__).result()
        yield pool


@pytest.mark.parametrize("thread", ["own", "other"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_capture_of_others_goes_on(operation: str, mode: str, thread: str, world: World, elsewhere) -> None:
    def there(function: Callable[[], Any]) -> Any:
        return function() if thread == "own" else elsewhere.submit(function).result()

    stream = bascule.stream()
    capture = there(lambda: Capture(stream, MODES[mode]))
    said = ""
    try:
        OPERATIONS[operation](world)
    except bascule.CudaError as error:
        said = str(error)
    finally:
        intact, ended = capture.intact, there(capture.end)
        if capture.graph:
            capture.destroy()
        world.stream.synchronize()
    assert intact, f"{operation} has ended the capture"
    assert ended == 0
    assert not said or "captur" in said, "an error of an operation during a capture says so"


def test_a_wait_for_the_device_is_refused_while_a_stream_of_ours_is_captured_by_others() -> None:
    stream = bascule.stream()
    capture = Capture(stream)
    with pytest.raises(bascule.CudaError, match=rf"stream {stream.handle:#x} is being captured .* goes on") as caught:
        bascule.synchronize()
    assert caught.value.code == 900
    assert capture.intact
    assert capture.end() == 0
    capture.destroy()
    bascule.synchronize()


def test_a_wait_for_the_device_is_refused_while_a_blocking_stream_that_bascule_never_saw_is_captured() -> None:
    """The driver reports this without ending the capture; about a non-blocking stream it reports nothing."""
    bascule.device_array(1)  # makes the device's context current
    bascule.synchronize()
    driver, handle = ctypes.CDLL(bascule._bascule._driver_info()["path"]), ctypes.c_void_p()
    assert driver.cuStreamCreate(ctypes.byref(handle), 0) == 0
    capture = Capture(types.SimpleNamespace(handle=handle.value))  # type: ignore[arg-type]
    try:
        with pytest.raises(bascule.CudaError, match="a blocking stream of another library is being captured"):
            bascule.synchronize()
        assert capture.intact
    finally:
        assert capture.end() == 0
        capture.destroy()
        assert driver.cuStreamDestroy_v2(handle) == 0


@pytest.mark.parametrize("name", ["PyTorch", "CuPy"])
def test_a_wait_for_the_device_is_refused_while_a_library_captures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    capturing = True
    torch = types.SimpleNamespace(is_initialized=lambda: True, is_current_stream_capturing=lambda: capturing)
    stream = types.SimpleNamespace(is_capturing=lambda: capturing)
    cupy = types.SimpleNamespace(get_current_stream=lambda: stream)
    module, cuda = {"PyTorch": ("torch", torch), "CuPy": ("cupy", cupy)}[name]
    monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(cuda=cuda))
    for wait in (bascule.synchronize, bascule.memory_pool().trim):
        with pytest.raises(bascule.CudaError, match=f"{name} is capturing a graph in this thread"):
            wait()
    capturing = False
    bascule.synchronize()


def test_memory_that_runs_out_during_a_capture_of_others_ends_no_capture() -> None:
    """Dropped memory that waits for its stream is freed for the next allocation, without a wait for the device."""
    program = """
import ctypes, threading
import bascule
driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
kept = [bascule.device_array(10 << 20, "u1") for _ in range(5)]
bascule.synchronize()
stream, graph, status = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
assert driver.cuStreamBeginCapture_v2(stream, 1) == 0
shared = [bascule.device_array(4 << 20, "u1") for _ in range(10)]
for each in shared:
    each.__cuda_array_interface__
del shared, each
def work():
    bascule.device_array(30 << 20, "u1")
    try:
        bascule.device_array(200 << 20, "u1")
    except bascule.OutOfMemoryError:
        print("out of memory")
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert driver.cuStreamIsCapturing(stream, ctypes.byref(status)) == 0
print(status.value, driver.cuStreamEndCapture(stream, ctypes.byref(graph)))
"""
    printed = printed_by("-c", program, BASCULE_DEVICE="emulated", BASCULE_EMULATED_MEMORY="100MB")
    assert printed == "out of memory\n1 0\n"
