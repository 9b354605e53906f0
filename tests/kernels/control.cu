// Control flow: switches, printing, assertions, and thread indices.

// Forty cases, most of them with a different body; some fall through.
__global__ void switch_forty(const int* ops, const int* in, int* out, int n) {
    for (auto i : bascule::grid_stride(n)) {
        int x = in[i], k = ops[i], r;
        switch (k) {
            case 0:
                r = x + 1;
                break;
            case 1:
                r = x - 7;
                break;
            case 2:
                r = x * 3;
                break;
            case 3:
                r = -x;
                break;
            case 4:
                r = ~x;
                break;
            case 5:
                r = x ^ 0x55;
                break;
            case 6:
                r = x << 3;
                break;
            case 7:
                r = x >> 2;
                break;
            case 8:
                r = x & 255;
                break;
            case 9:
                r = x | 256;
                break;
            case 10:
                r = x / 3;
                break;
            case 11:
                r = x % 11;
                break;
            case 12:
                r = x * x;
                break;
            case 13:
                r = abs(x);
                break;
            case 14:
                r = min(x, 5);
                break;
            case 15:
                r = max(x, -5);
                break;
            case 16:
                r = x + k;
                break;
            case 17:
                r = x - k;
                break;
            case 18:
                r = x * k;
                break;
            case 19:
                r = x ^ k;
                break;
            case 20:
                r = __popc(x);
                break;
            case 21:
                r = __clz(x);
                break;
            case 22:
                r = __brev(x);
                break;
            case 23:
                r = __ffs(x);
                break;
            case 24:
                r = x == 0;
                break;
            case 25:
                r = x > 0;
                break;
            case 26:
                r = x < 0;
                break;
            case 27:
                r = !x;
                break;
            case 28:
                r = x / 5;
                break;
            case 29:
                r = x % 13;
                break;
            case 30:
                r = x + 100;
                break;
            case 31:
                r = x - 1000;
                break;
            case 32:
                r = x * 7;
                break;
            case 33:
                r = x * 9 - 1;
                break;
            case 34:
                r = (x + 3) * 2;
                break;
            case 35:
                r = x >> 5;
                break;
            case 36:
                r = x << 1;
                break;
            case 37:
                r = x & k;
                break;
            case 38:
                r = x | k;
                break;
            case 39:
                r = 42;
                break;
            case 40:
                x += 5;
                [[fallthrough]];
            case 41:
                x *= 2;
                [[fallthrough]];
            case -1000000:
                r = x ^ 1;
                break;
            default:
                r = -1;
        }
        out[i] = r;
    }
}

__global__ void print_lines(const float* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        printf("line %d of %u: %8.3f %s %lld %c %%\n", i, n, values[i], i % 2 ? "odd" : "even", 1ll << 40 | i,
               'a' + i);
}

__global__ void assert_in_order(const int* sorted, int* looked_at, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n) assert(sorted[i] <= sorted[i + 1] && "out of order");
    if (i < n) looked_at[i] = sorted[i];
}

// Static shared structs that contain arrays. Threads beyond the last element exit after the barrier.
struct Record {
    char tag;
    short counts[3];
    double weight;
    unsigned char bytes[5];
};

__global__ void shared_structs(const unsigned char* in, double* weights, int* sums, int n) {
    __shared__ Record records[64];
    Record& mine = records[threadIdx.x];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned char value = i < n ? in[i] : 0;
    mine.tag = static_cast<char>(value);
    for (int k = 0; k < 3; ++k) mine.counts[k] = static_cast<short>(value * (k - 1) * 100);
    mine.weight = value / 8.0;
    for (int k = 0; k < 5; ++k) mine.bytes[k] = value + k;
    __syncthreads();
    const Record copy = records[blockDim.x - 1 - threadIdx.x];
    if (i >= n) return;
    weights[i] = copy.weight;
    int sum = copy.tag;
    for (int k = 0; k < 3; ++k) sum += copy.counts[k] * (k + 1);
    for (unsigned char byte : copy.bytes) sum += byte;
    sums[i] = sum;
}

// A thread's indices and dimensions, in three dimensions.
__global__ void places(int* out) {
    int in_block = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    int of_block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int i = of_block * blockDim.x * blockDim.y * blockDim.z + in_block;
    unsigned lane, warp;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    warp = in_block / warpSize;
    out[4 * i] = blockIdx.z << 20 | blockIdx.y << 10 | blockIdx.x;
    out[4 * i + 1] = threadIdx.z << 20 | threadIdx.y << 10 | threadIdx.x;
    out[4 * i + 2] = lane;
    out[4 * i + 3] = warp;
}
