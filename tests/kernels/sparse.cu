// Sparse matrices by coordinates, by rows of equal length and by compressed rows; products and triangular systems.

__global__ void spmv_coordinates(const int* rows, const int* columns, const double* values, const double* x,
                                 double* y, int count) {
    for (auto i : bascule::grid_stride(count)) atomicAdd(y + rows[i], values[i] * x[columns[i]]);
}

// Entry k of row r is at k * rows + r, so that adjacent threads read adjacent entries; column -1: none.
__global__ void spmv_ell(const int* columns, const float* values, const float* x, float* y, int rows,
                         int width) {
    for (auto row : bascule::grid_stride(rows)) {
        float sum = 0;
        for (int k = 0; k < width; ++k) {
            const int column = columns[k * rows + row];
            if (column >= 0) sum += values[k * rows + row] * x[column];
        }
        y[row] = sum;
    }
}

// How many entries each row of a product has: one block per row, at most 4096 columns as bits.
__global__ void spgemm_count(const int* a_starts, const int* a_columns, const int* b_starts,
                             const int* b_columns, int* counts, int columns) {
    __shared__ unsigned there[128];
    __shared__ int count;
    for (int i = threadIdx.x; i < 128; i += blockDim.x) there[i] = 0;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    for (int k = a_starts[blockIdx.x]; k < a_starts[blockIdx.x + 1]; ++k) {
        const int row = a_columns[k];
        for (int j = b_starts[row] + threadIdx.x; j < b_starts[row + 1]; j += blockDim.x)
            atomicOr(there + b_columns[j] / 32, 1u << b_columns[j] % 32);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < (columns + 31) / 32; i += blockDim.x) atomicAdd(&count, __popc(there[i]));
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// L x = b for the rows of one level, which depend only on rows of earlier levels. A row's last entry is its diagonal.
__global__ void solve_level(const int* starts, const int* columns, const double* values, const double* b,
                            double* x, const int* rows, int count) {
    for (auto i : bascule::grid_stride(count)) {
        const int row = rows[i], last = starts[row + 1] - 1;
        double sum = b[row];
        for (int k = starts[row]; k < last; ++k) sum -= values[k] * x[columns[k]];
        x[row] = sum / values[last];
    }
}
