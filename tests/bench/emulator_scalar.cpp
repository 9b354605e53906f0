// The arithmetic of emulator_kernels.cu for one thread, compiled by tests/bench/emulator.py.
#include <cmath>
extern "C" {
void saxpy(float a, const float* __restrict x, float* __restrict y, int n) {
    for (int i = 0; i < n; ++i) y[i] += a * x[i];
}
void reduce(const float* __restrict x, float* __restrict sum, int n) {
    float s = 0;
    for (int i = 0; i < n; ++i) s += x[i];
    *sum = s;
}
void matmul(const float* __restrict a, const float* __restrict b, float* __restrict c, int n) {
    for (int i = 0; i < n * n; ++i) c[i] = 0;
    for (int i = 0; i < n; ++i)
        for (int k = 0; k < n; ++k)
            for (int j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
}
void mandelbrot(int* __restrict out, int n, int limit) {
    for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x) {
            const float cr = -2.0f + 2.5f * x / n, ci = -1.25f + 2.5f * y / n;
            float r = 0, i = 0;
            int step = 0;
            for (; step < limit && r * r + i * i < 4; ++step) {
                const float t = r * r - i * i + cr;
                i = 2 * r * i + ci;
                r = t;
            }
            out[y * n + x] = step;
        }
}
void nbody(const float* __restrict bodies, float* __restrict forces, int n) {
    for (int i = 0; i < n; ++i) {
        float fx = 0, fy = 0, fz = 0;
        for (int j = 0; j < n; ++j) {
            const float dx = bodies[4 * j] - bodies[4 * i], dy = bodies[4 * j + 1] - bodies[4 * i + 1];
            const float dz = bodies[4 * j + 2] - bodies[4 * i + 2];
            const float inverse = 1.0f / std::sqrt(dx * dx + dy * dy + dz * dz + 1e-3f);
            const float f = bodies[4 * j + 3] * inverse * inverse * inverse;
            fx += f * dx, fy += f * dy, fz += f * dz;
        }
        forces[4 * i] = fx, forces[4 * i + 1] = fy, forces[4 * i + 2] = fz, forces[4 * i + 3] = 0;
    }
}
void transpose(const float* __restrict in, float* __restrict out, int n) {
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) out[j * n + i] = in[i * n + j];
}
void histogram(const unsigned char* __restrict values, int* __restrict counts, int n) {
    for (int i = 0; i < n; ++i) ++counts[values[i]];
}
void scan(const int* __restrict in, int* __restrict out, int n) {
    for (int first = 0; first < n; first += 256)
        for (int i = first, sum = 0; i < first + 256; ++i) out[i] = sum += in[i];
}
void stencil(const float* __restrict in, float* __restrict out, int n) {
    for (int y = 1; y < n - 1; ++y)
        for (int x = 1; x < n - 1; ++x) {
            const float* at = in + y * n + x;
            out[y * n + x] = 0.5f * at[0] + 0.125f * (at[-1] + at[1] + at[-n] + at[n]);
        }
}
void softmax(const float* __restrict in, float* __restrict out, int rows, int columns) {
    for (int r = 0; r < rows; ++r, in += columns, out += columns) {
        float most = -1e30f, sum = 0;
        for (int c = 0; c < columns; ++c) most = std::fmax(most, in[c]);
        for (int c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - most);
        for (int c = 0; c < columns; ++c) out[c] *= 1 / sum;
    }
}
void layer_norm(const float* __restrict in, float* __restrict out, int rows, int columns) {
    for (int r = 0; r < rows; ++r, in += columns, out += columns) {
        float sum = 0, squares = 0;
        for (int c = 0; c < columns; ++c) sum += in[c];
        const float mean = sum / columns;
        for (int c = 0; c < columns; ++c) squares += (in[c] - mean) * (in[c] - mean);
        const float factor = 1 / std::sqrt(squares / columns + 1e-5f);
        for (int c = 0; c < columns; ++c) out[c] = (in[c] - mean) * factor;
    }
}
void bitonic(const int* __restrict in, int* __restrict out, int n) {
    for (int first = 0; first < n; first += 512) {
        int* row = out + first;
        for (int i = 0; i < 512; ++i) row[i] = in[first + i];
        for (int size = 2; size <= 512; size *= 2)
            for (int step = size / 2; step > 0; step /= 2)
                for (int t = 0; t < 256; ++t) {
                    const int i = 2 * t - t % step, j = i + step;
                    const int a = row[i], b = row[j];
                    if ((a > b) == ((i & size) == 0)) row[i] = b, row[j] = a;
                }
    }
}
void spmv(const int* __restrict starts, const int* __restrict columns, const float* __restrict values,
          const float* __restrict x, float* __restrict y, int rows) {
    for (int row = 0; row < rows; ++row) {
        float sum = 0;
        for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k]];
        y[row] = sum;
    }
}
void convolve(const float* __restrict in, const float* __restrict weights, float* __restrict out, int n) {
    for (int y = 0; y < n - 4; ++y)
        for (int x = 0; x < n - 4; ++x) {
            float sum = 0;
            for (int j = 0; j < 5; ++j)
                for (int i = 0; i < 5; ++i) sum += weights[5 * j + i] * in[(y + j) * n + x + i];
            out[y * (n - 4) + x] = sum;
        }
}
static float normal(float d) {
    const float k = 1 / (1 + 0.2316419f * std::fabs(d));
    const float tail =
        0.39894228f * std::exp(-0.5f * d * d) *
        (k * (0.31938153f + k * (-0.35656378f + k * (1.7814779f + k * (-1.8212559f + k * 1.3302744f)))));
    return d > 0 ? 1 - tail : tail;
}
void black_scholes(const float* __restrict prices, const float* __restrict strikes,
                   const float* __restrict years, float* __restrict calls, int n) {
    for (int i = 0; i < n; ++i) {
        const float rate = 0.02f, volatility = 0.3f, root = volatility * std::sqrt(years[i]);
        const float d1 =
            (std::log(prices[i] / strikes[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / root;
        calls[i] = prices[i] * normal(d1) - strikes[i] * std::exp(-rate * years[i]) * normal(d1 - root);
    }
}
void dot_int8(const signed char* __restrict a, const signed char* __restrict b, int* __restrict out, int rows,
              int words) {  // a is transposed by words of four bytes
    for (int row = 0; row < rows; ++row) {
        int sum = 0;
        for (int k = 0; k < words; ++k)
            for (int byte = 0; byte < 4; ++byte) sum += a[4 * (k * rows + row) + byte] * b[4 * k + byte];
        out[row] = sum;
    }
}
}
