// Common libraries: CUB's block algorithms, and the parts of the C++ library that CUDA has.
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include <cuda/atomic>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/tuple>

// Sorts tiles of five keys for each of 128 threads, descending, with a value for each key.
__global__ void library_sort(float* keys, int* values) {
    using Sort = cub::BlockRadixSort<float, 128, 5, int>;
    __shared__ typename Sort::TempStorage scratch;
    float mine[5];
    int with[5];
    int base = (blockIdx.x * 128 + threadIdx.x) * 5;
    for (int k = 0; k < 5; ++k) {
        mine[k] = keys[base + k];
        with[k] = values[base + k];
    }
    Sort(scratch).SortDescending(mine, with);
    for (int k = 0; k < 5; ++k) {
        keys[base + k] = mine[k];
        values[base + k] = with[k];
    }
}

struct Greater {
    template <class T>
    __device__ T operator()(const T& a, const T& b) const {
        return b < a ? a : b;
    }
};

__global__ void library_reduce_scan(const int* in, int* sums, int* greatest, int* scanned, int n) {
    using Reduce = cub::BlockReduce<int, 96>;
    using Scan = cub::BlockScan<int, 96>;
    __shared__ union {
        typename Reduce::TempStorage reduce;
        typename Scan::TempStorage scan;
    } scratch;
    int i = blockIdx.x * 96 + threadIdx.x, valid = min(96, n - static_cast<int>(blockIdx.x) * 96);
    int value = i < n ? in[i] : 0, sum = Reduce(scratch.reduce).Sum(value, valid);
    __syncthreads();
    int most = Reduce(scratch.reduce).Reduce(value, Greater(), valid);
    __syncthreads();
    int before, total;
    Scan(scratch.scan).ExclusiveSum(value, before, total);
    if (i < n) scanned[i] = before + 0 * total;
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
        greatest[blockIdx.x] = most;
    }
}

__global__ void library_complex(const double* in, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    cuda::std::complex<double> z(in[2 * i], in[2 * i + 1]);
    cuda::std::array<cuda::std::complex<double>, 3> values{z * z, cuda::std::exp(z),
                                                           cuda::std::conj(z) / (z + 3.0)};
    auto [sum, size] = cuda::std::make_tuple(values[0] + values[1] + values[2], values.size());
    out[2 * i] = sum.real();
    out[2 * i + 1] = sum.imag() + static_cast<double>(size) - 3;
}

// References to plain integers that are used atomically, with C++ memory orders.
__global__ void library_atomics(const int* in, int* least, double* sum, unsigned long long* bits, int* handed,
                                int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    cuda::atomic_ref<int, cuda::thread_scope_device>(*least).fetch_min(in[i], cuda::memory_order_relaxed);
    cuda::atomic_ref<double, cuda::thread_scope_device>(*sum).fetch_add(in[i] / 2.0,
                                                                        cuda::memory_order_acq_rel);
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_system>(*bits).fetch_xor(1ull << (in[i] & 63));
    cuda::atomic_ref<int, cuda::thread_scope_device> turn(*handed);
    int seen = turn.load(cuda::memory_order_acquire);
    while (!turn.compare_exchange_weak(seen, seen + 2, cuda::memory_order_release)) {
    }
    if (in[i] == cuda::std::numeric_limits<int>::max()) turn.store(-1);
}
