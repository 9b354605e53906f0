// Arithmetic in half precision and in bfloat16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Two halves at a time, and a single last one.
__global__ void half_fma(const __half* a, const __half* b, const __half* c, __half* out, int n) {
    auto pairs = [](const __half* p) { return reinterpret_cast<const __half2*>(p); };
    for (auto i : bascule::grid_stride((n + 1) / 2)) {
        if (2 * i + 1 < n) {
            reinterpret_cast<__half2*>(out)[i] = __hfma2(pairs(a)[i], pairs(b)[i], pairs(c)[i]);
        } else {
            out[n - 1] = __hfma(a[n - 1], b[n - 1], c[n - 1]);
        }
    }
}

__global__ void half_operators(const __half* a, const __half* b, __half* sums, __half* products,
                               __half* quotients, unsigned char* less, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    sums[i] = a[i] + b[i];
    products[i] = a[i] * b[i];
    quotients[i] = a[i] / b[i];
    less[i] = a[i] < b[i] | (__hmax(a[i], b[i]) == a[i]) << 1 | __hisnan(a[i]) << 2;
}

// From float with every rounding, and back; to and from integers.
__global__ void half_conversions(const float* in, __half* nearest, __half* down, __half* up, __half* to_zero,
                                 float* back, int* whole, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    nearest[i] = __float2half_rn(in[i]);
    down[i] = __float2half_rd(in[i]);
    up[i] = __float2half_ru(in[i]);
    to_zero[i] = __float2half_rz(in[i]);
    back[i] = __half2float(nearest[i]);
    whole[i] = __half2int_rn(nearest[i]);
}

__global__ void half_sum(const __half2* in, __half2* sum, float2* exact, int pairs) {
    __half2 mine = __float2half2_rn(0.0f);
    float2 wide = make_float2(0, 0);
    for (int i = threadIdx.x; i < pairs; i += 32) {
        mine = __hadd2(mine, in[i]);
        float2 both = __half22float2(in[i]);
        wide.x += both.x;
        wide.y += both.y;
    }
    for (int step = 16; step; step /= 2) mine = __hadd2(mine, __shfl_xor_sync(~0u, mine, step));
    if (threadIdx.x == 0) *sum = mine;
    atomicAdd(&exact->x, wide.x);
    atomicAdd(&exact->y, wide.y);
}

// Stored as bfloat16, computed in float.
__global__ void bfloat_axpy(float a, const __nv_bfloat16* x, __nv_bfloat16* y, int n) {
    for (auto i : bascule::grid_stride(n)) {
        y[i] = __float2bfloat16(__fadd_rn(__fmul_rn(a, __bfloat162float(x[i])), __bfloat162float(y[i])));
    }
}

#if __CUDA_ARCH__ >= 800
__global__ void bfloat_fma(const __nv_bfloat162* a, const __nv_bfloat162* b, __nv_bfloat162* out, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pairs) out[i] = __hfma2(a[i], b[i], out[i]);
}
#endif
