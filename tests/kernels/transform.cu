// Transforms of signals: fast and direct ones.

// Radix 2, in place in shared memory: one block for each signal of 2**bits complex numbers.
__global__ void fft(const float2* in, float2* out, int bits) {
    extern __shared__ float2 z[];
    const int n = 1 << bits;
    const float2* signal = in + (static_cast<long long>(blockIdx.x) << bits);
    for (int i = threadIdx.x; i < n; i += blockDim.x) z[bits ? __brev(i) >> (32 - bits) : 0] = signal[i];
    for (int half = 1; half < n; half *= 2) {
        __syncthreads();
        for (int k = threadIdx.x; k < n / 2; k += blockDim.x) {
            int within = k % half, top = k / half * 2 * half + within, bottom = top + half;
            float sine, cosine;
            sincospif(-static_cast<float>(within) / half, &sine, &cosine);
            float2 a = z[top], b = z[bottom];
            float2 turned = make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
            z[top] = make_float2(a.x + turned.x, a.y + turned.y);
            z[bottom] = make_float2(a.x - turned.x, a.y - turned.y);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[(static_cast<long long>(blockIdx.x) << bits) + i] = z[i];
}

// Any length, by definition, in double precision.
__global__ void dft(const double* in, double2* out, int n) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    double2 sum = make_double2(0, 0);
    for (int i = 0; i < n; ++i) {
        double sine, cosine;
        sincospi(-2.0 * (static_cast<long long>(i) * k % n) / n, &sine, &cosine);
        sum.x += in[i] * cosine;
        sum.y += in[i] * sine;
    }
    out[k] = sum;
}

// The Walsh-Hadamard transform of 2**bits integers; steps below 32 by shuffles, the others in shared memory.
__global__ void walsh_hadamard(const int* in, int* out, int bits) {
    extern __shared__ int row[];
    int t = threadIdx.x, value = in[(blockIdx.x << bits) + t];
    for (int step = 1; step < min(32, 1 << bits); step *= 2) {
        int other = __shfl_xor_sync(__activemask(), value, step);
        value = t & step ? other - value : value + other;
    }
    for (int step = 32; step < 1 << bits; step *= 2) {
        row[t] = value;
        __syncthreads();
        int other = row[t ^ step];
        value = t & step ? other - value : value + other;
        __syncthreads();
    }
    out[(blockIdx.x << bits) + t] = value;
}
