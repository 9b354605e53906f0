"""`kernel[grid, block](...)` in a loop: remembered launchers and kernels behave like new ones."""

from __future__ import annotations

import enum
import gc
import os
import pickle
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from child_process import printed_by
from hypothesis import given, settings
from hypothesis import strategies as st

import bascule

SOURCE = """
__global__ void count(int* blocks, int* threads, int* shared) {
    extern __shared__ char bytes[];
    unsigned size;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
    if (threadIdx.x + threadIdx.y + threadIdx.z == 0) atomicAdd(blocks, 1);
    atomicAdd(threads, 1);
    *shared = size;
}
__global__ void add(float* p, float value) { p[threadIdx.x] += value; }
"""
PYTHON = Path(__file__).resolve().parents[1]
KNOWN = 16  # launchers that a kernel remembers, and kernels that a module remembers
BLOCKS = st.integers(1, 40)


class Size(enum.IntEnum):
    FOUR = 4


class Geometry(NamedTuple):
    x: int
    y: int


class Index:
    def __index__(self) -> int:
        return 4


@pytest.fixture
def module() -> bascule.Module:
    return bascule.compile(SOURCE)


def zeros() -> bascule.DeviceArray:
    return bascule.to_device(np.zeros(32, "f4"))


def launcher_at_one_place(kernel: bascule.Kernel, key: Any) -> bascule.Launcher:
    return kernel[key]


def forall_at_one_place(kernel: bascule.Kernel, *arguments: Any, **named: Any) -> bascule.Launcher:
    return kernel.forall(*arguments, **named)


def outcome(make: Callable[[], bascule.Launcher]) -> tuple[str, ...]:
    """Returns the launcher's description, or the error of making it."""
    try:
        facts = bascule._bascule._launcher_facts(make())
    except Exception as error:
        return type(error).__name__, str(error)
    return tuple(str(facts[name]) for name in ("config", "work", "shared_bytes", "stream", "peer", "sync"))


def launchers_alive() -> int:
    gc.collect()
    return sum(type(each) is bascule.Launcher for each in gc.get_objects())


# --- The same as new ones ---------------------------------------------------------------------------------------------

FOUR_AS = [4, np.int32(4), np.int64(4), Size.FOUR, Index(), (4,), (4, 1), (4, 1, 1), [4], Geometry(4, 1)]
OTHERS = [True, 4.0, np.float32(4), "4", None, 0, -4, 2**32, 2**64, (), (4, 1, 1, 1), (0,), (4, True), (4, 0), object]
KEYS = [
    *[(first, 4) for first in FOUR_AS + OTHERS],
    *[(4, second) for second in FOUR_AS + OTHERS],
    *[(4, 4, None, shared) for shared in [*FOUR_AS, *OTHERS]],
    *[(4, 4, stream) for stream in (None, 0, 1, 2, True, 4, 1.0, "s", -1, 2**64, object)],
    *[(), (4,), (4, 4, None, 0, 0), 4, None, "44", [4, 4], Geometry(4, 4), np.array([4, 4])],
    *[bascule.LaunchConfig(4, 4), (bascule.LaunchConfig(4, 4), None), slice(4, 4), ...],
]


@pytest.mark.parametrize("known", [(4, 4), ((4, 1, 1), (4, 1)), (4, 4, None), (4, 4, None, 4)], ids=repr)
@pytest.mark.parametrize("number", range(len(KEYS)))
def test_every_form_of_a_key_means_the_same_beside_a_known_launcher(module, known, number):
    kernel = module.count
    for _ in range(2):
        launcher_at_one_place(kernel, known)
    for _ in range(2):
        found = outcome(lambda: launcher_at_one_place(kernel, KEYS[number]))
        assert found == outcome(lambda: launcher_at_one_place(module["count"], KEYS[number]))


@pytest.mark.parametrize("work", [*FOUR_AS, *OTHERS])
def test_every_form_of_work_means_the_same_beside_a_known_launcher(module, work):
    kernel = module.count
    for _ in range(2):
        for known in (4, (4,), (4, 1), (4, 1, 1)):
            forall_at_one_place(kernel, known)
    for named in ({}, {"shared_bytes": 0}, {"shared_bytes": 8}, {"stream": None}, {"stream": bascule.stream()}):
        found = outcome(lambda named=named: forall_at_one_place(kernel, work, **named))
        assert found == outcome(lambda named=named: forall_at_one_place(module["count"], work, **named))


def test_forall_refuses_what_it_did_not_take(module):
    for arguments, named in ([(), {}], [(4, 4), {}], [(4,), {"threads": 1}], [(), {"stream": None}]):
        with pytest.raises(TypeError, match="forall"):
            module.count.forall(*arguments, **named)
    assert outcome(lambda: module.count.forall(work=4)) == outcome(lambda: module["count"].forall(4))
    with pytest.raises(TypeError):
        bascule.Kernel.forall(4, 4)  # type: ignore[arg-type]


