// Products of tiles by the instructions themselves, as libraries write them: the PTX manual defines which lane holds
// which element.
#include <cuda_fp16.h>

namespace {

__device__ unsigned shared_address(const void* at) {
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

__device__ void load_rows4(unsigned (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row)));
}

__device__ void load_columns2(unsigned (&r)[2], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row)));
}

__device__ void multiply_halves(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Row and column of element e of a lane's part of a tile of sums.
__device__ int row_of(int lane, int e) { return lane / 4 + e / 2 * 8; }
__device__ int column_of(int lane, int e) { return lane % 4 * 2 + e % 2; }

__device__ unsigned pair_of(float low, float high) {
    __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<unsigned*>(&pair);
}

// Rows in shared memory are slightly longer than the tile's, so that ldmatrix reads them without conflicts.
struct Tiles {
    __half a[64][32 + 8], b[32][32 + 8];
};

// Multiplies the warp's 16 x 32 part of a 64 x 32 tile of four warps.
__device__ void multiply_tiles(float (&sum)[4][4], const Tiles& tiles) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int step = 0; step < 32; step += 16) {
        unsigned left[4], right[2];
        load_rows4(left, &tiles.a[warp * 16 + lane % 16][step + lane / 16 * 8]);
        for (int j = 0; j < 4; ++j) {
            load_columns2(right, &tiles.b[step + lane % 16][j * 8]);
            multiply_halves(sum[j], left, right);
        }
    }
}

__device__ void store_sums(const float (&sum)[4][4], float* c, int n) {
    int lane = threadIdx.x % 32, first_row = blockIdx.y * 64 + threadIdx.x / 32 * 16;
    for (int j = 0; j < 4; ++j)
        for (int e = 0; e < 4; ++e)
            c[(first_row + row_of(lane, e)) * n + blockIdx.x * 32 + j * 8 + column_of(lane, e)] = sum[j][e];
}

// Copies the next 32 columns of A and rows of B, 16 bytes at a time, with `copy`.
template <class Copy>
__device__ void fill_tiles(Tiles& tiles, const __half* a, const __half* b, int at, int n, int k, Copy copy) {
    for (int i = threadIdx.x; i < 64 * 4; i += blockDim.x)
        copy(&tiles.a[i / 4][i % 4 * 8], a + (blockIdx.y * 64 + i / 4) * k + at + i % 4 * 8);
    for (int i = threadIdx.x; i < 32 * 4; i += blockDim.x)
        copy(&tiles.b[i / 4][i % 4 * 8], b + (at + i / 4) * n + blockIdx.x * 32 + i % 4 * 8);
}

}  // namespace

#if __CUDA_ARCH__ >= 800
// C = A B of halves, row-major: 64 x 32 per block of four warps.
__global__ void gemm_of_halves(const __half* a, const __half* b, float* c, int n, int k) {
    __shared__ __align__(16) Tiles tiles;
    float sum[4][4] = {};
    for (int at = 0; at < k; at += 32) {
        fill_tiles(tiles, a, b, at, n, k, [](__half* to, const __half* from) {
            *reinterpret_cast<int4*>(to) = *reinterpret_cast<const int4*>(from);
        });
        __syncthreads();
        multiply_tiles(sum, tiles);
        __syncthreads();
    }
    store_sums(sum, c, n);
}

// The same, but the next tiles are copied during the multiplication: two more are in flight.
__global__ void pipelined_gemm_of_halves(const __half* a, const __half* b, float* c, int n, int k) {
    __shared__ __align__(16) Tiles stages[3];
    const auto begin = [&](int stage) {
        if (stage * 32 < k) {
            fill_tiles(stages[stage % 3], a, b, stage * 32, n, k, [](__half* to, const __half* from) {
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
                             : "memory");
            });
        }
        asm volatile("cp.async.commit_group;" ::: "memory");  // the last ones are empty, but count
    };
    float sum[4][4] = {};
    begin(0);
    begin(1);
    for (int stage = 0; stage * 32 < k; ++stage) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();  // all copies are complete, and all threads have read the stage that is filled next
        begin(stage + 2);
        multiply_tiles(sum, stages[stage % 3]);
    }
    store_sums(sum, c, n);
}

