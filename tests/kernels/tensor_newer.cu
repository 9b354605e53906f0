// Matrix instructions of sm_89 and sm_90.

// 16 x 8 tiles of numbers of 8 bits. A is row-major, B is column-major. `words` is the count of words of four numbers
// in a row of A or a column of B, a multiple of 8.
__global__ void product_of_float8(const unsigned* a, const unsigned* b, float* e4m3, float* mixed,
                                  int words) {
    int lane = threadIdx.x, group = lane / 4, within = lane % 4;
    float d[4] = {}, m[4] = {};
    for (int at = within; at < words; at += 8) {
        unsigned left[4] = {a[group * words + at], a[(group + 8) * words + at], a[group * words + at + 4],
                            a[(group + 8) * words + at + 4]};
        unsigned right[2] = {b[group * words + at], b[group * words + at + 4]};
        asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
        asm("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(m[0]), "+f"(m[1]), "+f"(m[2]), "+f"(m[3])
            : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
    }
    for (int e = 0; e < 4; ++e) {
        int at = (group + e / 2 * 8) * 8 + within * 2 + e % 2;
        e4m3[at] = d[e];
        mixed[at] = m[e];
    }
}

// Stores four tiles of 8 x 8 halves from registers to shared memory, two of them transposed.
__global__ void stored_tiles(const unsigned* in, unsigned* out) {
    __shared__ __align__(16) unsigned rows[32][4];
    int lane = threadIdx.x;
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(rows[lane]));
    unsigned other = static_cast<unsigned>(__cvta_generic_to_shared(rows[16 + lane % 16]));
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(in[lane]),
                 "r"(in[32 + lane]));
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(other),
                 "r"(in[64 + lane]), "r"(in[96 + lane]));
    __syncwarp();
    for (int i = 0; i < 4; ++i) out[lane * 4 + i] = rows[lane][i];
}
