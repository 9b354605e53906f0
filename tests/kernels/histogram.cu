// Counting by atomics in global memory, and in a copy of the counters for each block.

__global__ void histogram_global(const unsigned* values, unsigned* counts, int n, unsigned bins) {
    for (auto i : bascule::grid_stride(n)) atomicAdd(counts + values[i] % bins, 1u);
}

__global__ void histogram_shared(const unsigned* values, unsigned* counts, int n, unsigned bins) {
    extern __shared__ unsigned mine[];
    for (unsigned b = threadIdx.x; b < bins; b += blockDim.x) mine[b] = 0;
    __syncthreads();
    for (auto i : bascule::grid_stride(n)) atomicAdd(mine + values[i] % bins, 1u);
    __syncthreads();
    for (unsigned b = threadIdx.x; b < bins; b += blockDim.x) {
        if (mine[b]) atomicAdd(counts + b, mine[b]);
    }
}

// Bytes, four at a time from aligned words; one thread handles the rest. Each of eight warps has its own counters.
__global__ void histogram_bytes(const unsigned char* bytes, unsigned* counts, int n) {
    __shared__ unsigned of_warp[8][256];
    unsigned* flat = &of_warp[0][0];
    for (int b = threadIdx.x; b < 8 * 256; b += blockDim.x) flat[b] = 0;
    __syncthreads();
    unsigned* mine = of_warp[threadIdx.x / 32 % 8];
    const uchar4* words = reinterpret_cast<const uchar4*>(bytes);
    for (auto i : bascule::grid_stride(n / 4)) {
        uchar4 four = words[i];
        atomicAdd(mine + four.x, 1u);
        atomicAdd(mine + four.y, 1u);
        atomicAdd(mine + four.z, 1u);
        atomicAdd(mine + four.w, 1u);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        for (int i = n / 4 * 4; i < n; ++i) atomicAdd(mine + bytes[i], 1u);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x) {
        unsigned sum = 0;
        for (int w = 0; w < 8; ++w) sum += of_warp[w][b];
        atomicAdd(counts + b, sum);
    }
}
