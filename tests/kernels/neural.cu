// Layers of neural networks: normalisation, losses, convolutions, pooling.

constexpr float lowest = -3.402823466e+38f;

// The greatest value and the sum of exponentials relative to it, in one pass.
struct Online {
    float greatest = lowest, sum = 0;

    __device__ void add(float value) { join({value, 1.0f}); }
    __device__ void join(const Online& o) {
        float next = fmaxf(greatest, o.greatest);
        sum = sum * expf(greatest - next) + o.sum * expf(o.greatest - next);
        greatest = next;
    }
    __device__ Online(float g = lowest, float s = 0) : greatest(g), sum(s) {}
};

// One block for each row; the block has a multiple of 32 threads.
__global__ void softmax_online(const float* in, float* out, int columns) {
    __shared__ Online of_warp[32];
    const float* row = in + static_cast<long long>(blockIdx.x) * columns;
    Online mine;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) mine.add(row[i]);
    for (int step = 16; step; step /= 2) {
        mine.join({__shfl_xor_sync(~0u, mine.greatest, step), __shfl_xor_sync(~0u, mine.sum, step)});
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    Online all = of_warp[0];
    for (int w = 1; w < blockDim.x / 32; ++w) all.join(of_warp[w]);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        out[static_cast<long long>(blockIdx.x) * columns + i] = expf(row[i] - all.greatest) / all.sum;
    }
}

template <class T>
__device__ T block_sum(T value, T* scratch) {
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (unsigned live = blockDim.x; live > 1;) {
        unsigned half = (live + 1) / 2;
        if (threadIdx.x + half < live) scratch[threadIdx.x] += scratch[threadIdx.x + half];
        __syncthreads();
        live = half;
    }
    T all = scratch[0];
    __syncthreads();
    return all;
}

__global__ void layer_norm(bascule::array_view<const float, 2> in, bascule::array_view<const float> gain,
                           bascule::array_view<const float> bias, bascule::array_view<float, 2> out,
                           float epsilon) {
    extern __shared__ float scratch[];
    const int columns = static_cast<int>(in.extent(1)), row = blockIdx.x;
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += in(row, i);
    float mean = block_sum(sum, scratch) / columns;
    float squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        float away = in(row, i) - mean;
        squares += away * away;
    }
    float scale = 1.0f / sqrtf(block_sum(squares, scratch) / columns + epsilon);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        out(row, i) = (in(row, i) - mean) * scale * gain[i] + bias[i];
    }
}

// The negative logarithm of the softmax of the labelled class, one thread per row; a label below 0 is skipped.
__global__ void cross_entropy(const double* logits, const int* labels, double* loss, int rows, int classes) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    if (labels[row] < 0) {
        loss[row] = 0;
        return;
    }
    const double* of_row = logits + row * classes;
    double greatest = of_row[0], sum = 0;
    for (int k = 1; k < classes; ++k) greatest = fmax(greatest, of_row[k]);
    for (int k = 0; k < classes; ++k) sum += exp(of_row[k] - greatest);
    loss[row] = log(sum) + greatest - of_row[labels[row]];
}

// There is no padding: out has n - taps + 1 elements. The filter is in shared memory.
__global__ void convolve_line(const float* in, const float* filter, float* out, int n, int taps) {
    extern __shared__ float shared_filter[];
    for (int k = threadIdx.x; k < taps; k += blockDim.x) shared_filter[k] = filter[k];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > n - taps) return;
    float sum = 0;
    for (int k = 0; k < taps; ++k) sum += in[i + k] * shared_filter[taps - 1 - k];
    out[i] = sum;
}

// A 3 x 3 convolution of several input and output channels, with zero padding and a stride. Layout of the images:
// channel, row, column.
__global__ void convolve_plane(const float* in, const float* weights, const float* bias, float* out,
                               int channels_in, int rows, int columns, int stride) {
    int out_rows = (rows + stride - 1) / stride, out_columns = (columns + stride - 1) / stride;
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
        channel = blockIdx.z;
    if (x >= out_columns || y >= out_rows) return;
    float sum = bias[channel];
    for (int c = 0; c < channels_in; ++c) {
        const float* plane = in + c * rows * columns;
        const float* weight = weights + (channel * channels_in + c) * 9;
#pragma unroll
        for (int dy = -1; dy <= 1; ++dy) {
#pragma unroll
            for (int dx = -1; dx <= 1; ++dx) {
                int r = y * stride + dy, s = x * stride + dx;
                if (r >= 0 && r < rows && s >= 0 && s < columns) {
                    sum += plane[r * columns + s] * weight[(dy + 1) * 3 + dx + 1];
                }
            }
        }
    }
    out[(channel * out_rows + y) * out_columns + x] = sum;
}

// Windows of 2 x 2, the last ones truncated at the edge; also the index of the greatest value.
__global__ void max_pool(const float* in, float* out, int* where, int rows, int columns) {
    int out_columns = (columns + 1) / 2, out_rows = (rows + 1) / 2;
    for (auto i : bascule::grid_stride((long long)out_rows * out_columns)) {
        int y = i / out_columns * 2, x = i % out_columns * 2, best = y * columns + x;
        for (int r = y; r < min(y + 2, rows); ++r) {
            for (int c = x; c < min(x + 2, columns); ++c) {
                if (in[r * columns + c] > in[best]) best = r * columns + c;
            }
        }
        out[i] = in[best];
        where[i] = best;
    }
}
