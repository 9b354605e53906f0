"""bascule.benchmark measures the launches that it is given, on their stream."""

from __future__ import annotations

import numpy as np
import pytest

import bascule
from bascule.emulated import trace

COUNT = 64
TEXT = """
__global__ void add(const float* x, float* y) { y[threadIdx.x] += x[threadIdx.x]; }
template <class T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }
"""


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    return bascule.compile(TEXT)


def zeros() -> bascule.DeviceArray:
    return bascule.to_device(np.zeros(COUNT, "f4"))


def ones() -> bascule.DeviceArray:
    return bascule.to_device(np.ones(COUNT, "f4"))


def test_every_warm_up_and_every_measured_launch_runs_once(module):
    y = zeros()
    result = bascule.benchmark(module.add[1, COUNT], ones(), y, warm_up=3, repeat=7)
    assert len(result.times) == 7
    assert y.copy_to_host().tolist() == [10.0] * COUNT


def test_each_launch_lies_between_two_events_on_the_stream_of_the_launch(module):
    stream = bascule.stream()
    x, y = (bascule.device_array(COUNT, "f4", stream=stream) for _ in range(2))
    with trace() as operations:
        bascule.benchmark(module.add[1, COUNT, stream], x, y, warm_up=1, repeat=3)
    kinds = [operation.kind for operation in operations if operation.stream == stream.handle]
    assert kinds == ["launch", "synchronize", *["record", "launch", "record"] * 3, "synchronize"]


def test_the_result_has_the_statistics_of_the_times_in_milliseconds():
    result = bascule.BenchmarkResult("k", "GPU", False, (4.0, 1.0, 2.0, 3.0, 10.0), bytes=3e6, flops=6e6)
    assert (result.median, result.min, result.max, result.spread) == (3.0, 1.0, 10.0, 2.0)
    assert result.gigabytes_per_second == 1.0
    assert result.gigaflops == 2.0
    assert repr(result) == ("k: 3 ms median, 1 ms min, 2 ms spread, 5 launches, 1 GB/s, 2 GFLOP/s; on GPU")


def test_rates_are_absent_where_nothing_was_said_of_them():
    result = bascule.BenchmarkResult("k", "GPU", False, (0.002,))
    assert result.gigabytes_per_second is None
    assert result.gigaflops is None
    assert repr(result) == "k: 2 µs median, 2 µs min, 0 µs spread, 1 launches; on GPU"


def test_times_of_the_emulated_device_are_said_to_mean_nothing_for_a_gpu(module):
    result = bascule.benchmark(module.add[1, COUNT], ones(), zeros(), repeat=1)
    assert result.emulated == bascule.current_device().emulated
    assert ("these times say nothing about a GPU" in repr(result)) == result.emulated


def test_a_launch_rule_a_template_and_keywords_are_measured_too(module):
    @bascule.kernel(TEXT, name="add")
    def add(x, y):
        return COUNT

    y = zeros()
    assert bascule.benchmark(add, ones(), y=y, warm_up=1, repeat=1).kernel == "add"
    assert y.copy_to_host()[0] == 2
    assert bascule.benchmark(module.twice[1, COUNT], ones(), repeat=2).kernel == "twice<float>"
    assert bascule.benchmark(module.add.forall(COUNT), ones(), zeros(), repeat=2).kernel == "add"


def test_what_cannot_be_measured_is_refused_with_what_to_pass(module):
    launcher = module.add[1, COUNT]
    for other in (launcher.bind(ones(), zeros()), print):
        with pytest.raises(TypeError, match=r"benchmark\(kernel\[grid, block\], x, y\)"):
            bascule.benchmark(other)
    for name in ("warm_up", "repeat"):
        with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1"):
            bascule.benchmark(launcher, ones(), zeros(), **{name: 0})


def test_an_argument_that_a_launch_refuses_is_refused(module):
    with pytest.raises(TypeError, match="argument 2 'y'"):
        bascule.benchmark(module.add[1, COUNT], ones(), bascule.to_device(np.zeros(COUNT)))
