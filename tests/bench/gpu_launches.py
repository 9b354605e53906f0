"""Launches of three arrays and a float in every way, and graphs of them, compared with a C loop of cuLaunchKernelEx.

A part of gpu_part.py. A measurement is short and ends with a wait for the device, which is not measured; otherwise a
full queue would be measured. Ways that name a grid at each launch are called as a lambda, which adds about 40 ns
(the row `lambda`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import peers
from gpu_part import Case, NotMeasuredError, Ratio, Timer, Writer, measure, need
from launches import BLOCK, GRID, SIZE, Launches, bench_native, kernel
from measuring import Round, Row
from peers import Call

import bascule
from bascule import _bascule

CALLS = 256  # fewer launches than fill a device's queue
GRAPH_LAUNCHES = {1: 64, 100: 8}  # by the number of nodes


class InterfaceOnly:
    """An array that exposes only the interface, whatever else its type offers."""

    def __init__(self, array: Any) -> None:
        self.array = array

    __cuda_array_interface__ = property(operator.attrgetter("array.__cuda_array_interface__"))


class TorchInterface(InterfaceOnly):
    __module__ = "torch"  # if an array names no stream, Bascule asks the library of its type


class Ways:
    """Each way's method returns a callable and its arguments, or a Timer (raw); or raises if it cannot be measured."""

    def __init__(self) -> None:
        self.launches = Launches()
        self.launcher = self.launches.launcher(3)
        self.kernel = self.launches.module.arrays3
        self.text = kernel(3)
        self.kept: list[Any] = []
        self.pointers = self.launches.pointers[:3]
        self.launcher(*self.launches.arguments("own"))
        bench_native.use_wall_clock()
        bench_native.load_driver(_bascule._driver_info()["path"], self.kernel.ptx, "arrays3")

    def keep(self, value: Any) -> Any:
        self.kept.append(value)
        return value

    # --- Bascule's own arrays

    def nothing(self) -> Call:
        return (lambda: None), ()

    def own(self) -> Call:
        return self.launcher, self.launches.arguments("own")

    def own_idiomatic(self) -> Call:
        k, (x, y, out, a) = self.kernel, self.launches.arguments("own")
        return (lambda: k[GRID, BLOCK](x, y, out, a)), ()

    def own_by_module(self) -> Call:
        m, (x, y, out, a) = self.launches.module, self.launches.arguments("own")
        return (lambda: m.arrays3[GRID, BLOCK](x, y, out, a)), ()

    def own_on_a_stream(self) -> Call:
        k, (x, y, out, a), s = self.kernel, self.launches.arguments("own"), self.keep(bascule.stream())
        return (lambda: k[GRID, BLOCK, s](x, y, out, a)), ()

    def forall(self) -> Call:
        k, (x, y, out, a) = self.kernel, self.launches.arguments("own")
        return (lambda: k.forall(SIZE)(x, y, out, a)), ()

    def bound(self) -> Call:
        return self.launcher.bind(*self.launches.arguments("own")), ()

    def exchange(self) -> Call:
        return self.launcher, self.launches.arguments("exchange")

    def interface(self) -> Call:
        return self.launcher, self.launches.arguments("interface")

    def foreign_stream(self) -> Call:
        """A launch on another stream with arrays that are bound to the legacy default stream."""
        return self.kernel[GRID, BLOCK, self.keep(bascule.stream())], self.launches.arguments("own")

    # --- CuPy

    def cupy_arrays(self) -> list[Any]:
        need("cupy")
        import cupy

        return [cupy.zeros(SIZE, "f4") for _ in range(3)]

    def cupy_own_way(self) -> Call:
        return self.launcher, (*self.cupy_arrays(), 2.0)

    def cupy_idiomatic(self) -> Call:
        k, (x, y, out) = self.kernel, self.cupy_arrays()
        return (lambda: k[GRID, BLOCK](x, y, out, 2.0)), ()

    def cupy_interface(self) -> Call:
        return self.launcher, (*map(InterfaceOnly, self.cupy_arrays()), 2.0)

    def cupy_foreign_stream(self) -> Call:
        return self.kernel[GRID, BLOCK, self.keep(bascule.stream())], (*self.cupy_arrays(), 2.0)

    def cupy_raw_kernel(self) -> Call:
        arrays = self.cupy_arrays()
        import cupy
        import numpy as np

        return cupy.RawKernel(self.text, "arrays3"), ((GRID,), (BLOCK,), (*arrays, np.float32(2.0)))

    def cupy_raw_kernel_idiomatic(self) -> Call:
        raw, _ = self.cupy_raw_kernel()
        import cupy

        x, y, out = self.cupy_arrays()
        return (lambda: raw((GRID,), (BLOCK,), (x, y, out, cupy.float32(2.0)))), ()

    def cupy_foreign_by_hand(self) -> Call:
        """RawKernel on another stream, ordered with the current stream before and after."""
        raw, (grid, block, arguments) = self.cupy_raw_kernel()
        import cupy

        s, before, after = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event(), cupy.cuda.Event()
        current = cupy.cuda.get_current_stream()

        def launch() -> None:
            before.record(current)
            s.wait_event(before)
            with s:
                raw(grid, block, arguments)
            after.record(s)
            current.wait_event(after)

        return launch, ()

    def cupy_add(self) -> Call:
        x, y, out = self.cupy_arrays()
        import cupy

        return (lambda: cupy.add(x, y, out=out)), ()

    # --- PyTorch and Triton

    def torch_tensors(self) -> list[Any]:
        need("torch")
        import torch

        return [torch.zeros(SIZE, device="cuda") for _ in range(3)]

    def torch_interface(self) -> Call:
        return self.launcher, (*map(TorchInterface, self.torch_tensors()), 2.0)

    def torch_exchange(self) -> Call:
        tensors = self.torch_tensors()
        if not hasattr(type(tensors[0]), "__dlpack_c_exchange_api__"):
            raise NotMeasuredError("this version of torch has no exchange table")
        return self.launcher, (*tensors, 2.0)

    def torch_idiomatic(self) -> Call:
        k, (x, y, out) = self.kernel, self.torch_tensors()
        return (lambda: k[GRID, BLOCK](x, y, out, 2.0)), ()

    def torch_foreign_stream(self) -> Call:
        return self.kernel[GRID, BLOCK, self.keep(bascule.stream())], (*self.torch_tensors(), 2.0)

    def torch_add(self) -> Call:
        x, y, out = self.torch_tensors()
        import torch

        return (lambda: torch.add(x, y, out=out)), ()

    def torch_add_new(self) -> Call:
        x, y, _ = self.torch_tensors()
        return (lambda: x + y), ()

    def torch_compiled_kernel(self) -> Call:
        x, y, out = self.torch_tensors()
        import torch

        # torch.cuda passes a Python float as a double.
        text = self.text.replace("float a)", "double a)").replace("= a +", "= (float)a +")
        compiled = torch.cuda._compile_kernel(text, "arrays3")
        arguments = [x, y, out, 2.0]
        return (lambda: compiled((GRID, 1, 1), (BLOCK, 1, 1), arguments)), ()

    def triton_kernel(self) -> tuple[Any, tuple[Any, ...]]:
        need("triton")
        arguments = (*self.torch_tensors(), 2.0)
        from triton_kernel import arrays3

        return arrays3, arguments

    def triton_run(self) -> Call:
        arrays3, arguments = self.triton_kernel()
        import torch

        compiled = arrays3[(GRID,)](*arguments, block=BLOCK)
        stream = torch.cuda.current_stream().cuda_stream
        fixed = (GRID, 1, 1, stream, compiled.function, compiled.packed_metadata, None, None, None)
        try:
            compiled.run(*fixed, *arguments, BLOCK)
        except TypeError:  # versions before 3.2 omit constants
            return compiled.run, (*fixed, *arguments)
        return compiled.run, (*fixed, *arguments, BLOCK)

    def triton_own_way(self) -> Call:
        arrays3, (x, y, out, a) = self.triton_kernel()
        return (lambda: arrays3[(GRID,)](x, y, out, a, block=BLOCK)), ()

    # --- numba-cuda and cuda.core

    def numba_of(self, arrays: list[Any], idiomatic: bool = False) -> Call:
        need("numba.cuda")
        if not idiomatic:
            return peers.numba_cuda(arrays)
        jitted = peers.numba_kernel()
        x, y, out = arrays
        return (lambda: jitted[GRID, BLOCK](x, y, out, 2.0)), ()

    def numba_arrays(self) -> list[Any]:
        need("numba.cuda")
        return peers.numba_arrays(self.launches)

    def numba_own(self) -> Call:
        return self.numba_of(self.numba_arrays())

    def numba_own_idiomatic(self) -> Call:
        return self.numba_of(self.numba_arrays(), idiomatic=True)

    def numba_with_ours(self) -> Call:
        need("numba.cuda")
        return self.numba_of(list(self.launches.arguments("own")[:3]))

    def numba_with_interfaces(self) -> Call:
        need("numba.cuda")
        return self.numba_of(self.launches.arrays["interface"][:3])

    def with_numbas(self) -> Call:
        return self.launcher, (*self.numba_arrays(), 2.0)

    def cuda_core(self) -> Call:
        need("cuda.core")
        return peers.cuda_core(self.kernel.ptx, "arrays3", self.pointers, 1)

    def cuda_core_buffers(self) -> Call:
        launch, (stream, config, compiled, *_, scalar) = self.cuda_core()
        device = peers.cuda_core_module().Device()
        made = [self.keep(device.allocate(4 * SIZE, stream=stream)) for _ in range(3)]
        return launch, (stream, config, compiled, *made, scalar)

    # --- measuring

    def raw(self) -> Timer:
        return self.waited(lambda: bench_native.time_driver_launches(CALLS, *self.pointers, 2.0, 1, GRID, BLOCK), CALLS)

    def raw_on_a_stream(self) -> Timer:
        handle = self.keep(bascule.stream()).handle
        return self.waited(
            lambda: bench_native.time_driver_launches(CALLS, *self.pointers, 2.0, handle, GRID, BLOCK), CALLS
        )

    def timer(self, way: Callable[[], Call]) -> Timer:
        call, arguments = way()
        call(*arguments)
        return self.waited(lambda: bench_native.time_calls(call, arguments, CALLS), CALLS)

    @staticmethod
    def waited(function: Callable[[], float], count: int) -> Timer:
        def take() -> float:
            taken = function() / count
            bascule.synchronize()
            return taken

        return take


