"""The edges of a photograph, found by three CUDA C++ programs on two streams.

    python samples/edges.py [PHOTOGRAPH] [--out DIRECTORY]
    python -m bascule precompile samples/edges.py             compiles the programs and runs nothing

The photograph becomes luminance, is blurred, and its gradient is drawn: the stronger an edge the brighter, and its
direction as a colour. Every step is compared with NumPy and SciPy. Runs on a GPU, or without one on the emulated
device.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from matplotlib import cbook
from PIL import Image, ImageOps
from scipy import ndimage

import bascule

# --- The programs -----------------------------------------------------------------------------------------------------


# The decorator makes the kernel callable: the decorated function, the launch rule, returns how much work there is, and
# Bascule chooses the grid and the block. The kernel computes the luma of Rec. 709, from 0 to 1.
@bascule.kernel(r"""
__global__ void luminance(const unsigned char* rgb, float* out, int pixels) {
    for (auto i : bascule::grid_stride(pixels)) {
        const unsigned char* p = rgb + 3 * i;
        out[i] = (0.2126f * p[0] + 0.7152f * p[1] + 0.0722f * p[2]) / 255.0f;
    }
}
""")
def luminance(rgb, out, pixels):
    return pixels


# A module holds all kernels of one text. `array_view<T, 2>` is an array with its shape and strides. A block first
# copies what its threads share into a tile, with a halo of RADIUS pixels; beyond the border the last pixel repeats.
blur = bascule.compile(r"""
constexpr int RADIUS = 4, WIDTH = 32, HEIGHT = 8;

__device__ int clamp(int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; }

__global__ void blur_rows(bascule::array_view<const float, 2> in, bascule::array_view<float, 2> out,
                          const float* weights) {
    __shared__ float tile[HEIGHT][WIDTH + 2 * RADIUS];
    const int rows = in.extent(0), columns = in.extent(1);
    const int x = blockIdx.x * WIDTH + threadIdx.x, y = blockIdx.y * HEIGHT + threadIdx.y;
    for (int i = threadIdx.x; i < WIDTH + 2 * RADIUS; i += WIDTH)
        tile[threadIdx.y][i] = in(clamp(y, rows), clamp(blockIdx.x * WIDTH + i - RADIUS, columns));
    __syncthreads();
    float sum = 0;
    for (int k = 0; k <= 2 * RADIUS; ++k) sum += weights[k] * tile[threadIdx.y][threadIdx.x + k];
    if (x < columns && y < rows) out(y, x) = sum;
}

__global__ void blur_columns(bascule::array_view<const float, 2> in, bascule::array_view<float, 2> out,
                             const float* weights) {
    __shared__ float tile[HEIGHT + 2 * RADIUS][WIDTH];
    const int rows = in.extent(0), columns = in.extent(1);
    const int x = blockIdx.x * WIDTH + threadIdx.x, y = blockIdx.y * HEIGHT + threadIdx.y;
    for (int i = threadIdx.y; i < HEIGHT + 2 * RADIUS; i += HEIGHT)
        tile[i][threadIdx.x] = in(clamp(blockIdx.y * HEIGHT + i - RADIUS, rows), clamp(x, columns));
    __syncthreads();
    float sum = 0;
    for (int k = 0; k <= 2 * RADIUS; ++k) sum += weights[k] * tile[threadIdx.y + k][threadIdx.x];
    if (x < columns && y < rows) out(y, x) = sum;
}
""")
RADIUS, SIGMA = 4, 1.4
BLOCK = (32, 8)

# The gradient by Sobel's masks, and then a picture of it: hue is the direction, brightness the root of the magnitude.
edges = bascule.compile(r"""
__device__ int clamp(int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; }

