// Parts of transformers: normalised rows, rotary positions, and attention that never stores a whole row of scores.

// One block per row: x / root of the mean square, times a gain for each column.
__global__ void rms_norm(const float* x, const float* gain, float* out, int columns, float epsilon) {
    __shared__ float partial[32];
    const float* row = x + static_cast<size_t>(blockIdx.x) * columns;
    float sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += row[c] * row[c];
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
        for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (threadIdx.x == 0) partial[0] = rsqrtf(sum / columns + epsilon);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        out[static_cast<size_t>(blockIdx.x) * columns + c] = row[c] * partial[0] * gain[c];
}

// Rotary embedding: each pair of columns is rotated by an angle that is proportional to the row's position and falls
// with the number of the pair.
__global__ void rotary(float* x, const int* positions, int rows, int columns, float base) {
    for (auto i : bascule::grid_stride(rows * columns / 2)) {
        const int row = i / (columns / 2), pair = i % (columns / 2);
        float s, c;
        sincosf(positions[row] * powf(base, -2.0f * pair / columns), &s, &c);
        float* at = x + row * columns + 2 * pair;
        const float a = at[0], b = at[1];
        at[0] = a * c - b * s;
        at[1] = a * s + b * c;
    }
}

// softmax(q k' / root of the width) v, a head for each blockIdx.y, a query for each thread. Keys are read in tiles.
// When a score exceeds all earlier ones, the sums so far are scaled down to it.
__global__ void attention(const float* queries, const float* keys, const float* values, float* out,
                          int tokens, int causal) {
    constexpr int width = 32, tile = 32;
    __shared__ float tile_keys[tile][width], tile_values[tile][width];
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t head = static_cast<size_t>(blockIdx.y) * tokens * width;
    float query[width], sum[width] = {}, most = __int_as_float(0xff800000), total = 0;
    for (int c = 0; c < width; ++c)
        query[c] = row < tokens ? queries[head + row * width + c] * rsqrtf(static_cast<float>(width)) : 0;
    for (int first = 0; first < tokens; first += tile) {
        __syncthreads();
        for (int i = threadIdx.x; i < tile * width; i += blockDim.x) {
            const int token = first + i / width;
            tile_keys[i / width][i % width] = token < tokens ? keys[head + token * width + i % width] : 0;
            tile_values[i / width][i % width] = token < tokens ? values[head + token * width + i % width] : 0;
        }
        __syncthreads();
        const int seen = causal ? min(tokens, row + 1) : tokens;
        for (int j = 0; j < min(tile, seen - first); ++j) {
            float score = 0;
            for (int c = 0; c < width; ++c) score += query[c] * tile_keys[j][c];
            const float next = fmaxf(most, score), before = expf(most - next), now = expf(score - next);
            total = total * before + now;
            for (int c = 0; c < width; ++c) sum[c] = sum[c] * before + now * tile_values[j][c];
            most = next;
        }
    }
    if (row >= tokens) return;
    for (int c = 0; c < width; ++c) out[head + row * width + c] = sum[c] / total;
}
