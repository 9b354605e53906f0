"""Arrays that name no stream: what each library is asked, and the result if the stream is unknown. The libraries are
imitated by types that are defined in modules with their names, and that have their attributes."""

from __future__ import annotations

import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child_process import printed_by, run_python
from conftest import Missing, traced

import bascule

KERNEL = """
__global__ void add(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
"""


@pytest.fixture(scope="module")
def add() -> bascule.Kernel:
    return bascule.compile(KERNEL).add.prepare()


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", bascule.UnorderedProducerWarning)
        yield


class Silent:
    """An array of a version that names no stream. Tests make new types of it, because types are remembered."""

    def __init__(self, array: bascule.DeviceArray, version: int = 2, **changes: Any) -> None:
        self.array = array
        self.fields = dict(array.export(version=version).__cuda_array_interface__)
        for key, value in changes.items():
            if value is Missing:
                del self.fields[key]
            else:
                self.fields[key] = value

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.fields


def new_type(module: str, **members: Any) -> Any:
    return type("Array", (Silent,), {"__module__": module, **members})


@contextmanager
def library(name: str, **members: Any) -> Iterator[types.ModuleType]:
    """An imported library; a real one of that name is restored."""
    before = sys.modules.get(name)
    made = types.ModuleType(name)
    for key, value in members.items():
        setattr(made, key, value)
    sys.modules[name] = made
    try:
        yield made
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before


def ones(stream: Any = None) -> bascule.DeviceArray:
    """An array whose values are ready: the test orders, or does not order, later work."""
    made = bascule.to_device(np.ones(32, "f4"), stream=stream)
    bascule.synchronize()
    return made


def ordering(action: Callable[[], object]) -> list[tuple[str, int]]:
    with traced() as operations:
        action()
    return [(o.kind, o.stream) for o in operations if o.kind in ("record", "wait", "launch", "copy", "fill")]


def around(work: str, c: bascule.Stream, p: bascule.Stream) -> list[tuple[str, int]]:
    return [("record", p.handle), ("wait", c.handle), (work, c.handle), ("record", c.handle), ("wait", p.handle)]


class NativeStream:
    def __init__(self, stream: bascule.Stream) -> None:
        self.cuda_stream = stream.handle


@pytest.mark.parametrize("version", [0, 1, 2])
def test_torch_works_on_its_current_stream(add, version):
    p, q, c = bascule.stream(), bascule.stream(), bascule.stream()
    asked = []
    current = p

    def current_stream(device: int) -> NativeStream:
        asked.append(device)
        return NativeStream(current)

    tensor = new_type("torch")
    parameter = type("Parameter", (tensor,), {"__module__": "other.model"})
    with library("torch", cuda=types.SimpleNamespace(current_stream=current_stream)):
        for made in (tensor, parameter):
            x = made(ones(), version)
            out = ones(c)
            current = p
            assert ordering(lambda x=x, out=out: add[1, 32, c](x, x, out)) == around("launch", c, p)
            current = q
            assert ordering(lambda x=x, out=out: add[1, 32, c](x, x, out)) == around("launch", c, q)
            assert ordering(lambda x=x: add[1, 32](x, x, x)) == [("launch", q.handle)]  # rule 3
            assert bascule.as_cuda_array(x).stream == q
            y = ones(c)
            assert {("record", q.handle), ("wait", q.handle)} <= set(
                ordering(lambda x=x, y=y: y.__setitem__(slice(None), x))
            )
    assert set(asked) == {0}


def test_the_null_stream_of_torch_is_the_legacy_default_stream(add):
    c = bascule.stream()
    null = types.SimpleNamespace(cuda_stream=0)
    with library("torch", cuda=types.SimpleNamespace(current_stream=lambda _device: null)):
        x = new_type("torch")(ones())
        out = ones(c)
        assert ordering(lambda: add[1, 32, c](x, x, out)) == around("launch", c, bascule.legacy_default_stream())


