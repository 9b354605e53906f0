// The kernels that tests/bench/emulator.py times on the emulated device; emulator_scalar.cpp is the same in plain C++.
#include <mma.h>

__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

__global__ void reduce(const float* x, float* sums, int n) {
    __shared__ float shared[256];
    int i = blockIdx.x * blockDim.x * 8 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 8; ++k, i += 256)
        if (i < n) sum += x[i];
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = shared[0];
}

__global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float tile_a[16][16], tile_b[16][16];
    const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        tile_a[y][x] = a[row * n + k + x];
        tile_b[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

__global__ void gemm(const float* a, const float* b, float* c, int n) {  // 64 x 64 a block, 4 x 4 a thread
    __shared__ float tile_a[16][64], tile_b[16][64];
    const int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    const int first_row = blockIdx.y * 64, first_column = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int k = 0; k < n; k += 16) {
        for (int i = thread; i < 16 * 64; i += 256) {
            tile_a[i % 16][i / 16] = a[(first_row + i / 16) * n + k + i % 16];
            tile_b[i / 64][i % 64] = b[(k + i / 64) * n + first_column + i % 64];
        }
        __syncthreads();
        for (int i = 0; i < 16; ++i)
            for (int r = 0; r < 4; ++r)
                for (int s = 0; s < 4; ++s) sum[r][s] += tile_a[i][y * 4 + r] * tile_b[i][x + 16 * s];
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 4; ++s) c[(first_row + y * 4 + r) * n + first_column + x + 16 * s] = sum[r][s];
}

__global__ void tensor(const __half* a, const __half* b, float* c, int n) {  // 64 x 64 a block of four warps
    using namespace nvcuda::wmma;
    const int first_row = blockIdx.y * 64 + threadIdx.y * 16, first_column = blockIdx.x * 64;
    fragment<accumulator, 16, 16, 16, float> sum[4];
    for (int i = 0; i < 4; ++i) fill_fragment(sum[i], 0);
    for (int k = 0; k < n; k += 16) {
        fragment<matrix_a, 16, 16, 16, __half, row_major> left;
        load_matrix_sync(left, a + first_row * n + k, n);
        for (int i = 0; i < 4; ++i) {
            fragment<matrix_b, 16, 16, 16, __half, row_major> right;
            load_matrix_sync(right, b + k * n + first_column + 16 * i, n);
            mma_sync(sum[i], left, right, sum[i]);
        }
    }
    for (int i = 0; i < 4; ++i)
        store_matrix_sync(c + first_row * n + first_column + 16 * i, sum[i], n, mem_row_major);
}

__global__ void mandelbrot(int* out, int n, int limit) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const float cr = -2.0f + 2.5f * x / n, ci = -1.25f + 2.5f * y / n;
    float r = 0, i = 0;
    int step = 0;
    for (; step < limit && r * r + i * i < 4; ++step) {
        const float t = r * r - i * i + cr;
        i = 2 * r * i + ci;
        r = t;
    }
    out[y * n + x] = step;
}

__global__ void nbody(const float* positions, float* out, int n) {  // x, y, z, mass
    __shared__ float4 tile[256];
    const float4* bodies = reinterpret_cast<const float4*>(positions);
    float4* forces = reinterpret_cast<float4*>(out);
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float4 own = bodies[i];
    float fx = 0, fy = 0, fz = 0;
    for (int first = 0; first < n; first += 256) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 256; ++j) {
            const float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
            const float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            const float f = tile[j].w * inverse * inverse * inverse;
            fx += f * dx, fy += f * dy, fz += f * dz;
        }
        __syncthreads();
    }
    forces[i] = make_float4(fx, fy, fz, 0);
}

__global__ void transpose(const float* in, float* out, int n) {  // 32 x 32 per block of 32 x 8 threads
    __shared__ float tile[32][33];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32, column = blockIdx.x * 32;
    for (int k = y; k < 32; k += 8) tile[k][x] = in[(row + k) * n + column + x];
    __syncthreads();
    for (int k = y; k < 32; k += 8) out[(column + k) * n + row + x] = tile[x][k];
}

__global__ void histogram(const unsigned char* values, int* counts, int n) {
    __shared__ int own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(own + values[i], 1);
    __syncthreads();
    atomicAdd(counts + threadIdx.x, own[threadIdx.x]);
}

