// Small formats, packed bytes and halves, and cache hints: less common instructions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda/annotated_ptr>
#if __has_include(<cuda/memory>)
#include <cuda/memory>
#endif

// --- eight bits --------------------------------------------------------------------------------------------

template <class Format>
__device__ void through(const float* x, unsigned char* bytes, float* back, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        Format value(x[i]);
        bytes[i] = value.__x;
        back[i] = float(value);
    }
}
__global__ void through_e4m3(const float* x, unsigned char* bytes, float* back, int n) {
    through<__nv_fp8_e4m3>(x, bytes, back, n);
}
__global__ void through_e5m2(const float* x, unsigned char* bytes, float* back, int n) {
    through<__nv_fp8_e5m2>(x, bytes, back, n);
}

// Scales a row to its greatest element and stores it in eight bits, and multiplies two such rows.
__global__ void quantized_dot(const float* x, const float* y, float* out, int width) {
    extern __shared__ __nv_fp8_storage_t quantized[];
    __shared__ float greatest[2];
    const float* rows[] = {x + blockIdx.x * width, y + blockIdx.x * width};
    if (threadIdx.x < 2) {
        float most = 0;
        for (int i = 0; i < width; ++i) most = fmaxf(most, fabsf(rows[threadIdx.x][i]));
        greatest[threadIdx.x] = most;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * width; i += blockDim.x) {
        float scaled = rows[i / width][i % width] / greatest[i / width] * 448.0f;
        quantized[i] = __nv_cvt_float_to_fp8(scaled, __NV_SATFINITE, __NV_E4M3);
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    float sum = 0;
    for (int i = 0; i < width; ++i) {
        float a = __half2float(__nv_cvt_fp8_to_halfraw(quantized[i], __NV_E4M3));
        float b = __half2float(__nv_cvt_fp8_to_halfraw(quantized[width + i], __NV_E4M3));
        sum += a * b;
    }
    out[blockIdx.x] = sum * greatest[0] * greatest[1] / (448.0f * 448.0f);
}

// --- packed bytes and halves ------------------------------------------------------------------------------

// The sum of absolute differences of 16 x 16 blocks of an image for every position in a search window.
__global__ void block_match(const unsigned* image, const unsigned* window, unsigned* out, int places) {
    int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= places) return;
    unsigned sum = 0;
    for (int word = 0; word < 64; ++word) {
        asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %0;" : "+r"(sum) : "r"(image[word]), "r"(window[place * 64 + word]));
    }
    out[place] = sum;
}

// For each byte of two colours: the average, the sum with saturation, and the greater one.
__global__ void blend_bytes(const unsigned* a, const unsigned* b, unsigned* average, unsigned* sum, unsigned* most, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    // The last operand is a register, because no operand of these may be a constant.
    asm("vavrg4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(average[i]) : "r"(a[i]), "r"(b[i]), "r"(0));
    asm("vadd4.u32.u32.u32.sat %0, %1, %2, %3;" : "=r"(sum[i]) : "r"(a[i]), "r"(b[i]), "r"(0));
    asm("vmax4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(most[i]) : "r"(a[i]), "r"(b[i]), "r"(0));
}

__global__ void differences_of_halves(const short2* a, const short2* b, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned* x = reinterpret_cast<const unsigned*>(a);
    const unsigned* y = reinterpret_cast<const unsigned*>(b);
    unsigned sum;
    asm("vabsdiff2.s32.s32.s32.add %0, %1, %2, %3;" : "=r"(sum) : "r"(x[i]), "r"(y[i]), "r"(0));
    out[i] = sum;
}

// Fixed point: a product of selected halves, rounded, shifted and clamped.
__global__ void fixed_point(const unsigned* a, const unsigned* b, const int* c, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int made;
    asm("vmad.s32.s32.s32.sat.shr15 %0, %1.h1, %2.h0, %3;" : "=r"(made) : "r"(a[i]), "r"(b[i]), "r"(c[i]));
    out[i] = made;
}

// --- cache hints -------------------------------------------------------------------------------------------

// Reads with the streaming cache property, and writes with the persisting one.
__global__ void stream_through(const float* x, float* y, int n) {
    cuda::annotated_ptr<const float, cuda::access_property::streaming> from(x);
    cuda::annotated_ptr<float, cuda::access_property::persisting> to(y);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = 2 * from[i];
}

#if __CUDA_ARCH__ >= 800
// Scratch memory whose contents are discarded.
__global__ void discards_its_scratch(float* scratch, float* out) {
    float* own = scratch + 32 * threadIdx.x;
    for (int i = 0; i < 32; ++i) own[i] = i * threadIdx.x;
    float sum = 0;
    for (int i = 0; i < 32; ++i) sum += own[i];
    out[threadIdx.x] = sum;
    cuda::discard_memory(own, 128);
}

__global__ void with_policies(const float4* x, float4* y, float* sum) {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(policy));
    float4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(x + threadIdx.x), "l"(policy));
    asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(y + threadIdx.x), "f"(v.w),
                 "f"(v.z), "f"(v.y), "f"(v.x), "l"(policy));
    asm volatile("red.global.add.L2::cache_hint.f32 [%0], %1, %2;" ::"l"(sum), "f"(v.x), "l"(policy));
    asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(x));
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(x));
}
#endif

// How long each thread slept, in nanoseconds.
__global__ void naps(unsigned long long* out, unsigned nanoseconds) {
    unsigned long long begin, end;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    __nanosleep(nanoseconds);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
    out[threadIdx.x] = end - begin;
}