class Graphs:
    """A graph of several launches of the same kernel with each library; the graph's launch is timed."""

    def __init__(self, ways: Ways, nodes: int) -> None:
        self.ways, self.nodes = ways, nodes

    def timer(self, launch: Callable[..., object], *arguments: Any) -> Timer:
        launch(*arguments)
        bascule.synchronize()
        count = GRAPH_LAUNCHES[self.nodes]
        return Ways.waited(lambda: bench_native.time_calls(launch, arguments, count), count)

    def bascule(self) -> Timer:
        stream = self.ways.keep(bascule.stream())
        arguments = self.ways.launches.arguments("own")
        self.ways.kernel.prepare()
        with bascule.Graph() as graph:
            for _ in range(self.nodes):
                self.ways.launcher(*arguments)
        return self.timer(graph.launch, stream)

    def raw(self) -> Timer:
        import ctypes

        driver = ctypes.CDLL(_bascule._driver_info()["path"])
        stream, graph, executable = (ctypes.c_void_p() for _ in range(3))

        def ok(code: int) -> None:
            if code:
                raise NotMeasuredError(f"the driver returned CUresult {code}")

        ok(driver.cuStreamCreateWithPriority(ctypes.byref(stream), 1, 0))
        ok(driver.cuStreamBeginCapture_v2(stream, 1))
        bench_native.time_driver_launches(self.nodes, *self.ways.pointers, 2.0, stream.value, GRID, BLOCK)
        ok(driver.cuStreamEndCapture(stream, ctypes.byref(graph)))
        ok(driver.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_uint64(0)))
        launch = ctypes.cast(driver.cuGraphLaunch, ctypes.c_void_p).value
        count = GRAPH_LAUNCHES[self.nodes]

        def take() -> float:
            total, code, _ = bench_native.time_sequence(count, ((launch, executable.value, stream.value),))
            ok(code)
            return total

        return Ways.waited(take, count)

    def cupy(self) -> Timer:
        raw, arguments = self.ways.cupy_raw_kernel()
        import cupy

        stream = self.ways.keep(cupy.cuda.Stream(non_blocking=True))
        raw(*arguments)
        cupy.cuda.Device().synchronize()
        with stream:
            stream.begin_capture()
            for _ in range(self.nodes):
                raw(*arguments)
            graph = stream.end_capture()
        return self.timer(graph.launch, stream)

    def torch(self) -> Timer:
        x, y, out = self.ways.torch_tensors()
        import torch

        graph = torch.cuda.CUDAGraph()
        torch.add(x, y, out=out)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            for _ in range(self.nodes):
                torch.add(x, y, out=out)
        self.ways.keep((x, y, out))
        return self.timer(graph.replay)

    def cuda_core(self) -> Timer:
        launch, (_, *arguments) = self.ways.cuda_core()
        stream = self.ways.keep(peers.cuda_core_module().Device().create_stream())
        builder = self.ways.keep(stream.create_graph_builder())
        builder.begin_building()
        for _ in range(self.nodes):
            launch(builder, *arguments)
        builder.end_building()
        return self.timer(builder.complete().launch, stream)


