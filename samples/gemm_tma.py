"""C = A B for halves on a Hopper GPU: tiles arrive by TMA, and a warpgroup multiplies them by wgmma.

    python samples/gemm_tma.py

Without a GPU it runs on the emulated device as compute capability 9.0, which checks what a GPU does not: see
"Tensor maps" in the documentation for its messages about the usual mistakes in such a kernel.
"""

import os
import sys

import numpy as np

import bascule

STAGES = 4
SOURCE = r"""
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda/ptx>
namespace ptx = cuda::ptx;

constexpr int stages = STAGES;
struct __align__(1024) Stage { __half a[64 * 64], b[64 * 64]; };  // of A and of B's transpose, row by row

// The descriptor of a tile with rows of 128 bytes, written with swizzle=128: 8 rows take 1,024 bytes.
__device__ unsigned long long describe(const __half* tile) {
    return (__cvta_generic_to_shared(tile) & 0x3ffff) >> 4 | 1ull << 16 | 1024ull / 16 << 32 | 1ull << 62;
}

// d (64 x 64) += a (64 x 16) times b (64 x 16) transposed. Each thread has two columns of eight, in two rows.
__device__ void multiply(float (&d)[32], unsigned long long a, unsigned long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
        "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b));
}

__global__ void __launch_bounds__(128) gemm(const __grid_constant__ CUtensorMap a,
                                            const __grid_constant__ CUtensorMap b, float* c, int m, int n, int k) {
    extern __shared__ Stage tiles[];
    __shared__ unsigned long long full[stages];
    const int row = blockIdx.y * 64, column = blockIdx.x * 64, steps = (k + 63) / 64;
    const auto load = [&](int step) {
        Stage& to = tiles[step % stages];
        unsigned long long* const bar = &full[step % stages];
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar, A_BYTES + B_BYTES);
        const int at_a[] = {step * 64, row}, at_b[] = {step * 64, column};  // innermost axis first
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to.a, &a, at_a, bar);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to.b, &b, at_b, bar);
    };
    if (threadIdx.x == 0) {
        for (auto& bar : full) ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        for (int step = 0; step < min(stages, steps); ++step) load(step);
    }
    __syncthreads();
    float sum[32] = {};
    for (int step = 0; step < steps; ++step) {
        while (!ptx::mbarrier_try_wait_parity(&full[step % stages], step / stages % 2)) {}
        const unsigned long long in_a = describe(tiles[step % stages].a), in_b = describe(tiles[step % stages].b);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int i = 0; i < 4; ++i) multiply(sum, in_a + i * 2, in_b + i * 2);  // 16 columns are 32 bytes
        asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();  // every warp has read the tiles
        if (threadIdx.x == 0 && step + stages < steps) load(step + stages);
    }
    for (int i = 0; i < 32; ++i) {
        const int r = row + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
        const int q = column + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
        if (r < m && q < n) c[r * n + q] = sum[i];
    }
}
"""


def main():
    os.environ.setdefault("BASCULE_EMULATED_ARCH", "90a")  # of the emulated device; read at its first use
    if int("".join(filter(str.isdigit, bascule.current_device().arch))) < 90:
        sys.exit("this sample needs compute capability 9.0")

    m, n, k = 200, 136, 328  # not multiples of a tile: TMA fills with zeros what is outside of A and B
    rng = np.random.default_rng(7)
    a = bascule.to_device(rng.standard_normal((m, k)).astype("f2"))
    b = bascule.to_device(rng.standard_normal((n, k)).astype("f2"))  # B transposed
    c = bascule.full((m, n), np.nan, "f4")

    a_map = bascule.tensor_map(a, (64, 64), swizzle=128)
    b_map = bascule.tensor_map(b, (64, 64), swizzle=128)
    defines = {"A_BYTES": a_map.bytes, "B_BYTES": b_map.bytes, "STAGES": STAGES}
    gemm = bascule.compile(SOURCE, options={"defines": defines}).gemm
    shared_bytes = STAGES * (a_map.bytes + b_map.bytes)
    gemm.launch((-(-n // 64), -(-m // 64)), 128, (a_map, b_map, c, m, n, k), shared_bytes=shared_bytes)

    right = a.copy_to_host().astype("f4") @ b.copy_to_host().astype("f4").T
    difference = np.abs(c.copy_to_host() - right).max()
    is_right = difference < 1e-3
    print(a_map)
    print(f"{'ok   ' if is_right else 'WRONG'} {m} x {n} x {k}: C differs from NumPy by at most {difference:.1e}")
    if not is_right:
        sys.exit("gemm_tma: the product differs from NumPy's")


if __name__ == "__main__":
    main()
