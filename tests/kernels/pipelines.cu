// Barriers and asynchronous copies of CUDA's C++ libraries: cuda::barrier, cuda::pipeline, cuda::memcpy_async,
// cooperative_groups::memcpy_async.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

// Every thread passes its number on, `rounds` times; thread 0 leaves after the first round.
__global__ void barrier_rounds(const int* in, int* out, int rounds) {
    __shared__ alignas(Barrier) unsigned char room[sizeof(Barrier)];
    Barrier& barrier = *reinterpret_cast<Barrier*>(room);
    __shared__ int values[256];
    int t = threadIdx.x, n = blockDim.x;
    if (t == 0) init(&barrier, n);
    __syncthreads();
    int mine = in[blockIdx.x * n + t];
    for (int r = 0; r < rounds; ++r) {
        values[t] = mine;
        auto token = barrier.arrive();
        int meanwhile = 2 * mine;
        barrier.wait(std::move(token));
        mine = values[(t + 1) % n] + meanwhile;
        if (t == 0) {
            barrier.arrive_and_drop();
            break;
        }
        barrier.arrive_and_wait();
    }
    out[blockIdx.x * n + t] = mine;
}

// The block copies a tile, and its barrier counts the copies of all its threads.
__global__ void barrier_copies(const int* in, int* out, int per_thread) {
    __shared__ alignas(Barrier) unsigned char room[sizeof(Barrier)];
    Barrier& barrier = *reinterpret_cast<Barrier*>(room);
    extern __shared__ __align__(16) int tile[];
    auto block = cg::this_thread_block();
    int count = per_thread * blockDim.x;
    if (block.thread_rank() == 0) init(&barrier, block.size());
    block.sync();
    cuda::memcpy_async(block, tile, in + blockIdx.x * count, sizeof(int) * count, barrier);
    barrier.arrive_and_wait();
    for (int i = threadIdx.x; i < count; i += blockDim.x) out[blockIdx.x * count + i] = tile[count - 1 - i];
}

// Three stages: the next tiles are being copied while one is summed.
__global__ void pipeline_sums(const int* in, long long* out, int tiles) {
    constexpr int stages = 3;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    __shared__ int buffers[stages][128];
    auto block = cg::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    in += blockIdx.x * tiles * blockDim.x;
    long long sum = 0;
    for (int tile = 0, fetched = 0; tile < tiles; ++tile) {
        for (; fetched < tiles && fetched < tile + stages; ++fetched) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, buffers[fetched % stages], in + fetched * blockDim.x,
                               sizeof(int) * blockDim.x, pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum += (tile + 1ll) * buffers[tile % stages][blockDim.x - 1 - threadIdx.x];
        pipeline.consumer_release();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// The first warp only copies, the others only compute.
__global__ void specialised_warps(const int* in, int* out, int tiles) {
    constexpr int stages = 2;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    __shared__ int buffers[stages][96];
    auto block = cg::this_thread_block();
    const bool copies = threadIdx.x < 32;
    auto pipeline = cuda::make_pipeline(block, &state,
                                        copies ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    if (copies) {
        for (int tile = 0; tile < tiles; ++tile) {
            pipeline.producer_acquire();
            for (int i = threadIdx.x; i < 96; i += 32)
                cuda::memcpy_async(&buffers[tile % stages][i], in + tile * 96 + i, sizeof(int), pipeline);
            pipeline.producer_commit();
        }
        return;
    }
    const int t = threadIdx.x - 32;
    int sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        pipeline.consumer_wait();
        sum = 3 * sum + buffers[tile % stages][95 - t];
        pipeline.consumer_release();
    }
    out[t] = sum;
}

// A pipeline for each thread.
__global__ void thread_pipeline(const int4* in, int4* out) {
    __shared__ int4 buffer[256];
    auto pipeline = cuda::make_pipeline();
    pipeline.producer_acquire();
    cuda::memcpy_async(buffer + threadIdx.x, in + blockIdx.x * blockDim.x + threadIdx.x, sizeof(int4), pipeline);
    pipeline.producer_commit();
    cuda::pipeline_consumer_wait_prior<0>(pipeline);
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
    pipeline.consumer_release();
}

// The block waits for the first of two copies, then for both.
__global__ void group_copies(const int* in, int* out, int count) {
    extern __shared__ __align__(16) int both[];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, both, in, sizeof(int) * count);
    cg::memcpy_async(block, both + count, in + count, sizeof(int) * count);
    cg::wait_prior<1>(block);
    int first = both[threadIdx.x % count];
    cg::wait(block);
    out[threadIdx.x] = first - both[count + threadIdx.x % count];
}

// A matrix product by tiles, while the next tiles of both operands are being copied.
__global__ void tiled_product(const float* a, const float* b, float* c, int n) {
    constexpr int side = 16;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ float as[2][side][side], bs[2][side][side];
    auto block = cg::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * side + y, column = blockIdx.x * side + x;
    auto fetch = [&](int k) {
        pipeline.producer_acquire();
        cuda::memcpy_async(&as[k % 2][y][x], a + row * n + k * side + x, sizeof(float), pipeline);
        cuda::memcpy_async(&bs[k % 2][y][x], b + (k * side + y) * n + column, sizeof(float), pipeline);
        pipeline.producer_commit();
    };
    float sum = 0;
    fetch(0);
    for (int k = 0; k < n / side; ++k) {
        if (k + 1 < n / side) fetch(k + 1);
        pipeline.consumer_wait();
        for (int i = 0; i < side; ++i) sum += as[k % 2][y][i] * bs[k % 2][i][x];
        pipeline.consumer_release();
    }
    c[row * n + column] = sum;
}
