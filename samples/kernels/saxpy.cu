// y += a * x, for the command line:
//
//     bascule run samples/kernels/saxpy.cu -k saxpy --grid 4 --block 256 2.0 arange:1000:f4 zeros:1000:f4 1000
//     bascule compile samples/kernels/saxpy.cu --arch sm_90

__global__ void saxpy(float a, const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
