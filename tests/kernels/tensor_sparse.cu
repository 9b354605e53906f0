// Products with a sparse A: two of each four elements in a row are stored, with metadata for their places.
#include <cuda_fp16.h>

#if __CUDA_ARCH__ >= 800
// 16 x 8 tiles. A has `k` columns: k / 2 stored halves per row. Metadata has a word for each lane and 32 columns; the
// first two lanes of four are used. B is column-major.
__global__ void sparse_product_of_halves(const unsigned* a, const unsigned* b, const unsigned* metadata,
                                         float* c, int k) {
    int lane = threadIdx.x, group = lane / 4, within = lane % 4, a_words = k / 4, b_words = k / 2;
    float d[4] = {};
    for (int step = 0; step < k / 32; ++step) {
        const unsigned* left = a + group * a_words + step * 8 + within;
        const unsigned* right = b + group * b_words + step * 16 + within;
        asm("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
            "{%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(left[0]), "r"(left[8 * a_words]), "r"(left[4]), "r"(left[8 * a_words + 4]), "r"(right[0]),
              "r"(right[4]), "r"(right[8]), "r"(right[12]), "r"(metadata[step * 32 + lane]));
    }
    for (int e = 0; e < 4; ++e) c[(group + e / 2 * 8) * 8 + within * 2 + e % 2] = d[e];
}

// The same for bytes: metadata has a word for each lane and 64 columns.
__global__ void sparse_product_of_bytes(const unsigned* a, const unsigned* b, const unsigned* metadata,
                                        int* c, int k) {
    int lane = threadIdx.x, group = lane / 4, within = lane % 4, a_words = k / 8, b_words = k / 4;
    int d[4] = {};
    for (int step = 0; step < k / 64; ++step) {
        const unsigned* left = a + group * a_words + step * 8 + within;
        const unsigned* right = b + group * b_words + step * 16 + within;
        asm("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
            "{%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
            : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
            : "r"(left[0]), "r"(left[8 * a_words]), "r"(left[4]), "r"(left[8 * a_words + 4]), "r"(right[0]),
              "r"(right[4]), "r"(right[8]), "r"(right[12]), "r"(metadata[step * 32 + lane]));
    }
    for (int e = 0; e < 4; ++e) c[(group + e / 2 * 8) * 8 + within * 2 + e % 2] = d[e];
}
#endif