extents = st.one_of(BLOCKS, st.lists(BLOCKS, min_size=1, max_size=3).map(tuple))
keys = st.tuples(extents, extents) | st.tuples(extents, extents, st.none(), st.integers(0, 2**33))


@settings(deadline=None, max_examples=200)
@given(st.lists(keys, min_size=1, max_size=30))
def test_keys_in_any_order_mean_what_they_mean_alone(several):
    module = bascule.compile(SOURCE)
    kernel = module.count
    for key in several * 2:
        found = outcome(lambda key=key: launcher_at_one_place(kernel, key))
        assert found == outcome(lambda key=key: launcher_at_one_place(module["count"], key))


def test_launches_have_their_own_geometry(module):
    kernel = module.count
    for _ in range(3):
        for grid, block, shared in [(1, 32, 0), (2, 32, 0), ((2, 3), (4, 2, 2), 0), (2, 32, 64), ((1, 1, 4), 8, 16)]:
            seen = [bascule.to_device(np.zeros(1, "i4")) for _ in range(3)]
            kernel[grid, block, None, shared](*seen)
            counted = [int(each.copy_to_host()[0]) for each in seen]
            assert counted == [np.prod(grid), np.prod(grid) * np.prod(block), shared]


def test_forall_covers_its_work_each_time(module):
    for _ in range(3):
        for work in (1, 100, 5000, (7, 9), (3, 4, 5)):
            seen = [bascule.to_device(np.zeros(1, "i4")) for _ in range(3)]
            module.count.forall(work)(*seen)
            assert seen[1].copy_to_host()[0] >= np.prod(work)
        with pytest.raises(bascule.ArgumentError):
            module.count.forall(-1)
    module.count.forall(0)(*seen)


def test_a_key_is_looked_for_where_it_is_written(module):
    """Python passes `k[4, 4]` and `k[(4, 4)]` the same key: only the second is refused, each time."""
    kernel = module.count
    for _ in range(3):
        kernel[4, 4]
        with pytest.raises(bascule.ArgumentTypeError, match="one tuple in the brackets"):
            kernel[(4, 4)]


def test_an_error_of_the_first_call_is_raised_by_the_next_too(module):
    for _ in range(3):
        with pytest.raises(bascule.ArgumentError, match="block"):
            module.add[1, 4096](zeros(), 1)


@pytest.mark.usefixtures("emulated")
def test_a_fault_names_the_line_that_launched(module):
    kernel = bascule.compile("__global__ void past(int* p, int i) { p[i] = 1; }").past
    x = bascule.to_device(np.zeros(32, "i4"))
    for _ in range(3):
        kernel[1, 1](x, 0)
    kernel[1, 1](x, 1 << 20)  # the same key
    with pytest.raises(bascule.CudaError, match=r"kernel\[1, 1\]\(x, 1 << 20\)  # the same key") as caught:
        bascule.synchronize()
    assert "(x, 0)" not in str(caught.value)
    bascule.emulated.reset()


@pytest.mark.usefixtures("emulated")
def test_without_a_stream_the_current_context_chooses_the_device_each_time():
    """The process has two devices; no `with device:` and no `with stream:` has been used."""
    program = """
import bascule
from conftest import traced
from raw_driver import current
kernel, devices = bascule.compile("__global__ void nothing() {}").nothing, [bascule.device(0), bascule.device(1)]
for _ in range(3):
    for device in devices:
        for find in (lambda: kernel[1, 1], lambda: kernel.forall(1), lambda: kernel[1, (1, 1)]):
            with current(device), traced() as operations:
                find()()
            print(next(o.device for o in operations if o.kind == "launch"), end=" ")
"""
    paths = [str(PYTHON), str(PYTHON / "ordering"), *sys.path]
    printed = printed_by("-W", "ignore", "-c", program, BASCULE_EMULATED_DEVICES="2", PYTHONPATH=os.pathsep.join(paths))
    assert printed.split() == ["0", "0", "0", "1", "1", "1"] * 3


# --- Streams ----------------------------------------------------------------------------------------------------------


def launch_on(kernel: bascule.Kernel, stream: bascule.Stream, x: bascule.DeviceArray) -> None:
    kernel[1, 32, stream](x, 1)


def test_a_known_launcher_keeps_no_stream_alive(module):
    kernel, x = module.add, zeros()
    ended = []
    for _ in range(40):
        stream = bascule.stream()
        for _ in range(3):
            launch_on(kernel, stream, x)
        ended.append(weakref.ref(stream))
        del stream
        assert ended[-1]() is None
    assert x.copy_to_host().tolist() == [120] * 32
    bascule.synchronize()


