"""Counts of kernels, against counts made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bascule
from bascule.emulated import KernelProfile, profile

from .conftest import line_of

pytestmark = pytest.mark.usefixtures("emulated")

BYTES = {"char": 1, "short": 2, "float": 4, "double": 8, "float4": 16}
THREADS, WARPS = 128, 8  # of 2 blocks


def buffer(count: int, type: str = "float") -> bascule.DeviceArray:
    """Elements that begin at a sector."""
    array = bascule.zeros(count * BYTES[type] // 4 + 1, "i4")
    assert array.__cuda_array_interface__["data"][0] % 128 == 0
    return array


def raw(array: bascule.DeviceArray) -> bascule.RawPointer:
    return bascule.raw_pointer(array.__cuda_array_interface__["data"][0])


def only(taken: bascule.emulated.Profile) -> KernelProfile:
    (kernel,) = taken.kernels.values()
    return kernel


def profile_of_copy(kernels: Any, type: str, stride: int = 1, offset: int = 0) -> bascule.emulated.Profile:
    y, x = buffer(2 * THREADS, type), buffer(2 * THREADS * stride + offset, type)
    with profile() as taken:
        kernels.copy.instantiate(type, stride, offset)[2, THREADS](raw(y), raw(x))
    return taken


@pytest.mark.parametrize(("type", "sectors"), [("char", 1), ("short", 2), ("float", 4), ("double", 8), ("float4", 16)])
def test_a_warp_that_copies_consecutive_elements_touches_each_sector_once(kernels, type, sectors):
    taken = profile_of_copy(kernels, type)
    counts = only(taken)
    assert (counts.global_loads, counts.global_stores, counts.global_atomics) == (WARPS, WARPS, 0)
    assert (counts.global_load_sectors, counts.global_store_sectors) == (WARPS * sectors, WARPS * sectors)
    assert counts.sectors_per_request == sectors
    if type != "float4":  # NVRTC gives no line of the text for copies of structures
        assert (line_of(taken, "load").global_loads, line_of(taken, "store").global_stores) == (WARPS, WARPS)
    assert (counts.shared_requests, counts.bank_conflicts, counts.local_requests, counts.branches) == (0, 0, 0, 0)
    assert (counts.thread_instructions, counts.active_lanes) == (32 * counts.instructions, 32)


@pytest.mark.parametrize(
    ("type", "stride", "offset", "sectors"),
    [("float", 2, 0, 8), ("float", 32, 0, 32), ("float", 0, 0, 1), ("float", 1, 1, 5), ("double", 1, 1, 9)],
)
def test_strides_and_offsets_cost_sectors(kernels, type, stride, offset, sectors):
    taken = profile_of_copy(kernels, type, stride, offset)
    assert line_of(taken, "load").global_load_sectors == WARPS * sectors
    assert line_of(taken, "store").global_store_sectors == WARPS * BYTES[type]


@pytest.mark.parametrize(
    ("type", "stride", "conflicts"),
    [
        *[("float", 0, 0), ("float", 1, 0), ("float", 2, 1), ("float", 3, 0), ("float", 16, 15), ("float", 32, 31)],
        *[("char", 1, 0), ("short", 1, 0), ("short", 2, 0), ("char", 8, 1)],
        # Each half of a warp reads 16 doubles: with a stride of 2 every bank has words of two of them.
        *[("double", 1, 0), ("double", 2, 2), ("double", 16, 30)],
        # Each quarter reads 8 vectors.
        *[("float4", 1, 0), ("float4", 2, 4), ("float4", 8, 28)],
    ],
)
def test_lanes_with_different_words_of_a_bank_conflict(kernels, type, stride, conflicts):
    y, x = buffer(32, type), buffer(32, type)
    with profile() as taken:
        kernels.shared.instantiate(type, stride)[1, 32](raw(y), raw(x))
    for comment in ("write", "read"):
        line = line_of(taken, comment)
        assert (line.shared_requests, line.bank_conflicts) == (1, conflicts)
    assert (only(taken).shared_requests, only(taken).bank_conflicts) == (2, 2 * conflicts)


@pytest.mark.parametrize(("padding", "conflicts"), [(0, 31), (1, 0)])
def test_padding_removes_the_conflicts_of_a_transpose(kernels, padding, conflicts):
    blocks, rows = 4, 32
    out, x = bascule.zeros((64, 64), "f4"), bascule.to_device(np.arange(64 * 64, dtype="f4").reshape(64, 64))
    with profile() as taken:
        kernels.transpose.instantiate(padding)[(2, 2), (32, 8)](out, x, 64)
    assert (out.copy_to_host() == x.copy_to_host().T).all()
    counts = only(taken)
    assert (counts.shared_requests, counts.bank_conflicts) == (2 * blocks * rows, blocks * rows * conflicts)
    assert (
        sum(each.bank_conflicts for each in counts.lines if each.text.endswith("// columns")) == counts.bank_conflicts
    )
    assert (counts.global_loads, counts.global_stores, counts.sectors_per_request) == (blocks * rows, blocks * rows, 4)


@pytest.mark.parametrize(("bits", "divergent"), [(1, 2), (16, 2), (32, 0)])
def test_a_branch_diverges_if_lanes_of_a_warp_differ(kernels, bits, divergent):
    y, z = bascule.zeros(64, "f4"), bascule.zeros(64, "f4")
    with profile() as taken:
        kernels.branch[1, 64](y, z, bits)
    line = line_of(taken, "branch")
    assert (only(taken).branches, only(taken).divergent_branches) == (2, divergent)
    assert (line.branches, line.divergent_branches) == (2, divergent)
    for comment in ("taken", "not taken"):
        line = line_of(taken, comment)
        assert line.global_stores == (2 if divergent else 1)
        assert line.active_lanes == (16 if divergent else 32)


def test_a_loop_that_each_lane_leaves_at_another_turn_diverges(kernels):
    with profile() as taken:
        kernels.loop[1, 32](bascule.zeros(32, "i4"))
    counts = only(taken)
    # Lane l makes l turns: one lane leaves at the start and at the end of each turn but the last, which has one lane.
    assert (counts.branches, counts.divergent_branches) == (32, 31)
    assert counts.global_stores == 31
    assert counts.global_store_sectors == sum(4 - first // 8 for first in range(1, 32))


def test_each_turn_of_a_loop_counts_the_same(kernels):
    def counts_of(turns: int) -> KernelProfile:
        with profile() as taken:
            kernels.count_turns[1, 32](bascule.zeros(32, "i4"), turns)
        return only(taken)

    ten, eleven, thirty = counts_of(10), counts_of(11), counts_of(30)
    of_a_turn = eleven.instructions - ten.instructions
    assert of_a_turn > 1
    assert thirty.instructions - ten.instructions == 20 * of_a_turn
    assert (thirty.branches - ten.branches, thirty.divergent_branches) == (20, 0)
    assert (ten.global_atomics, eleven.global_atomics, thirty.global_atomics) == (10, 11, 30)


def test_instructions_that_ptx_does_not_have_are_not_counted():
    text = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry lower_half(.param .u64 to) {
    .reg .pred %p;
    .reg .b32 %r;
    .reg .b64 %a;
    ld.param.u64 %a, [to];
    mov.u32 %r, %tid.x;
    setp.gt.u32 %p, %r, 15;
    @%p bra END;
    st.global.u32 [%a], %r;
END:
    ret;
}
"""
    kernel = bascule.load_module(text).lower_half
    to = bascule.zeros(1, "u4")
    with profile() as taken:
        kernel[1, 32](raw(to))
    counts = only(taken)
    # Parameters and %tid are read in place, and the comparison and its branch are one instruction.
    assert (counts.instructions, counts.thread_instructions) == (3, 32 + 16 + 32)


