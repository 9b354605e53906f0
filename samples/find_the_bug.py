"""Six wrong programs, and the emulated device's messages about them.

    python samples/find_the_bug.py

A kernel writes past the end of its array, a kernel lacks a __syncthreads, a kernel adds to an array that nothing has
written, a kernel divides by zero, a stream does not wait for another one, and an array has the wrong dtype. On a GPU
all but the last usually give no message, and wrong results only sometimes. Prints every message, and exits with 1 if
one does not describe its bug.
"""

import inspect
import os
import sys

os.environ["BASCULE_DEVICE"] = "emulated"  # even if there is a GPU: only the emulated device has these checks

import numpy as np

import bascule

KERNELS = r"""
__global__ void smooth(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = (in[i > 0 ? i - 1 : 0] + in[i < n - 1 ? i + 1 : n - 1]) / 2;
}

__global__ void reverse(int* x) {
    __shared__ int tile[256];
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

__global__ void add(const float* x, float* sums) {
    sums[threadIdx.x] += x[threadIdx.x];
    if (sums[threadIdx.x] < 0) sums[threadIdx.x] = 0;
}

__global__ void average(const int* sums, const int* counts, int* averages) {
    averages[threadIdx.x] = sums[threadIdx.x] / counts[threadIdx.x];
}

__global__ void scale(float* x, float factor, int n) {
    for (auto i : bascule::grid_stride(n)) x[i] *= factor;
}
"""


def past_the_end():
    """The kernel's bound is `i <= n`: thread n writes one element too many."""
    module = bascule.compile(KERNELS)
    noise = bascule.to_device(np.random.default_rng(1).random(1000, dtype=np.float32))
    smoothed = bascule.device_array(1000, np.float32)
    module.smooth[8, 128](noise, smoothed, 1000)
    smoothed.copy_to_host()


def a_missing_syncthreads():
    """Threads read elements of the tile that other threads write, and no barrier is between them."""
    module = bascule.compile(KERNELS)
    with bascule.emulated.checks("shared_races"):
        module.reverse[1, 256](bascule.ones(256, np.int32))
        bascule.synchronize()


def an_array_without_values():
    """device_array does not write its elements: bascule.zeros would."""
    module = bascule.compile(KERNELS)
    with bascule.emulated.checks("init"):
        sums = bascule.device_array(128, np.float32)
        module.add[1, 128](bascule.ones(128, np.float32), sums)
        bascule.synchronize()


def a_division_by_zero():
    """One group is empty. The result is arbitrary, so the kernel has to treat it separately."""
    module = bascule.compile(KERNELS)
    counts = bascule.to_device(np.array([2, 3, 0, 1], np.int32))
    with bascule.emulated.checks("division"):
        module.average[1, 4](bascule.ones(4, np.int32), counts, bascule.zeros(4, np.int32))
        bascule.synchronize()


def a_missing_wait():
    """Bascule orders the streams of arrays automatically; this program orders them itself, and omits an event."""
    module = bascule.compile(KERNELS)
    first, second = bascule.stream(), bascule.stream()
    x = bascule.as_cuda_array(bascule.to_device(np.ones(1000, np.float32)), sync=False)
    bascule.synchronize()
    with bascule.emulated.checks("races"):
        module.scale[8, 128, first](x, 2, 1000)
        module.scale[8, 128, second](x, 3, 1000)  # event.record(first); event.wait(second) is missing
        bascule.synchronize()


def a_wrong_dtype():
    """NumPy's numbers are float64 by default; the kernel declares `float*`."""
    module = bascule.compile(KERNELS)
    module.scale[8, 128](bascule.to_device(np.ones(1000)), 2, 1000)


def main():
    # For each program, the class of its error and texts that the message must contain.
    bugs = {
        past_the_end: (
            bascule.CudaError,
            ["wrote 4 bytes", "find_the_bug.py", "out[i] = (in[", "directly past the 4000-byte"],
        ),
        a_missing_syncthreads: (
            bascule.CheckError,
            ["shared_races: kernel 'reverse'", "find_the_bug.py", "tile[blockDim.x - 1 - threadIdx.x]"],
        ),
        an_array_without_values: (bascule.CheckError, ["init: kernel 'add'", "find_the_bug.py", "sums[threadIdx.x]"]),
        a_division_by_zero: (
            bascule.CheckError,
            ["divided an integer by zero", "find_the_bug.py", "sums[threadIdx.x] / counts", "thread (2,0,0)"],
        ),
        a_missing_wait: (bascule.RaceError, ["stream race", "must wait", "event"]),
        a_wrong_dtype: (bascule.ArgumentError, ["argument 1 'x'", "`float*`", "float64"]),
    }
    silent = []
    for program, (kind, parts) in bugs.items():
        print(f"\n--- {program.__name__.replace('_', ' ')}: {inspect.getdoc(program)}\n")
        message = ""
        try:
            program()
        except kind as error:
            message = str(error)
        print(message or "no error was raised")
        if not all(part in message for part in parts):
            silent.append(program.__name__)
        if kind is bascule.CudaError:
            bascule.emulated.reset()  # arrays are lost, and the next program begins with a usable device

    print(f"\n{len(bugs) - len(silent)} of {len(bugs)} bugs were found")
    if silent:
        sys.exit(f"find_the_bug: the messages do not name the bug of {', '.join(silent)}")


if __name__ == "__main__":
    main()
