// Lanes that diverge: partial masks, narrow shuffles, barriers of some warps, threads that leave early.

// Even and odd lanes exchange only among themselves, in separate branches.
__global__ void halves_exchange(const int* in, int* out, int* pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    if (lane % 2) {
        out[i] = __shfl_sync(0xaaaaaaaau, in[i], (lane + 2) % 32);
        pairs[i] = __popc(__match_any_sync(0xaaaaaaaau, in[i] / 4));
    } else {
        int sum = in[i];
        for (int step = 2; step < 32; step *= 2) sum += __shfl_xor_sync(0x55555555u, sum, step);
        out[i] = sum;
        pairs[i] = __ballot_sync(0x55555555u, in[i] & 1);
    }
}

// Shuffles in segments of 8, 16 and 32 lanes; values from outside a segment are not shifted in.
__global__ void narrow_shuffles(const double* in, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x = in[i];
    double values[] = {__shfl_sync(~0u, x, 3, 8),      __shfl_sync(~0u, x, 13, 8),
                       __shfl_up_sync(~0u, x, 3, 16),  __shfl_down_sync(~0u, x, 5, 16),
                       __shfl_xor_sync(~0u, x, 9, 16), __shfl_xor_sync(~0u, x, 6, 8),
                       __shfl_sync(~0u, x, i * 7, 32), __shfl_down_sync(~0u, x, 31, 32)};
    for (int k = 0; k < 8; ++k) out[k * n + i] = values[k];
}

// Collatz: every lane has its own number of iterations; the remaining lanes vote until none is left.
__global__ void different_rounds(const unsigned* in, int* rounds, int* votes, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = in[i];
    int steps = 0;
    while (x != 1) {
        if (x & 1) {
            x = 3 * x + 1;
        } else {
            x /= 2;
            if (steps > 100000) break;
        }
        ++steps;
    }
    rounds[i] = steps;
    unsigned here = __match_any_sync(__activemask(), blockIdx.x);
    int longest = steps;
    for (int lane = 0; lane < 32; ++lane) {
        if (here >> lane & 1) longest = max(longest, __shfl_sync(here, steps, lane));
    }
    votes[i] = longest;
}

// The first warp produces, the second consumes. They pass a buffer by two named barriers, at each of which one warp
// arrives and the other waits.
__global__ void named_barriers(const int* in, int* out, int rounds) {
    __shared__ int buffer[32];
    int lane = threadIdx.x % 32;
    for (int r = 0; r < rounds; ++r) {
        int i = (blockIdx.x * rounds + r) * 32 + lane;
        if (threadIdx.x < 32) {
            if (r) asm volatile("bar.sync 2, 64;" ::: "memory");
            buffer[lane] = in[i] * 2;
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            out[i] = buffer[31 - lane] + 1;
            if (r + 1 < rounds) asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
    }
}

// Each pair of warps meets at its own barrier, whose number is in a register.
__global__ void barrier_by_register(const int* in, int* out) {
    extern __shared__ int values[];
    int t = threadIdx.x, pair = t / 64;
    values[t] = in[blockIdx.x * blockDim.x + t];
    asm volatile("barrier.sync %0, 64;" ::"r"(pair + 1) : "memory");
    out[blockIdx.x * blockDim.x + t] = values[pair * 64 + 63 - t % 64];
}

// Threads beyond the data leave at once; the others still use barriers.
__global__ void early_leavers(const int* in, int* out, int n) {
    __shared__ int values[1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    values[threadIdx.x] = in[i];
    __syncthreads();
    int last = min(static_cast<int>(blockDim.x), n - static_cast<int>(blockIdx.x * blockDim.x)) - 1;
    int other = values[last - threadIdx.x];
    __syncthreads();
    values[threadIdx.x] = other + 1;
    __syncthreads();
    out[i] = values[threadIdx.x] + values[0];
}

// A state machine written with jumps: into loops, out of two of them, and back.
__global__ void jumps(const int* in, int* out, int* visits, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = in[i], seen = 0;
start:
    ++seen;
    if (seen > 50) goto done;
    switch (x & 3) {
        case 0:
            if (x > 100) goto done;
            x += 7;
            goto start;
        case 1:
            for (int k = 0; k < 5; ++k) {
                for (int j = 0; j < 5; ++j) {
                    x += k * j;
                    if (x % 17 == 0) goto middle;
                }
            }
            ++x;
            goto start;
        case 2:
            x = x / 2 + 1;
            goto start;
        default:
            break;
    }
middle:
    x -= 3;
    if (x > -1000) goto start;
done:
    out[i] = x;
    visits[i] = seen;
}

// A producer and a consumer in one warp: lane 1 polls what lane 0 will write.
__global__ void spin_in_a_warp(volatile int* flags, int* out, int rounds) {
    int lane = threadIdx.x % 2, pair = (blockIdx.x * blockDim.x + threadIdx.x) / 2;
    volatile int* flag = flags + pair;
    for (int r = 1; r <= rounds; ++r) {
        if (lane == 0) {
            while (*flag != 2 * r - 2) {
            }
            *flag = 2 * r - 1;
        } else {
            while (*flag != 2 * r - 1) {
            }
            *flag = 2 * r;
        }
    }
    if (lane) out[pair] = *flag;
}
