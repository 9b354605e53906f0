// One element in, one element out.

__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

// The grid may be smaller than the work, and the arrays may have any strides.
__global__ void axpby(double a, bascule::array_view<const double> x, double b,
                      bascule::array_view<double> y) {
    for (auto i : bascule::grid_stride(y.size())) y[i] = a * x[i] + b * y[i];
}

template <class T>
__device__ T clamped(T value, T low, T high) {
    return value < low ? low : (value > high ? high : value);
}

__global__ void clamp(const short* in, short* out, short low, short high, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = clamped(in[i], low, high);
}

// Horner's scheme over coefficients in constant memory, from the highest power.
__constant__ float coefficients[] = {0.125f, -3.0f, 2.5f, 7.0f, -0.75f, 1.0f};

__global__ void polynomial(const float* x, float* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float sum = coefficients[0];
#pragma unroll
        for (int k = 1; k < 6; ++k) sum = __fadd_rn(__fmul_rn(sum, x[i]), coefficients[k]);
        out[i] = sum;
    }
}

struct Complex {
    float re, im;

    __device__ Complex operator*(Complex o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
    __device__ Complex conjugate() const { return {re, -im}; }
};

__global__ void multiply_complex(const Complex* a, const Complex* b, Complex* product, float* norm, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    product[i] = a[i] * b[i];
    norm[i] = (product[i] * product[i].conjugate()).re;
}

// Functors and lambdas as arguments of a template.
template <class F>
__device__ void for_each(const int* in, int* out, int n, F f) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = f(in[i]);
}

struct Affine {
    int factor, offset;
    __device__ int operator()(int x) const { return factor * x + offset; }
};

__global__ void functors(const int* in, int* affine, int* captured, int n, int factor, int offset) {
    for_each(in, affine, n, Affine{factor, offset});
    int turns = 0;
    for_each(in, captured, n, [&turns, offset](int x) {
        ++turns;
        return x % 2 ? (x ^ offset) : -x;
    });
    if (turns < 0) captured[0] = turns;
}
