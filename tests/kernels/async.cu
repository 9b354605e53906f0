// Copies that run while the threads do other work, and barriers in shared memory.
#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline_primitives.h>

// Double buffering: one buffer is filled while the other is used. Each thread sums the mirrored thread's elements.
__global__ void pipelined_sums(const int4* in, int4* out, int tiles) {
    extern __shared__ int4 buffers[];
    auto fetch = [&](int tile) {
        __pipeline_memcpy_async(buffers + tile % 2 * blockDim.x + threadIdx.x,
                                in + (blockIdx.x * tiles + tile) * blockDim.x + threadIdx.x, sizeof(int4));
        __pipeline_commit();
    };
    int4 sum = make_int4(0, 0, 0, 0);
    fetch(0);
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) {
            fetch(tile + 1);
            __pipeline_wait_prior(1);
        } else {
            __pipeline_wait_prior(0);
        }
        __syncthreads();
        int4 value = buffers[tile % 2 * blockDim.x + blockDim.x - 1 - threadIdx.x];
        sum = make_int4(sum.x + value.x, sum.y + value.y, sum.z + value.z, sum.w + value.w);
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Copies of 4 bytes, of which the last ones are filled with zeros.
__global__ void copied_with_zeros(const float* in, float* out, int valid) {
    __shared__ float buffer[256];
    int missing = static_cast<int>(threadIdx.x) < valid ? 0 : 4;
    __pipeline_memcpy_async(buffer + threadIdx.x, in + (missing ? 0 : threadIdx.x), 4, missing);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = buffer[(threadIdx.x + 1) % blockDim.x];
}

// Threads arrive, do other work, and wait for the phase to end.
__global__ void split_barrier(const int* in, int* out, int rounds) {
    __shared__ __mbarrier_t barrier;
    __shared__ int values[256];
    int t = threadIdx.x, n = blockDim.x;
    if (t == 0) __mbarrier_init(&barrier, n);
    __syncthreads();
    int mine = in[blockIdx.x * n + t];
    for (int r = 0; r < rounds; ++r) {
        values[t] = mine;
        __mbarrier_token_t token = __mbarrier_arrive(&barrier);
        int meanwhile = mine * 3;
        while (!__mbarrier_test_wait(&barrier, token)) {
        }
        mine = values[(t + 1) % n] + meanwhile;
        token = __mbarrier_arrive(&barrier);
        while (!__mbarrier_test_wait(&barrier, token)) {
        }
    }
    out[blockIdx.x * n + t] = mine;
}

#if __CUDA_ARCH__ >= 800
// Reads what it has copied; `commits` and `waits` tell whether it first commits the copy and waits for it.
__global__ void forgotten_waits(const unsigned* in, unsigned* out, bool commits, bool waits) {
    __shared__ unsigned buffer[256];
    buffer[threadIdx.x] = in[threadIdx.x];  // this right value must not be read after the copy has begun
    __pipeline_memcpy_async(buffer + threadIdx.x, in + threadIdx.x, sizeof(unsigned));
    if (commits) __pipeline_commit();
    if (waits) __pipeline_wait_prior(0);
    out[threadIdx.x] = *static_cast<volatile unsigned*>(buffer + threadIdx.x);
}
#endif

// Each thread copies, and arrives at the barrier when its copy is complete; other threads read the copied values.
__global__ void copies_that_arrive(const int2* in, int2* out) {
    __shared__ __mbarrier_t barrier;
    __shared__ int2 buffer[256];
    int t = threadIdx.x, n = blockDim.x;
    if (t == 0) __mbarrier_init(&barrier, n);
    __syncthreads();
    __pipeline_memcpy_async(buffer + t, in + blockIdx.x * n + t, sizeof(int2));
    __pipeline_arrive_on(&barrier);
    __mbarrier_token_t token = __mbarrier_arrive(&barrier);
    while (!__mbarrier_test_wait(&barrier, token)) {
    }
    out[blockIdx.x * n + t] = buffer[(t + n / 2) % n];
}