def test_warp_works_on_its_current_stream(add):
    p, c = bascule.stream(), bascule.stream()
    asked = []

    def get_stream(device: str) -> NativeStream:
        asked.append(device)
        return NativeStream(p)

    with library("warp", get_stream=get_stream):
        x, out = new_type("warp._src.types")(ones()), ones(c)
        assert ordering(lambda: add[1, 32, c](x, x, out)) == around("launch", c, p)
    assert set(asked) == {"cuda:0"}


@pytest.mark.parametrize("module", ["jaxlib._jax", "jaxlib.xla_extension", "jax._src.array"])
def test_jax_makes_the_stream_of_the_launch_wait(add, module):
    p, c = bascule.stream(), bascule.stream()
    ready_for: list[int] = []
    capsules: list[bool] = []

    class Capsule:
        def __del__(self) -> None:
            capsules.append(True)

    def dlpack(_self: Any, *, stream: int) -> Capsule:
        ready_for.append(stream)
        return Capsule()

    x, out = new_type(module, __dlpack__=dlpack)(ones()), ones(c)
    assert ordering(lambda: add[1, 32, c](x, x, out)) == [("launch", c.handle)]
    assert ready_for == [c.handle, c.handle]
    assert capsules == []  # both are alive: JAX keeps its memory while a capsule lives
    c.synchronize()
    assert capsules == [True, True]
    with p:
        ordering(lambda: add[1, 32](x, x, out))
    assert ready_for[2:] == [p.handle, p.handle]
    # The launch goes to the arrays' stream; the producer's stream is waited for.
    default = bascule.default_stream()
    assert ordering(lambda: add[1, 32](x, x, out)) == around("launch", default, c)
    assert ready_for[4:] == [default.handle] * 2
    with p:
        assert bascule.as_cuda_array(x).stream == p


def test_an_export_of_our_own_arrays_is_ordered_with_the_bound_stream(add):
    p, c = bascule.stream(), bascule.stream()
    x, out = ones(p).export(version=2), ones(c)
    assert ordering(lambda: add[1, 32, c](x, x, out)) == around("launch", c, p)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_unknown_type_is_warned_of_once_and_waited_for_never(add, version):
    c = bascule.stream()
    unknown = new_type("stranger.arrays")
    x, out = unknown(ones(), version), ones(c)
    with pytest.warns(bascule.UnorderedProducerWarning, match=r"stranger\.arrays\.Array.*register_producer") as seen:
        assert ordering(lambda: add[1, 32, c](x, x, out)) == [("launch", c.handle)]
    assert [warning.filename for warning in seen] == [__file__]
    other = unknown(ones(), version)
    assert ordering(lambda: add[1, 32, c](other, x, out)) == [("launch", c.handle)]
    with pytest.warns(bascule.UnorderedProducerWarning):
        bascule.as_cuda_array(new_type("stranger.arrays")(ones(), version))


def test_a_warning_that_is_an_error_leaves_the_trace_empty(add):
    x, c = new_type("stranger.arrays")(ones()), bascule.stream()
    out = ones(c)

    def refused() -> None:
        with pytest.raises(bascule.UnorderedProducerWarning):
            add[1, 32, c](x, x, out)

    assert ordering(refused) == []


def test_version_3_without_a_stream_says_that_there_is_nothing_to_wait_for(add):
    c = bascule.stream()
    asked: list[object] = []
    made = new_type("torch")
    with library("torch", cuda=types.SimpleNamespace(current_stream=asked.append)):
        for changes in ({"stream": None}, {"stream": Missing}):
            x, out = made(ones(), 3, **changes), ones(c)
            assert ordering(lambda x=x, out=out: add[1, 32, c](x, x, out)) == [("launch", c.handle)]
    assert asked == []


