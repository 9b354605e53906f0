"""How fast the emulated device runs kernels, as ratios to plain scalar C++ doing the same arithmetic.

    python tests/bench/emulator.py [--rounds N] [NAME...]

Memory checks on; one worker thread, then two, each in a process of its own. The C++ is compiled here by g++ -O2 without
vectorisation and runs on one thread. Both run in turn, in N rounds (9); ratios are of medians. Every result is compared
with the C++'s before anything is timed. Goals are for one worker.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["BASCULE_DEVICE"] = "emulated"
os.environ.setdefault("BASCULE_EMULATED_WORKERS", "1")
os.environ["BASCULE_EMULATED_SCHEDULE"] = "eager"

import numpy as np

import bascule

KERNELS = r"""
#include <mma.h>

__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

__global__ void reduce(const float* x, float* sums, int n) {
    __shared__ float shared[256];
    int i = blockIdx.x * blockDim.x * 8 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 8; ++k, i += 256) if (i < n) sum += x[i];
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = shared[0];
}

__global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float tile_a[16][16], tile_b[16][16];
    const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        tile_a[y][x] = a[row * n + k + x];
        tile_b[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

__global__ void gemm(const float* a, const float* b, float* c, int n) {  // 64 x 64 a block, 4 x 4 a thread
    __shared__ float tile_a[16][64], tile_b[16][64];
    const int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    const int first_row = blockIdx.y * 64, first_column = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int k = 0; k < n; k += 16) {
        for (int i = thread; i < 16 * 64; i += 256) {
            tile_a[i % 16][i / 16] = a[(first_row + i / 16) * n + k + i % 16];
            tile_b[i / 64][i % 64] = b[(k + i / 64) * n + first_column + i % 64];
        }
        __syncthreads();
        for (int i = 0; i < 16; ++i)
            for (int r = 0; r < 4; ++r)
                for (int s = 0; s < 4; ++s) sum[r][s] += tile_a[i][y * 4 + r] * tile_b[i][x + 16 * s];
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 4; ++s) c[(first_row + y * 4 + r) * n + first_column + x + 16 * s] = sum[r][s];
}

__global__ void tensor(const __half* a, const __half* b, float* c, int n) {  // 64 x 64 a block of four warps
    using namespace nvcuda::wmma;
    const int first_row = blockIdx.y * 64 + threadIdx.y * 16, first_column = blockIdx.x * 64;
    fragment<accumulator, 16, 16, 16, float> sum[4];
    for (int i = 0; i < 4; ++i) fill_fragment(sum[i], 0);
    for (int k = 0; k < n; k += 16) {
        fragment<matrix_a, 16, 16, 16, __half, row_major> left;
        load_matrix_sync(left, a + first_row * n + k, n);
        for (int i = 0; i < 4; ++i) {
            fragment<matrix_b, 16, 16, 16, __half, row_major> right;
            load_matrix_sync(right, b + k * n + first_column + 16 * i, n);
            mma_sync(sum[i], left, right, sum[i]);
        }
    }
    for (int i = 0; i < 4; ++i)
        store_matrix_sync(c + first_row * n + first_column + 16 * i, sum[i], n, mem_row_major);
}

__global__ void mandelbrot(int* out, int n, int limit) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
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

