"""Processor time of m64n128k16 of halves on the emulated device: by one wgmma, and by mma.sync with ldmatrix.

    python tests/bench/wgmma.py [--rounds N]

Both kernels multiply the same tiles in shared memory many times and keep their sums in registers. The goal is a ratio
of at most 1.
"""

import argparse
import os
import statistics
import time

os.environ["BASCULE_DEVICE"] = "emulated"
os.environ["BASCULE_EMULATED_ARCH"] = "90a"
os.environ.setdefault("BASCULE_EMULATED_WORKERS", "1")
os.environ["BASCULE_EMULATED_SCHEDULE"] = "eager"

import numpy as np

import bascule

REGISTERS = ", ".join(f"%{i}" for i in range(64))
OUTPUTS = ", ".join(f'"+f"(d[{i}])' for i in range(64))
TEXT = f"""
#include <cuda_fp16.h>
// Core matrices of 8 rows of 16 bytes: those of a row block follow each other along K.
__shared__ __align__(1024) unsigned short a[64 * 16], b[128 * 16];
__device__ int place(int row, int k) {{ return (row / 8 * 2 + k / 8) * 64 + row % 8 * 8 + k % 8; }}
__device__ void load(const unsigned short* x, const unsigned short* y) {{
    for (int i = threadIdx.x; i < 64 * 16; i += 128) a[place(i / 16, i % 16)] = x[i];
    for (int i = threadIdx.x; i < 128 * 16; i += 128) b[place(i / 16, i % 16)] = y[i];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
}}
__device__ unsigned shared(const void* p) {{ return (unsigned)__cvta_generic_to_shared(p); }}
__device__ void store(float* out, const float* d) {{
    for (int i = 0; i < 64; ++i) out[threadIdx.x * 64 + i] = d[i];
}}

extern "C" __global__ void by_wgmma(const unsigned short* x, const unsigned short* y, float* out, int times) {{
    load(x, y);
    float d[64] = {{}};
    const unsigned long long fields = 128ull >> 4 << 16 | 256ull >> 4 << 32;
    const unsigned long long at_a = shared(a) >> 4 & 0x3fff | fields, at_b = shared(b) >> 4 & 0x3fff | fields;
    for (int t = 0; t < times; ++t) {{
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < 4; ++k)
            asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{{REGISTERS}}}, %64, %65, 1, 1, 1, 0, 0;"
                         : {OUTPUTS} : "l"(at_a), "l"(at_b));
        asm volatile("wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    }}
    store(out, d);
}}

extern "C" __global__ void by_mma(const unsigned short* x, const unsigned short* y, float* out, int times) {{
    load(x, y);
    float d[64] = {{}};
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int t = 0; t < 4 * times; ++t) {{
        unsigned fa[4];
        const unsigned at_a = shared(a + place(16 * warp + lane % 16, lane / 16 * 8));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%0, %1, %2, %3}}, [%4];"
                     : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(at_a));
        #pragma unroll
        for (int n = 0; n < 16; n += 2) {{
            unsigned fb[4];
            const unsigned at_b = shared(b + place(8 * n + lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8));
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%0, %1, %2, %3}}, [%4];"
                         : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3]) : "r"(at_b));
            #pragma unroll
            for (int h = 0; h < 2; ++h) {{
                float* s = d + 4 * (n + h);
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%0, %1, %2, %3}}, {{%4, %5, %6, "
                             "%7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
                             : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                             : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[2 * h]), "r"(fb[2 * h + 1]));
            }}
        }}
    }}
    store(out, d);
}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    kernels = bascule.compile(TEXT, options=bascule.CompileOptions(arch="sm_90a"))
    rng = np.random.default_rng(1)
    halves = [rng.standard_normal((rows, 16)).astype("f2") for rows in (64, 128)]
    x, y = (bascule.to_device(each.view("u2")) for each in halves)
    times = 200
    times_of, results = {"by_wgmma": [], "by_mma": []}, {}
    for _ in range(arguments.rounds):
        for name, spent in times_of.items():
            out = bascule.to_device(np.zeros((128, 64), "f4"))
            start = time.process_time()
            kernels[name][1, 128](x, y, out, times)
            spent.append(time.process_time() - start)
            results[name] = out.copy_to_host()
    assert np.array_equal(results["by_wgmma"], results["by_mma"])
    ratios = sorted(a / b for a, b in zip(*times_of.values(), strict=True))
    wgmma, mma = (1e6 * statistics.median(each) / (4 * times) for each in times_of.values())
    print(f"m64n128k16 of halves: wgmma {wgmma:.1f} us, mma.sync {mma:.1f} us")
    print(f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}; goal: at most 1)")


if __name__ == "__main__":
    main()
