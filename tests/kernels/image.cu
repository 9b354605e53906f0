// Filters of images. Pixels outside have the value of the nearest one.

__device__ int clamped(int value, int end) { return min(max(value, 0), end - 1); }

// Luma weights in 256ths; the rows of both images have their own strides.
__global__ void grey(const uchar4* in, unsigned char* out, int width, int height, int in_pitch,
                     int out_pitch) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    uchar4 pixel = in[y * in_pitch + x];
    out[y * out_pitch + x] = (77 * pixel.x + 150 * pixel.y + 29 * pixel.z + 128) >> 8;
}

__global__ void sobel(bascule::array_view<const unsigned char, 2> in, bascule::array_view<short, 2> across,
                      bascule::array_view<short, 2> down) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int width = static_cast<int>(in.extent(1)), height = static_cast<int>(in.extent(0));
    if (x >= width || y >= height) return;
    int p[3][3];
    for (int j = 0; j < 3; ++j) {
        for (int i = 0; i < 3; ++i) p[j][i] = in(clamped(y + j - 1, height), clamped(x + i - 1, width));
    }
    across(y, x) = p[0][2] + 2 * p[1][2] + p[2][2] - p[0][0] - 2 * p[1][0] - p[2][0];
    down(y, x) = p[2][0] + 2 * p[2][1] + p[2][2] - p[0][0] - 2 * p[0][1] - p[0][2];
}

// A running sum along each row, one thread per row. The radius may be larger than the row.
__global__ void box_blur_rows(const unsigned char* in, unsigned char* out, int width, int height,
                              int radius) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= height) return;
    const unsigned char* row = in + y * width;
    int sum = 0, taps = 2 * radius + 1;
    for (int k = -radius; k <= radius; ++k) sum += row[clamped(k, width)];
    for (int x = 0; x < width; ++x) {
        out[y * width + x] = (sum + radius) / taps;
        sum += row[clamped(x + radius + 1, width)] - row[clamped(x - radius, width)];
    }
}

// Weights fall with distance and with difference of brightness.
__global__ void bilateral(const float* in, float* out, int width, int height, float spread, float contrast) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float middle = in[y * width + x], sum = 0, weights = 0;
    for (int j = -2; j <= 2; ++j) {
        for (int i = -2; i <= 2; ++i) {
            float value = in[clamped(y + j, height) * width + clamped(x + i, width)], away = value - middle;
            float weight = __expf(-(i * i + j * j) * spread - away * away * contrast);
            sum += weight * value;
            weights += weight;
        }
    }
    out[y * width + x] = sum / weights;
}

// The median of nine values, by exchanges of neighbours until the five smallest come first, in order.
__global__ void median(const unsigned short* in, unsigned short* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    unsigned p[9];
    for (int k = 0; k < 9; ++k)
        p[k] = in[clamped(y + k / 3 - 1, height) * width + clamped(x + k % 3 - 1, width)];
    for (int done = 0; done < 5; ++done) {
#pragma unroll
        for (int k = 8; k > 0; --k) {
            unsigned low = min(p[k], p[k - 1]), high = max(p[k], p[k - 1]);
            p[k - 1] = low;
            p[k] = high;
        }
    }
    out[y * width + x] = p[4];
}
