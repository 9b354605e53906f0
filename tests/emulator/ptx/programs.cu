// Whole kernels: control flow, shared and local memory, calls, operations among lanes and blocks, faults.
// Compiled by NVRTC 13.0 with -arch=compute_80 -lineinfo into the .ptx file of the same name.
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] += a * x[i];
}
extern "C" __global__ void reduce(const float* a, float* out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    float v = 0;
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) v += a[i];
    s[t] = v;
    __syncthreads();
    for (int k = 128; k > 0; k >>= 1) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float as[16][16], bs[16][16];
    int x = threadIdx.x, y = threadIdx.y, i = blockIdx.y * 16 + y, j = blockIdx.x * 16 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        as[y][x] = a[i * n + k + x];
        bs[y][x] = b[(k + y) * n + j];
        __syncthreads();
        for (int q = 0; q < 16; q++) sum += as[y][q] * bs[q][x];
        __syncthreads();
    }
    c[i * n + j] = sum;
}
__constant__ float taps[9] = {.1f, .2f, .3f, .4f, .5f, .4f, .3f, .2f, .1f};
extern "C" __global__ void blur(const float* a, float* out, int w) {
    extern __shared__ float tile[];
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    for (int k = threadIdx.x; k < blockDim.x + 8; k += blockDim.x) {
        int from = (int)(blockIdx.x * blockDim.x) + k - 4;
        tile[k] = a[y * w + (from < 0 ? 0 : from >= w ? w - 1 : from)];
    }
    __syncthreads();
    if (x >= w) return;
    float sum = 0;
    for (int k = 0; k < 9; k++) sum += taps[k] * tile[threadIdx.x + k];
    out[y * w + x] = sum;
}
extern "C" __global__ void mandelbrot(int* out, int w, int steps) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float cr = -2 + 3.f * x / w, ci = -1.5f + 3.f * y / w, zr = 0, zi = 0;
    int k = 0;
    while (k < steps && zr * zr + zi * zi < 4) {
        float t = __fadd_rn(__fsub_rn(__fmul_rn(zr, zr), __fmul_rn(zi, zi)), cr);
        zi = __fadd_rn(__fmul_rn(2 * zr, zi), ci), zr = t, k++;
    }
    if (x < w) out[y * w + x] = k;
}
__device__ __noinline__ int collatz(int n) {
    int steps = 0;
    while (n > 1) n = n & 1 ? 3 * n + 1 : n / 2, steps++;
    return steps;
}
struct Matrix {
    float m[16];
    int n;
};
__device__ __noinline__ Matrix scaled(Matrix b, float f) {
    for (int i = 0; i < 16; i++) b.m[i] = b.m[i] * f + i;
    b.n++;
    return b;
}
extern "C" __global__ void calls(Matrix b, float* out, int pick) {
    int i = threadIdx.x;
    Matrix c = scaled(b, i);
    if (i & 1) c = scaled(c, 2);
    float sum = c.n;
    for (int k = 0; k < 16; k++) sum += c.m[k];
    out[i] = sum + collatz(i) + b.m[pick];
}
extern "C" __global__ void local_array(unsigned* out, int n) {
    unsigned a[32];
    for (int i = 0; i < 32; i++) a[i] = i * threadIdx.x;
    for (int i = 1; i < 32; i++) a[(i * 7 + n) & 31] += a[i - 1];
    unsigned sum = 0;
    for (int i = 0; i < 32; i++) sum = sum * 31 + a[i];
    out[threadIdx.x] = sum;
}
extern "C" __global__ void warp_sums(const int* a, int* out) {
    int t = threadIdx.x, v = a[t];
    for (int k = 16; k; k >>= 1) v += __shfl_xor_sync(~0u, v, k);
    int* o = out + 6 * t;
    o[0] = v, o[1] = __shfl_up_sync(~0u, a[t], 3), o[2] = __shfl_down_sync(~0u, a[t], 5, 16);
    o[3] = __shfl_sync(~0u, a[t], t * 7), o[4] = __ballot_sync(~0u, a[t] > 0);
    o[5] = t & 1 ? __activemask() : __match_any_sync(0x55555555, a[t] & 3);
}
extern "C" __global__ void atomics(int* g, unsigned* u, float* f, double* d, unsigned long long* l) {
    __shared__ int s[4];
    int t = threadIdx.x;
    if (t < 4) s[t] = 0;
    __syncthreads();
    atomicAdd(s, 1), atomicMax(s + 1, t), atomicOr(s + 2, 1 << (t & 31));
    __syncthreads();
    if (t == 0) atomicAdd(g, s[0]), atomicMax(g + 3, s[1]), atomicOr(u + 1, s[2]);
    atomicSub(g + 1, t), atomicMin(g + 2, t - 500), atomicAnd(u, ~(1u << (t & 15))), atomicXor(u + 2, t);
    atomicInc(u + 3, 17), atomicDec(u + 4, 17), atomicCAS(u + 5, (unsigned)t, t + 1);
    atomicAdd(f, 0.5f), atomicAdd(d, 0.25), atomicAdd(l, 1ull << 33), atomicMax(l + 1, (unsigned long long)t);
}
extern "C" __global__ void vectors(const float4* a, float4* out, const uchar4* b, uchar4* bytes) {
    int i = threadIdx.x;
    float4 v = a[i];
    out[i] = make_float4(v.w, v.z, v.y + v.x, v.x);
    uchar4 c = b[i];
    bytes[i] = make_uchar4(c.w, c.z, c.y + c.x, c.x);
}
extern "C" __global__ void bit_tricks(const unsigned* a, const unsigned* b, unsigned* out) {
    int i = threadIdx.x;
    unsigned x = a[i], y = b[i];
    unsigned* o = out + 10 * i;
    o[0] = __clz(x), o[1] = __popc(x), o[2] = __brev(x), o[3] = __ffs(x), o[4] = __byte_perm(x, y, 0x3715);
    o[5] = __funnelshift_l(x, y, x), o[6] = __umulhi(x, y), o[7] = __mulhi((int)x, (int)y);
    o[8] = __dp4a((int)x, (int)y, 3), o[9] = __sad((int)x, (int)y, 7u);
}
extern "C" __global__ void generic_pointers(int* g, int which) {
    __shared__ int s[32];
    int l[4] = {1, 2, 3, 4};
    int* p = which == 0 ? g : which == 1 ? s : l;
    s[threadIdx.x] = 5;
    __syncthreads();
    p[threadIdx.x & 3] += 7;
    __syncthreads();
    g[threadIdx.x + 32] = p[threadIdx.x & 3];
}
extern "C" __global__ void locked(int* lock, int* count) {
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *(volatile int*)count = *(volatile int*)count + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
__device__ int counter = 5;
__device__ int* where = &counter;
extern "C" __global__ void indirect() { atomicAdd(where, 2); }
extern "C" __global__ void forever(volatile int* p) {
    while (*p == 0) {
    }
}
extern "C" __global__ void divergent_barrier() {
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
    else asm volatile("bar.sync 2, 64;");
}
extern "C" __global__ void half_shuffle(int* out) {
    if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(~0u, threadIdx.x, 3);
    else for (volatile int k = 0; k == 0;) __syncthreads();
}
extern "C" __global__ void traps(int n) {
    if (threadIdx.x == n) __trap();
}
extern "C" __global__ void misaligned(char* p) { *(int*)(p + threadIdx.x) = 1; }
extern "C" __global__ void prints(int n) {
    if (threadIdx.x == 1) printf("%d %5.2f %s %c %llx %u%%\n", n, 1.5, "abc", 'z', 0x123456789abcull, 7u);
}
extern "C" __global__ void asserts(int n) { assert(n > 3); }