WHAT = {
    "raw": "cuLaunchKernelEx from a C loop",
    "raw_on_a_stream": "cuLaunchKernelEx from a C loop, on a non-blocking stream",
    "nothing": "an empty lambda",
    "bound": "Bascule, bound",
    "own": "Bascule, its own arrays",
    "own_idiomatic": "Bascule, k[g, b](own arrays)",
    "own_by_module": "Bascule, m.k[g, b](own arrays)",
    "own_on_a_stream": "Bascule, k[g, b, stream](own arrays)",
    "forall": "Bascule, k.forall(n)(own arrays)",
    "exchange": "Bascule, arrays by an exchange table in C",
    "interface": "Bascule, interfaces made in C",
    "foreign_stream": "Bascule, on another stream than its arrays",
    "cupy_own_way": "Bascule, CuPy's arrays",
    "cupy_idiomatic": "Bascule, k[g, b](CuPy's arrays)",
    "cupy_interface": "Bascule, the interface of CuPy's arrays",
    "cupy_foreign_stream": "Bascule, CuPy's arrays, on another stream",
    "cupy_raw_kernel": "CuPy, RawKernel",
    "cupy_raw_kernel_idiomatic": "CuPy, RawKernel, tuples made at each launch",
    "cupy_foreign_by_hand": "CuPy, RawKernel on another stream, 2 events by hand",
    "cupy_add": "CuPy, add with out=",
    "torch_exchange": "Bascule, PyTorch's exchange table",
    "torch_idiomatic": "Bascule, k[g, b](PyTorch's tensors)",
    "torch_interface": "Bascule, PyTorch's interface",
    "torch_foreign_stream": "Bascule, PyTorch's tensors, on another stream",
    "torch_add": "PyTorch, add with out=",
    "torch_add_new": "PyTorch, x + y",
    "torch_compiled_kernel": "PyTorch, torch.cuda._compile_kernel",
    "triton_run": "Triton, CompiledKernel.run",
    "triton_own_way": "Triton, kernel[grid](...)",
    "numba_own": "numba-cuda, its own arrays",
    "numba_own_idiomatic": "numba-cuda, k[g, b](its own arrays)",
    "numba_with_ours": "numba-cuda, Bascule's arrays",
    "numba_with_interfaces": "numba-cuda, interfaces made in C",
    "with_numbas": "Bascule, numba-cuda's arrays",
    "cuda_core": "cuda.core.launch, pointers",
    "cuda_core_buffers": "cuda.core.launch, Buffers",
}
BESIDE = ["raw", "own", "own_idiomatic"]  # also measured in every library's process
LIBRARIES: dict[str, list[str]] = {
    "bascule": [
        *("raw_on_a_stream", "nothing", "bound", "own_by_module", "own_on_a_stream", "forall"),
        *("exchange", "interface", "foreign_stream"),
    ],
    "cupy": [name for name in WHAT if name.startswith("cupy")],
    "torch": [name for name in WHAT if name.startswith("torch")],
    "triton": ["triton_run", "triton_own_way", "torch_exchange", "torch_idiomatic"],
    "cuda.core": ["cuda_core", "cuda_core_buffers"],
    "numba-cuda": [
        *("numba_own", "numba_own_idiomatic", "numba_with_ours", "numba_with_interfaces", "with_numbas", "interface"),
    ],
}
RATIOS: dict[str, list[Ratio]] = {
    "bascule": [
        Ratio("G1", "exchange", "raw", "<= 1.10"),
        Ratio("G1", "own", "raw", "<= 1.10"),
        Ratio("G1", "bound", "raw", "<= 1.10"),
        Ratio("G2", "interface", "raw", "<= 1.35"),
        *(Ratio("G1", name, "raw") for name in ("own_idiomatic", "own_by_module", "own_on_a_stream", "forall")),
    ],
    "cupy": [
        Ratio("G2", "cupy_interface", "raw", "<= 1.35"),
        Ratio("G2", "cupy_own_way", "raw", "<= 1.35"),
        Ratio("G3", "own", "cupy_raw_kernel", "<= 0.8"),
        Ratio("G3", "cupy_own_way", "cupy_raw_kernel"),
        Ratio("G3", "cupy_idiomatic", "cupy_raw_kernel_idiomatic"),
        Ratio("G3", "cupy_foreign_stream", "cupy_foreign_by_hand"),
        Ratio("G3", "cupy_own_way", "cupy_add"),
    ],
    "torch": [
        Ratio("G1", "torch_exchange", "raw", "<= 1.10"),
        Ratio("G2", "torch_interface", "raw", "<= 2.0"),
        Ratio("G3", "torch_exchange", "torch_add"),
        Ratio("G3", "torch_exchange", "torch_add_new"),
        Ratio("G3", "torch_exchange", "torch_compiled_kernel"),
        Ratio("G3", "torch_idiomatic", "torch_compiled_kernel"),
    ],
    "triton": [
        Ratio("G3", "own", "triton_run", "<= 0.75"),
        Ratio("G3", "torch_exchange", "triton_run"),
        Ratio("G3", "torch_exchange", "triton_own_way"),
        Ratio("G3", "torch_idiomatic", "triton_own_way"),
    ],
    "cuda.core": [
        Ratio("G3", "own", "cuda_core", "<= 0.65"),
        Ratio("G3", "own", "cuda_core_buffers"),
        Ratio("G3", "own_idiomatic", "cuda_core"),
    ],
    "numba-cuda": [
        Ratio("G3", "interface", "numba_with_interfaces", "<= 0.2"),
        Ratio("G3", "own", "numba_own"),
        Ratio("G3", "with_numbas", "numba_own"),
        Ratio("G3", "own", "numba_with_ours"),
        Ratio("G3", "own_idiomatic", "numba_own_idiomatic"),
    ],
}
GRAPHS = {
    "bascule": "Bascule's",
    "cupy": "CuPy's",
    "torch": "PyTorch's",
    "cuda.core": "cuda.core's",
    "raw": "a captured",
}


