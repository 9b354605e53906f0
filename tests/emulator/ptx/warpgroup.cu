// Matrices of a warpgroup, and registers of its warps.
// Compiled by NVRTC 13.0 with -arch=compute_90a into the .ptx file of the same name.
using u32 = unsigned;
using u64 = unsigned long long;

__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

extern "C" __global__ void __launch_bounds__(256, 1) floats(float* out, u64 a, u64 b, int times) {
    if (threadIdx.x >= 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 256;");
    float d[8] = {};
    fence();
    for (int t = 0; t < times; ++t) {
        asm volatile("{.reg .pred p;\n setp.ne.b32 p, %10, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, -1, 0, 1;}"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
                     : "l"(a + t), "l"(b), "r"(t));
        commit();
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = d[i];
}

extern "C" __global__ void sparse(u32* out, const u32* in, u64 b, u32 metadata) {
    u32 d[2] = {in[4], in[5]}, a[4] = {in[0], in[1], in[2], in[3]};
    fence();
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8k64.f16.e4m3.e5m2 {%0, %1}, {%2, %3, %4, %5}, %6, %7, 0, 1, 1, 1;"
                 : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(metadata));
    commit();
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    out[threadIdx.x] = d[0] + d[1];
}

extern "C" __global__ void integers(int* out, u64 a, u64 b) {
    int d[4];
    u32 bits[4] = {threadIdx.x, 1, 2, 3};
    fence();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.satfinite.s32.u8.s8 {%0, %1, %2, %3}, %4, %5, 0;"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "l"(a), "l"(b));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1;"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(bits[0]), "r"(bits[1]), "r"(bits[2]), "r"(bits[3]), "l"(b));
    commit();
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
