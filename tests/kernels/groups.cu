// Threads that work as groups: votes and matches of warps, cooperative groups, grid-wide synchronization.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void votes(const int* in, unsigned* ballots, int* any, int* all, int* uniform, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned mask = __ballot_sync(__activemask(), i < n);
    if (i >= n) return;
    ballots[i] = __ballot_sync(mask, in[i] & 1);
    any[i] = __any_sync(mask, in[i] == 7);
    all[i] = __all_sync(mask, in[i] < 90);
    uniform[i] = __all_sync(mask, in[i] >= 0) != 0;
}

// The lanes with an equal value are matched; the lowest of them counts for all.
__global__ void matches(const int* in, const long long* wide, unsigned* equal, unsigned* equal_wide,
                        unsigned* same, int* same_everywhere, int* counts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    unsigned mask = __ballot_sync(__activemask(), i < n);
    if (i >= n) return;
    equal[i] = __match_any_sync(mask, in[i]);
    equal_wide[i] = __match_any_sync(mask, wide[i]);
    same[i] = __match_all_sync(mask, in[i] / 100, same_everywhere + i);
    if (lane == __ffs(equal[i]) - 1) atomicAdd(counts + in[i], __popc(equal[i]));
}

#if __CUDA_ARCH__ >= 800
__global__ void warp_reductions(const int* in, int* sums, int* least, unsigned* greatest, unsigned* bits,
                                int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned mask = __ballot_sync(__activemask(), i < n);
    if (i >= n) return;
    sums[i] = __reduce_add_sync(mask, in[i]);
    least[i] = __reduce_min_sync(mask, in[i]);
    greatest[i] = __reduce_max_sync(mask, static_cast<unsigned>(in[i]));
    bits[i] = __reduce_xor_sync(mask, static_cast<unsigned>(in[i])) ^
              __reduce_or_sync(mask, 1u << (in[i] & 31)) ^
              __reduce_and_sync(mask, static_cast<unsigned>(in[i]) | 0xff00u);
}
#endif

// Sums inside tiles of eight threads, and of the block by the first threads of its tiles.
__global__ void tiles_of_eight(const int* in, int* tile_sums, int* block_sums, int n) {
    __shared__ int of_block;
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    if (block.thread_rank() == 0) of_block = 0;
    block.sync();
    int i = blockIdx.x * block.size() + block.thread_rank(), value = i < n ? in[i] : 0;
    for (int step = tile.size() / 2; step > 0; step /= 2) value += tile.shfl_down(value, step);
    value = tile.shfl(value, 0);
    if (i < n) tile_sums[i] = value;
    if (tile.thread_rank() == 0) atomicAdd(&of_block, value);
    cg::sync(block);
    if (block.thread_rank() == 0) block_sums[blockIdx.x] = of_block;
}

// Lanes on one side of a branch reserve indices together: one atomic per group.
__global__ void compact(const int* in, int* out, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] % 3 == 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        int start = 0;
        if (active.thread_rank() == 0) start = atomicAdd(count, static_cast<int>(active.size()));
        out[active.shfl(start, 0) + active.thread_rank()] = in[i];
    }
}

// Needs a cooperative launch: the whole grid synchronizes between two steps of smoothing on a ring.
__global__ void smooth_ring(int* a, int* b, int n, int steps) {
    cg::grid_group grid = cg::this_grid();
    int *now = a, *next = b;
    for (int s = 0; s < steps; ++s) {
        for (long long i = grid.thread_rank(); i < n; i += grid.size()) {
            next[i] = now[(i + n - 1) % n] + 2 * now[i] + now[(i + 1) % n];
        }
        grid.sync();
        int* swapped = now;
        now = next;
        next = swapped;
    }
}
