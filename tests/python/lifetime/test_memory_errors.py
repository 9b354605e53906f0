"""Python runs out of memory at each allocation of each operation in turn: the process continues.

Excluded: `to_device`, because NumPy's `__array_interface__` crashes, and calls by keyword, because pybind11's lookup
of a keyword does.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import bascule
from bascule import _bascule

pytest.importorskip("_testcapi", reason="this Python has no _testcapi, which fails allocations")
pytestmark = pytest.mark.usefixtures("emulated")

PROGRAM = """
import faulthandler, pickle, sys
import _testcapi
import numpy as np
import bascule

faulthandler.enable()
x = bascule.to_device(np.arange(8, dtype="i4"))
image = bascule.zeros((4, 4), "f4")
module = bascule.compile('''
struct Pair { int a; float* p; };
__global__ void k(int* p, int v) { if (threadIdx.x < 8) p[threadIdx.x] = v; }
template <class T> __global__ void t(T* p, int v) { p[threadIdx.x] = v; }
__global__ void s(Pair q, int* p) { p[threadIdx.x] = q.a; }
__device__ int g;
struct alignas(64) CUtensorMap { char opaque[128]; };
__global__ void mapped(const __grid_constant__ CUtensorMap map) {}
''')
k, stream, event = module.k, bascule.stream(), bascule.event()
launcher, bound = k[1, 8], k[1, 8].bind(x, 1)
tiles = bascule.tensor_map(image, (2, 4))
pair = np.zeros((), [("a", "i4"), ("p", "u8")])[()]
options = bascule.CompileOptions(defines={"A": 1})


class Foreign:
    __cuda_array_interface__ = x.__cuda_array_interface__


class Several(dict):
    def __getitem__(self, key):
        return dict.__getitem__(self, key)


class Mapped:
    __cuda_array_interface__ = Several(x.__cuda_array_interface__)


class Image:
    __cuda_array_interface__ = image.__cuda_array_interface__


tiles_of_another = bascule.tensor_map(Image(), (2, 4))


def capture():
    with bascule.Graph() as graph:
        k[1, 8](x, 3)
    return graph


operations = {
    "stream": lambda: bascule.stream(),
    "event": lambda: bascule.event(),
    "record": lambda: event.record(stream),
    "index": lambda: x[1:3],
    "element": lambda: x[2],
    "assign": lambda: x.__setitem__(slice(0, 2), 1),
    "reshape": lambda: x.reshape(2, 4).T,
    "astype": lambda: x.astype("f4"),
    "zeros": lambda: bascule.zeros(3, "i4"),
    "full": lambda: bascule.full(3, 2.5),
    "pinned": lambda: bascule.pinned_array(3, "i4"),
    "copy_to_host": lambda: x.copy_to_host(),
    "item": lambda: x[:1].item(),
    "repr": lambda: repr(x),
    "repr of others": lambda: (repr(k), repr(stream), repr(launcher), repr(options), repr(module)),
    "interface": lambda: x.__cuda_array_interface__,
    "dlpack": lambda: x.__dlpack__(),
    "as_cuda_array": lambda: bascule.as_cuda_array(Foreign()),
    "brackets": lambda: k[1, 4],
    "brackets with a stream": lambda: k[(1, 1), (8, 1), stream, 0],
    "configuration": lambda: bascule.LaunchConfig((1, 2), 8),
    "launch": lambda: launcher(x, 2),
    "launch by keyword": lambda: launcher(p=x, v=2),
    "launch of another's": lambda: launcher(Foreign(), 2),
    "launch of a mapping": lambda: launcher(Mapped(), 2),
    "launch of a struct": lambda: module.s[1, 8](pair, x),
    "launch of a tuple": lambda: module.s[1, 8]((1, None), x),
    "launch of a template": lambda: module.t[1, 8](x, 2),
    "forall": lambda: k.forall(1)(x, 2),
    "bind": lambda: launcher.bind(x, 3),
    "bound": lambda: bound(),
    "refusal": lambda: launcher(2.5, x),
    "attribute": lambda: module.k,
    "explain": lambda: launcher.explain(x, 2),
    "global": lambda: module.get_global("g"),
    "options": lambda: bascule.CompileOptions(),
    "compile": lambda: bascule.compile("__global__ void k(int* p, int v) { p[threadIdx.x] = v; }"),
    "pickle": lambda: pickle.dumps((k, options)),
    "unpickle": lambda data=pickle.dumps((k, options)): pickle.loads(data),
    "graph": capture,
    "texture": lambda: bascule.texture(image),
    "tensor map": lambda: bascule.tensor_map(image, (2, 4)),
    "tensor map of another's": lambda: bascule.tensor_map(Image(), [2, 4]),
    "launch with a tensor map": lambda: module.mapped[1, 1](tiles),
    "launch with a tensor map of another's": lambda: module.mapped[1, 1](tiles_of_another),
    "tensor map's attributes": lambda: (repr(tiles), tiles.encoded, tiles.shape, tiles.dtype),
    "cuda_array": lambda: bascule.cuda_array(image),
    "occupancy": lambda: k.occupancy(32),
    "devices": lambda: (bascule.devices(), bascule.current_device()),
    "pool": lambda: bascule.memory_pool(),
    "cache": lambda: bascule.cache.stats(),
    "pointer": lambda: bascule.pointer_attributes(x),
    "raw": lambda: (bascule.raw_pointer(1), bascule.raw_bytes(b"1234")),
}
for name in sys.argv[1:]:
    operation = operations[name]
    try:
        operation()
    except bascule.Error:
        pass
    print(name, flush=True)
    for start in range(80):
        try:
            _testcapi.set_nomemory(start, start + 1)
            try:
                operation()
            finally:
                _testcapi.remove_mem_hooks()
        except Exception:
            pass
k[1, 8](x, 9)
assert (x.copy_to_host() == 9).all()
print("went on")
"""
OPERATIONS = PROGRAM.split("operations = {")[1].split("\n}")[0]
NAMES = [line.split('"')[1] for line in OPERATIONS.splitlines() if line.startswith('    "')]
# CPython 3.12 and 3.13 crash if they cannot allocate a generator, for example in NumPy's repr.
if sys.version_info[:2] in ((3, 12), (3, 13)):
    NAMES = [name for name in NAMES if name not in ("repr", "compile", "pickle")]


@pytest.mark.parametrize("first", range(0, len(NAMES), 10))
def test_an_operation_without_memory_raises(first: int) -> None:
    names = NAMES[first : first + 10]
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, *names],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "BASCULE_EMULATED_ARCH": "90"},  # for tensor maps
    )
    assert child.returncode == 0, child.stdout[-300:] + child.stderr[-3000:]
    assert child.stdout.endswith("went on\n")


CLASSES = [each for each in vars(_bascule).values() if isinstance(each, type)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_base_of_a_class_has_no_objects(kind: type) -> None:
    base = kind.__base__
    assert base is not None
    if base.__name__ != "pybind11_object":
        return
    for call in (base, lambda: base.__new__(base), lambda: kind.__new__(base)):
        with pytest.raises(TypeError):
            call()


def test_reduce_of_object_is_an_error_and_no_abort() -> None:
    import copyreg

    for made in (bascule.zeros(2), bascule.stream(), bascule.CompileOptions()):
        for call in (lambda made=made: object.__reduce__(made), lambda made=made: copyreg._reduce_ex(made, 0)):
            with pytest.raises(TypeError):
                call()
