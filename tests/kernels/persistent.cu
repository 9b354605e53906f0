// Persistent blocks: they take work from a queue, pass tiles from warps to warps, and look back at earlier blocks.

// A queue of ranges. A long range becomes two shorter ones; for a short one, each element is squared. `open` counts the
// unfinished ranges: the kernel ends with the last.
__global__ void drain_queue(int* elements, int2* ranges, int* ready, int* head, int* tail, int* open) {
    __shared__ int taken;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) {
            taken = -1;
            while (taken < 0 && atomicAdd(open, 0) > 0) {
                const int first = atomicAdd(head, 0);
                if (first < atomicAdd(tail, 0) && atomicCAS(head, first, first + 1) == first) taken = first;
            }
            while (taken >= 0 && atomicAdd(ready + taken, 0) == 0) {
            }
            __threadfence();
        }
        __syncthreads();
        if (taken < 0) return;
        const int2 range = ranges[taken];
        if (range.y - range.x > 64) {
            if (threadIdx.x < 2) {
                const int middle = (range.x + range.y) / 2, slot = atomicAdd(tail, 1);
                atomicAdd(open, 1);
                ranges[slot] = threadIdx.x == 0 ? int2{range.x, middle} : int2{middle, range.y};
                __threadfence();
                atomicExch(ready + slot, 1);
            }
        } else {
            for (int i = range.x + threadIdx.x; i < range.y; i += blockDim.x) elements[i] *= elements[i];
        }
        __syncthreads();
        if (threadIdx.x == 0) atomicSub(open, 1);
    }
}

__device__ void wait_at(int barrier) { asm volatile("bar.sync %0, 256;" ::"r"(barrier) : "memory"); }
__device__ void arrive_at(int barrier) { asm volatile("bar.arrive %0, 256;" ::"r"(barrier) : "memory"); }

// Four warps fill one of two tiles while four others reverse the other one.
__global__ void produce_and_consume(const int* in, int* out, int tiles) {
    __shared__ int tile[2][128];
    const int lane = threadIdx.x % 128;
    constexpr int full = 1, empty = 3;  // two barriers each
    for (int t = 0; t < tiles; ++t) {
        const int buffer = t % 2;
        if (threadIdx.x < 128) {
            if (t >= 2) wait_at(empty + buffer);
            tile[buffer][lane] = in[t * 128 + lane];
            __threadfence_block();
            arrive_at(full + buffer);
        } else {
            wait_at(full + buffer);
            out[t * 128 + lane] = 3 * tile[buffer][127 - lane];
            if (t + 2 < tiles) arrive_at(empty + buffer);
        }
    }
}

// Prefix sums in one pass. One word per block: 0, or its sum with 1 in the upper half, or the sum up to it with 2.
__global__ void scan_look_back(const unsigned* in, unsigned* out, unsigned long long* states, unsigned* next,
                               int n) {
    __shared__ unsigned block, before, sums[256];
    if (threadIdx.x == 0) block = atomicAdd(next, 1u);  // numbers blocks in the order in which they begin
    __syncthreads();
    const int i = block * 256 + threadIdx.x;
    sums[threadIdx.x] = i < n ? in[i] : 0;
    for (int step = 1; step < 256; step *= 2) {
        __syncthreads();
        const unsigned other = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += other;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned own = sums[255];
        unsigned sum = 0;
        if (block > 0) {
            atomicExch(states + block, 1ull << 32 | own);
            for (unsigned back = block - 1;; --back) {
                unsigned long long state;
                do state = atomicAdd(states + back, 0ull);
                while (state == 0);
                sum += static_cast<unsigned>(state);
                if (state >> 32 == 2) break;
            }
        }
        atomicExch(states + block, 2ull << 32 | (sum + own));
        before = sum;
    }
    __syncthreads();
    if (i < n) out[i] = sums[threadIdx.x] + before;
}
