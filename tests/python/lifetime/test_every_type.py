"""Tests of every type of the extension module, including future ones.

They test objects that were never initialised, pickles of every protocol, and cycles.
"""

from __future__ import annotations

import gc
import pickle
import re
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import require_tensor_maps

import bascule
from bascule import _bascule

from .processes import run

ROOT = Path(__file__).resolve().parents[3]
TYPES = {name: each for name, each in vars(_bascule).items() if isinstance(each, type)}
TYPES["function"] = type(bascule.zeros)
HAVE_GC = 1 << 14

SOURCE = "__global__ void increment(float* p) { p[threadIdx.x] += 1; }"


class Producer:
    """An array of another library, in whose `__dict__` a cycle can begin."""

    def __init__(self) -> None:
        self._array = bascule.zeros(32, "f4")

    @property
    def __cuda_array_interface__(self) -> Any:
        return self._array.__cuda_array_interface__

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._array.stream.handle


def kernel():
    return bascule.compile(SOURCE).increment.prepare()


def graph_of(array: Any) -> bascule.Graph:
    increment = kernel()
    with bascule.Graph() as graph:
        increment[1, 32](array)
    return graph


def bits_of(owner: Any) -> Any:
    bits = bascule.zeros(4, "u1")
    mask = Producer()
    described = {**bits.__cuda_array_interface__, "shape": (32,), "typestr": "|t1"}
    values = bascule.zeros(32, "f4")
    mask.__class__ = type("Mask", (), {"__cuda_array_interface__": described})
    mask.owner = owner, bits, values  # type: ignore[attr-defined]
    fields = {**values.__cuda_array_interface__, "mask": mask}
    return bascule.from_cuda_array_interface(fields).mask


# An object of each type, in a known state.
OBJECTS = {
    "BitMask": lambda: bits_of(None),
    "BoundLaunch": lambda: kernel()[1, 32].bind(bascule.zeros(32, "f4")),
    "CacheStatistics": bascule.cache.stats,
    "CompileOptions": lambda: bascule.CompileOptions(defines={"N": 4}, std="c++20"),
    "CudaArray": lambda: bascule.CudaArray((4, 4)),
    "Device": bascule.current_device,
    "DeviceArray": lambda: bascule.zeros(4, "f4"),
    "Diagnostic": lambda: diagnostic(),
    "Event": bascule.event,
    "ExportedArray": lambda: bascule.zeros(4, "f4").export(version=1),
    "Graph": bascule.Graph,
    "GraphUpdate": lambda: bascule.Graph().update(),
    "Kernel": kernel,
    "KernelAttributes": lambda: kernel().attributes,
    "LaunchConfig": lambda: bascule.LaunchConfig((2, 3), 32, shared_bytes=16),
    "Launcher": lambda: kernel()[1, 32],
    "MemoryPool": bascule.memory_pool,
    "Module": lambda: bascule.compile(SOURCE),
    "Occupancy": lambda: kernel().occupancy(32),
    "PointerAttributes": lambda: bascule.pointer_attributes(bascule.zeros(4, "f4")),
    "RawBytes": lambda: bascule.raw_bytes(b"1234"),
    "RawPointer": lambda: bascule.raw_pointer(4096),
    "Stream": bascule.stream,
    "Surface": lambda: bascule.surface(bascule.CudaArray((4, 4), surface=True)),
    "TensorMap": lambda: tensor_map(bascule.zeros(32, "f4")),
    "Texture": lambda: bascule.texture(bascule.zeros(32, "f4")),
    "_CacheDisabled": _bascule._CacheDisabled,
    "_RecordedTrace": lambda: recorded_trace(),
    "function": lambda: bascule.zeros,
}
PICKLED = {
    *("CompileOptions", "Device", "Diagnostic", "Kernel", "LaunchConfig", "Launcher", "Module"),
    "function",
}


def tensor_map(array):
    require_tensor_maps()
    return bascule.tensor_map(array, 32)


def recorded_trace():
    with bascule.trace() as trace:
        pass
    return trace._recorded


def diagnostic():
    with pytest.raises(bascule.CompileError) as caught:
        bascule.compile("__global__ void k(float* p) { *p = missing; }\n")
    return caught.value.diagnostics[0]


def test_every_type_is_tried_here():
    assert set(OBJECTS) == set(TYPES)
    for name, make in OBJECTS.items():
        assert type(make()) is TYPES[name]


# --- Never initialised ------------------------------------------------------------------------------------------------

