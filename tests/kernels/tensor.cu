// Products of tiles by whole warps.
#include <mma.h>

#include <cuda_bf16.h>

using namespace nvcuda;

// C = A B + C for row-major matrices whose sizes are multiples of 16, one warp per tile.
__global__ void tiles_of_half(const __half* a, const __half* b, float* c, int m, int n, int k) {
    int row = blockIdx.y * 16, column = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(sum, c + row * n + column, n, wmma::mem_row_major);
    for (int at = 0; at < k; at += 16) {
        wmma::load_matrix_sync(left, a + row * k + at, k);
        wmma::load_matrix_sync(right, b + at * n + column, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int e = 0; e < sum.num_elements; ++e) sum.x[e] *= 0.5f;
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

#if __CUDA_ARCH__ >= 800
// One product of 16 x 8 by the instruction itself: the PTX manual defines which lane holds which element.
__global__ void tile_by_instruction(const __half2* a, const __half2* b, float* c) {
    int lane = threadIdx.x, group = lane / 4, within = lane % 4;
    auto word = [](__half2 pair) { return *reinterpret_cast<unsigned*>(&pair); };
    // a is 16 x 16 row-major, b is 16 x 8 column-major: pairs along k.
    unsigned a0 = word(a[group * 8 + within]), a1 = word(a[(group + 8) * 8 + within]),
             a2 = word(a[group * 8 + within + 4]), a3 = word(a[(group + 8) * 8 + within + 4]),
             b0 = word(b[group * 8 + within]), b1 = word(b[group * 8 + within + 4]);
    float d0, d1, d2, d3, zero = 0;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %10, %10, %10};"
        : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(zero));
    c[group * 8 + within * 2] = d0;
    c[group * 8 + within * 2 + 1] = d1;
    c[(group + 8) * 8 + within * 2] = d2;
    c[(group + 8) * 8 + within * 2 + 1] = d3;
}
#endif

// A tile of a matrix in memory: its start, the distance between lines, and the next tile along k.
template <class Element>
struct Tiles {
    Element* first;
    int line, next;
};

// Stores the sum of `count` products of tiles in c. The kernels below use it for the other types that wmma has.
template <class Left, class Right, class Sum, class Element, class Result>
__device__ void multiply(Tiles<const Element> a, Tiles<const Element> b, Tiles<Result> c,
                         wmma::layout_t layout, int count) {
    Left left;
    Right right;
    Sum sum;
    wmma::fill_fragment(sum, Result(0));
    for (int at = 0; at < count; ++at) {
        wmma::load_matrix_sync(left, a.first + at * a.next, a.line);
        wmma::load_matrix_sync(right, b.first + at * b.next, b.line);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c.first, sum, c.line, layout);
}

#if __CUDA_ARCH__ >= 800
// A, B and C are row-major; the tiles are 32 x 8.
__global__ void tiles_of_bfloat16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int m, int n,
                                  int k) {
    int row = blockIdx.y * 32, column = blockIdx.x * 8;
    multiply<wmma::fragment<wmma::matrix_a, 32, 8, 16, __nv_bfloat16, wmma::row_major>,
             wmma::fragment<wmma::matrix_b, 32, 8, 16, __nv_bfloat16, wmma::row_major>,
             wmma::fragment<wmma::accumulator, 32, 8, 16, float>, __nv_bfloat16, float>(
        {a + row * k, k, 16}, {b + column, n, 16 * n}, {c + row * n + column, n}, wmma::mem_row_major,
        k / 16);
}

// A and C are row-major, B is column-major.
__global__ void tiles_of_tf32(const float* a, const float* b, float* c, int m, int n, int k) {
    int row = blockIdx.y * 16, column = blockIdx.x * 16;
    multiply<wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major>,
             wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major>,
             wmma::fragment<wmma::accumulator, 16, 16, 8, float>, float, float>(
        {a + row * k, k, 8}, {b + column * k, k, 8}, {c + row * n + column, n}, wmma::mem_row_major, k / 8);
}

