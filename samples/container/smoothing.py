"""The program of the image that the Dockerfile makes. It finds its kernel in the cache of the image.

    python samples/container/smoothing.py

KERNEL_ARCH names the architecture that the image was built for; without it, the kernel is compiled for the device.
"""

import os
import sys

import numpy as np

import bascule


@bascule.kernel(
    r"""
template <class T>
__global__ void smooth(const T* x, T* y, int n) {
    for (auto i : bascule::grid_stride(n)) y[i] = i == 0 || i == n - 1 ? x[i] : (x[i - 1] + x[i] + x[i + 1]) / 3;
}
""",
    name_expressions=["smooth<float>"],
    options={"arch": os.environ.get("KERNEL_ARCH")},
)
def smooth(x, y, n):
    """Each element of y becomes the mean of three of x."""
    return n


def main():
    x = np.random.default_rng(1).random(100_000, dtype="f4")
    y = bascule.zeros(x.size, "f4")
    smooth(bascule.to_device(x), y, x.size)
    expected = x.copy()
    expected[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / np.float32(3)
    right = np.allclose(y.copy_to_host(), expected, rtol=1e-6)
    print(f"{'ok' if right else 'WRONG':6}on {bascule.current_device().name}")
    print(f"compiled {bascule.cache.stats().nvrtc_calls} times")
    if not right:
        sys.exit("smoothing: the result differs from NumPy's")


if __name__ == "__main__":
    main()
