// Launches near the limits: large blocks, grids and memories, many parameters, many registers.

__global__ void __launch_bounds__(1024) full_blocks(const int* in, int* out) {
    extern __shared__ int values[];
    int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x,
        n = blockDim.x * blockDim.y * blockDim.z;
    values[t] = in[blockIdx.x * n + t];
    for (int step = 1; step < n; step *= 2) {
        __syncthreads();
        int other = t >= step ? values[t - step] : 0;
        __syncthreads();
        values[t] += other;
    }
    out[blockIdx.x * n + t] = values[t];
}

// Every block of a large grid stores its mark once.
__global__ void large_grid(unsigned char* marks) {
    long long block = (static_cast<long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0) marks[block] += 1;
}

// 48 KiB of static shared memory, the most without opting in.
__global__ void full_static_shared(const unsigned* in, unsigned* out) {
    __shared__ unsigned table[12288];
    for (int i = threadIdx.x; i < 12288; i += blockDim.x) table[i] = in[i] ^ blockIdx.x;
    __syncthreads();
    unsigned at = threadIdx.x, sum = 0;
    for (int k = 0; k < 100; ++k) {
        at = table[at % 12288];
        sum += at;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Uses all the dynamic shared memory of the launch.
__global__ void large_dynamic_shared(const double* in, double* out, int n) {
    extern __shared__ double reversed[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) reversed[n - 1 - i] = in[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = reversed[i];
}

// A table of 16 KiB for each thread.
__global__ void large_local(const unsigned* in, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned table[4096], state = in[i], sum = 0;
    for (int k = 0; k < 4096; ++k) {
        state = state * 1664525u + 1013904223u;
        table[k] = state;
    }
    for (int k = 0; k < 64; ++k) {
        state = table[state % 4096] + k;
        sum ^= state;
    }
    out[i] = sum;
}

__global__ void many_parameters(signed char p0, short p1, int p2, long long p3, float p4, double p5,
                                unsigned char p6, unsigned short p7, unsigned p8, bool p9, signed char p10,
                                short p11, int p12, long long p13, float p14, double p15, unsigned char p16,
                                unsigned short p17, unsigned p18, bool p19, signed char p20, short p21,
                                int p22, long long p23, float p24, double p25, unsigned char p26,
                                unsigned short p27, unsigned p28, bool p29, signed char p30, short p31,
                                int p32, long long p33, float p34, double p35, unsigned char p36,
                                unsigned short p37, unsigned p38, bool p39, signed char p40, short p41,
                                int p42, long long p43, float p44, double p45, unsigned char p46,
                                unsigned short p47, unsigned p48, bool p49, signed char p50, short p51,
                                int p52, long long p53, float p54, double p55, unsigned char p56,
                                unsigned short p57, unsigned p58, bool p59, double* out) {
    out[0] = p0;
    out[1] = p1;
    out[2] = p2;
    out[3] = p3;
    out[4] = p4;
    out[5] = p5;
    out[6] = p6;
    out[7] = p7;
    out[8] = p8;
    out[9] = p9;
    out[10] = p10;
    out[11] = p11;
    out[12] = p12;
    out[13] = p13;
    out[14] = p14;
    out[15] = p15;
    out[16] = p16;
    out[17] = p17;
    out[18] = p18;
    out[19] = p19;
    out[20] = p20;
    out[21] = p21;
    out[22] = p22;
    out[23] = p23;
    out[24] = p24;
    out[25] = p25;
    out[26] = p26;
    out[27] = p27;
    out[28] = p28;
    out[29] = p29;
    out[30] = p30;
    out[31] = p31;
    out[32] = p32;
    out[33] = p33;
    out[34] = p34;
    out[35] = p35;
    out[36] = p36;
    out[37] = p37;
    out[38] = p38;
    out[39] = p39;
    out[40] = p40;
    out[41] = p41;
    out[42] = p42;
    out[43] = p43;
    out[44] = p44;
    out[45] = p45;
    out[46] = p46;
    out[47] = p47;
    out[48] = p48;
    out[49] = p49;
    out[50] = p50;
    out[51] = p51;
    out[52] = p52;
    out[53] = p53;
    out[54] = p54;
    out[55] = p55;
    out[56] = p56;
    out[57] = p57;
    out[58] = p58;
    out[59] = p59;
}

// A hundred sums that are live at once, unrolled into thousands of instructions.
__global__ void many_registers(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int sums[100];
#pragma unroll
    for (int k = 0; k < 100; ++k) sums[k] = in[i] + k;
    for (int round = 0; round < 3; ++round) {
#pragma unroll
        for (int k = 0; k < 100; ++k) sums[k] = sums[k] * 31 + (sums[(k * 37 + 11) % 100] ^ round);
    }
    int mixed = 0;
#pragma unroll
    for (int k = 0; k < 100; ++k) mixed = mixed * 7 + sums[k];
    out[i] = mixed;
}