def test_lanes_that_do_not_exist_are_not_counted(kernels):
    y, x = buffer(40), buffer(40)
    with profile() as taken:
        kernels.copy.instantiate("float", 1, 0)[1, 40](raw(y), raw(x))
    counts = only(taken)
    assert (counts.global_loads, counts.global_load_sectors) == (2, 4 + 1)
    assert counts.active_lanes == (32 + 8) / 2


def test_lanes_that_a_guard_excludes_are_not_counted(kernels):
    y, x = bascule.zeros(32, "f4"), bascule.zeros(32, "f4")
    with profile() as taken:
        kernels.first[1, 32](y, x, 20)
    counts = only(taken)
    assert (counts.branches, counts.divergent_branches) == (1, 1)
    assert (counts.global_loads, counts.global_load_sectors) == (1, 3)  # 80 bytes
    assert (counts.global_stores, counts.global_store_sectors) == (1, 3)


@pytest.mark.parametrize(("lanes", "sectors", "conflicts"), [(1, 1, 31), (8, 1, 24), (32, 4, 0)])
def test_atomics_on_one_address_contend(kernels, lanes, sectors, conflicts):
    to = bascule.zeros(32, "i4")
    with profile() as taken:
        kernels.count[2, 64](to, lanes)
    line = line_of(taken, "count")
    assert (line.global_atomics, line.global_atomic_sectors, line.atomic_conflicts) == (4, 4 * sectors, 4 * conflicts)
    with profile() as taken:
        kernels.count_in_shared[2, 32](to, lanes)
    line = line_of(taken, "shared atomic")
    assert (line.shared_requests, line.atomic_conflicts, line.bank_conflicts) == (2, 2 * conflicts, 0)
    assert line.global_atomics == 0


