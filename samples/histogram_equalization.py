"""More contrast for a photograph: a histogram and a scan in shared memory spread its grey levels over 0 to 255.

    python samples/histogram_equalization.py [PHOTOGRAPH] [--out DIRECTORY]

Three kernels: each block counts the levels of its pixels in shared memory, one block sums the counts up to a table of
new levels, and every pixel is replaced. Each step is compared with NumPy, exactly. Writes the pictures before and after
as a PNG.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from matplotlib import cbook
from PIL import Image, ImageOps

import bascule

KERNELS = r"""
constexpr int LEVELS = 256;  // also the threads of a block

__global__ void histogram(const unsigned char* pixels, int n, unsigned* counts) {
    __shared__ unsigned mine[LEVELS];  // atomics here meet only threads of this block
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (auto i : bascule::grid_stride(n)) atomicAdd(&mine[pixels[i]], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

// New level of each level: the share of the pixels that are at most as bright, as a number from 0 to 255.
__global__ void make_table(const unsigned* counts, unsigned char* table) {
    __shared__ unsigned sums[LEVELS];
    __shared__ unsigned darkest;  // pixels of the darkest level that occurs: it becomes 0
    const int level = threadIdx.x;
    sums[level] = counts[level];
    __syncthreads();
    for (int distance = 1; distance < LEVELS; distance *= 2) {  // an inclusive scan in 8 steps
        const unsigned below = level >= distance ? sums[level - distance] : 0;
        __syncthreads();  // all threads have read before one writes
        sums[level] += below;
        __syncthreads();
    }
    if (counts[level] > 0 && counts[level] == sums[level]) darkest = counts[level];
    __syncthreads();
    const unsigned long long range = sums[LEVELS - 1] - darkest;
    const unsigned long long rank = sums[level] > darkest ? sums[level] - darkest : 0;
    table[level] = range > 0 ? (255 * rank + range / 2) / range : level;
}

__global__ void replace(const unsigned char* pixels, int n, const unsigned char* table, unsigned char* out) {
    for (auto i : bascule::grid_stride(n)) out[i] = table[pixels[i]];
}
"""
LEVELS = 256


def equalize(photograph):
    """Counts, table and new picture of a uint8 array, computed on the device."""
    module = bascule.compile(KERNELS)
    pixels = bascule.to_device(photograph)
    counts = bascule.zeros(LEVELS, np.uint32)
    table = bascule.device_array(LEVELS, np.uint8)
    out = bascule.device_array_like(pixels)
    blocks = min(32, -(-pixels.size // LEVELS))
    module.histogram[blocks, LEVELS](pixels, pixels.size, counts)
    module.make_table[1, LEVELS](counts, table)
    module.replace[blocks, LEVELS](pixels, pixels.size, table, out)
    return counts.copy_to_host(), table.copy_to_host(), out.copy_to_host()


def reference(photograph):
    """Counts, table and new picture, computed by NumPy."""
    counts = np.bincount(photograph.ravel(), minlength=LEVELS)
    sums = counts.cumsum()
    darkest = counts[counts > 0][0]
    rank, total = (sums - darkest).clip(0), photograph.size - darkest
    table = (255 * rank + total // 2) // total if total else np.arange(LEVELS)
    return counts, table, table[photograph]


def main():
    parser = argparse.ArgumentParser(description="Equalize the histogram of a photograph.")
    parser.add_argument("photograph", nargs="?", type=Path, help="default: the portrait in matplotlib's sample data")
    parser.add_argument("--out", type=Path, default=Path("out"), help="directory of the PNG (default: ./out)")
    options = parser.parse_args()
    path = options.photograph or Path(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))
    try:
        photograph = np.array(ImageOps.exif_transpose(Image.open(path)).convert("L"))
    except OSError as error:
        sys.exit(f"histogram_equalization: cannot read {path} as a picture: {error}")

    print(f"device: {bascule.current_device()!r}")
    results = equalize(photograph)
    picture = results[-1]
    print(f"grey levels: mean {photograph.mean():.1f}, deviation {photograph.std():.1f} before;", end=" ")
    print(f"mean {picture.mean():.1f}, deviation {picture.std():.1f} after")

    options.out.mkdir(parents=True, exist_ok=True)
    png = options.out.resolve() / f"{path.stem}-equalized.png"
    Image.fromarray(np.hstack([photograph, picture])).save(png)
    print(f"before and after: {png}")

    wrong = []
    for name, got, want in zip(("histogram", "table", "picture"), results, reference(photograph), strict=True):
        differing = int((got != want).sum())
        print(f"{'WRONG' if differing else 'ok':6}{name:10} {differing} of {got.size} elements differ from NumPy's")
        if differing:
            wrong.append(name)
    if wrong:
        sys.exit(f"histogram_equalization: {', '.join(wrong)} differ from NumPy's; see the lines marked WRONG")


if __name__ == "__main__":
    main()
