// Transposition of matrices: directly, and through a tile in shared memory.

__global__ void transpose_naive(const double* in, double* out, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) out[column * rows + row] = in[row * columns + column];
}

// Blocks of 16 x 8 threads move tiles of 16 x 16; the 17th column avoids bank conflicts.
__global__ void transpose_tiled(const int* in, int* out, int rows, int columns) {
    __shared__ int tile[16][17];
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    for (int k = 0; k < 16; k += 8) {
        if (row + k < rows && column < columns)
            tile[threadIdx.y + k][threadIdx.x] = in[(row + k) * columns + column];
    }
    __syncthreads();
    column = blockIdx.y * 16 + threadIdx.x;
    row = blockIdx.x * 16 + threadIdx.y;
    for (int k = 0; k < 16; k += 8) {
        if (row + k < columns && column < rows)
            out[(row + k) * rows + column] = tile[threadIdx.x][threadIdx.y + k];
    }
}

// Threads of one block exchange their elements through shared memory: from blocked to striped order.
template <int Items>
__device__ void to_striped(int (&items)[Items], int* exchange) {
    for (int k = 0; k < Items; ++k) exchange[threadIdx.x * Items + k] = items[k];
    __syncthreads();
    for (int k = 0; k < Items; ++k) items[k] = exchange[k * blockDim.x + threadIdx.x];
}

__global__ void block_exchange(const int* in, int* out) {
    extern __shared__ int exchange[];
    int items[5];
    int base = blockIdx.x * blockDim.x * 5;
    for (int k = 0; k < 5; ++k) items[k] = in[base + threadIdx.x * 5 + k];
    to_striped(items, exchange);
    for (int k = 0; k < 5; ++k) out[base + threadIdx.x * 5 + k] = items[k];
}
