"""The check `sync`: barriers that some lanes do not reach, and masks of warp operations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import bascule

from .findings import compiled, found_by, require_one

pytestmark = pytest.mark.usefixtures("emulated")


class Planted(NamedTuple):
    wrong: str
    right: str  # replaces WRONG
    words: str
    block: int = 64


MASKS = "int v = p[threadIdx.x]; [[maybe_unused]] int lane = threadIdx.x % 32;"
PLANTED = {
    "two barriers in the branches of a warp": Planted(
        """
        if (threadIdx.x % 2) {
            asm volatile("bar.sync 0;" ::: "memory");  // here
            p[threadIdx.x] += 1;
        } else {
            p[threadIdx.x] += 2;
            asm volatile("bar.sync 0;" ::: "memory");  // other
        }""",
        "p[threadIdx.x] += 1; __syncthreads();",
        "waited at a barrier that other threads of its warp do not reach",
    ),
    "barriers of different numbers in a warp": Planted(
        """
        if (threadIdx.x % 2) {
            asm volatile("bar.sync 1;" ::: "memory");  // here
        } else {
            asm volatile("bar.sync 2;" ::: "memory");  // other
        }""",
        'asm volatile("bar.sync 1;" ::: "memory");',
        "waited at another barrier",
    ),
    "half of a warp at a barrier for two warps": Planted(
        """
        if (threadIdx.x % 32 < 16) {
            asm volatile("bar.sync 1, 32;" ::: "memory");  // here
        } else {
            asm volatile("bar.sync 2, 32;" ::: "memory");  // other
        }""",
        'asm volatile("bar.sync 1, 64;" ::: "memory");',
        "do not reach",
    ),
    "a lane waits for a shuffle, the others at the barrier": Planted(
        """
        if (threadIdx.x % 32) {
            __syncthreads();  // here
        } else {
            p[threadIdx.x] = __shfl_sync(~0u, p[threadIdx.x], 3);  // other
        }""",
        "p[threadIdx.x] = __shfl_sync(~0u, p[threadIdx.x], 3); __syncthreads();",
        "waited for lanes of its warp",
    ),
    "different counts": Planted(
        """
        if (threadIdx.x < 32) {
            asm volatile("bar.sync 1, 64;" ::: "memory");  // other
        } else {
            asm volatile("bar.arrive 1, 96;" ::: "memory");  // here
        }""",
        """
        if (threadIdx.x < 32) {
            asm volatile("bar.sync 1, 64;" ::: "memory");
        } else {
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        }""",
        "arrived at barrier 1 for 96 threads",
    ),
    "a shuffle without its own lane": Planted(
        MASKS + "v = __shfl_sync(0xffff, v, 0);  // here",
        MASKS + "if (lane < 16) v = __shfl_sync(0xffff, v, 0);",
        "executed a shuffle with the mask 0x0000ffff, which lacks its own lane 16",
    ),
    "a vote without its own lane": Planted(
        MASKS + "v = __ballot_sync(0xff, v > 0);  // here",
        MASKS + "if (lane < 8) v = __ballot_sync(0xff, v > 0);",
        "executed a vote with the mask 0x000000ff",
    ),
    "a warp barrier without its own lane": Planted(
        MASKS + "__syncwarp(0xfffffffe);  // here",
        MASKS + "__syncwarp();",
        "executed __syncwarp() with the mask 0xfffffffe, which lacks its own lane 0",
    ),
    "a match without its own lane": Planted(
        MASKS + "v = __match_any_sync(1, v);  // here",
        MASKS + "v = __match_any_sync(~0u, v);",
        "executed a match with the mask 0x00000001, which lacks its own lane 1",
    ),
    "different masks": Planted(
        MASKS + "v = __shfl_xor_sync(lane < 16 ? 0xffff : ~0u, v, 1);  // here",
        MASKS + "v = __shfl_xor_sync(lane < 16 ? 0xffff : 0xffff0000, v, 1);",
        "executed a shuffle with the mask 0xffffffff, and lane 0, which it names, with 0x0000ffff",
    ),
    "different masks of a vote": Planted(
        MASKS + "v = __any_sync(lane == 5 ? 0x7fffffff : ~0u, lane != 31 && v > 0);  // here",
        MASKS + "v = __any_sync(~0u, v > 0);",
        "executed a vote",
    ),
    "a lane outside of the mask": Planted(
        MASKS + "if (lane < 16) v = __shfl_down_sync(0xffff, v, 8);  // here",
        MASKS + "if (lane < 16) v = __shfl_down_sync(0xffff, v, 8, 16);",
        "read lane 16, which is not in its mask, by a shuffle with the mask 0x0000ffff",
    ),
    "a lane that the block does not have": Planted(
        MASKS + "v += __shfl_down_sync(~0u, v, 8);  // here",
        MASKS + "v += __shfl_down_sync(~0u, v, 8, 16);",
        "read lane 16, which the block does not have",
        block=48,
    ),
    "a lane that has exited": Planted(
        "if (threadIdx.x % 32 > 20) return;" + MASKS + "v += __shfl_sync(~0u, v, 30);  // here",
        "if (threadIdx.x % 32 > 20) return;" + MASKS + "v += __shfl_sync(~0u, v, 20);",
        "read lane 30, which has exited",
    ),
}


def text_of(body: str) -> str:
    stored = "p[threadIdx.x] = v;" if "int v" in body else ""
    return f"__global__ void k(int* p) {{\n{body}\n{stored}\n}}"


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found_once(name):
    planted = PLANTED[name]
    text = text_of(planted.wrong)
    if "read lane" in planted.words:
        text = text.replace("= v;\n", "= v;  // other\n")
    x = bascule.to_device(np.arange(64, dtype="i4"))
    found = found_by("sync", compiled(text)["k"][1, planted.block], x)
    require_one(found, "sync", text, planted.words)


@pytest.mark.parametrize("name", PLANTED)
def test_the_corrected_kernel_is_clean(name):
    x = bascule.to_device(np.arange(64, dtype="i4"))
    found = found_by("sync", compiled(text_of(PLANTED[name].right))["k"][1, PLANTED[name].block], x)
    assert [each["report"] for each in found] == []


RIGHT = """
__global__ void early_exit(int* p, int n) {
    if (threadIdx.x >= n) return;
    __syncthreads();
    p[threadIdx.x] = __ballot_sync(~0u, p[threadIdx.x] > 0);
}
__global__ void active(int* p, int n) {
    if (threadIdx.x < n) {
        unsigned mask = __activemask();
        p[threadIdx.x] = __shfl_sync(mask, p[threadIdx.x], __ffs(mask) - 1);
    }
}
__global__ void own_value(int* p, int n) {
    int v = p[threadIdx.x];
    for (int o = 1; o < 32; o *= 2) {
        int w = __shfl_up_sync(~0u, v, o);
        if (threadIdx.x % 32 >= o) v += w;
    }
    p[threadIdx.x] = v + n;
}
__global__ void discarded(int* p, int n) {
    int v = p[threadIdx.x], lane = threadIdx.x % 32;
    for (int o = 16; o > 0; o /= 2) {
        int w = __shfl_down_sync(~0u, v, o);
        if (lane + o < 16) v += w;
    }
    p[threadIdx.x] = v;
}
__global__ void groups(int* p, int n) {
    unsigned mask = threadIdx.x % 32 < 8 ? 0xff : 0xffffff00;
    p[threadIdx.x] = __reduce_add_sync(mask, n);
}
__global__ void rounds(int* p, int n) {
    for (int i = 0; i < n; ++i) {
        if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
        else asm volatile("bar.arrive 1, 64;" ::: "memory");
        __syncthreads();
        if (p[threadIdx.x] % 3 == 0) p[threadIdx.x] += i;
        __syncthreads();
    }
}
"""


@pytest.mark.parametrize("name", ["early_exit", "active", "discarded", "own_value", "groups", "rounds"])
def test_these_kernels_are_clean(name):
    x = bascule.to_device(np.arange(64, dtype="i4"))
    assert found_by("sync", compiled(RIGHT, arch="sm_80")[name][1, 48 if name == "discarded" else 64], x, 41) == []
