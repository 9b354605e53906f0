"""Races between the blocks of a cluster, and around bulk copies; `test_as_sm_90` runs them."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

from .test_races import compiled, findings_of

pytestmark = pytest.mark.usefixtures("emulated", "hopper")

HEAD = """
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
#ifdef RIGHT
#define FIX(...) __VA_ARGS__
#else
#define FIX(...)
#endif
"""

# Each kernel has a name, a body and words of its report.
PLANTED = {
    "a neighbour's memory before cluster.sync": (
        """
        __shared__ int s[32];
        auto cluster = cg::this_cluster();
        s[threadIdx.x] = threadIdx.x;  // here
        FIX(cluster.sync();)
        int* theirs = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
        b[blockIdx.x * 32 + threadIdx.x] = theirs[threadIdx.x];  // there
        cluster.sync();
        """,
        "put cluster.sync() between",
    ),
    "a block's barrier for another block": (
        """
        __shared__ int s[32];
        auto cluster = cg::this_cluster();
        s[threadIdx.x] = 0;  // here
        FIX(cluster.sync();)
        __syncthreads();
        atomicAdd(cluster.map_shared_rank(s, cluster.block_rank() ^ 1), 1);  // there
        cluster.sync();
        b[blockIdx.x] = s[0];
        """,
        "changed 4 bytes atomically",
    ),
    "an arrival that does not release": (
        """
        __shared__ int s[32];
        auto cluster = cg::this_cluster();
        s[threadIdx.x] = threadIdx.x;  // here
        FIX(asm volatile("fence.acq_rel.cluster;" ::: "memory");)
        asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
        int* theirs = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
        b[blockIdx.x * 32 + threadIdx.x] = theirs[threadIdx.x];  // there
        cluster.sync();
        """,
        "a thread of another block",
    ),
    "a bulk copy that only one thread waits for": (
        """
        __shared__ alignas(128) int s[32];
        __shared__ alignas(8) uint64_t bar;
        if (threadIdx.x == 0) {
            ptx::mbarrier_init(&bar, 1);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s, a, 128, &bar);
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 128);
            while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
        }
        FIX(__syncwarp();)
        b[threadIdx.x] = s[threadIdx.x];
        """,
        "wait for the asynchronous copy",
    ),
    "a buffer that is filled again too early": (
        """
        __shared__ alignas(128) int s[32];
        __shared__ alignas(8) uint64_t bar;
        if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 1);
        __syncwarp();
        for (int i = 0; i < 3; ++i) {
            if (threadIdx.x == 0) {
                ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s, a + 32 * i, 128, &bar);
                ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 128);
            }
            while (!ptx::mbarrier_try_wait_parity(&bar, i % 2)) {}
            b[threadIdx.x] += s[31 - threadIdx.x];
            FIX(__syncwarp();)
        }
        """,
        "wait for the asynchronous copy",
    ),
}
TEXT = HEAD + "".join(
    f"__global__ void k{number}(int* a, int* b) {{\n{body}\n}}\n" for number, (body, _) in enumerate(PLANTED.values())
)


def run(name: str, right: bool) -> list[dict]:
    kernel = getattr(compiled(TEXT, right), f"k{list(PLANTED).index(name)}")
    a, b = (bascule.to_device(np.zeros(4096, "i4")) for _ in range(2))
    cluster = 1 if "bulk" in PLANTED[name][0] else 2
    return findings_of(lambda: kernel.launch(cluster, 32, (a, b), cluster=cluster))


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_race_is_reported(name):
    body, words = PLANTED[name]
    found = run(name, False)
    assert found, "no race was found"
    start = TEXT[: TEXT.index(body)].count("\n") + 1
    lines = {start + k for k, line in enumerate(body.split("\n")) if line.endswith(("// here", "// there"))}
    for each in found:
        assert each["kind"] == "shared_races"
        if lines:
            assert {each["line"], each["other"]["line"]} <= lines, each["report"]
    assert words in "".join(each["report"] for each in found), found


@pytest.mark.parametrize("name", PLANTED)
def test_the_corrected_kernel_has_no_race(name):
    found = run(name, True)
    assert not found, [each["report"] for each in found]
