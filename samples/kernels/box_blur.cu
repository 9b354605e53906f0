// The mean of each pixel and its neighbours, for images in .npy files:
//
//     bascule run samples/kernels/box_blur.cu --work 64x48 random:48x64:f4 zeros:48x64:f4 --out out=blurred.npy
//
// Work and grid are columns first, shapes of arrays rows first.

__global__ void box_blur(bascule::array_view<const float, 2> in, bascule::array_view<float, 2> out) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int rows = in.extent(0), columns = in.extent(1);
    if (x >= columns || y >= rows) return;
    float sum = 0;
    int count = 0;
    for (int v = max(y - 1, 0); v <= min(y + 1, rows - 1); ++v) {
        for (int u = max(x - 1, 0); u <= min(x + 1, columns - 1); ++u, ++count) sum += in(v, u);
    }
    out(y, x) = sum / count;
}
