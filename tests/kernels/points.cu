// Points, fields and rays in space.

// The nearest centre of each point; the first if several are equally near.
__global__ void kmeans_assign(const float* points, const float* centres, int* labels, int count,
                              int centre_count, int dimensions) {
    for (auto i : bascule::grid_stride(count)) {
        float least = __int_as_float(0x7f800000);
        for (int k = 0; k < centre_count; ++k) {
            float distance = 0;
            for (int d = 0; d < dimensions; ++d) {
                const float step = points[i * dimensions + d] - centres[k * dimensions + d];
                distance += step * step;
            }
            if (distance < least) least = distance, labels[i] = k;
        }
    }
}

// Sums and counts of the points of each of at most 16 centres in at most 4 dimensions, first in shared memory.
__global__ void kmeans_gather(const float* points, const int* labels, float* sums, int* counts, int count,
                              int centre_count, int dimensions) {
    __shared__ float own_sums[64];
    __shared__ int own_counts[16];
    for (int i = threadIdx.x; i < 64; i += blockDim.x) {
        own_sums[i] = 0;
        if (i < 16) own_counts[i] = 0;
    }
    __syncthreads();
    for (auto i : bascule::grid_stride(count)) {
        atomicAdd(own_counts + labels[i], 1);
        for (int d = 0; d < dimensions; ++d)
            atomicAdd(own_sums + labels[i] * dimensions + d, points[i * dimensions + d]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < centre_count * dimensions; i += blockDim.x)
        atomicAdd(sums + i, own_sums[i]);
    for (int i = threadIdx.x; i < centre_count; i += blockDim.x) atomicAdd(counts + i, own_counts[i]);
}

// Where the field crosses `level` on the edges of a cell: line segments as (x0, y0, x1, y1), in any order.
__global__ void marching_squares(const float* field, int width, int height, float level, float4* lines,
                                 int* count) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width - 1 || y >= height - 1) return;
    const float corner[4] = {field[y * width + x], field[y * width + x + 1], field[(y + 1) * width + x + 1],
                             field[(y + 1) * width + x]};
    float2 crossings[4];
    int found = 0;
    for (int edge = 0; edge < 4; ++edge) {
        const float from = corner[edge], to = corner[(edge + 1) % 4];
        if ((from < level) == (to < level)) continue;
        const float t = (level - from) / (to - from);
        crossings[found++] = edge == 0   ? float2{x + t, static_cast<float>(y)}
                             : edge == 1 ? float2{x + 1.0f, y + t}
                             : edge == 2 ? float2{x + (1 - t), y + 1.0f}
                                         : float2{static_cast<float>(x), y + (1 - t)};
    }
    for (int k = 0; k + 1 < found; k += 2)
        lines[atomicAdd(count, 1)] = {crossings[k].x, crossings[k].y, crossings[k + 1].x, crossings[k + 1].y};
}

// The nearest sphere (x, y, z, radius) that each ray hits, or -1, and its distance.
__global__ void ray_spheres(const double* origins, const double* directions, const double* spheres,
                            int sphere_count, int* hits, double* distances, int rays) {
    for (auto i : bascule::grid_stride(rays)) {
        const double* o = origins + 3 * i;
        const double* d = directions + 3 * i;
        double nearest = __longlong_as_double(0x7ff0000000000000);
        int hit = -1;
        for (int k = 0; k < sphere_count; ++k) {
            const double* s = spheres + 4 * k;
            const double x = s[0] - o[0], y = s[1] - o[1], z = s[2] - o[2];
            const double along = x * d[0] + y * d[1] + z * d[2];
            const double inside = s[3] * s[3] - (x * x + y * y + z * z - along * along);
            if (inside < 0) continue;
            double t = along - sqrt(inside);
            if (t < 0) t = along + sqrt(inside);
            if (t >= 0 && t < nearest) nearest = t, hit = k;
        }
        hits[i] = hit;
        distances[i] = nearest;
    }
}