def test_a_registered_type_is_asked_for_its_stream(add):
    p, c = bascule.stream(), bascule.stream()
    made = new_type("stranger.arrays")
    derived = type("Derived", (made,), {})
    answers: list[Any] = [p, p.handle, NativeStream(p), None]
    bascule.register_producer(made, stream_of=lambda array: array.answer)
    for each in (made, derived):
        x, out = each(ones()), ones(c)
        for answer in answers:
            x.answer = answer
            expected = [("launch", c.handle)] if answer is None else around("launch", c, p)
            assert ordering(lambda x=x, out=out: add[1, 32, c](x, x, out)) == expected
    bascule.register_producer(made, stream_of="spec")  # replaces the first registration
    assert ordering(lambda: add[1, 32, c](x, x, out)) == [("launch", c.handle)]
    x.answer = p
    bascule.register_producer(derived, stream_of=lambda array: array.answer)
    assert ordering(lambda: add[1, 32, c](x, x, out)) == around("launch", c, p)


def test_a_registered_type_of_a_known_library_is_asked_as_registered(add):
    p, c = bascule.stream(), bascule.stream()
    made = new_type("torch")
    bascule.register_producer(made, stream_of=lambda _array: p)
    x, out = made(ones()), ones(c)
    assert ordering(lambda: add[1, 32, c](x, x, out)) == around("launch", c, p)


def test_what_a_registered_function_raises_comes_out_and_nothing_is_enqueued(add):
    made = new_type("stranger.arrays")
    x, out = made(ones()), ones()

    def fails(_array: Any) -> None:
        raise LookupError("no stream")

    for stream_of, error in ((fails, LookupError), (lambda _array: "p", TypeError)):
        bascule.register_producer(made, stream_of=stream_of)

        def refused(error: type[Exception] = error) -> None:
            with pytest.raises(error, match="stream"):
                add[1, 32](x, x, out)

        assert ordering(refused) == []


def test_what_cannot_be_registered_is_refused():
    with pytest.raises(TypeError, match="must be the type of the arrays"):
        bascule.register_producer(ones(), stream_of="spec")
    with pytest.raises(TypeError, match="`stream_of` must be a function"):
        bascule.register_producer(Silent, stream_of=1)


def test_one_launch_names_the_streams_of_its_arrays(add):
    p, q, c = bascule.stream(), bascule.stream(), bascule.stream()
    x, out = new_type("stranger.arrays")(ones()), ones(c)
    named = add[1, 32, c].options(streams={"a": p, "b": p})
    assert ordering(lambda: named(x, x, out)) == around("launch", c, p)
    assert ordering(named.bind(x, x, out)) == around("launch", c, p)
    assert ordering(lambda: add.launch(1, 32, (x, x, out), stream=c, streams={"a": p, "b": p})) == around(
        "launch", c, p
    )
    everything = add[1, 32].options(streams={"a": p, "b": p.handle, "out": NativeStream(p)})
    assert ordering(lambda: everything(x, x, x)) == [("launch", p.handle)]
    # An array that names a stream itself is ordered with both.
    both = ordering(lambda: add[1, 32, c].options(streams={"a": p})(ones(q), ones(q), out))
    assert [stream for kind, stream in both if kind == "record"] == [q.handle, p.handle, c.handle]
    with pytest.raises(ValueError, match=r"`streams` names 'z'.*add"):
        add[1, 32].options(streams={"z": p})(out, out, out)
    with pytest.raises(TypeError, match="`streams` must be a dict"):
        add[1, 32].options(streams=p)
    with pytest.raises(ValueError, match="omit it"):
        add[1, 32].options(streams={"a": None})


def test_a_template_takes_the_streams_too():
    p, c = bascule.stream(), bascule.stream()
    kernel = bascule.compile("template <class T> __global__ void set(T* p, T value) { p[threadIdx.x] = value; }").set
    x = new_type("stranger.arrays")(ones())
    named = kernel[1, 32, c].options(streams={"p": p})
    named(x, 1)
    assert ordering(lambda: named(x, 1)) == around("launch", c, p)


