// Sparse matrices and graphs in compressed rows: row r has the entries starts[r] to starts[r + 1].

__global__ void spmv_scalar(const int* starts, const int* columns, const double* values, const double* x,
                            double* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k]];
    y[row] = sum;
}

// For any block size: rows are divided among whole warps, and a partial warp at the end does nothing.
__global__ void spmv_warp(const int* starts, const int* columns, const float* values, const float* x,
                          float* y, int rows) {
    int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp >= warps) return;
    for (int row = blockIdx.x * warps + warp; row < rows; row += gridDim.x * warps) {
        float sum = 0;
        for (int k = starts[row] + lane; k < starts[row + 1]; k += 32) sum += values[k] * x[columns[k]];
        for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
        if (lane == 0) y[row] = sum;
    }
}

// One level of breadth-first search: the frontier's neighbours without a distance become the next frontier.
__global__ void bfs_step(const int* starts, const int* neighbours, int* distances, const int* frontier,
                         int count, int* next, int* next_count, int level) {
    for (auto i : bascule::grid_stride(count)) {
        int vertex = frontier[i];
        for (int k = starts[vertex]; k < starts[vertex + 1]; ++k) {
            int other = neighbours[k];
            if (atomicCAS(distances + other, -1, level) == -1) next[atomicAdd(next_count, 1)] = other;
        }
    }
}

// The graph's edges are reversed: `sources` of a row are the pages that link to it.
__global__ void page_rank_step(const int* starts, const int* sources, const int* out_degrees,
                               const double* ranks, double* next, int pages, double damping) {
    int page = blockIdx.x * blockDim.x + threadIdx.x;
    if (page >= pages) return;
    double sum = 0;
    for (int k = starts[page]; k < starts[page + 1]; ++k) sum += ranks[sources[k]] / out_degrees[sources[k]];
    next[page] = (1 - damping) / pages + damping * sum;
}

// Other threads change parents meanwhile, so they are volatile.
__device__ int find_root(int* all, int v) {
    volatile int* parents = all;
    int parent = parents[v];
    while (parent != v) {
        int above = parents[parent];
        if (above != parent) atomicMin(all + v, above);
        v = parent;
        parent = parents[v];
    }
    return v;
}

// Union-find without locks: the greater root becomes a child of the smaller one.
__global__ void unite(const int2* edges, int* parents, int count) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= count) return;
    int a = edges[e].x, b = edges[e].y;
    while (true) {
        a = find_root(parents, a);
        b = find_root(parents, b);
        if (a == b) return;
        int high = max(a, b), low = min(a, b);
        int seen = atomicCAS(parents + high, high, low);
        if (seen == high) return;
        a = seen;
        b = low;
    }
}

__global__ void flatten(int* parents, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) static_cast<volatile int*>(parents)[v] = find_root(parents, v);
}

// One round of Bellman-Ford: paths over each edge. Reports whether one became shorter.
__global__ void relax_edges(const int* from, const int* to, const int* weights, int* distances, int edges,
                            int* changed) {
    for (auto i : bascule::grid_stride(edges)) {
        const int start = atomicAdd(distances + from[i], 0);
        if (start == 0x7fffffff) continue;
        if (atomicMin(distances + to[i], start + weights[i]) > start + weights[i]) *changed = 1;
    }
}

// Neighbours ascend, each edge occurs once, from its lesser end: common neighbours of both ends close triangles.
__global__ void count_triangles(const int* starts, const int* neighbours, int vertices,
                                unsigned long long* count) {
    unsigned found = 0;
    for (auto v : bascule::grid_stride(vertices)) {
        for (int k = starts[v]; k < starts[v + 1]; ++k) {
            int a = k + 1, b = starts[neighbours[k]];
            const int a_end = starts[v + 1], b_end = starts[neighbours[k] + 1];
            while (a < a_end && b < b_end) {
                const int difference = neighbours[a] - neighbours[b];
                found += difference == 0;
                a += difference <= 0;
                b += difference >= 0;
            }
        }
    }
    atomicAdd(count, static_cast<unsigned long long>(found));
}
