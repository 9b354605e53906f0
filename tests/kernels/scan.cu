// Prefix sums: of a warp, of a block, of segments, and of any number of blocks by carried sums.

__device__ unsigned warp_mask() {
    unsigned rest = blockDim.x - threadIdx.x / 32 * 32;
    return rest < 32 ? (1u << rest) - 1 : 0xffffffffu;
}

__device__ unsigned inclusive_warp_scan(unsigned value) {
    unsigned lane = threadIdx.x % 32, mask = warp_mask();
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
        unsigned below = __shfl_up_sync(mask, value, step);
        if (lane >= step) value += below;
    }
    return value;
}

// Each warp scans its own 32 elements.
__global__ void scan_warps(const unsigned* in, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = inclusive_warp_scan(i < n ? in[i] : 0);
    if (i < n) out[i] = sum;
}

// Hillis and Steele's scan over two buffers, one block with at least as many threads as elements.
__global__ void scan_block(const int* in, int* inclusive, int* exclusive, int n) {
    __shared__ int buffers[2][1024];
    int t = threadIdx.x, now = 0;
    buffers[0][t] = t < n ? in[t] : 0;
    __syncthreads();
    for (int step = 1; step < n; step *= 2) {
        int sum = buffers[now][t];
        if (t >= step) sum += buffers[now][t - step];
        now ^= 1;
        buffers[now][t] = sum;
        __syncthreads();
    }
    if (t >= n) return;
    inclusive[t] = buffers[now][t];
    exclusive[t] = t ? buffers[now][t - 1] : 0;
}

// Blelloch's scan, up and down a tree of a power of two in shared memory. Exclusive, for doubles.
__global__ void scan_tree(const double* in, double* out, int n, int width) {
    extern __shared__ double tree[];
    for (int i = threadIdx.x; i < width; i += blockDim.x) tree[i] = i < n ? in[i] : 0.0;
    for (int stride = 1; stride < width; stride *= 2) {
        __syncthreads();
        for (int k = threadIdx.x; k < width / (2 * stride); k += blockDim.x) {
            int right = (2 * k + 2) * stride - 1;
            tree[right] += tree[right - stride];
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) tree[width - 1] = 0;
    for (int stride = width / 2; stride > 0; stride /= 2) {
        __syncthreads();
        for (int k = threadIdx.x; k < width / (2 * stride); k += blockDim.x) {
            int right = (2 * k + 2) * stride - 1;
            double left = tree[right - stride];
            tree[right - stride] = tree[right];
            tree[right] += left;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = tree[i];
}

// A sum, and whether a segment began inside it.
struct Part {
    int sum, begun;
    __device__ Part then(const Part& next) const {
        return {next.begun ? next.sum : sum + next.sum, begun | next.begun};
    }
};

// Sums restart wherever `starts` is set. One block of at most 1024 threads.
__global__ void scan_segments(const int* in, const unsigned char* starts, int* out, int n) {
    __shared__ Part parts[1024];
    Part carried{0, 0};
    for (int base = 0; base < n; base += blockDim.x) {
        int i = base + threadIdx.x;
        Part mine = i < n ? Part{in[i], starts[i]} : Part{0, 0};
        for (unsigned step = 1; step < blockDim.x; step *= 2) {
            parts[threadIdx.x] = mine;
            __syncthreads();
            if (threadIdx.x >= step) mine = parts[threadIdx.x - step].then(mine);
            __syncthreads();
        }
        mine = carried.then(mine);
        if (i < n) out[i] = mine.sum;
        if (threadIdx.x == blockDim.x - 1) parts[0] = mine;
        __syncthreads();
        carried = parts[0];
        __syncthreads();
    }
}

// First of three launches: each block's inclusive scan by warps, and its total.
__global__ void scan_blocks(const unsigned* in, unsigned* out, unsigned* totals, int n) {
    __shared__ unsigned of_warp[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, warp = threadIdx.x / 32;
    unsigned sum = inclusive_warp_scan(i < n ? in[i] : 0);
    if (threadIdx.x % 32 == 31 || threadIdx.x == blockDim.x - 1) of_warp[warp] = sum;
    __syncthreads();
    for (int w = 0; w < warp; ++w) sum += of_warp[w];
    if (i < n) out[i] = sum;
    if (threadIdx.x == blockDim.x - 1) totals[blockIdx.x] = sum;
}

// Last of three: adds the sum before a block to all of it. `totals` were scanned in between.
__global__ void add_carries(unsigned* sums, const unsigned* totals, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x && i < n) sums[i] += totals[blockIdx.x - 1];
}
