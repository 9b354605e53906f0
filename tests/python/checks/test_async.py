"""The check `async`: data that asynchronous copies and products have not delivered, or still read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from wgmma.programs import PRELUDE, multiply

import bascule

from .findings import compiled, found_by, require_one

pytestmark = pytest.mark.usefixtures("emulated")


class Planted(NamedTuple):
    wrong: str
    right: str
    words: str


COPY = """
#include <cuda_pipeline_primitives.h>
__global__ void k(const int* in, int* out) {
    __shared__ int s[256];
    int t = threadIdx.x;
    [[maybe_unused]] int u = blockDim.x - 1 - t;
    BODY
}
"""
START = "__pipeline_memcpy_async(s + t, in + t, 4);  // other\n"
PLANTED = {
    "no wait": Planted(
        START + "__syncthreads();\nout[t] = s[u];  // here",
        START + "__pipeline_commit(); __pipeline_wait_prior(0); __syncthreads(); out[t] = s[u];",
        "read 4 bytes of shared memory that an asynchronous copy has not delivered",
    ),
    "a wait without a commit": Planted(
        START + "__pipeline_wait_prior(0); __syncthreads();\nout[t] = s[u];  // here",
        START + "__pipeline_commit(); __pipeline_wait_prior(0); __syncthreads(); out[t] = s[u];",
        "has not delivered",
    ),
    "a wait for too few groups": Planted(
        "__pipeline_memcpy_async(s + 128 + t, in + t, 4); __pipeline_commit();\n"
        + START
        + "__pipeline_commit(); __pipeline_wait_prior(1); __syncthreads();\nout[t] = s[128 + u] + s[u];  // here",
        "__pipeline_memcpy_async(s + 128 + t, in + t, 4); __pipeline_commit();\n"
        + START
        + "__pipeline_commit(); __pipeline_wait_prior(1); __syncthreads();\nout[t] = s[128 + u];",
        "has not delivered",
    ),
    "a write to the destination": Planted(
        START + "s[t] = 3;  // here\n__pipeline_commit(); __pipeline_wait_prior(0); __syncthreads(); out[t] = s[u];",
        START + "__pipeline_commit(); __pipeline_wait_prior(0); s[t] += 3; __syncthreads(); out[t] = s[u];",
        "wrote 4 bytes of shared memory that an asynchronous copy has not delivered",
    ),
    "an atomic on the destination": Planted(
        START + "atomicAdd(s + t, 3);  // here\n__pipeline_commit(); __pipeline_wait_prior(0); out[t] = s[t];",
        START + "__pipeline_commit(); __pipeline_wait_prior(0); atomicAdd(s + t, 3); out[t] = s[t];",
        "has not delivered",
    ),
    "a wait of one half of the threads": Planted(
        START + "__pipeline_commit(); if (t < 32) __pipeline_wait_prior(0);\n__syncthreads();\nout[t] = s[u];  // here",
        START + "__pipeline_commit(); __pipeline_wait_prior(0); __syncthreads(); out[t] = s[u];",
        "has not delivered",
    ),
}


def run_copy(body):
    text = COPY.replace("BODY", body)
    x, y = bascule.to_device(np.arange(64, dtype="i4")), bascule.to_device(np.zeros(64, "i4"))
    return text, found_by("async", compiled(text, arch="sm_80")["k"][1, 64], x, y)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found_once(name):
    text, found = run_copy(PLANTED[name].wrong)
    require_one(found, "async", text, PLANTED[name].words)


@pytest.mark.parametrize("name", PLANTED)
def test_the_corrected_kernel_is_clean(name):
    assert run_copy(PLANTED[name].right)[1] == []


GROUPS = """
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void k(const int4* in, int4* out) {
    __shared__ int4 s[64];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, s, in, sizeof s);  // other
    WAIT
    out[threadIdx.x] = s[63 - threadIdx.x];  // here
}
"""


@pytest.mark.parametrize(("wait", "count"), [("block.sync();", 1), ("cg::wait(block);", 0)])
def test_a_group_waits_for_its_copy(wait, count):
    text = GROUPS.replace("WAIT", wait)
    x, y = bascule.to_device(np.zeros(256, "i4")), bascule.to_device(np.zeros(256, "i4"))
    pointers = [bascule.raw_pointer(a.__cuda_array_interface__["data"][0]) for a in (x, y)]
    found = found_by("async", compiled(text, arch="sm_80")["k"][1, 64], *pointers)
    assert len(found) == count
    if count:
        require_one(found, "async", text, "read 16 bytes of shared memory")


# --- compute capability 9.0 --------------------------------------------------------------------------------

BULK = """
__device__ void expect(u64* b, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(shared(b)), "r"(bytes) : "memory");
}
__device__ void load(int* s, const int* in, u64* b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];"
                 :: "r"(shared(s)), "l"(in), "r"(shared(b)) : "memory");
}
__device__ void store(int* out, int* s) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;"
                 :: "l"(out), "r"(shared(s)) : "memory");
}
extern "C" __global__ void k(const int* in, int* out) {
    __shared__ __align__(128) int s[256];
    __shared__ u64 b;
    int t = threadIdx.x;
    if (t == 0) {
        init(&b, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expect(&b, 1024);
        load(s, in, &b);  // bulk load
    }
    __syncthreads();
    LOADED
    int v = s[255 - t];  // bulk read
    __syncthreads();
    if (t == 0) {
        asm volatile("fence.proxy.async;" ::: "memory");
        store(out, s);  // bulk store
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        STORED
    }
    __syncthreads();
    s[t] = v;  // bulk write
    __syncthreads();
    if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    out[256 + t] = s[t];
}
"""
WAIT, READ = "wait_for(&b, 0);", 'asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");'


@pytest.mark.parametrize(
    ("loaded", "stored", "here", "other"),
    [(WAIT, READ, "", ""), ("", READ, "bulk read", "bulk load"), (WAIT, "", "bulk write", "bulk store")],
)
def test_bulk_copies_are_waited_for(hopper, loaded, stored, here, other):
    text = PRELUDE + BULK.replace("LOADED", loaded).replace("STORED", stored)
    for name, comment in (("here", here), ("other", other)):
        text = text.replace(f"// {comment}\n", f"// {name}\n") if comment else text
    x, y = bascule.to_device(np.zeros(256, "i4")), bascule.to_device(np.zeros(512, "i4"))
    found = found_by("async", compiled(text, arch="sm_90a")["k"][1, 256], x, y)
    if here:
        require_one(found[:1], "async", text, "shared memory that an asynchronous")
    else:
        assert found == []


PRODUCT = """
extern "C" __global__ void k(const char* a, float* out) {
    __shared__ __align__(1024) char sa[64 * 128], sb[16 * 128];
    for (int i = threadIdx.x; i < 64 * 8; i += blockDim.x) *(uint4*)(sa + 16 * i) = ((const uint4*)a)[i];
    for (int i = threadIdx.x; i < 16 * 8; i += blockDim.x) *(uint4*)(sb + 16 * i) = ((const uint4*)a)[i];
    proxy();
    __syncthreads();
    float d[8] = {};
    fence();
    multiply(d, descriptor(shared(sa), 16, 1024), descriptor(shared(sb), 16, 1024), 1);  // other
    commit();
    FIRST
    sb[threadIdx.x] = 0;  // buffer
    SECOND
    for (int i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = d[i];  // sums
    wait<0>();
}
"""


@pytest.mark.parametrize(
    ("first", "second", "here", "words"),
    [
        ("wait<0>(); __syncthreads();", "", "", ""),
        ("", "wait<0>();", "buffer", "wrote 1 bytes of shared memory that an asynchronous operation still reads"),
        ("wait<1>();", "wait<0>();", "buffer", "still reads"),
    ],
)
def test_buffers_of_wgmma_are_kept(hopper, first, second, here, words):
    text = PRODUCT.replace("FIRST", first).replace("SECOND", second)
    text = text.replace(f"// {here}\n", "// here\n") if here else text
    text = PRELUDE + multiply("multiply", "m64n16k16", "f32.f16.f16", ", 1, 1, 0, 0") + text
    x, y = bascule.to_device(np.zeros(64 * 128, "i1")), bascule.to_device(np.zeros(1024, "f4"))
    found = found_by("async", compiled(text, arch="sm_90a")["k"][1, 128], x, y)
    if here:
        require_one(found, "async", text, words)
    else:
        assert found == []


def test_sums_of_wgmma_are_waited_for(hopper):
    text = PRODUCT.replace("FIRST", "").replace("SECOND", "").replace("sb[threadIdx.x] = 0;  // buffer", "")
    text = text.replace("// sums\n", "// here\n")
    text = PRELUDE + multiply("multiply", "m64n16k16", "f32.f16.f16", ", 1, 1, 0, 0") + text
    x, y = bascule.to_device(np.zeros(64 * 128, "i1")), bascule.to_device(np.zeros(1024, "f4"))
    found = found_by("async", compiled(text, arch="sm_90a")["k"][1, 128], x, y)
    assert {each["line"] for each in found} == {text[: text.index("// here")].count("\n") + 1}
    assert "used an accumulator of wgmma that has no result yet" in found[0]["report"]
    assert "wgmma.mma_async" in found[0]["report"]
