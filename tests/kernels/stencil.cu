// Neighbourhoods: stencils with and without a halo in shared memory, and the game of life.

// Seven points in one dimension; beyond the ends the nearest element is repeated. The tile is in dynamic shared memory.
__global__ void stencil_line(const int* in, int* out, int n) {
    constexpr int radius = 3;
    extern __shared__ int tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto at = [&](int k) { return in[min(max(k, 0), n - 1)]; };
    tile[threadIdx.x + radius] = at(i);
    for (int k = threadIdx.x; k < radius; k += blockDim.x) {
        tile[k] = at(static_cast<int>(blockIdx.x * blockDim.x) - radius + k);
        tile[blockDim.x + radius + k] = at((blockIdx.x + 1) * blockDim.x + k);
    }
    __syncthreads();
    if (i >= n) return;
    int sum = 0;
#pragma unroll
    for (int k = -radius; k <= radius; ++k) sum += (radius + 1 - abs(k)) * tile[threadIdx.x + radius + k];
    out[i] = sum;
}

// One step of heat in the plane; the border is unchanged. A halo of one around tiles of 16 x 8.
__global__ void stencil_plane(const float* in, float* out, int rows, int columns) {
    __shared__ float tile[10][18];
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    auto load = [&](int r, int c) {
        if (r >= 0 && r < rows && c >= 0 && c < columns)
            tile[r - (int)blockIdx.y * 8 + 1][c - (int)blockIdx.x * 16 + 1] = in[r * columns + c];
    };
    load(row, column);
    if (threadIdx.x == 0) load(row, column - 1);
    if (threadIdx.x == 15) load(row, column + 1);
    if (threadIdx.y == 0) load(row - 1, column);
    if (threadIdx.y == 7) load(row + 1, column);
    __syncthreads();
    if (row >= rows || column >= columns) return;
    int y = threadIdx.y + 1, x = threadIdx.x + 1;
    bool inside = row > 0 && row < rows - 1 && column > 0 && column < columns - 1;
    float value = tile[y][x];
    if (inside) {
        float around =
            __fadd_rn(__fadd_rn(tile[y - 1][x], tile[y + 1][x]), __fadd_rn(tile[y][x - 1], tile[y][x + 1]));
        value = __fadd_rn(value, __fmul_rn(0.1f, __fsub_rn(around, __fmul_rn(4.0f, value))));
    }
    out[row * columns + column] = value;
}

// The seven-point Laplacian in space, marching along z with three planes in registers. The outermost layer is not
// written.
__global__ void stencil_space(const double* in, double* out, int depth, int rows, int columns) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (x >= columns - 1 || y >= rows - 1) return;
    const int plane = rows * columns, here = y * columns + x;
    double below = in[here], middle = in[here + plane];
    for (int z = 1; z < depth - 1; ++z) {
        int at = z * plane + here;
        double above = in[at + plane];
        out[at] =
            below + above + in[at - 1] + in[at + 1] + in[at - columns] + in[at + columns] - 6.0 * middle;
        below = middle;
        middle = above;
    }
}

// A step of Conway's game on a torus.
__global__ void life(const unsigned char* now, unsigned char* next, int rows, int columns) {
    for (auto i : bascule::grid_stride((long long)rows * columns)) {
        int row = i / columns, column = i % columns, neighbours = 0;
        for (int dy = -1; dy <= 1; ++dy) {
            for (int dx = -1; dx <= 1; ++dx) {
                if (dy || dx) {
                    neighbours += now[(row + dy + rows) % rows * columns + (column + dx + columns) % columns];
                }
            }
        }
        next[i] = neighbours == 3 || (neighbours == 2 && now[i]);
    }
}
