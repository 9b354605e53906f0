// Discrete Fourier transforms of rows of at most 1024 complex numbers in shared memory, one block per row. `sign` is -1
// forwards and 1 backwards, without a factor.

__device__ float2 times(float2 a, float2 b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
__device__ float2 plus(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ float2 minus(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }

// e to the power of 2 pi i sign k / n
__device__ float2 root(int sign, int k, int n) {
    float2 at;
    sincospif(2.0f * sign * k / n, &at.y, &at.x);
    return at;
}

// For a power of two: bit reversal first, then butterflies in place.
__global__ void fft_radix2(const float* in, float* out, int n, int sign) {
    __shared__ float2 row[1024];
    const float2* from = reinterpret_cast<const float2*>(in) + blockIdx.x * n;
    const int unused_bits = __clz(n) + 1;
    for (int i = threadIdx.x; i < n; i += blockDim.x) row[__brev(i) >> unused_bits] = from[i];
    for (int half = 1; half < n; half *= 2) {
        __syncthreads();
        for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
            const int k = i % half, at = 2 * i - k;
            const float2 a = row[at], b = times(row[at + half], root(sign, k, 2 * half));
            row[at] = plus(a, b);
            row[at + half] = minus(a, b);
        }
    }
    __syncthreads();
    float2* to = reinterpret_cast<float2*>(out) + blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = row[i];
}

// For a power of four: from one buffer into the other, already in order.
__global__ void fft_radix4(const float* in, float* out, int n, int sign) {
    __shared__ float2 buffers[2][1024];
    const float2* from = reinterpret_cast<const float2*>(in) + blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) buffers[0][i] = from[i];
    int now = 0;
    for (int size = 1; size < n; size *= 4, now ^= 1) {
        __syncthreads();
        for (int i = threadIdx.x; i < n / 4; i += blockDim.x) {
            const int k = i % size;
            const float2* x = buffers[now] + i;
            const float2 a = x[0], b = times(x[n / 4], root(sign, k, 4 * size));
            const float2 c = times(x[n / 2], root(sign, 2 * k, 4 * size));
            const float2 d = times(x[3 * n / 4], root(sign, 3 * k, 4 * size));
            const float2 even = plus(a, c), odd = minus(a, c), sum = plus(b, d), difference = minus(b, d);
            const float2 turned = {-sign * difference.y, sign * difference.x};
            float2* y = buffers[1 - now] + 4 * i - 3 * k;
            y[0] = plus(even, sum);
            y[size] = plus(odd, turned);
            y[2 * size] = minus(even, sum);
            y[3 * size] = minus(odd, turned);
        }
    }
    __syncthreads();
    float2* to = reinterpret_cast<float2*>(out) + blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = buffers[now][i];
}
