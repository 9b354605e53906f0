// Iterations whose length differs among threads, and the attraction of bodies.

// z = z * z + c until |z| > 2. No product is fused, so that NumPy rounds the same.
__device__ int escape(float x, float y, float cx, float cy, int limit) {
    int k = 0;
    for (; k < limit; ++k) {
        float xx = __fmul_rn(x, x), yy = __fmul_rn(y, y);
        if (__fadd_rn(xx, yy) > 4.0f) break;
        y = __fadd_rn(__fmul_rn(__fadd_rn(x, x), y), cy);
        x = __fadd_rn(__fsub_rn(xx, yy), cx);
    }
    return k;
}

__global__ void mandelbrot(const float* xs, const float* ys, unsigned short* out, int width, int height,
                           int limit) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column < width && row < height) out[row * width + column] = escape(0, 0, xs[column], ys[row], limit);
}

// Rows of the image are `pitch` elements apart; the elements between them are not written.
__global__ void julia(const float* xs, const float* ys, unsigned char* out, int width, int height, int pitch,
                      float cx, float cy) {
    for (auto i : bascule::grid_stride((long long)width * height)) {
        int row = i / width, column = i % width;
        out[(long long)row * pitch + column] = escape(xs[column], ys[row], cx, cy, 200);
    }
}

// Accelerations of n bodies (x, y, z, mass), one tile of bodies in shared memory at a time.
__global__ void n_body(const float4* bodies, float4* accelerations, int n, float softening) {
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = i < n ? bodies[i] : make_float4(0, 0, 0, 0), sum = make_float4(0, 0, 0, 0);
    for (int base = 0; base < n; base += blockDim.x) {
        int count = min(static_cast<int>(blockDim.x), n - base);
        if (threadIdx.x < count) tile[threadIdx.x] = bodies[base + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < count; ++k) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            float pull = tile[k].w * inverse * inverse * inverse;
            sum.x += dx * pull;
            sum.y += dy * pull;
            sum.z += dz * pull;
            sum.w += tile[k].w * inverse;
        }
        __syncthreads();
    }
    if (i < n) accelerations[i] = sum;
}
