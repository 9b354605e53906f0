// Sorting, merging and aligning sequences.

// A block sorts 256 keys, one bit at a time: keys with a 0 go before those with a 1.
__global__ void radix_sort_block(unsigned* keys) {
    __shared__ unsigned row[256];
    __shared__ int zeros[8];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned key = keys[blockIdx.x * 256 + threadIdx.x];
    for (int bit = 0; bit < 32; ++bit) {
        const bool one = key >> bit & 1;
        const unsigned those = __ballot_sync(~0u, !one);
        if (lane == 0) zeros[warp] = __popc(those);
        __syncthreads();
        int before = __popc(those & ((1u << lane) - 1)), all = 0;
        for (int w = 0; w < 8; ++w) {
            if (w < warp) before += zeros[w];
            all += zeros[w];
        }
        row[one ? all + static_cast<int>(threadIdx.x) - before : before] = key;
        __syncthreads();
        key = row[threadIdx.x];
    }
    keys[blockIdx.x * 256 + threadIdx.x] = key;
}

// Each thread merges `share` elements of the result; it finds the start of its part in a and b by bisecting a diagonal.
__global__ void merge_path(const int* a, int a_count, const int* b, int b_count, int* out, int share) {
    const int total = a_count + b_count;
    int at = (blockIdx.x * blockDim.x + threadIdx.x) * share;
    if (at >= total) return;
    int low = max(0, at - b_count), high = min(at, a_count);
    while (low < high) {
        const int middle = (low + high) / 2;
        if (a[middle] <= b[at - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    int i = low, j = at - low;
    for (const int end = min(at + share, total); at < end; ++at)
        out[at] = j >= b_count || (i < a_count && a[i] <= b[j]) ? a[i++] : b[j++];
}

// The best local alignment of two texts: one block per pair, one thread per letter of the first (at most 256), diagonal
// by diagonal.
__global__ void smith_waterman(const unsigned char* first, const unsigned char* second, int first_length,
                               int second_length, int* best) {
    __shared__ int scores[3][257];  // of the last diagonals, by letter of the first text
    __shared__ int most;
    const int i = threadIdx.x;
    for (int k = i; k < 257; k += blockDim.x) scores[0][k] = scores[1][k] = scores[2][k] = 0;
    if (i == 0) most = 0;
    __syncthreads();
    const unsigned char* a = first + blockIdx.x * first_length;
    const unsigned char* b = second + blockIdx.x * second_length;
    for (int diagonal = 0; diagonal < first_length + second_length - 1; ++diagonal) {
        int* now = scores[diagonal % 3];
        const int* last = scores[(diagonal + 2) % 3];
        const int* before = scores[(diagonal + 1) % 3];
        const int j = diagonal - i;
        int score = 0;
        if (i < first_length && j >= 0 && j < second_length) {
            const int corner = j == 0 ? 0 : before[i], left = j == 0 ? 0 : last[i + 1];
            score = max(max(0, corner + (a[i] == b[j] ? 3 : -2)), max(last[i], left) - 1);
            atomicMax(&most, score);
        }
        if (i < 256) now[i + 1] = score;
        __syncthreads();
    }
    if (i == 0) best[blockIdx.x] = most;
}
