// State spaces: generic pointers, structs by value, globals that outlive a launch, hinted loads.

__device__ __noinline__ long long weighted(const int* p, int n) {
    long long sum = 0;
    for (int i = 0; i < n; ++i) sum += static_cast<long long>(p[i]) * (i + 1);
    return sum;
}

__constant__ int fixed[5] = {3, -1, 4, 1, -5};

// One function, called with pointers to global, shared, local and constant memory; each thread chooses the space.
__global__ void generic_pointers(const int* in, long long* out, unsigned char* where, int n) {
    __shared__ int shared[16];
    int i = blockIdx.x * blockDim.x + threadIdx.x, local[7];
    for (int k = threadIdx.x; k < 16; k += blockDim.x) shared[k] = 10 * k + blockIdx.x;
    for (int k = 0; k < 7; ++k) local[k] = i - k;
    __syncthreads();
    if (i >= n) return;
    const int* from[] = {in, shared, local, fixed};
    const int lengths[] = {9, 16, 7, 5};
    const int* p = from[i % 4];
    out[i] = weighted(p, lengths[i % 4]);
    where[i] = __isGlobal(p) | __isShared(p) << 1 | __isLocal(p) << 2 | __isConstant(p) << 3;
}

// Doubles, ints and chars in parts of one dynamic array.
extern __shared__ __align__(16) unsigned char arena[];

__global__ void carved_arena(const double* in, double* out, unsigned* size) {
    double* reals = reinterpret_cast<double*>(arena);
    int* whole = reinterpret_cast<int*>(reals + blockDim.x);
    signed char* signs = reinterpret_cast<signed char*>(whole + blockDim.x);
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    reals[t] = in[i] - trunc(in[i]);
    whole[t] = static_cast<int>(in[i]);
    signs[t] = in[i] < 0 ? -1 : 1;
    __syncthreads();
    unsigned other = blockDim.x - 1 - t;
    out[i] = signs[other] * (whole[other] + reals[other]);
    if (i == 0) asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(*size));
}

struct Odd {
    unsigned char bytes[37];
    short number;
    unsigned char more[10];
};

__global__ void copy_structs(const Odd* in, Odd* out, unsigned char* raw, int n) {
    for (auto i : bascule::grid_stride(n)) {
        Odd copy = in[i];
        copy.number = static_cast<short>(copy.number * 3);
        memcpy(&out[i], &copy, sizeof copy);
        memset(raw + i * 13, static_cast<int>(copy.bytes[0]), 13);
    }
}

struct Settings {
    int table[100];
    double scale;
    unsigned char flags[3];
};

// A struct of 416 bytes by value, read at an index that depends on the data.
__global__ void by_value(const Settings settings, const unsigned* in, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = settings.table[in[i] % 100] * settings.scale + settings.flags[in[i] % 3];
}

namespace kept {
__device__ unsigned long long total = 1000;
__device__ int history[64];
__device__ unsigned launches;

// Adds up over launches; returns the previous sum.
__global__ void remember(const int* in, unsigned long long* before, int* ring, int n) {
    unsigned turn = launches % 64;
    if (threadIdx.x == 0) *before = total;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(&total, static_cast<unsigned long long>(in[i]));
    if (threadIdx.x == 0) history[turn] = n;
    __syncthreads();
    for (int k = threadIdx.x; k < 64; k += blockDim.x) ring[k] = history[k];
    if (threadIdx.x == 0) ++launches;
}
}  // namespace kept

__global__ void hinted_loads(const float4* in, float4* out, const short2* pairs, int* sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 a = __ldcg(in + i), b = __ldca(in + n - 1 - i), c = __ldcs(in + i), d = __ldg(in + i);
    __stcs(out + i, make_float4(a.x, b.y, c.z, d.w));
    short2 pair = __ldcv(pairs + i);
    __stwt(sums + i, pair.x + pair.y);
}

// A linked list of memory that a thread allocates.
struct Node {
    int value;
    Node* next;
};

__global__ void allocate_lists(const int* lengths, long long* sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Node* head = nullptr;
    for (int k = 0; k < lengths[i]; ++k) head = new Node{i * k, head};
    long long sum = 0;
    while (head) {
        sum = sum * 3 + head->value;
        Node* done = head;
        head = head->next;
        delete done;
    }
    sums[i] = sum;
}
