"""Kernels whose counts can be found by hand, and their lines."""

from __future__ import annotations

import pytest

import bascule

# Tests find a line by the comment at its end.
TEXT = """
__device__ __forceinline__ float twice(const float* p) {
    return *p * 2;  // inlined
}
__device__ __noinline__ int through_pointer(const int* p) { return *p; }
__constant__ float table[32];

template <class T, int stride, int offset>
__global__ void copy(T* y, const T* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T value = x[i * stride + offset];  // load
    y[i] = value;  // store
}
template <class T, int stride>
__global__ void shared(T* y, const T* x) {
    __shared__ alignas(128) T s[32 * 32];
    s[threadIdx.x * stride] = x[threadIdx.x];  // write
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x * stride];  // read
}
template <int padding>
__global__ void transpose(float* out, const float* in, int n) {
    __shared__ alignas(128) float tile[32][32 + padding];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];  // rows
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];  // columns
}
__global__ void branch(float* y, float* z, unsigned bits) {
    if (threadIdx.x & bits) {  // branch
        y[threadIdx.x] = 1;  // taken
    } else {
        z[threadIdx.x] = 2;  // not taken
    }
}
__global__ void loop(volatile int* y) {
    #pragma unroll 1
    for (int i = 0; i < threadIdx.x; ++i) y[threadIdx.x] = i;  // turns
}
__global__ void count_turns(int* y, int turns) {
    #pragma unroll 1
    for (int i = 0; i < turns; ++i) atomicAdd(y + threadIdx.x, i);  // equal turns
}
__global__ void first(float* y, const float* x, int n) {
    int i = threadIdx.x;
    if (i < n) y[i] = x[i];  // first
}
__global__ void count(int* to, int lanes) { atomicAdd(to + threadIdx.x % lanes, 1); }  // count
__global__ void count_in_shared(int* to, int lanes) {
    __shared__ int s[32];
    s[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(s + threadIdx.x % lanes, 1);  // shared atomic
    __syncthreads();
    to[threadIdx.x] = s[threadIdx.x];
}
__global__ void local(int* y, int k) {
    volatile int a[4];
    for (int j = 0; j < 4; ++j) a[j] = k + j;  // local store
    y[threadIdx.x] = a[(threadIdx.x + k) & 3];  // local load
}
__global__ void constant(float* y) { y[threadIdx.x] = table[threadIdx.x]; }
__global__ void inlined(float* y, const float* x) {
    y[threadIdx.x] = twice(x + threadIdx.x);  // caller
}
__global__ void generic(int* y, const int* x, int use_shared) {
    __shared__ alignas(128) int s[64];
    s[threadIdx.x] = 1;
    __syncthreads();
    y[threadIdx.x] = through_pointer(use_shared ? s + 2 * threadIdx.x : x + threadIdx.x);
}
__global__ void copy_async(int4* y, const int4* x) {
    __shared__ alignas(128) int4 s[32];
    unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(s + threadIdx.x));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(x + threadIdx.x) : "memory");  // cp.async
    asm volatile("cp.async.wait_all;" ::: "memory");
    y[threadIdx.x] = s[threadIdx.x];
}
__global__ void matrix(int* y, int row_bytes) {
    __shared__ alignas(128) unsigned char s[4096];
    for (int i = threadIdx.x; i < 4096; i += 32) s[i] = 0;
    __syncthreads();
    unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(s + threadIdx.x * row_bytes));
    int a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"  // ldmatrix
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(from) : "memory");
    y[threadIdx.x] = a + b + c + d;
}
template <class T>
__global__ void gather(T* y, const T* x, const int* index, const int* on) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (on[i]) {
        int from = index[i];  // index
        y[i] = x[from];
    }
}
template <class T>
__global__ void gather_in_shared(T* y, const int* index, const int* on) {
    __shared__ alignas(128) T s[512];
    for (int i = threadIdx.x; i < 512; i += blockDim.x) s[i] = T{};
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (on[i]) y[i] = s[index[i]];
}
__global__ void count_at(int* to, const int* index, const int* on) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (on[i]) atomicAdd(to + index[i], 1);
}
"""


@pytest.fixture(scope="session")
def kernels() -> bascule.Module:
    return bascule.compile(TEXT)


def line_of(profile: bascule.emulated.Profile, comment: str) -> bascule.emulated.LineProfile:
    """The counts of the line with this comment, in the only kernel of the profile."""
    (kernel,) = profile.kernels.values()
    (line,) = [each for each in kernel.lines if each.text.endswith(f"// {comment}")]
    return line
