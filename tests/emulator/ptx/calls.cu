// Functions that call themselves or each other, and calls through pointers and virtual tables.
typedef int (*Combine)(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int mul(int a, int b) { return a * b; }
__device__ Combine table[2] = {add, mul};

struct Triple {
    int a, b;
    double c;
};
__device__ __noinline__ Triple shifted(Triple p, int n) {
    if (n <= 0) return p;
    Triple q = shifted({p.b, p.a + 1, p.c * 2}, n - 1);
    q.a += n;
    return q;
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
// The callee writes into its caller's local array.
__device__ __noinline__ void fill(int* p, int n) {
    int local[4] = {n, 2 * n, 3 * n, 4 * n};
    if (n > 0) fill(local, n - 1);
    p[n & 3] += local[n & 3] + local[(n + 3) & 3] * 3;
}
__device__ __noinline__ int is_odd(unsigned n);
__device__ __noinline__ int is_even(unsigned n) { return n == 0 ? 1 : is_odd(n - 1); }
__device__ __noinline__ int is_odd(unsigned n) { return n == 0 ? 0 : is_even(n - 1); }
__device__ __noinline__ int sum_to(const int* stop, int n) { return n == *stop ? n : n + sum_to(stop, n - 1); }

struct Shape {
    __device__ virtual int area(int s) const = 0;
};
struct Square : Shape {
    __device__ int area(int s) const override { return s * s; }
};
struct Triangle : Shape {
    __device__ int area(int s) const override { return s * s / 2; }
};

extern "C" __global__ void pointers(int* out, int n, int which) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Combine f = table[i % 2];
    Combine g = which ? add : mul;
    out[i] = f(i, n) + 1000 * g(i, 3);
}
extern "C" __global__ void recursion(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Triple p = shifted({i, 2, 1.0}, i % 5);
    int buffer[4] = {1, 2, 3, 4};
    fill(buffer, i % 7);
    out[6 * i] = fibonacci(i % n);
    out[6 * i + 1] = p.a + 100 * p.b + 10000 * static_cast<int>(p.c);
    out[6 * i + 2] = buffer[0] + 3 * buffer[1];
    out[6 * i + 3] = buffer[2] + 5 * buffer[3];
    out[6 * i + 4] = is_even(i % 20);
    int none = 0;
    out[6 * i + 5] = sum_to(&none, i % 300);
}
extern "C" __global__ void virtuals(int* out, int n) {
    int i = threadIdx.x;
    Square square;
    Triangle triangle;
    const Shape* shape = i % 3 ? static_cast<const Shape*>(&square) : static_cast<const Shape*>(&triangle);
    out[i] = shape->area(i + n);
}
extern "C" __global__ void endless(int* out, const int* stop) { out[threadIdx.x] = sum_to(stop, threadIdx.x + 1); }
extern "C" __global__ void astray(int* out, unsigned long long address) {
    Combine f = reinterpret_cast<Combine>(address);
    out[threadIdx.x] = f(1, 2);
}
