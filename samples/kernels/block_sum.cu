// The sum of each block's elements, as a template: T and BLOCK are named, or T is chosen from the arrays.
//
//     bascule run samples/kernels/block_sum.cu -t float,256 --grid 4 --block 256 ones:1000:f4 zeros:4:f4
//     bascule compile samples/kernels/block_sum.cu --instance "block_sum<float, 256>" --ptx

template <class T, int BLOCK = 256>
__global__ void block_sum(bascule::array_view<const T> in, bascule::array_view<T> sums) {
    __shared__ T partial[BLOCK];
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    partial[threadIdx.x] = i < in.size() ? in[i] : T{};
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}