__global__ void sobel(bascule::array_view<const float, 2> in, bascule::array_view<float, 2> magnitude,
                      bascule::array_view<float, 2> direction, float* largest) {
    const int rows = in.extent(0), columns = in.extent(1);
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows) return;
    const int left = clamp(x - 1, columns), right = clamp(x + 1, columns);
    const int above = clamp(y - 1, rows), below = clamp(y + 1, rows);
    const float gx = (in(above, right) - in(above, left)) + 2 * (in(y, right) - in(y, left)) +
                     (in(below, right) - in(below, left));
    const float gy = (in(below, left) - in(above, left)) + 2 * (in(below, x) - in(above, x)) +
                     (in(below, right) - in(above, right));
    const float m = sqrtf(gx * gx + gy * gy);
    magnitude(y, x) = m;
    direction(y, x) = atan2f(gy, gx);
    atomicMax(reinterpret_cast<int*>(largest), __float_as_int(m));  // floats >= 0 are ordered like their bits
}

__device__ unsigned char level(float value) { return __float2int_rn(255 * fminf(fmaxf(value, 0), 1)); }

__global__ void colour(bascule::array_view<const float, 2> magnitude, bascule::array_view<const float, 2> direction,
                       const float* largest, bascule::array_view<unsigned char, 3> rgb) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= magnitude.extent(1) || y >= magnitude.extent(0)) return;
    const float brightness = *largest > 0 ? sqrtf(magnitude(y, x) / *largest) : 0;
    const float turn = direction(y, x) * 0.15915494f;  // -0.5 to 0.5
    const float hue = 6 * (turn < 0 ? turn + 1 : turn);
    rgb(y, x, 0) = level(brightness * fminf(fmaxf(fabsf(hue - 3) - 1, 0), 1));
    rgb(y, x, 1) = level(brightness * fminf(fmaxf(2 - fabsf(hue - 2), 0), 1));
    rgb(y, x, 2) = level(brightness * fminf(fmaxf(2 - fabsf(hue - 4), 0), 1));
}
""")


def gaussian():
    """The weights of the blur, shape (2 * RADIUS + 1,), float32, sum 1."""
    distance = np.arange(-RADIUS, RADIUS + 1)
    weights = np.exp(-0.5 * (distance / SIGMA) ** 2)
    return (weights / weights.sum()).astype(np.float32)


# --- On the device ----------------------------------------------------------------------------------------------------


class Report:
    """Launches kernels and records the time of each."""

    def __init__(self):
        self.rows = []

    def launch(self, kernel, launcher, stream, *arguments):
        kernel.prepare(*arguments)  # compiled and loaded now, so that only the launch is timed
        start, end = bascule.event(), bascule.event()
        start.record(stream)
        launcher(*arguments)
        end.record(stream)
        self.rows.append((kernel, start, end))

    def print(self):
        print(f"{'from':9}{'compile ms':>11}{'load ms':>9}{'launch ms':>11}  kernel")
        for kernel, start, end in self.rows:
            times = f"{kernel.compile_ms:11.1f}{kernel.load_ms:9.1f}{start.elapsed(end):11.2f}"
            print(f"{kernel.origin:9}{times}  {kernel.signature}")


def find_edges(photograph):
    """Luminance, blurred luminance, magnitude, direction and picture of a uint8 array of shape (rows, columns, 3)."""
    rows, columns, _ = photograph.shape
    grid = (-(-columns // BLOCK[0]), -(-rows // BLOCK[1]))
    report = Report()

    # Arrays remember the stream on which they were made. `back` reads an array of `front`: each launch waits for the
    # work on its arguments, and nothing is overwritten while it is read. No events are needed for that; those in Report
    # only measure the time.
    front, back = bascule.stream(), bascule.stream()
    rgb = bascule.to_device(photograph, stream=front)
    weights = bascule.to_device(gaussian(), stream=front)
    grey, half, blurred = (bascule.device_array((rows, columns), np.float32, stream=front) for _ in range(3))
    magnitude, direction = (bascule.device_array((rows, columns), np.float32, stream=back) for _ in range(2))
    largest = bascule.to_device(np.zeros(1, np.float32), stream=back)
    picture = bascule.device_array((rows, columns, 3), np.uint8, stream=back)

    pixels = rows * columns
    report.launch(luminance, luminance.forall(pixels, stream=front), front, rgb, grey, pixels)

    report.launch(blur.blur_rows, blur.blur_rows[grid, BLOCK, front], front, grey, half, weights)
    # Compiling the same text again costs little: the code comes from memory, wherever in the program that happens.
    again = bascule.compile(blur.source)
    report.launch(again.blur_columns, again.blur_columns[grid, BLOCK, front], front, half, blurred, weights)

    sobel, colour = edges.sobel, edges.colour
    report.launch(sobel, sobel[grid, BLOCK, back], back, blurred, magnitude, direction, largest)
    report.launch(colour, colour[grid, BLOCK, back], back, magnitude, direction, largest, picture)

    results = [array.copy_to_host() for array in (grey, blurred, magnitude, direction, picture)]
    bascule.synchronize()
    return results, report


# --- The same by NumPy and SciPy, in float64 --------------------------------------------------------------------------


def reference(photograph):
    grey = photograph @ np.array([0.2126, 0.7152, 0.0722]) / 255
    weights = gaussian().astype(np.float64)
    blurred = grey
    for axis in (1, 0):
        blurred = ndimage.correlate1d(blurred, weights, axis, mode="nearest")
    gx, gy = (ndimage.sobel(blurred, axis, mode="nearest") for axis in (1, 0))
    magnitude, direction = np.hypot(gx, gy), np.arctan2(gy, gx)

    hue = (direction / (2 * np.pi)) % 1 * 6
    mixture = np.stack([np.abs(hue - 3) - 1, 2 - np.abs(hue - 2), 2 - np.abs(hue - 4)], axis=-1).clip(0, 1)
    brightness = np.sqrt(magnitude / max(magnitude.max(), np.finfo(float).tiny))
    return grey, blurred, magnitude, direction, np.rint(255 * brightness[..., None] * mixture)


def check(results, png, photograph):
    """Prints every comparison; returns the names of those that fail."""
    *expected, expected_picture = reference(photograph)
    comparisons = []
    for name, got, want in zip(("luminance", "blur", "magnitude"), results, expected, strict=False):
        extent = max(np.ptp(want), 4 / 255)  # a nearly uniform picture has only float32's rounding
        comparisons.append((name, np.abs(got - want).max() / extent, 2e-5, "of the range"))
    magnitude, direction = expected[2:]
    strong = magnitude > 0.01 * magnitude.max()
    angle = np.abs((results[3] - direction + np.pi) % (2 * np.pi) - np.pi)[strong].max(initial=0)
    comparisons.append(("direction", angle, 1e-3, f"rad, at {strong.sum()} pixels with an edge"))
    saved = np.asarray(Image.open(png)).astype(int)
    comparisons.append(("PNG", np.abs(saved - expected_picture).max(), 1, "levels of 255"))

    for name, error, limit, unit in comparisons:
        verdict = "ok" if error <= limit else "WRONG"
        print(f"{verdict:6}{name:10} differs from NumPy and SciPy by at most {error:.2g} {unit} (limit {limit:g})")
    return [name for name, error, limit, _ in comparisons if not error <= limit]  # so that NaN fails


def main():
    parser = argparse.ArgumentParser(description="Draw the edges of a photograph.")
    parser.add_argument("photograph", nargs="?", type=Path, help="default: the portrait in matplotlib's sample data")
    parser.add_argument("--out", type=Path, default=Path("out"), help="directory of the PNG (default: ./out)")
    options = parser.parse_args()
    path = options.photograph or Path(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))
    try:
        photograph = np.array(ImageOps.exif_transpose(Image.open(path)).convert("RGB"))
    except OSError as error:
        sys.exit(f"edges: cannot read {path} as a picture: {error}")

    print(f"device: {bascule.current_device()!r}")
    print(f"photograph: {path.name}, {photograph.shape[1]} x {photograph.shape[0]} pixels")
    results, report = find_edges(photograph)
    options.out.mkdir(parents=True, exist_ok=True)
    png = options.out.resolve() / f"{path.stem}-edges.png"
    Image.fromarray(results[-1]).save(png)
    print(f"edges: {png}\n")

    failed = check(results, png, photograph)
    print()
    report.print()
    stats = bascule.cache.stats()
    print(f"{stats.compiled} compiled, {stats.from_disk} from disk, {stats.from_memory} from memory", flush=True)
    if failed:
        sys.exit(f"edges: {', '.join(failed)} differ from the reference; see the lines marked WRONG")


if __name__ == "__main__":
    main()
