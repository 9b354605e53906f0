// Several small numbers in one word, and the components of floats.

__global__ void small_sums(const unsigned* a, const unsigned* b, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i];
    unsigned values[] = {__vadd4(x, y),  __vsub2(x, y),  __vaddus4(x, y),  __vaddss2(x, y), __vmaxs2(x, y),
                         __vminu4(x, y), __vavgu4(x, y), __vcmpgtu4(x, y), __vcmpeq2(x, y), __vneg4(x)};
    for (int k = 0; k < 10; ++k) out[k * n + i] = values[k];
}

__global__ void small_differences(const unsigned* a, const unsigned* b, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned values[] = {__vabsdiffu4(a[i], b[i]), __vsadu4(a[i], b[i]), __vabsdiffs2(a[i], b[i])};
    for (int k = 0; k < 3; ++k) out[k * n + i] = values[k];
}

__global__ void float_anatomy(const float* in, int* kinds, int* exponents, unsigned* bits, float* scaled,
                              int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
    kinds[i] = isnan(x) | isinf(x) << 1 | isfinite(x) << 2 | (signbit(x) != 0) << 3 | (x < 0) << 4 |
               !(x >= 0) << 5 | (x != x) << 6 | (fabsf(x) >= 1.17549435e-38f && isfinite(x)) << 7;
    exponents[i] = isfinite(x) && x != 0 ? ilogbf(x) : 0;
    bits[i] = __float_as_uint(-fabsf(x));
    scaled[i] = ldexpf(x, 30) * __saturatef(x);
}

// Eight-bit floats with four and with five bits of exponent.
#include <cuda_fp8.h>

__global__ void eighth_precision(const float* in, unsigned char* narrow, unsigned char* wide, float* back,
                                 int n) {
    for (auto i : bascule::grid_stride(n)) {
        __nv_fp8_e4m3 e4m3(in[i]);
        __nv_fp8_e5m2 e5m2(in[i]);
        narrow[i] = e4m3.__x;
        wide[i] = e5m2.__x;
        back[i] = static_cast<float>(e4m3);
    }
}
