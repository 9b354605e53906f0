// Mathematical functions, directed roundings, halves.
// Compiled by NVRTC 13.0 with -arch=compute_80 -lineinfo into the .ptx file of the same name.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void functions(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i];
    float* o = out + 20 * i;
    o[0] = sqrtf(x), o[1] = atan2f(x, y), o[2] = fmaf(x, y, x), o[3] = expf(x), o[4] = sinf(x), o[5] = cosf(x);
    o[6] = powf(x, y), o[7] = logf(x), o[8] = tanhf(x), o[9] = rsqrtf(x), o[10] = floorf(x), o[11] = ceilf(x);
    o[12] = truncf(x), o[13] = rintf(x), o[14] = fminf(x, y), o[15] = fmaxf(x, y), o[16] = fabsf(x);
    o[17] = copysignf(x, y), o[18] = __saturatef(x), o[19] = fmodf(x, y);
}
extern "C" __global__ void functions64(const double* a, const double* b, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i], y = b[i];
    double* o = out + 8 * i;
    o[0] = sqrt(x), o[1] = x / y, o[2] = fma(x, y, x), o[3] = exp(x), o[4] = sin(x), o[5] = log(x), o[6] = pow(x, y);
    o[7] = rint(x);
}
extern "C" __global__ void roundings(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i];
    float* o = out + 12 * i;
    o[0] = __fadd_rd(x, y), o[1] = __fadd_ru(x, y), o[2] = __fadd_rz(x, y), o[3] = __fmul_rd(x, y);
    o[4] = __fmul_ru(x, y), o[5] = __fmul_rz(x, y), o[6] = __fdiv_rd(x, y), o[7] = __fdiv_ru(x, y);
    o[8] = __fdiv_rz(x, y), o[9] = __fmaf_rd(x, y, x), o[10] = __fmaf_ru(x, y, x), o[11] = __fmaf_rz(x, y, x);
}
extern "C" __global__ void halves(const __half* a, const __half* b, __half* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half x = a[i], y = b[i];
    __half* o = out + 8 * i;
    o[0] = x + y, o[1] = x - y, o[2] = x * y, o[3] = __hfma(x, y, x), o[4] = __hmax(x, y), o[5] = __hneg(x);
    o[6] = __float2half(__half2float(x) * 3.0f), o[7] = __hlt(x, y) ? x : y;
}
extern "C" __global__ void halves_to_float(const __half* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __half2float(a[i]);
}
extern "C" __global__ void float_to_halves(const float* a, __half* out, __nv_bfloat16* brain, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __float2half(a[i]), brain[i] = __float2bfloat16(a[i]);
}