@pytest.mark.parametrize("end", ["stream", "replaced", "kernel"])
def test_a_launcher_that_the_caller_keeps_keeps_its_stream(end):
    """The launcher outlives the stream's last other owner, its place in the kernel's table, or the kernel."""
    kernel, x = bascule.compile(SOURCE)["add"], zeros()
    stream = bascule.stream()
    handle = stream.handle
    kept = [launcher_at_one_place(kernel, (1, 32, stream)) for _ in range(2)]
    if end == "replaced":
        for i in range(1, 200):
            launcher_at_one_place(kernel, (i, 32))
    if end == "kernel":
        del kernel
    del stream
    gc.collect()
    others = [bascule.stream() for _ in range(20)]  # one of them would get its handle if that were free
    assert handle not in [other.handle for other in others]
    for launcher in kept:
        launcher(x, 1)
    assert (x.copy_to_host() == 2).all()
    bound = kept[0].bind(x, 1)
    bound()
    assert bound.__class__ is bascule.BoundLaunch
    assert kept[0].explain(x, 1).stream == kept[1].options(sync=False).explain(x, 1).stream
    assert f"{handle:#x}" in str(kept[0].explain(x, 1))
    bascule.synchronize()


def test_options_and_bound_launches_of_a_known_launcher_keep_its_stream(module):
    x, stream = zeros(), bascule.stream()
    handle = stream.handle
    launcher_at_one_place(module.add, (1, 32, stream))
    options = launcher_at_one_place(module.add, (1, 32, stream)).options(sync=True)
    bound = launcher_at_one_place(module.add, (1, 32, stream)).bind(x, 1)
    del stream
    gc.collect()
    assert handle not in [bascule.stream().handle for _ in range(20)]
    options(x, 1)
    bound()
    bascule.synchronize()
    assert (x.copy_to_host() == 2).all()
    with pytest.raises(TypeError, match="stream"):
        pickle.dumps(options)


def test_an_object_at_the_address_of_a_stream_that_ended_is_not_taken_for_it(module):
    kernel = module.add
    for _ in range(50):
        launch_on(kernel, bascule.stream(), zeros())
        for other in (object(), 1 << 70, bytearray(64)):
            with pytest.raises(bascule.ArgumentError):
                launch_on(kernel, other, zeros())  # type: ignore[arg-type]


def test_default_streams_and_those_of_others_are_what_they_are_now(module):
    x = zeros()

    class Foreign:
        def __init__(self, stream: bascule.Stream) -> None:
            self.stream = stream

        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, self.stream.handle

    foreign = Foreign(bascule.stream())
    for _ in range(3):
        foreign.stream = bascule.stream()
        for stream in (bascule.default_stream(), foreign, 0, 1, 2, bascule.external_stream(foreign)):
            found = launcher_at_one_place(module.add, (1, 32, stream)).explain(x, 1)
            expected = module["add"][1, 32, stream].explain(x, 1)
            assert str(found.stream) == str(expected.stream)


# --- Bounds and lifetimes ---------------------------------------------------------------------------------------------


def test_a_kernel_knows_a_fixed_number_of_launchers(module):
    before = launchers_alive()
    kernel, streams = module.add, [bascule.stream() for _ in range(8)]
    for i in range(1, 1000):
        launcher_at_one_place(kernel, (i, 32))
        launcher_at_one_place(kernel, (1, 32, streams[i % 8]))
        forall_at_one_place(kernel, i)
    assert launchers_alive() <= before + KNOWN
    del kernel, module
    gc.collect()


def test_known_launchers_go_with_their_kernel(module):
    before = launchers_alive()
    kernel = module["add"]
    launch_on(kernel, bascule.stream(), zeros())
    kernel[1, 32](zeros(), 1)
    assert launchers_alive() == before + 1  # the other one ended with its stream
    del kernel
    assert launchers_alive() == before


def test_many_names_of_a_module_are_not_kept(module):
    template = bascule.compile("template <int N> __global__ void set(int* p) { *p = N; }")
    kernels = [weakref.ref(getattr(template, f"set<{n}>")) for n in range(100)]
    gc.collect()
    assert sum(kernel() is not None for kernel in kernels) <= KNOWN


# --- Attributes of modules --------------------------------------------------------------------------------------------


def test_an_attribute_is_found_once(module):
    assert module.add is module.add
    assert module.add is not module["add"]
    assert [module.add.name, module.count.name] == ["add", "count"]
    for _ in range(3):
        with pytest.raises(AttributeError, match="add"):
            module.ad  # noqa: B018
        with pytest.raises(AttributeError):
            module.__wrapped__  # noqa: B018


def test_what_the_class_has_wins_as_soon_as_it_has_it(module, monkeypatch):
    kernel = module.add
    assert module.add is kernel
    with monkeypatch.context() as patch:
        patch.setattr(bascule.Module, "add", "of the class", raising=False)
        assert module.add == "of the class"
    assert type(module.add) is bascule.Kernel


def test_a_name_in_two_modules_is_two_kernels():
    def value_of(module: bascule.Module) -> int:
        out = bascule.to_device(np.zeros(1, "i4"))
        module.same[1, 1](out)
        return int(out.copy_to_host()[0])

    modules = [bascule.compile(f"__global__ void same(int* p) {{ *p = {i}; }}") for i in range(3)]
    for _ in range(3):
        assert [value_of(module) for module in modules] == [0, 1, 2]
