// Lattices whose cells depend on their neighbours, updated one colour of a chequerboard at a time; small matrices.

// Philox4x32 with ten rounds.
__device__ uint4 philox(uint4 counter, uint2 key) {
    for (int round = 0; round < 10; ++round) {
        const unsigned high0 = __umulhi(0xd2511f53u, counter.x), low0 = 0xd2511f53u * counter.x;
        const unsigned high1 = __umulhi(0xcd9e8d57u, counter.z), low1 = 0xcd9e8d57u * counter.z;
        counter = {high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0};
        key.x += 0x9e3779b9u;
        key.y += 0xbb67ae85u;
    }
    return counter;
}

// Spins of 1 and -1 on a torus flip by the Metropolis algorithm: acceptance[k] is the probability for a spin that
// agrees with k of its four neighbours. `sweep` makes the random numbers of each call different.
__global__ void ising_half_sweep(int* spins, int width, int height, const float* acceptance, int colour,
                                 unsigned sweep, unsigned seed) {
    for (auto i : bascule::grid_stride(width * height)) {
        const int x = i % width, y = i / width;
        if ((x + y) % 2 != colour) continue;
        const int own = spins[i];
        const int agreeing = (spins[y * width + (x + 1) % width] == own) +
                             (spins[y * width + (x + width - 1) % width] == own) +
                             (spins[(y + 1) % height * width + x] == own) +
                             (spins[(y + height - 1) % height * width + x] == own);
        const uint4 random =
            philox({static_cast<unsigned>(i), sweep, static_cast<unsigned>(colour), 0}, {seed, 0});
        if ((random.x >> 8) * 0x1p-24f < acceptance[agreeing]) spins[i] = -own;
    }
}

// One half of a Gauss-Seidel step for the Poisson equation, with fixed borders.
__global__ void gauss_seidel_half(double* u, const double* f, int width, int height, int colour) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= width - 1 || y >= height - 1 || (x + y) % 2 != colour) return;
    const int i = y * width + x;
    u[i] = (u[i - 1] + u[i + 1] + u[i - width] + u[i + width] - f[i]) / 4;
}

// P A = L U of many small matrices: one block per matrix of n <= 32 rows, one thread per column, with partial pivoting.
__global__ void lu(double* matrices, int* pivots, int n) {
    __shared__ double a[32][33];
    __shared__ int pivot;
    double* own = matrices + static_cast<size_t>(blockIdx.x) * n * n;
    const int column = threadIdx.x;
    for (int row = 0; row < n; ++row) a[row][column] = own[row * n + column];
    __syncthreads();
    for (int k = 0; k < n; ++k) {
        if (column == 0) {
            pivot = k;
            for (int row = k + 1; row < n; ++row)
                if (fabs(a[row][k]) > fabs(a[pivot][k])) pivot = row;
            pivots[blockIdx.x * n + k] = pivot;
        }
        __syncthreads();
        const double swapped = a[k][column];
        a[k][column] = a[pivot][column];
        a[pivot][column] = swapped;
        __syncthreads();
        if (column > k) a[column][k] /= a[k][k];  // here one thread per row
        __syncthreads();
        if (column > k)
            for (int row = k + 1; row < n; ++row) a[row][column] -= a[row][k] * a[k][column];
        __syncthreads();
    }
    for (int row = 0; row < n; ++row) own[row * n + column] = a[row][column];
}