__global__ void scan(const int* in, int* out) {  // prefix sums of each 256 elements
    __shared__ int totals[8];
    const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int sum = in[i];
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) totals[warp] = sum;
    __syncthreads();
    for (int w = 0; w < warp; ++w) sum += totals[w];
    out[i] = sum;
}

__global__ void stencil(const float* in, float* out, int n) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || y == 0 || x >= n - 1 || y >= n - 1) return;
    const float* at = in + y * n + x;
    out[y * n + x] = 0.5f * at[0] + 0.125f * (at[-1] + at[1] + at[-n] + at[n]);
}

__device__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

__global__ void softmax(const float* in, float* out, int columns) {  // a warp per row
    const int lane = threadIdx.x;
    const float* row = in + (blockIdx.x * blockDim.y + threadIdx.y) * columns;
    float most = -1e30f, sum = 0;
    for (int c = lane; c < columns; c += 32) most = fmaxf(most, row[c]);
    for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
    for (int c = lane; c < columns; c += 32) sum += expf(row[c] - most);
    const float factor = 1 / warp_sum(sum);
    for (int c = lane; c < columns; c += 32) out[row - in + c] = expf(row[c] - most) * factor;
}

__global__ void layer_norm(const float* in, float* out, int columns) {  // a warp per row
    const int lane = threadIdx.x;
    const float* row = in + (blockIdx.x * blockDim.y + threadIdx.y) * columns;
    float sum = 0, squares = 0;
    for (int c = lane; c < columns; c += 32) sum += row[c];
    const float mean = warp_sum(sum) / columns;
    for (int c = lane; c < columns; c += 32) squares += (row[c] - mean) * (row[c] - mean);
    const float factor = 1 / sqrtf(warp_sum(squares) / columns + 1e-5f);
    for (int c = lane; c < columns; c += 32) out[row - in + c] = (row[c] - mean) * factor;
}

__global__ void bitonic(const int* in, int* out) {  // sorts each 512 elements
    __shared__ int shared[512];
    const int first = blockIdx.x * 512, t = threadIdx.x;
    shared[t] = in[first + t], shared[t + 256] = in[first + t + 256];
    for (int size = 2; size <= 512; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            const int i = 2 * t - t % step, j = i + step;
            const int a = shared[i], b = shared[j];
            if ((a > b) == ((i & size) == 0)) shared[i] = b, shared[j] = a;
        }
    __syncthreads();
    out[first + t] = shared[t], out[first + t + 256] = shared[t + 256];
}

__global__ void spmv(const int* starts, const int* columns, const float* values, const float* x, float* y,
                     int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k]];
    y[row] = sum;
}

__global__ void convolve(const float* in, const float* weights, float* out, int n) {  // 5 x 5, interior only
    __shared__ float tile[12][36], own[25];
    const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 32, row = blockIdx.y * 8;
    for (int i = y * 32 + x; i < 12 * 36; i += 256)
        tile[i / 36][i % 36] = in[(row + i / 36) * n + column + i % 36];
    if (y == 0 && x < 25) own[x] = weights[x];
    __syncthreads();
    float sum = 0;
    for (int j = 0; j < 5; ++j)
        for (int i = 0; i < 5; ++i) sum += own[5 * j + i] * tile[y + j][x + i];
    out[(row + y) * (n - 4) + column + x] = sum;
}

__device__ float normal(float d) {
    const float k = 1 / (1 + 0.2316419f * fabsf(d));
    const float tail =
        0.39894228f * expf(-0.5f * d * d) *
        (k * (0.31938153f + k * (-0.35656378f + k * (1.7814779f + k * (-1.8212559f + k * 1.3302744f)))));
    return d > 0 ? 1 - tail : tail;
}

__global__ void black_scholes(const float* prices, const float* strikes, const float* years, float* calls,
                              int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float rate = 0.02f, volatility = 0.3f, root = volatility * sqrtf(years[i]);
    const float d1 =
        (logf(prices[i] / strikes[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / root;
    calls[i] = prices[i] * normal(d1) - strikes[i] * expf(-rate * years[i]) * normal(d1 - root);
}

__global__ void warp_reduce(const float* x, float* sums, int n) {
    __shared__ float partial[8];
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = warp_sum(threadIdx.x < 8 ? partial[threadIdx.x] : 0);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void dot_int8(const int* a, const int* b, int* out, int words) {  // a row of words per thread
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = 0;
    for (int k = 0; k < words; ++k) sum = __dp4a(a[k * gridDim.x * blockDim.x + row], b[k], sum);
    out[row] = sum;
}
