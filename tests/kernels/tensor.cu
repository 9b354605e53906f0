// Products of tiles by whole warps.
#include <mma.h>

using namespace nvcuda;

// C = A B + C for row-major matrices whose sizes are multiples of 16, one warp a tile.
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

// One product of 16 x 8 by the instruction itself: who holds which element is laid down in the PTX manual.
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