__global__ void nbody(const float* positions, float* out, int n) {  // x, y, z, mass
    __shared__ float4 tile[256];
    const float4* bodies = reinterpret_cast<const float4*>(positions);
    float4* forces = reinterpret_cast<float4*>(out);
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float4 own = bodies[i];
    float fx = 0, fy = 0, fz = 0;
    for (int first = 0; first < n; first += 256) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 256; ++j) {
            const float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
            const float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            const float f = tile[j].w * inverse * inverse * inverse;
            fx += f * dx, fy += f * dy, fz += f * dz;
        }
        __syncthreads();
    }
    forces[i] = make_float4(fx, fy, fz, 0);
}
"""

SCALAR = r"""
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
}
"""

# What the ratio was on a throwaway prototype, what it is to be at first, and in the end.
GOALS = {
    "saxpy": (9.5, 13, 6),
    "reduce": (1.9, 3, 1.5),
    "matmul": (2.7, 4, 2),
    "gemm": (0.46, 0.7, 0.4),
    "tensor": (0.22, 0.5, 0.2),
    "mandelbrot": (1.7, 2.5, 1.4),
    "nbody": (1.0, 1.5, 0.8),
}


class Case:
    """One kernel and its scalar twin over the same data. `run` and `run_scalar` take no arguments."""

    def __init__(self, title, launch, scalar, outputs, reset=lambda: None, close=None):
        self.title, self.run, self.run_scalar, self.outputs, self.reset = title, launch, scalar, outputs, reset
        self.close = close or (lambda got, want: np.abs(got - want).max() <= 1e-4 * np.abs(want).max())

    def check(self):
        self.reset()
        self.run()
        self.run_scalar()
        bascule.synchronize()
        got, want = self.outputs()
        if not self.close(got, want):
            raise AssertionError("the emulated device and C++ disagree")


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def make_cases(scalar):
    """Functions that make a Case, by name: each compiles the module, or finds it in memory."""
    random = np.random.default_rng(1)

    def floats(*shape):
        return random.standard_normal(shape, dtype=np.float32)

    def kernel(name):
        return getattr(bascule.compile(KERNELS), name)

    def saxpy():
        n, a = 1 << 20, 0.5
        x, y = floats(n), floats(n)
        start = y.copy()
        device_x, device_y = bascule.to_device(x), bascule.to_device(y)
        launcher = kernel("saxpy")[n // 256, 256]
        return Case(
            "saxpy 2^20",
            lambda: launcher(a, device_x, device_y, n),
            lambda: scalar.saxpy(ctypes.c_float(a), pointer(x), pointer(y), n),
            lambda: (device_y.copy_to_host(), y),
            lambda: np.copyto(y, start),
        )

    def reduce():
        n = 1 << 20
        x, total = np.abs(floats(n)), np.zeros(1, np.float32)
        device_x, sums = bascule.to_device(x), bascule.device_array(n // 2048, np.float32)
        launcher = kernel("reduce")[n // 2048, 256]
        return Case(
            "reduce 2^20 in shared memory",
            lambda: launcher(device_x, sums, n),
            lambda: scalar.reduce(pointer(x), pointer(total), n),
            lambda: (sums.copy_to_host().sum(), x.sum(dtype=np.float64)),  # the sequential float32 sum is the worse one
        )

    def product(name, title, grid, block, element=np.float32):
        n = 256
        a, b = (floats(n, n).astype(element).astype(np.float32) for _ in range(2))
        c = np.zeros((n, n), np.float32)
        device = [bascule.to_device(array) for array in (a.astype(element), b.astype(element), c)]
        launcher = kernel(name)[grid, block]
        return Case(
            title,
            lambda: launcher(*device, n),
            lambda: scalar.matmul(pointer(a), pointer(b), pointer(c), n),
            lambda: (device[2].copy_to_host(), c),
        )

    def mandelbrot():
        n, limit = 512, 256
        steps = np.zeros((n, n), np.int32)
        device_steps = bascule.to_device(steps)
        launcher = kernel("mandelbrot")[(n // 32, n // 8), (32, 8)]
        return Case(
            "mandelbrot 512^2, 256 steps",
            lambda: launcher(device_steps, n, limit),
            lambda: scalar.mandelbrot(pointer(steps), n, limit),
            lambda: (device_steps.copy_to_host(), steps),
            close=lambda got, want: (got != want).mean() < 0.01,  # fused multiply-add moves the border a little
        )

    def nbody():
        n = 2048
        bodies, forces = np.abs(floats(n, 4)), np.zeros((n, 4), np.float32)
        device_bodies, device_forces = bascule.to_device(bodies), bascule.to_device(forces)
        launcher = kernel("nbody")[n // 256, 256]
        return Case(
            "n-body 2048^2",
            lambda: launcher(device_bodies, device_forces, n),
            lambda: scalar.nbody(pointer(bodies), pointer(forces), n),
            lambda: (device_forces.copy_to_host(), forces),
        )

    return {
        "saxpy": saxpy,
        "reduce": reduce,
        "matmul": lambda: product("matmul", "matmul 256^3, 16x16 tile", (16, 16), (16, 16)),
        "gemm": lambda: product("gemm", "gemm 256^3, 4x4 register tile", (4, 4), (16, 16)),
        "tensor": lambda: product("tensor", "tensor cores 256^3, halves", (4, 4), (32, 4), np.float16),
        "mandelbrot": mandelbrot,
        "nbody": nbody,
    }


def compile_scalar(directory):
    source, library = directory / "scalar.cpp", directory / "scalar.so"
    source.write_text(SCALAR)
    flags = ["-O2", "-fno-tree-vectorize", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run([os.environ.get("CXX", "g++"), *flags, "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


def milliseconds(function):
    start = time.perf_counter()
    function()
    return 1e3 * (time.perf_counter() - start)


def measure(case, rounds):
    def emulated():
        case.run()
        bascule.synchronize()

    pairs = [(milliseconds(emulated), milliseconds(case.run_scalar)) for _ in range(rounds)]
    return [statistics.median(times) for times in zip(*pairs, strict=True)]


def run_cases(names, rounds):
    """One line of JSON a case: [title, emulated ms, C++ ms], or [name, why it does not run]."""
    with tempfile.TemporaryDirectory() as directory:
        cases = make_cases(compile_scalar(Path(directory)))
        for name in names:
            try:
                case = cases[name]()
                case.check()
            except (bascule.Error, AssertionError) as error:
                print(json.dumps([name, str(error).splitlines()[0]]))
                continue
            print(json.dumps([case.title, *measure(case, rounds)]), flush=True)


def run_with(workers, names, rounds):
    environment = {**os.environ, "BASCULE_EMULATED_WORKERS": str(workers)}
    command = [sys.executable, __file__, "--here", f"--rounds={rounds}", *names]
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description="Ratios of the emulated device to plain C++.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.names or list(GOALS)
    if unknown := [name for name in names if name not in GOALS]:
        sys.exit(f"emulator: no kernel is called {', '.join(unknown)}; there are {', '.join(GOALS)}")
    if options.here:
        return run_cases(names, options.rounds)
    print(f"{bascule.current_device()!r}, memory checks on; median of {options.rounds}")
    print(f"{'':31}{'emulated ms':>12}{'C++ ms':>8}{'ratio':>7}   prototype  first goal   goal{'two workers':>14}")
    failed = False
    for name, one, two in zip(
        names, run_with(1, names, options.rounds), run_with(2, names, options.rounds), strict=True
    ):
        if len(one) == 2:
            failed = True
            print(f"{name:31}does not run: {one[1]}")
            continue
        title, emulated, scalar = one
        prototype, first, goal = GOALS[name]
        numbers = f"{emulated:12.2f}{scalar:8.2f}{emulated / scalar:7.2f}{prototype:12}{first:12}{goal:7}"
        print(f"{title:31}{numbers}{two[1] / two[2]:14.2f}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