def test_local_and_constant_memory_are_no_global_memory(kernels):
    y = bascule.zeros(32, "i4")
    with profile() as taken:
        kernels.local[1, 32](y, 1)
    assert (line_of(taken, "local store").local_requests, line_of(taken, "local load").local_requests) == (4, 1)
    assert (only(taken).global_loads, only(taken).global_stores) == (0, 1)
    with profile() as taken:
        kernels.constant[1, 32](bascule.zeros(32, "f4"))
    assert (only(taken).global_loads, only(taken).global_stores) == (0, 1)


def test_a_generic_address_counts_for_its_memory(kernels):
    y, x = bascule.zeros(32, "i4"), bascule.zeros(32, "i4")
    with profile() as taken:
        kernels.generic[1, 32](y, x, 0)
    counts = only(taken)
    assert (counts.global_loads, counts.global_load_sectors, counts.shared_requests) == (1, 4, 1)
    with profile() as taken:
        kernels.generic[1, 32](y, x, 1)
    counts = only(taken)
    assert (counts.global_loads, counts.shared_requests, counts.bank_conflicts) == (0, 2, 1)


def test_an_asynchronous_copy_is_a_load_and_a_store(kernels):
    y, x = buffer(32, "float4"), buffer(32, "float4")
    with profile() as taken:
        kernels.copy_async[1, 32](raw(y), raw(x))
    line = line_of(taken, "cp.async")
    assert (line.global_loads, line.global_load_sectors) == (1, 16)
    assert (line.shared_requests, line.bank_conflicts) == (1, 0)


@pytest.mark.parametrize(("row_bytes", "conflicts"), [(16, 0), (32, 4), (128, 28), (112, 0)])
def test_rows_of_ldmatrix_conflict_within_a_matrix(kernels, row_bytes, conflicts):
    with profile() as taken:
        kernels.matrix[1, 32](bascule.zeros(32, "i4"), row_bytes)
    line = line_of(taken, "ldmatrix")
    assert (line.shared_requests, line.bank_conflicts) == (1, conflicts)


def test_inlined_code_names_its_caller(kernels):
    with profile() as taken:
        kernels.inlined[1, 32](bascule.zeros(32, "f4"), bascule.zeros(32, "f4"))
    inlined, caller = line_of(taken, "inlined"), line_of(taken, "caller")
    assert inlined.caller == caller.place
    assert (inlined.global_loads, caller.global_stores) == (1, 1)
    assert caller.caller == ""


def test_launches_of_a_kernel_are_summed(kernels):
    x, y = bascule.zeros(32, "f4"), bascule.zeros(32, "f4")
    with profile() as taken:
        for _ in range(3):
            kernels.first[1, 32](y, x, 32)
        kernels.branch[1, 32](y, x, 1)
    assert {name: each.launches for name, each in taken.kernels.items()} == {"first": 3, "branch": 1}
    assert taken.kernels["first"].global_loads == 3


def test_launches_in_graphs_count_when_they_run(kernels):
    x, y = bascule.zeros(32, "f4"), bascule.zeros(32, "f4")
    kernels.first.prepare()
    with profile() as taken, bascule.Graph() as graph:
        kernels.first[1, 32](y, x, 32)
    assert taken.kernels == {}
    with profile() as taken:
        graph.launch()
        graph.launch()
    assert (only(taken).launches, only(taken).global_loads) == (2, 2)


def test_each_profile_begins_empty(kernels):
    x, y = bascule.zeros(32, "f4"), bascule.zeros(32, "f4")
    kernels.first[1, 32](y, x, 32)  # still pending, and not of the profile
    with profile() as taken:
        kernels.branch[1, 32](y, x, 1)
        assert taken.kernels == {}
    kernels.first[1, 32](y, x, 32)
    assert list(taken.kernels) == ["branch"]
