// Every atomic operation that CUDA C++ has a function for, and the usual loops over compare-and-swap.

__global__ void atomics_int(const int* in, int* cells, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(cells + 0, in[i]);
        atomicSub(cells + 1, in[i]);
        atomicMin(cells + 2, in[i]);
        atomicMax(cells + 3, in[i]);
        atomicAnd(cells + 4, in[i]);
        atomicOr(cells + 5, in[i]);
        atomicXor(cells + 6, in[i]);
    }
}

__global__ void atomics_unsigned(const unsigned* in, unsigned* cells, unsigned* tickets, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicMin(cells + 0, in[i]);
        atomicMax(cells + 1, in[i]);
        atomicInc(cells + 2, 6u);
        atomicDec(cells + 3, 10u);
        unsigned ticket = atomicAdd(cells + 4, 1u);
        tickets[ticket] = i;
    }
}

__global__ void atomics_wide(const long long* in, long long* cells, unsigned long long* words, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned long long word = in[i];
        atomicMin(cells + 0, in[i]);
        atomicMax(cells + 1, in[i]);
        atomicAdd(words + 0, word);
        atomicMin(words + 1, word);
        atomicMax(words + 2, word);
        atomicAnd(words + 3, word);
        atomicOr(words + 4, word);
        atomicXor(words + 5, word);
    }
}

__device__ float atomic_max_float(float* cell, float value) {
    int* bits = reinterpret_cast<int*>(cell);
    int seen = *bits;
    while (__int_as_float(seen) < value) {
        int assumed = seen;
        seen = atomicCAS(bits, assumed, __float_as_int(value));
        if (seen == assumed) break;
    }
    return __int_as_float(seen);
}

__device__ double atomic_multiply(double* cell, double factor) {
    auto* bits = reinterpret_cast<unsigned long long*>(cell);
    unsigned long long seen = *bits, assumed;
    do {
        assumed = seen;
        seen = atomicCAS(bits, assumed, __double_as_longlong(__longlong_as_double(assumed) * factor));
    } while (seen != assumed);
    return __longlong_as_double(seen);
}

__global__ void atomics_float(const float* in, float* sum, double* wide_sum, float* largest, double* product,
                              int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(sum, in[i]);
    atomicAdd(wide_sum, static_cast<double>(in[i]));
    atomic_max_float(largest, in[i]);
    atomic_multiply(product, i % 2 ? 2.0 : 0.5);
}

// Every thread stores its own mark and takes the previous one: one mark remains, all the others are taken once.
__global__ void exchange(int* cell, int* taken) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    taken[i] = atomicExch(cell, i);
}

__global__ void exchange_wide(unsigned long long* cell, unsigned long long* taken) {
    unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
    taken[i] = atomicExch(cell, i << 32 | ~i & 0xffffffffu);
}

// In shared memory, and with block and system scope.
__global__ void atomics_shared(const int* in, int* out, int n) {
    __shared__ int sum, least;
    __shared__ unsigned long long wide;
    __shared__ float real;
    if (threadIdx.x == 0) {
        sum = 0;
        least = 0x7fffffff;
        wide = 0;
        real = 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        atomicAdd_block(&sum, in[i]);
        atomicMin(&least, in[i]);
        atomicAdd(&wide, static_cast<unsigned long long>(in[i]) * in[i]);
        atomicAdd(&real, static_cast<float>(in[i] & 7));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd_system(out + 0, sum);
        out[1] = least;
        out[2] = static_cast<int>(wide >> 32);
        out[3] = static_cast<int>(wide);
        out[4] = static_cast<int>(real);
    }
}

// A lock that threads of one warp and of all blocks contend for. The guarded operation is not atomic.
__global__ void spin_lock(int* lock, volatile long long* guarded, int turns) {
    for (int k = 0; k < turns; ++k) {
        bool done = false;
        while (!done) {
            if (atomicCAS(lock, 0, 1) == 0) {
                __threadfence();
                guarded[0] = guarded[0] + 1;
                guarded[1] = guarded[1] * 3 + 1;
                __threadfence();
                atomicExch(lock, 0);
                done = true;
            }
        }
    }
}

// The last block to finish, determined by a ticket, adds up the results of the others.
__global__ void last_block(const int* in, volatile long long* partial, unsigned* tickets, long long* out,
                           int n) {
    __shared__ unsigned long long sum;
    __shared__ bool last;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&sum, static_cast<unsigned long long>(static_cast<long long>(in[i])));
    __syncthreads();
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(tickets, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        long long all = 0;
        for (unsigned b = 0; b < gridDim.x; ++b) all += partial[b];
        *out = all;
    }
}