// Attention of 16 queries per warp with an online softmax: the sums of one product become an operand of the next
// without leaving their lanes. Keys, values and queries have 16 elements.
__global__ void attention(const __half* queries, const __half* keys, const __half* values, float* out,
                          int count) {
    int lane = threadIdx.x, group = lane / 4, within = lane % 4;
    const unsigned* q = reinterpret_cast<const unsigned*>(queries + blockIdx.x * 16 * 16);
    unsigned query[4] = {q[group * 8 + within], q[(group + 8) * 8 + within], q[group * 8 + within + 4],
                         q[(group + 8) * 8 + within + 4]};
    float sum[2][4] = {}, most[2] = {-1e30f, -1e30f}, total[2] = {};
    __shared__ __align__(16) __half tile[16][16 + 8];
    for (int first = 0; first < count; first += 16) {
        float score[2][4] = {};
        const unsigned* key = reinterpret_cast<const unsigned*>(keys + first * 16);
        for (int j = 0; j < 2; ++j) {  // keys are columns of B, so their halves are in pairs along k
            unsigned right[2] = {key[(j * 8 + group) * 8 + within], key[(j * 8 + group) * 8 + within + 4]};
            multiply_halves(score[j], query, right);
        }
        float scale[2];
        for (int half = 0; half < 2; ++half) {  // rows `group` and `group + 8`
            float greatest = most[half];
            for (int j = 0; j < 2; ++j)
                greatest = fmaxf(greatest, fmaxf(score[j][half * 2], score[j][half * 2 + 1]));
            for (int step = 1; step < 4; step *= 2)
                greatest = fmaxf(greatest, __shfl_xor_sync(0xffffffff, greatest, step));
            scale[half] = expf(most[half] - greatest);
            most[half] = greatest;
            total[half] *= scale[half];
            for (int j = 0; j < 2; ++j)
                for (int e = 0; e < 2; ++e) {
                    float& s = score[j][half * 2 + e];
                    s = expf(s - greatest);
                    total[half] += s;
                }
        }
        unsigned weight[4] = {pair_of(score[0][0], score[0][1]), pair_of(score[0][2], score[0][3]),
                              pair_of(score[1][0], score[1][1]), pair_of(score[1][2], score[1][3])};
        __syncwarp();
        for (int i = lane; i < 16 * 16; i += 32) tile[i / 16][i % 16] = values[first * 16 + i];
        __syncwarp();
        for (int j = 0; j < 2; ++j) {
            unsigned right[2];
            for (int e = 0; e < 4; ++e) sum[j][e] *= scale[e / 2];
            load_columns2(right, &tile[lane % 16][j * 8]);
            multiply_halves(sum[j], weight, right);
        }
    }
    for (int half = 0; half < 2; ++half)
        for (int step = 1; step < 4; step *= 2) total[half] += __shfl_xor_sync(0xffffffff, total[half], step);
    for (int j = 0; j < 2; ++j)
        for (int e = 0; e < 4; ++e)
            out[(blockIdx.x * 16 + row_of(lane, e)) * 16 + j * 8 + column_of(lane, e)] =
                sum[j][e] / total[e / 2];
}
#endif

// 16 x 8 tiles of a row-major A and a column-major B, as words: one number of 32 bits, two of 16, four of 8, eight of
// 4, or 32 single bits. `words` is their count in a row of A or a column of B, a multiple of 8: a product takes eight
// for each of these types.
template <class Multiplication, class Sum>
__device__ void product(const unsigned* a, const unsigned* b, Sum* c, int words) {
    int lane = threadIdx.x, group = lane / 4;
    Sum d[4] = {};
    for (int at = lane % 4; at < words; at += 8) {
        unsigned left[4] = {a[group * words + at], a[(group + 8) * words + at], a[group * words + at + 4],
                            a[(group + 8) * words + at + 4]};
        unsigned right[2] = {b[group * words + at], b[group * words + at + 4]};
        Multiplication::multiply(d, left, right);
    }
    for (int e = 0; e < 4; ++e) c[row_of(lane, e) * 8 + column_of(lane, e)] = d[e];
}

#define MULTIPLICATION(name, sum, letter, opcode)                                                      \
    struct name {                                                                                      \
        static __device__ void multiply(sum (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) { \
            asm("mma.sync.aligned." opcode                                                             \
                " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                     \
                : "+" letter(d[0]), "+" letter(d[1]), "+" letter(d[2]), "+" letter(d[3])               \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                   \
        }                                                                                              \
    };

MULTIPLICATION(Bytes, int, "r", "m16n8k32.row.col.s32.s8.u8.s32")
MULTIPLICATION(Nibbles, int, "r", "m16n8k64.row.col.satfinite.s32.u4.s4.s32")
MULTIPLICATION(Bits, int, "r", "m16n8k256.row.col.s32.b1.b1.s32.xor.popc")
MULTIPLICATION(Tf32, float, "f", "m16n8k8.row.col.f32.tf32.tf32.f32")
MULTIPLICATION(Bfloat16, float, "f", "m16n8k16.row.col.f32.bf16.bf16.f32")

#if __CUDA_ARCH__ >= 800
__global__ void product_of_bytes(const unsigned* a, const unsigned* b, int* c, int words) {
    product<Bytes>(a, b, c, words);
}
__global__ void product_of_nibbles(const unsigned* a, const unsigned* b, int* c, int words) {
    product<Nibbles>(a, b, c, words);
}
__global__ void product_of_bits(const unsigned* a, const unsigned* b, int* c, int words) {
    product<Bits>(a, b, c, words);
}
__global__ void product_of_tf32(const unsigned* a, const unsigned* b, float* c, int words) {
    product<Tf32>(a, b, c, words);
}
__global__ void product_of_bfloat16(const unsigned* a, const unsigned* b, float* c, int words) {
    product<Bfloat16>(a, b, c, words);
}

__global__ void product_of_doubles(const double* a, const double* b, double* c, int k) {
    int lane = threadIdx.x, group = lane / 4, within = lane % 4;
    double d[2] = {};
    for (int at = within; at < k; at += 4)
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(d[0]), "+d"(d[1])
            : "d"(a[group * k + at]), "d"(b[group * k + at]));
    for (int e = 0; e < 2; ++e) c[group * 8 + column_of(lane, e)] = d[e];
}
#endif

// 8 x 8 tiles of halves are transposed in registers.
__global__ void transposed_tiles(const unsigned* in, unsigned* out, int tiles) {
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        unsigned word = in[tile * 32 + threadIdx.x];
        asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(word));
        out[tile * 32 + threadIdx.x] = word;
    }
}
