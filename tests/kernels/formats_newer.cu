// Conversions of small formats that need sm_89 or sm_90.

// Two eight-bit values at once, which need instructions of sm_89.
__global__ void pairs_of_e4m3(const float2* x, unsigned short* pairs, unsigned* halves, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(x[i].y), "f"(x[i].x));
    pairs[i] = pair;
    unsigned both;
    asm("cvt.rn.relu.f16x2.e4m3x2 %0, %1;" : "=r"(both) : "h"(pair));
    halves[i] = both;
}

// .rz and .relu need sm_90.
__global__ void to_tf32(const float* x, float* rounded, float* cut, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x[i]));
    rounded[i] = __uint_as_float(bits);
    asm("cvt.rz.relu.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x[i]));
    cut[i] = __uint_as_float(bits);
}
