"""What pickles: every protocol that supports it, and cloudpickle, give the same object or an equal one."""

from __future__ import annotations

import copy
import pickle
import sys

import cloudpickle
import numpy as np
import pytest

import bascule

from . import rules

WAYS = [
    *[pytest.param(lambda each, p=p: pickle.loads(pickle.dumps(each, p)), id=f"protocol {p}") for p in range(2, 6)],
    pytest.param(lambda each: pickle.loads(cloudpickle.dumps(each)), id="cloudpickle"),
]
through = pytest.mark.parametrize("through", WAYS)


@pytest.fixture(scope="module")
def module():
    return bascule.compile(rules.TEXT, options=bascule.CompileOptions(defines={"UNUSED": 1}))


def launched(kernel, dtype="f4"):
    """The result of `offset` on zeros."""
    x = bascule.zeros(4, dtype)
    kernel[1, 4](x, 3, 4)
    return x.copy_to_host()


@through
@pytest.mark.parametrize(
    "value",
    [
        bascule.CompileOptions(std="c++20", defines={"A": "1", "B": None}, include_paths=["/x"], headers={"a.h": ""}),
        bascule.CompileOptions(arch="sm_90a", max_registers=40, pch=False, extra=["--prec-div=false"]),
        bascule.LaunchConfig((2, 3), 128, shared_bytes=64, cooperative=True),
        bascule.LaunchConfig(8, 32, cluster=2, programmatic=True, priority=-1, shared_carveout=50),
        bascule.device(0),
    ],
    ids=repr,
)
def test_a_value_is_equal_after_the_round_trip(through, value):
    assert through(value) == value


@through
def test_a_module_is_compiled_from_the_cache(through, module):
    found = through(module)
    assert (found.source, found.kernels) == (module.source, module.kernels)
    before = bascule.cache.stats().nvrtc_calls
    x = bascule.to_device(np.ones(4, "f4"))
    found.negate[1, 4](x)
    assert x.copy_to_host().tolist() == [-1] * 4
    assert bascule.cache.stats().nvrtc_calls in (before, before + 1)  # only the first test here compiles
    assert through(module).negate[1, 4](x) is None
    assert bascule.cache.stats().nvrtc_calls <= before + 1


@through
@pytest.mark.parametrize(
    "choose",
    [
        lambda module: module.offset,
        lambda module: module.offset.instantiate("float"),
        lambda module: module["offset<float>"],
        lambda module: module.offset.prepare(bascule.zeros(1, "f4"), 1, 1),
        lambda module: module.instantiate({"offset": ["float", "int"]})["offset"][0],
        lambda module: bascule.compile(rules.TEXT, name_expressions=["offset<float>"])["offset<float>"],
        lambda module: bascule.compile(rules.TEXT, name_expressions=["offset<float>"]).offset,
    ],
    ids=["template", "instance", "name", "prepared", "of a set", "of the module", "template with an instance"],
)
def test_a_kernel_finds_its_image_and_launches(through, choose, module):
    kernel = choose(module)
    assert launched(kernel).tolist() == [3] * 4
    before = bascule.cache.stats().nvrtc_calls
    found = through(kernel)
    assert (found.name, found.source, found.is_template) == (kernel.name, kernel.source, kernel.is_template)
    assert launched(found).tolist() == [3] * 4
    assert bascule.cache.stats().nvrtc_calls == before


@through
def test_an_overload_stays_chosen(through, module):
    found = through(module.twice.overload("int*"))
    x = bascule.to_device(np.arange(4, dtype="i4"))
    found[1, 4](x)
    assert x.copy_to_host().tolist() == [0, 2, 4, 6]
    with pytest.raises(bascule.ArgumentError):
        found[1, 4](bascule.zeros(4, "f4"))


@through
def test_template_arguments_that_leave_the_rest_open_are_kept(through):
    text = "template <int N, class T> __global__ void fill(T* p) { p[threadIdx.x] = N; }"
    found = through(bascule.compile(text).fill.instantiate(N=7))
    x = bascule.zeros(2, "f8")
    found[1, 2](x)
    assert x.copy_to_host().tolist() == [7, 7]


@through
def test_a_kernel_keeps_its_options(through):
    kernel = bascule.compile(
        "__global__ void fill(int* p) { *p = VALUE; }", options=bascule.CompileOptions(defines={"VALUE": 5})
    ).fill
    x = bascule.zeros(1, "i4")
    through(kernel)[1, 1](x)
    assert x.item() == 5