def test_the_specification_alone_is_configured(add):
    c = bascule.stream()
    torch, stranger = new_type("torch")(ones()), new_type("stranger.arrays")(ones())
    out = ones(c)
    bascule.config.stream_of = "spec"
    try:
        assert ordering(lambda: add[1, 32, c](torch, stranger, out)) == [("launch", c.handle)]
    finally:
        bascule.config.stream_of = "library"
    with pytest.raises(TypeError, match=r'bascule\.config\.stream_of is .nobody.: set it to "library"'):
        bascule.config.stream_of = "nobody"
    assert bascule.config.stream_of == "library"


def test_streams_that_are_not_waited_for_are_not_asked_for(add):
    c = bascule.stream()
    x, out = new_type("stranger.arrays")(ones()), ones(c)
    assert ordering(lambda: add[1, 32, c].options(sync=False)(x, x, out)) == [("launch", c.handle)]
    assert bascule.as_cuda_array(x, sync=False).stream is None
    bascule.config.cuda_array_interface_sync = False
    try:
        assert ordering(lambda: add[1, 32, c](x, x, out)) == [("launch", c.handle)]
    finally:
        bascule.config.cuda_array_interface_sync = True


def test_the_environment_says_it_from_the_start():
    program = "import bascule; print(bascule.config.stream_of)"
    for value, expected in (("spec", "spec"), ("", "library")):
        run = run_python("-c", program, BASCULE_STREAM_OF=value)
        assert run.stdout.strip() == expected, run.stderr


def test_no_library_is_imported_to_know_it(add):
    program = """
import sys, bascule
from bascule import _producers
names = {"torch", "jax", "jaxlib", "warp", "cupy", "numba"}
class Array: pass
import warnings; warnings.simplefilter("ignore")
_producers.policy_of(Array)
print(sorted(names & set(sys.modules)))
"""
    run = run_python("-c", program)
    assert run.stdout.strip() == "[]", run.stderr


NUMBA = """
import warnings; warnings.simplefilter("error", UserWarning)
import numpy as np, bascule
from numba import cuda
add = bascule.compile(
    "__global__ void add(const float* a, const float* b, float* out) "
    "{ out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }"
).add.prepare()
p, c = cuda.stream(), bascule.stream()
theirs = bascule.external_stream(p)
bound, silent = cuda.to_device(np.ones(32, "f4"), stream=p), cuda.to_device(np.ones(32, "f4"))
out = bascule.to_device(np.zeros(32, "f4"), stream=c)
for array in (bound, silent):
    add[1, 32, c](array, array, out)
    with bascule.emulated.trace() as operations:
        add[1, 32, c](array, array, out)
    print([(o.kind, {theirs.handle: "p", c.handle: "c"}[o.stream]) for o in operations])
    assert (out.copy_to_host() == 2).all()
with bascule.emulated.trace() as operations:
    add[1, 32](bound, bound, bound)
    add[1, 32, p](bound, bound, bound)
print([(o.kind, {theirs.handle: "p", c.handle: "c"}[o.stream]) for o in operations])
"""


def test_numbas_own_arrays_name_their_stream_or_that_there_is_none(tmp_path):
    pytest.importorskip("numba_cuda")
    (tmp_path / "libcuda.so.1").symlink_to(Path(bascule.__file__).with_name("libbascule_emulator.so").resolve())
    printed = printed_by(
        "-c", NUMBA, LD_LIBRARY_PATH=os.pathsep.join([str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")])
    )
    waits = [("record", "p"), ("wait", "c"), ("launch", "c"), ("record", "c"), ("wait", "p")]
    launches = [[("launch", "c")], [("launch", "p"), ("launch", "p")]]
    assert printed.splitlines() == [str(waits), *map(str, launches)]