UNINITIALISED = """
import copy, inspect, pickle
from bascule import _bascule

types = [each for each in vars(_bascule).values() if isinstance(each, type)] + [type(bascule.zeros)]
classes = [each for each in vars(bascule).values() if inspect.isclass(each)]
types += [each for each in classes if not issubclass(each, (BaseException, type))]
launcher = kernel[1, 32]
outside = [
    repr, str, hash, len, iter, bool, bytes, float, int, dir, copy.copy, copy.deepcopy, memoryview,
    bascule.to_device, bascule.as_cuda_array, bascule.zeros_like, bascule.from_dlpack, launcher, launcher.bind,
    launcher.explain, bascule.pointer_attributes, bascule.external_stream, bascule.raw_bytes, bascule.is_cuda_array,
    lambda x: bascule.zeros(2, "f4", stream=x), lambda x: kernel[1, 32, x], lambda x: kernel[x], lambda x: kernel[x, x],
    lambda x: bascule.compile(SOURCE, options=x), lambda x: array(32)[x], lambda x: array(32).__setitem__(0, x),
    lambda x: array(32).copy_to_host(out=x), lambda x: x == x, lambda x: x < x, lambda x: x + x, lambda x: x(1, 2, 3),
    lambda x: type(x).__init__(x), lambda x: x.__enter__(), lambda x: x.__exit__(None, None, None),
    lambda x: x.__setstate__(()), lambda x: x.__init__(),
    *(lambda x, protocol=protocol: pickle.loads(pickle.dumps(x, protocol)) for protocol in range(6)),
]
tried = 0
for each in types:
    for how in (lambda t: t.__new__(t), object.__new__, lambda t: super(t, t).__new__(t)):
        try:
            made = how(each)
        except TypeError:
            continue
        names = [(each, name) for name in dir(each)] + [(None, i) for i in range(len(outside))]
        for owner, name in names:
            for arguments in ((), (None,), (1, 2), (made,)):
                print(each.__name__, name, len(arguments), file=log, flush=True)
                try:
                    if owner is None:
                        outside[name](made)
                    else:
                        found = getattr(made, name)
                        if callable(found) and name not in ("__class__", "__init_subclass__", "__subclasshook__"):
                            found(*arguments)
                except Exception:
                    pass
                tried += 1
                made = how(each)
print(tried > 10_000)
"""


def test_objects_that_were_never_initialised_are_errors_wherever_they_are_used(tmp_path):
    log = tmp_path / "log"
    prelude = """
kernel = bascule.compile(SOURCE).increment
def array(n): return bascule.to_device(np.zeros(n, "f4"))
"""
    ended = run(f"SOURCE = {SOURCE!r}\nlog = open({str(log)!r}, 'w')\n" + prelude + UNINITIALISED)
    assert ended.returncode == 0, (log.read_text().splitlines()[-1:], ended.stderr[-2000:])
    assert ended.stdout.splitlines()[-1] == "True"


def test_the_error_says_what_to_do():
    for each in (bascule.Stream, bascule.DeviceArray, bascule.Kernel, bascule.Graph, bascule.LaunchConfig):
        with pytest.raises(TypeError, match="never initialised.*__new__ alone"):
            repr(each.__new__(each))


# --- Pickles ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", TYPES)
def test_every_protocol_gives_the_object_or_refuses_with_a_sentence(name, protocol):
    made = OBJECTS[name]()
    if name not in PICKLED:
        with pytest.raises(TypeError, match=f"a bascule.{name} belongs to this process and cannot be pickled: .*"):
            pickle.dumps(made, protocol)
        return
    found = pickle.loads(pickle.dumps(made, protocol))
    assert type(found) is type(made)
    assert repr(found).replace(" (not loaded yet)", "") == repr(made)


def test_a_class_that_derives_from_one_of_them_is_pickled_as_itself():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        found = pickle.loads(pickle.dumps(NamedConfig(2, 3), protocol))
        assert (type(found), found.grid) == (NamedConfig, (2, 1, 1))


class NamedConfig(bascule.LaunchConfig):
    pass


# --- Cycles -----------------------------------------------------------------------------------------------------------


def with_attribute(make):
    """Returns a function that makes a Producer whose attribute `made` is make(producer)."""

    def begin() -> Producer:
        producer = Producer()
        producer.made = make(producer)  # type: ignore[attr-defined]
        return producer

    return begin


def rebound():
    """Makes a cycle of Bascule's types only, which keeps the returned producer alive."""
    producer = Producer()
    bound = kernel()[1, 32].bind(bascule.zeros(32, "f4"))
    fields = producer.__cuda_array_interface__
    bound.rebind(bascule.from_cuda_array_interface(fields, owner=(bound, producer)))
    return producer


def launched(producer: Producer) -> Any:
    bound = kernel()[1, 32, bascule.stream()].bind(producer)
    bound()
    return bound


def graph_launched(producer: Producer) -> Any:
    graph = graph_of(producer)
    graph.launch()
    return graph