def added(r: Round) -> float:
    return (r["two streams"] - r["one stream"]) / (r["two streams, ordered by hand"] - r["one stream"])


def ordering(ways: Ways) -> list[Case]:
    """A launch on one stream with an array of another stream, ordered by hand and by Bascule."""
    consumer, producer = (ways.keep(bascule.stream()) for _ in range(2))
    launcher = ways.kernel[GRID, BLOCK, consumer]

    def arguments(first: bascule.Stream) -> tuple[Any, ...]:
        streams = (first, consumer, consumer)
        arrays = (ways.launches.producer(p, s.handle) for p, s in zip(ways.pointers, streams, strict=True))
        return (*arrays, 2.0)

    here, there = arguments(consumer), arguments(producer)
    handles = producer.handle, consumer.handle

    def case(name: str, passed: tuple[Any, ...], *by_hand: int) -> Case:
        function = ways.waited(lambda: bench_native.time_calls(launcher, passed, CALLS, *by_hand), CALLS)
        return Case(name, f"Bascule, interfaces made in C, {name}", lambda: function)

    def by_sequence() -> Timer:
        return ways.waited(lambda: bench_native.time_driver_ordering(CALLS, *handles), CALLS)

    return [
        case("one stream", here),
        case("two streams", there),
        case("two streams, ordered by hand", here, *handles),
        Case("2 records, 2 waits", "2 records and 2 waits from C", by_sequence),
    ]


def run(library: str, rounds: int | None, writer: Writer) -> None:
    ways = Ways()
    names = [*BESIDE, *LIBRARIES[library]]
    cases = []
    for name in names:
        method = getattr(ways, name)
        make = method if name.startswith("raw") else lambda method=method: ways.timer(method)
        cases.append(Case(name, WHAT[name], make))
    measure(cases, RATIOS[library], "ns", rounds or 41, writer)
    if library == "bascule":
        row = Row("G4", "one foreign stream / 2 records, 2 waits from C", added, "<= 1.2")
        measure(ordering(ways), [], "ns", rounds or 41, writer, row)
    for nodes in GRAPH_LAUNCHES:
        graphs = Graphs(ways, nodes)
        wanted = [name for name in GRAPHS if name in ("raw", "bascule", library)]
        text = "1 launch" if nodes == 1 else f"{nodes} launches"
        methods = {name: getattr(graphs, name.replace(".", "_")) for name in wanted}
        of = [Case(name, f"{GRAPHS[name]} graph of {text}", method) for name, method in methods.items()]
        ratios = [Ratio("G6", "bascule", name) for name in wanted if name != "bascule"]
        measure(of, ratios, "ns", min(rounds or 21, 21), writer)