def test_unpickled_kernels_of_one_program_share_a_module(module):
    """The image is loaded once, so that the variables of the text are the same memory."""
    text = "__device__ int count; __global__ void step() { ++count; } __global__ void hold() {}"
    kernels = bascule.compile(text)
    step, hold = (pickle.loads(pickle.dumps(each)) for each in (kernels.step, kernels.hold))
    step[1, 1]()
    assert hold.get_global("count").item() == 1


def test_a_launcher_launches_as_before(module):
    for launcher in (module.offset[2, 2], module.offset.forall(4), module.offset[bascule.LaunchConfig(1, 4)]):
        x = bascule.zeros(4, "f4")
        pickle.loads(pickle.dumps(launcher))(x, 2, 4)
        assert x.copy_to_host().tolist() == [2] * 4


def test_a_launchers_options_are_kept(module):
    found = pickle.loads(pickle.dumps(module.negate[1, 4].options(sync=False)))
    assert "not waited for" in str(found.explain(bascule.zeros(4, "f4"))) or "sync=False" in str(
        found.explain(bascule.zeros(4, "f4"))
    )


# --- Launch rules


@through
def test_a_rule_of_a_module_is_that_rule(through):
    assert through(rules.offset) is rules.offset


def test_a_rule_of_the_program_itself_travels_with_cloudpickle(monkeypatch):
    """The receiving process cannot import it, as if it came from a notebook."""
    namespace = {"__name__": "__main__", "bascule": bascule, "TEXT": rules.TEXT}
    monkeypatch.setitem(sys.modules, "__main__", type(sys)("__main__"))
    exec("@bascule.kernel(TEXT)\ndef offset(p, by, n):\n    return n\n", namespace)
    sys.modules["__main__"].offset = namespace["offset"]
    by_value = cloudpickle.dumps(namespace["offset"])
    assert pickle.loads(pickle.dumps(namespace["offset"])) is namespace["offset"]
    del sys.modules["__main__"].offset
    found = pickle.loads(by_value)
    assert found is not namespace["offset"]
    assert (found.__name__, found.__qualname__) == ("offset", "offset")
    x = bascule.zeros(4, "f4")
    found(x, 3, 4)
    assert x.copy_to_host().tolist() == [3] * 4


def test_a_rule_without_a_name_needs_cloudpickle():
    rule = rules.make_rule(1)
    found = pickle.loads(cloudpickle.dumps(rule))
    x = bascule.zeros(4, "f4")
    found(x, 3, 4)
    assert x.copy_to_host().tolist() == [3] * 4
    with pytest.raises((pickle.PicklingError, AttributeError), match="local object"):
        pickle.dumps(rule)


# --- Copies


def test_a_copy_of_what_does_not_change_is_the_object_itself(module):
    for each in (
        module,
        module.negate,
        module.negate[1, 1],
        rules.offset,
        bascule.LaunchConfig(1, 1),
        bascule.CompileOptions(),
        bascule.device(0),
    ):
        assert copy.copy(each) is each
        assert copy.deepcopy([each])[0] is each


# --- Objects of one process


@pytest.mark.parametrize(
    ("make", "instead"),
    [
        (lambda: bascule.zeros(3, "f4"), "copy_to_host"),
        (bascule.stream, "bascule.stream()"),
        (bascule.event, "bascule.event()"),
        (bascule.Graph, "Capture it"),
        (lambda: bascule.compile(rules.TEXT).negate[1, 1].bind(bascule.zeros(1, "f4")), "bind it"),
        (lambda: bascule.compile(rules.TEXT).negate[1, 1, bascule.stream()], "kernel[config, stream]"),
    ],
    ids=["array", "stream", "event", "graph", "bound launch", "launcher with a stream"],
)
def test_what_belongs_to_this_process_says_what_to_do(make, instead):
    with pytest.raises(bascule.ArgumentError, match="cannot be pickled") as caught:
        pickle.dumps(make())
    assert isinstance(caught.value, TypeError)
    assert instead in str(caught.value)


def test_a_module_whose_variables_were_exposed_says_so():
    module = bascule.compile("__device__ int count; __global__ void k() { ++count; }")
    pickle.dumps(module.k)
    module.k.get_global("count").fill(3)
    for each in (module, module.k, module.k[1, 1]):
        with pytest.raises(bascule.ArgumentError, match="get_global"):
            pickle.dumps(each)