# For each type, functions that make cycles through it.
CYCLES = {
    "BitMask": [with_attribute(bits_of)],
    "BoundLaunch": [
        with_attribute(lambda p: kernel()[1, 32].bind(p)),
        with_attribute(lambda p: kernel()[1, 32].bind(p=p)),
        with_attribute(lambda p: kernel()[1, 32, p].bind(bascule.zeros(32, "f4"))),
        with_attribute(launched),
        rebound,
    ],
    "CudaArray": [with_attribute(lambda p: bascule.CudaArray(4, stream=bascule.external_stream(p)))],
    "DeviceArray": [
        with_attribute(bascule.as_cuda_array),
        with_attribute(lambda p: bascule.as_cuda_array(p)[::2]),
        with_attribute(lambda p: bascule.from_cuda_array_interface(p.__cuda_array_interface__, owner=[p])),
        with_attribute(lambda p: bascule.zeros(4, "f4", stream=bascule.external_stream(p))),
    ],
    "ExportedArray": [with_attribute(lambda p: bascule.as_cuda_array(p).export(version=2))],
    "Graph": [with_attribute(graph_of), with_attribute(graph_launched)],
    "GraphUpdate": [with_attribute(lambda p: graph_of(p).update())],
    "Launcher": [
        with_attribute(lambda p: kernel()[1, 32, p]),
        with_attribute(lambda p: kernel().forall(32, stream=p)),
        with_attribute(lambda p: kernel()[1, 32].options(streams={"p": p})),
    ],
    "Kernel": [],  # holds only launchers, which hold no Python object while a kernel remembers them
    "Module": [],  # holds only kernels
    "RawBytes": [],  # holds only Python's bytes
    "Stream": [with_attribute(bascule.external_stream)],
    "Surface": [
        with_attribute(
            lambda p: bascule.surface(bascule.CudaArray((4, 4), surface=True, stream=bascule.external_stream(p)))
        )
    ],
    "TensorMap": [with_attribute(tensor_map)],
    "Texture": [with_attribute(bascule.texture)],
    "function": [],  # lives as long as the module
}
# Types whose values hold no Python object.
VALUES = {
    *("CacheStatistics", "CompileOptions", "Device", "Diagnostic", "Event", "KernelAttributes"),
    *("LaunchConfig", "MemoryPool", "Occupancy", "PointerAttributes", "RawPointer"),
    *("_CacheDisabled", "_RecordedTrace"),
}


def test_every_type_is_collected_or_holds_nothing():
    assert {name for name, each in TYPES.items() if each.__flags__ & HAVE_GC} == set(CYCLES)
    assert set(TYPES) - set(CYCLES) == VALUES


@pytest.mark.parametrize(("name", "number"), [(name, i) for name, makers in CYCLES.items() for i in range(len(makers))])
def test_a_cycle_is_collected(name, number):
    begin = CYCLES[name][number]
    alive = [weakref.ref(begin()) for _ in range(20)]
    gc.collect()
    bascule.synchronize()  # releases what launches keep
    gc.collect()
    assert [each() for each in alive] == [None] * 20


def test_what_is_reached_from_outside_stays():
    for makers in CYCLES.values():
        for begin in makers:
            producer = begin()
            made = getattr(producer, "made", None)
            for _ in range(3):
                gc.collect()
            assert producer.__cuda_array_interface__["shape"] == (32,)
            del producer
            gc.collect()
            assert repr(made)


def test_a_pending_launch_keeps_what_the_collector_would_take():
    """The kernel has not run when the bound launch is destroyed."""
    seen = bascule.zeros(32, "f4")
    source = "__global__ void add(const float* x, float* seen) { seen[threadIdx.x] += x[threadIdx.x]; }"
    add, stream = bascule.compile(source).add, bascule.stream()

    def begin() -> weakref.ref[bascule.Event]:
        producer = Producer()
        producer._array.copy_from_host(np.full(32, 3, "f4"))
        kept = bascule.event()  # unknown to the collector, so that it does not clear references to it
        fields = producer.__cuda_array_interface__
        view = bascule.from_cuda_array_interface(fields, owner=[producer, kept])
        producer.made = add[1, 32, stream].bind(view, seen)  # type: ignore[attr-defined]
        producer.made()  # type: ignore[attr-defined]
        return weakref.ref(kept)

    kept = []
    for _ in range(20):
        kept.append(begin())
        gc.collect()
    assert all(each() is not None for each in kept)
    stream.synchronize()
    assert seen.copy_to_host().tolist() == [60] * 32
    gc.collect()
    assert all(each() is None for each in kept)


def test_every_class_whose_value_names_a_python_object_is_collected():
    """Reads the C++ struct of each py::class_ in the sources."""
    sources = [*(ROOT / "python/bindings").rglob("*.?pp")]
    if not sources:
        pytest.skip("the sources are not here")
    texts = [each.read_text() for each in sources]
    structs = {
        match[1]: match[2]
        for text in texts
        for match in re.finditer(r"^(?:struct|class) (\w+) (?:final )?\{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL)
    }
    holds = re.compile(
        r"^    (?:const )?(?:py|pybind11)::\w+ \w+(?:;| =|\{)|^    PyObject\* \w+;|<(?:CurrentStream|KnownObjects)>",
        re.M,
    )
    # If a class has a holder of Bascule's (the second template argument), the holder has the Python objects.
    bindings = r"(?:py::class_<(\w+)(?:, (\w+)<\w+>)?[^>]*>|ArrayClass) ?\w*\(\s*module, \"(\w+)\""
    bound = {(match[2] or match[1], match[3]) for text in texts for match in re.finditer(bindings, text)}
    not_pybind11s = {"BoundLaunch", "Launcher", "function"}
    assert {name for _, name in bound} == set(TYPES) - not_pybind11s
    found = {name for cpp, name in bound if holds.search(structs.get(cpp or "ArrayObject", ""))}
    assert found == set(CYCLES) - not_pybind11s
