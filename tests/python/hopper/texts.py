"""CUDA C++ that the kernels of this folder share: tensor copies and barriers in shared memory."""

from __future__ import annotations

import functools

from wgmma.programs import PRELUDE

import bascule

TMA = """
#include <cuda.h>
#define MAP const __grid_constant__ CUtensorMap
__device__ void expect(u64* b, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(shared(b)), "r"(bytes) : "memory");
}
__device__ void ready() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ void load(const void* to, const CUtensorMap& map, u64* b, int x) {
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                 :: "r"(shared(to)), "l"(&map), "r"(x), "r"(shared(b)) : "memory");
}
__device__ void load(const void* to, const CUtensorMap& map, u64* b, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(shared(to)), "l"(&map), "r"(x), "r"(y), "r"(shared(b)) : "memory");
}
__device__ void load(const void* to, const CUtensorMap& map, u64* b, int x, int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(shared(to)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared(b)) : "memory");
}
__device__ void load_for_all(const void* to, const CUtensorMap& map, u64* b, int x, int y, unsigned short blocks) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;"
                 :: "r"(shared(to)), "l"(&map), "r"(x), "r"(y), "r"(shared(b)), "h"(blocks) : "memory");
}
__device__ void store(const CUtensorMap& map, const void* from, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(&map), "r"(x), "r"(y), "r"(shared(from)) : "memory");
}
__device__ void add(const CUtensorMap& map, const void* from, int x, int y) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(&map), "r"(x), "r"(y), "r"(shared(from)) : "memory");
}
__device__ void add(const CUtensorMap& map, const void* from, int x) {
    asm volatile("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%0, {%1}], [%2];"
                 :: "l"(&map), "r"(x), "r"(shared(from)) : "memory");
}
__device__ void stored() {
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}
__device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
"""


@functools.cache
def compiled(text: str, **defines: int | str) -> bascule.Module:
    options = bascule.CompileOptions(arch="sm_90a", defines=defines)
    return bascule.compile(PRELUDE + TMA + text, options=options)
