"""Tests of features that only a GPU has or decides: clusters, programmatic launches, graphs that others capture.

tests/gpu/run.sh runs it; on the emulated device tests of missing features are skipped with a reason.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

import bascule

COUNT = 256

CLUSTERS = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
// Every block reads what the next block of its cluster has in shared memory.
__global__ void from_the_neighbour(int* out, int* sizes) {
    __shared__ int mine;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) mine = 100 * blockIdx.x;
    cluster.sync();
    const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
    if (threadIdx.x == 0) {
        out[blockIdx.x] = *cluster.map_shared_rank(&mine, next);
        sizes[blockIdx.x] = cluster.num_blocks();
    }
    cluster.sync();
}
"""
PROGRAMMATIC = """
__global__ void first(int* x, int value) { x[threadIdx.x] = value; }
// May begin before `first` has ended: the wait is the kernel's own.
__global__ void second(const int* x, int* out) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[threadIdx.x] = x[threadIdx.x] + 1;
}
"""
COOPERATIVE = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
// Every block reads what another one wrote before each of the rounds: all must be resident.
__global__ void rounds(int* blocks, int* wrong, int count) {
    const cg::grid_group grid = cg::this_grid();
    for (int round = 0; round < count; ++round) {
        if (threadIdx.x == 0) blocks[blockIdx.x] = round;
        grid.sync();
        if (threadIdx.x == 0 && blocks[(blockIdx.x + 1) % gridDim.x] != round) atomicAdd(wrong, 1);
        grid.sync();
    }
}
"""
CHAIN = """
// Each may begin before the one before has ended, and adds 1 to what that one wrote.
__global__ void link(const int* from, int* to) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    to[threadIdx.x] = from[threadIdx.x] + 1;
    asm volatile("griddepcontrol.launch_dependents;");
}
"""
STEPS = """
__global__ void scale(float* x, float factor) { x[threadIdx.x] *= factor; }
__global__ void add(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
"""


@pytest.fixture
def hopper() -> None:
    device = bascule.current_device()
    if int(device.arch.rpartition("_")[2][:-1]) < 9:
        pytest.skip(f"needs compute capability 9.0, and {device.name} has not")


@pytest.fixture
def stream() -> Iterator[bascule.Stream]:
    made = bascule.stream()
    yield made
    made.synchronize()


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_blocks_of_a_cluster_read_each_others_shared_memory(hopper, stream, size):
    kernel = bascule.compile(CLUSTERS).from_the_neighbour
    blocks = 16
    out, sizes = (bascule.to_device(np.full(blocks, -1, "i4"), stream=stream) for _ in range(2))
    kernel.launch(blocks, 32, (out, sizes), stream=stream, cluster=size)
    number = np.arange(blocks)
    np.testing.assert_array_equal(sizes.copy_to_host(), np.full(blocks, size))
    neighbour = number // size * size + (number % size + 1) % size
    np.testing.assert_array_equal(out.copy_to_host(), 100 * neighbour)


def test_a_programmatic_launch_sees_what_the_one_before_wrote(hopper, stream):
    kernels = bascule.compile(PROGRAMMATIC)
    x, out = (bascule.to_device(np.zeros(COUNT, "i4"), stream=stream) for _ in range(2))
    for value in range(200):
        kernels.first[1, COUNT, stream](x, value)
        kernels.second.launch(1, COUNT, (x, out), stream=stream, programmatic=True)
    np.testing.assert_array_equal(out.copy_to_host(), np.full(COUNT, 200))


def test_a_cluster_of_16_blocks_runs_or_is_refused_in_words(hopper, stream):
    """A cluster of 16 is not portable: a kernel has to allow it."""
    kernel = bascule.compile(CLUSTERS).from_the_neighbour
    out, sizes = (bascule.to_device(np.full(16, -1, "i4"), stream=stream) for _ in range(2))
    try:
        kernel.launch(16, 32, (out, sizes), stream=stream, cluster=16)
    except (ValueError, bascule.Error) as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert "Eight blocks are what every such GPU takes" in refusal
        return
    np.testing.assert_array_equal(sizes.copy_to_host(), np.full(16, 16))
    np.testing.assert_array_equal(out.copy_to_host(), 100 * ((np.arange(16) + 1) % 16))


def test_a_chain_of_programmatic_launches_adds_up(hopper, stream):
    kernel = bascule.compile(CHAIN).link
    arrays = [bascule.to_device(np.zeros(COUNT, "i4"), stream=stream) for _ in range(2)]
    for step in range(1000):
        here, there = arrays[step % 2], arrays[1 - step % 2]
        kernel.launch(1, COUNT, (here, there), stream=stream, programmatic=True)
    np.testing.assert_array_equal(arrays[0].copy_to_host(), np.full(COUNT, 1000))


def test_a_cooperative_grid_fills_the_device(stream):
    device = bascule.current_device()
    kernel = bascule.compile(COOPERATIVE).rounds
    resident = 8 if device.emulated else kernel.occupancy(256).blocks * device.multiprocessors
    blocks = bascule.to_device(np.full(resident, -1, "i4"), stream=stream)
    wrong = bascule.to_device(np.zeros(1, "i4"), stream=stream)
    kernel.launch(resident, 256, (blocks, wrong, 20), stream=stream, cooperative=True)
    assert wrong.copy_to_host()[0] == 0
    with pytest.raises((ValueError, bascule.Error)):
        kernel.launch(resident * 64 + 1, 256, (blocks, wrong, 1), stream=stream, cooperative=True)


def test_a_graph_is_ordered_with_its_producers_at_every_launch(rng_values):
    p, q, c = (bascule.stream() for _ in range(3))
    kernels = bascule.compile(STEPS)
    for name in ("scale", "add"):
        kernels[name].prepare()
    a, b = (bascule.to_device(values, stream=s) for values, s in zip(rng_values, (p, q), strict=True))
    out = bascule.device_array(COUNT, "f4", stream=c)
    with bascule.Graph() as graph:
        kernels.add[1, COUNT](a, b, out)
    expected = np.array(rng_values)
    for _ in range(50):
        kernels.scale[1, COUNT, p](a, -1.0)
        graph.launch(c)
        expected[0] *= -1
        np.testing.assert_array_equal(out.copy_to_host(), expected[0] + expected[1])


def test_launches_onto_a_stream_that_another_library_captures_are_its_graphs(rng_values, stream):
    driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    kernels = bascule.compile(STEPS)
    kernels.add.prepare()
    a, b = (bascule.to_device(values, stream=stream) for values in rng_values)
    out = bascule.to_device(np.zeros(COUNT, "f4"), stream=stream)
    elsewhere = bascule.to_device(np.zeros(COUNT, "f4"), stream=bascule.stream())
    bascule.synchronize()
    native, graph, executable = ctypes.c_void_p(stream.handle), ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuStreamBeginCapture_v2(native, 1) == 0
    for _ in range(100):  # outside a capture, these would record a marker
        kernels.add[1, COUNT](a, b, out)
    with pytest.raises(ValueError, match="The capture goes on"):
        kernels.add[1, COUNT, stream](a, elsewhere, out)
    assert driver.cuStreamEndCapture(native, ctypes.byref(graph)) == 0
    count = ctypes.c_size_t()
    assert driver.cuGraphGetNodes(graph, None, ctypes.byref(count)) == 0
    assert count.value == 100
    assert driver.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_uint64(0)) == 0
    assert driver.cuGraphLaunch(executable, native) == 0
    np.testing.assert_array_equal(out.copy_to_host(), rng_values[0] + rng_values[1])
    assert driver.cuGraphExecDestroy(executable) == 0
    assert driver.cuGraphDestroy(graph) == 0


def test_an_owner_lives_until_a_slow_kernel_has_read_it(stream):
    kernel = bascule.compile(
        """
        __global__ void late(const int* x, int* out, long long cycles) {
            const long long start = clock64();
            while (clock64() - start < cycles) {}
            out[threadIdx.x] = x[threadIdx.x];
        }"""
    ).late
    cycles = 1000 if bascule.current_device().emulated else 20_000_000
    out = bascule.to_device(np.zeros(COUNT, "i4"), stream=stream)
    x = bascule.to_device(np.arange(COUNT, dtype="i4"), stream=stream)
    kernel[1, COUNT, stream](x, out, cycles)
    del x  # its memory may be reused as soon as it is free
    reused = [bascule.to_device(np.full(COUNT, -1, "i4"), stream=bascule.stream()) for _ in range(20)]
    np.testing.assert_array_equal(out.copy_to_host(), np.arange(COUNT))
    assert len(reused) == 20


@pytest.fixture
def rng_values() -> np.ndarray:
    return np.random.default_rng(9).random((2, COUNT), dtype="f4")