// A and C are column-major, B is row-major.
__global__ void tiles_of_doubles(const double* a, const double* b, double* c, int m, int n, int k) {
    int row = blockIdx.y * 8, column = blockIdx.x * 8;
    multiply<wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::col_major>,
             wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major>,
             wmma::fragment<wmma::accumulator, 8, 8, 4, double>, double, double>(
        {a + row, m, 4 * m}, {b + column, n, 4 * n}, {c + column * m + row, m}, wmma::mem_col_major, k / 4);
}
#endif

// A and B are column-major, C is row-major; the tiles are 8 x 32.
__global__ void tiles_of_bytes(const signed char* a, const signed char* b, int* c, int m, int n, int k) {
    int row = blockIdx.y * 8, column = blockIdx.x * 32;
    multiply<wmma::fragment<wmma::matrix_a, 8, 32, 16, signed char, wmma::col_major>,
             wmma::fragment<wmma::matrix_b, 8, 32, 16, signed char, wmma::col_major>,
             wmma::fragment<wmma::accumulator, 8, 32, 16, int>, signed char, int>(
        {a + row, m, 16 * m}, {b + column * k, k, 16}, {c + row * n + column, n}, wmma::mem_row_major,
        k / 16);
}

// Sums that leave the range of int are clamped to its ends.
__global__ void saturating_tile(const unsigned char* a, const unsigned char* b, const int* c, int* d) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, unsigned char, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, unsigned char, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::load_matrix_sync(sum, c, 16, wmma::mem_row_major);
    wmma::mma_sync(sum, left, right, sum, true);
    wmma::store_matrix_sync(d, sum, 16, wmma::mem_row_major);
}

// Half accumulators, through shared memory, and a product with a fragment that was changed element by element.
__global__ void scaled_in_shared_memory(const __half* a, const __half* b, __half* c, float scale) {
    __shared__ __align__(32) __half tile_a[16 * 24], tile_b[16 * 24], tile_c[16 * 24];
    for (int i = threadIdx.x; i < 256; i += 32) {
        tile_a[i / 16 * 24 + i % 16] = a[i];
        tile_b[i / 16 * 24 + i % 16] = b[i];
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> sum;
    wmma::fill_fragment(sum, __float2half(1));
    wmma::load_matrix_sync(left, tile_a, 24);
    wmma::load_matrix_sync(right, tile_b, 24);
    for (int e = 0; e < left.num_elements; ++e) left.x[e] = __hmul(left.x[e], __float2half(scale));
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(tile_c, sum, 24, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) c[i] = tile_c[i / 16 * 24 + i % 16];
}

// Numbers of 4 bits, eight per word. A is row-major, B is column-major.
__global__ void tile_of_nibbles(const int* a, const int* b, int* c, int words) {
    namespace sub = wmma::experimental::precision;
    wmma::fragment<wmma::matrix_a, 8, 8, 32, sub::s4, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, 32, sub::s4, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, 32, int> sum;
    wmma::fill_fragment(sum, 0);
    for (int at = 0; at < words; at += 4) {
        wmma::load_matrix_sync(left, a + at, words * 8);
        wmma::load_matrix_sync(right, b + at, words * 8);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}

#if __CUDA_ARCH__ >= 800
// Hamming distances and common bits of rows of bits.
__global__ void tile_of_bits(const unsigned* a, const unsigned* b, int* differ, int* common, int words) {
    namespace sub = wmma::experimental;
    wmma::fragment<wmma::matrix_a, 8, 8, 128, sub::precision::b1, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, sub::precision::b1, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> apart, both;
    wmma::fill_fragment(apart, 0);
    wmma::fill_fragment(both, 0);
    for (int at = 0; at < words; at += 4) {
        wmma::load_matrix_sync(left, a + at, words * 32);
        wmma::load_matrix_sync(right, b + at, words * 32);
        wmma::bmma_sync(apart, left, right, apart, sub::bmmaBitOpXOR);
        wmma::bmma_sync(both, left, right, both, sub::bmmaBitOpAND);
    }
    wmma::store_matrix_sync(differ, apart, 8, wmma::mem_row_major);
    wmma::store_matrix_sync(common, both, 8, wmma::mem_row_major);
}
#endif
