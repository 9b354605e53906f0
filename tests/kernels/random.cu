// Random numbers by integer arithmetic only, and a count made from them.

// Philox 4x32 with ten rounds: four words from a counter of 128 bits and a key of 64.
__device__ uint4 philox(uint4 counter, uint2 key) {
    for (int round = 0; round < 10; ++round) {
        unsigned high0 = __umulhi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
        unsigned high1 = __umulhi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
        counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

// Element i is word i % 4 of counter i / 4: the numbers do not depend on the grid.
__global__ void random_philox(unsigned* out, int n, unsigned seed, unsigned stream) {
    int quads = (n + 3) / 4;
    for (auto q : bascule::grid_stride(quads)) {
        uint4 four = philox(make_uint4((unsigned)q, 0, stream, 7u), make_uint2(seed, ~seed));
        unsigned words[4] = {four.x, four.y, four.z, four.w};
        for (int k = 0; k < 4 && q * 4 + k < n; ++k) out[q * 4 + k] = words[k];
    }
}

__device__ unsigned long long xorshift(unsigned long long& state) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717ull;
}

// A generator for each thread, whose state is kept between launches.
__global__ void random_xorshift(unsigned long long* states, unsigned long long* out, int threads, int each) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    unsigned long long state = states[t];
    for (int k = 0; k < each; ++k) out[k * threads + t] = xorshift(state);
    states[t] = state;
}

#if __CUDA_ARCH__ >= 800
// Points of a square as integers, so that the number inside the circle is exact.
__global__ void monte_carlo_pi(unsigned long long* inside, int samples, unsigned seed) {
    unsigned mine = 0;
    for (auto i : bascule::grid_stride(samples)) {
        uint4 four = philox(make_uint4((unsigned)i, 1, 2, 3), make_uint2(seed, 0));
        unsigned long long x = four.x, y = four.y;
        unsigned long long squares = x * x, sum = squares + y * y;
        mine += sum >= squares;  // no carry: closer than 2**32
    }
    mine = __reduce_add_sync(__activemask(), mine);
    if (threadIdx.x % 32 == 0) atomicAdd(inside, static_cast<unsigned long long>(mine));
}
#endif
