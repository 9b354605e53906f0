// Calls that are not inlined: with structs, and of recursive functions.

struct Point {
    double x, y;
    int turns;
};

// Structs as arguments and results, and an output reference, in calls that are not inlined.
__device__ __noinline__ Point turned(Point p, double sine, double cosine, int& calls) {
    ++calls;
    return {p.x * cosine - p.y * sine, p.x * sine + p.y * cosine, p.turns + 1};
}

__global__ void call_with_structs(const double* in, double* out, int* turns, int* calls, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Point p{in[2 * i], in[2 * i + 1], 0};
    int mine = 0;
    for (int k = 0; k < i % 7; ++k) p = turned(p, 1, 0, mine);
    if (i % 3 == 0) p = turned(p, -1, 0, mine);
    out[2 * i] = p.x;
    out[2 * i + 1] = p.y;
    turns[i] = p.turns;
    calls[i] = mine;
}

__device__ __noinline__ unsigned fibonacci(unsigned n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__global__ void recurse_fibonacci(const unsigned* in, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fibonacci(in[i]);
}

__device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
    if (m == 0) return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

__global__ void recurse_ackermann(const unsigned* m, const unsigned* n, unsigned* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = ackermann(m[i], n[i]);
}

// Two functions that call each other.
__device__ int is_odd(unsigned n);
__device__ __noinline__ int is_even(unsigned n) { return n == 0 ? 1 : is_odd(n - 1); }
__device__ __noinline__ int is_odd(unsigned n) { return n == 0 ? 0 : is_even(n - 1); }

__global__ void recurse_mutually(const unsigned* in, int* even, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) even[i] = is_even(in[i]);
}
