// Sorting: networks, a radix pass, merging by merge paths, and a quicksort with an explicit stack.

// Batcher's bitonic network over a power of two in shared memory; elements after the n-th key count as the largest.
__global__ void sort_bitonic(int* keys, int n, int width) {
    extern __shared__ int shared[];
    for (int i = threadIdx.x; i < width; i += blockDim.x) shared[i] = i < n ? keys[i] : 0x7fffffff;
    for (int size = 2; size <= width; size *= 2) {
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < width; i += blockDim.x) {
                int other = i ^ step;
                bool up = (i & size) == 0;
                if (other > i && (shared[i] > shared[other]) == up) {
                    int swapped = shared[i];
                    shared[i] = shared[other];
                    shared[other] = swapped;
                }
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) keys[i] = shared[i];
}

// Odd-even transposition sort in global memory, with values that follow their keys.
__global__ void sort_odd_even(float* keys, int* values, int n) {
    for (int phase = 0; phase < n; ++phase) {
        for (int i = 2 * threadIdx.x + phase % 2; i + 1 < n; i += 2 * blockDim.x) {
            if (keys[i] > keys[i + 1]) {
                float key = keys[i];
                int value = values[i];
                keys[i] = keys[i + 1];
                values[i] = values[i + 1];
                keys[i + 1] = key;
                values[i + 1] = value;
            }
        }
        __syncthreads();
    }
}

// A radix pass over four bits, in three launches: count, scan, scatter. `counts` is [digit][block].
__global__ void radix_count(const unsigned* keys, unsigned* counts, int n, int shift) {
    __shared__ unsigned mine[16];
    if (threadIdx.x < 16) mine[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(mine + (keys[i] >> shift & 15), 1u);
    __syncthreads();
    if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = mine[threadIdx.x];
}

__global__ void radix_scan(unsigned* counts, int n) {
    unsigned sum = 0;
    for (int i = 0; i < n; ++i) {
        unsigned count = counts[i];
        counts[i] = sum;
        sum += count;
    }
}

// Stable: a key's index counts the threads of its block before it with the same digit.
__global__ void radix_scatter(const unsigned* keys, const unsigned* starts, unsigned* out, int n, int shift) {
    __shared__ unsigned digits[1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned key = i < n ? keys[i] : 0, digit = i < n ? key >> shift & 15 : 16;
    digits[threadIdx.x] = digit;
    __syncthreads();
    if (i >= n) return;
    unsigned before = 0;
    for (unsigned t = 0; t < threadIdx.x; ++t) before += digits[t] == digit;
    out[starts[digit * gridDim.x + blockIdx.x] + before] = key;
}

// Returns how many of the first `diagonal` elements of the merged sequence come from a.
__device__ int merge_path(const int* a, int na, const int* b, int nb, int diagonal) {
    int low = max(0, diagonal - nb), high = min(diagonal, na);
    while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] <= b[diagonal - 1 - middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Each thread writes seven elements of the merged sequence.
__global__ void merge_sorted(const int* a, int na, const int* b, int nb, int* out) {
    constexpr int share = 7;
    int begin = (blockIdx.x * blockDim.x + threadIdx.x) * share;
    if (begin >= na + nb) return;
    int i = merge_path(a, na, b, nb, begin), j = begin - i;
    for (int k = begin; k < min(begin + share, na + nb); ++k) {
        bool from_a = j >= nb || (i < na && a[i] <= b[j]);
        out[k] = from_a ? a[i++] : b[j++];
    }
}

// Every thread sorts one row, with the remaining ranges on a stack in local memory.
__global__ void sort_quick(short* rows, int count, int length) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count) return;
    short* keys = rows + row * length;
    int stack[64], top = 0;
    stack[top++] = 0;
    stack[top++] = length - 1;
    while (top) {
        int last = stack[--top], first = stack[--top];
        if (first >= last) continue;
        short pivot = keys[(first + last) / 2];
        int i = first, j = last;
        while (i <= j) {
            while (keys[i] < pivot) ++i;
            while (keys[j] > pivot) --j;
            if (i <= j) {
                short swapped = keys[i];
                keys[i++] = keys[j];
                keys[j--] = swapped;
            }
        }
        // The longer part is pushed first, so that the shorter is processed next: the stack stays logarithmic.
        bool left_longer = j - first > last - i;
        stack[top++] = left_longer ? first : i;
        stack[top++] = left_longer ? j : last;
        stack[top++] = left_longer ? i : first;
        stack[top++] = left_longer ? last : j;
    }
}

// The first index whose key is not less than the given one.
__global__ void lower_bound(const double* keys, int n, const double* sought, int* found, int count) {
    for (auto q : bascule::grid_stride(count)) {
        int low = 0, length = n;
        while (length > 0) {
            int half = length / 2;
            if (keys[low + half] < sought[q]) {
                low += half + 1;
                length -= half + 1;
            } else {
                length = half;
            }
        }
        found[q] = low;
    }
}
