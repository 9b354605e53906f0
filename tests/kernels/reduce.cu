// Many elements in, one out: by a tree in shared memory, by shuffles, in two passes.

// The number of lanes in the calling thread's warp: the last warp of a block may be partial.
__device__ unsigned warp_lanes() {
    unsigned rest = blockDim.x - threadIdx.x / 32 * 32;
    return rest < 32 ? rest : 32;
}

__device__ unsigned warp_mask() {
    unsigned lanes = warp_lanes();
    return lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
}

// For any block size: the upper half, rounded up, is folded onto the lower one.
__global__ void sum_tree(const float* in, float* out, int n) {
    extern __shared__ float partial[];
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += in[i];
    partial[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned live = blockDim.x; live > 1;) {
        unsigned half = (live + 1) / 2;
        if (threadIdx.x + half < live) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
        live = half;
    }
    if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

template <class T, class Op>
__device__ T warp_reduce(T value, Op op) {
    unsigned lane = threadIdx.x % 32, lanes = warp_lanes(), mask = warp_mask();
    for (unsigned step = 16; step > 0; step /= 2) {
        T other = __shfl_down_sync(mask, value, step);
        if (lane + step < lanes) value = op(value, other);
    }
    return value;
}

struct Sum {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return a + b;
    }
};

// Every block adds its sum to the single result.
__global__ void sum_shuffle(const long long* in, long long* out, int n) {
    __shared__ long long of_warp[32];
    long long mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += in[i];
    mine = warp_reduce(mine, Sum());
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        long long all = 0;
        for (unsigned w = 0; w * 32 < blockDim.x; ++w) all += of_warp[w];
        atomicAdd(reinterpret_cast<unsigned long long*>(out), static_cast<unsigned long long>(all));
    }
}

// Launched twice: the blocks' sums, then the sum of those, always in the same order.
__global__ void sum_two_pass(const double* in, double* out, int n) {
    __shared__ double partial[1024];
    double mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += in[i];
    partial[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned t = 1; t < blockDim.x; ++t) mine += partial[t];
        out[blockIdx.x] = mine;
    }
}

struct Candidate {
    float value;
    int at;
    __device__ bool better_than(const Candidate& other) const {
        return value < other.value || (value == other.value && at < other.at);
    }
};

// The first index of the smallest element, with one block.
__global__ void argmin(const float* in, int* out, int n) {
    __shared__ Candidate best[1024];
    Candidate mine{__int_as_float(0x7f800000), 0x7fffffff};
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        Candidate here{in[i], i};
        if (here.better_than(mine)) mine = here;
    }
    best[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned live = blockDim.x; live > 1;) {
        unsigned half = (live + 1) / 2;
        if (threadIdx.x + half < live && best[threadIdx.x + half].better_than(best[threadIdx.x])) {
            best[threadIdx.x] = best[threadIdx.x + half];
        }
        __syncthreads();
        live = half;
    }
    if (threadIdx.x == 0) *out = best[0].at;
}

// Uses shuffles and one atomic per warp. The caller initializes the results to the ends of the type's range.
__global__ void min_max(const int* in, int* low, int* high, int n) {
    int lowest = 0x7fffffff, highest = -0x7fffffff - 1;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        lowest = min(lowest, in[i]);
        highest = max(highest, in[i]);
    }
    lowest = warp_reduce(lowest, [](int a, int b) { return min(a, b); });
    highest = warp_reduce(highest, [](int a, int b) { return max(a, b); });
    if (threadIdx.x % 32 == 0) {
        atomicMin(low, lowest);
        atomicMax(high, highest);
    }
}

// Barriers that count, and that combine a predicate of every thread of the block.
__global__ void counting_barriers(const int* in, int* odd, int* all_positive, int* any_zero, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? in[i] : 2;
    int count = __syncthreads_count(value & 1);
    int all = __syncthreads_and(value > 0);
    int any = __syncthreads_or(value == 0);
    if (threadIdx.x == blockDim.x - 1) {
        odd[blockIdx.x] = count;
        all_positive[blockIdx.x] = all != 0;
        any_zero[blockIdx.x] = any != 0;
    }
}
