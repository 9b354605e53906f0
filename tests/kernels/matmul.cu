// Products of matrices, in row-major order.

// One tile of 8 x 8 of each factor in shared memory at a time.
__global__ void matmul_tiled(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[8][8], right[8][9];
    int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 8 + threadIdx.x;
    float sum = 0;
    for (int base = 0; base < k; base += 8) {
        int across = base + threadIdx.x, down = base + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = row < m && across < k ? a[row * k + across] : 0.0f;
        right[threadIdx.y][threadIdx.x] = down < k && column < n ? b[down * n + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

// C = alpha A B + beta C. A block of 8 x 8 threads computes 32 x 32 elements, each thread 4 x 4 of them in registers.
__global__ void gemm_registers(float alpha, const float* __restrict__ a, const float* __restrict__ b,
                               float beta, float* __restrict__ c, int m, int n, int k) {
    __shared__ float left[8][33], right[8][33];
    const int first_row = blockIdx.y * 32, first_column = blockIdx.x * 32, t = threadIdx.y * 8 + threadIdx.x;
    float sums[4][4] = {};
    for (int base = 0; base < k; base += 8) {
        for (int i = t; i < 256; i += 64) {
            int row = first_row + i / 8, across = base + i % 8;
            left[i % 8][i / 8] = row < m && across < k ? a[row * k + across] : 0.0f;
            int down = base + i / 32, column = first_column + i % 32;
            right[i / 32][i % 32] = down < k && column < n ? b[down * n + column] : 0.0f;
        }
        __syncthreads();
        for (int depth = 0; depth < 8; ++depth) {
            float rows[4], columns[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                rows[i] = left[depth][threadIdx.y * 4 + i];
                columns[i] = right[depth][threadIdx.x * 4 + i];
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) sums[i][j] += rows[i] * columns[j];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            int row = first_row + threadIdx.y * 4 + i, column = first_column + threadIdx.x * 4 + j;
            if (row < m && column < n) c[row * n + column] = alpha * sums[i][j] + beta * c[row * n + column];
        }
    }
}

// One warp for each row; four elements at a time if the row's length allows it.
__global__ void gemv(const float* a, const float* x, float* y, int rows, int columns) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
    const float* begin = a + static_cast<long long>(row) * columns;
    int done = 0;
    if (columns % 4 == 0) {
        for (int i = lane; i < columns / 4; i += 32) {
            float4 p = reinterpret_cast<const float4*>(begin)[i], q = reinterpret_cast<const float4*>(x)[i];
            sum += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
        }
        done = columns;
    }
    for (int i = done + lane; i < columns; i += 32) sum += begin[i] * __ldg(x + i);
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) y[row] = sum;
}

template <int N>
struct Small {
    double at[N][N];

    __device__ Small operator*(const Small& o) const {
        Small product;
        for (int i = 0; i < N; ++i) {
            for (int j = 0; j < N; ++j) {
                double sum = 0;
                for (int k = 0; k < N; ++k) sum += at[i][k] * o.at[k][j];
                product.at[i][j] = sum;
            }
        }
        return product;
    }
};

// One thread multiplies one pair of 3 x 3 matrices; elements are `batch` apart, so that threads read neighbours.
__global__ void matmul_batched(const double* a, const double* b, double* c, int batch) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch) return;
    Small<3> left, right;
    for (int e = 0; e < 9; ++e) {
        left.at[e / 3][e % 3] = a[e * batch + i];
        right.at[e / 3][e % 3] = b[e * batch + i];
    }
    Small<3> product = left * right;
    for (int e = 0; e < 9; ++e) c[e * batch + i] = product.at[e / 3][e % 3];
}
