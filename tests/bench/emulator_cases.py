"""The kernels of emulator_kernels.cu with data, and the same arithmetic in plain C++ (emulator_scalar.cpp)."""

import ctypes
import os
import subprocess
from pathlib import Path

import numpy as np

import bascule

HERE = Path(__file__).parent


class Case:
    """One kernel and its scalar counterpart on the same data. `run` and `run_scalar` take no arguments."""

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


def equal(got, want):
    return (got == want).all()


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def make_cases(scalar):
    """Functions that make a Case, by name: each compiles the module, or finds it in memory."""
    random = np.random.default_rng(1)

    def floats(*shape):
        return random.standard_normal(shape, dtype=np.float32)

    def kernel(name):
        return bascule.compile(file=HERE / "emulator_kernels.cu")[name]

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
            lambda: (sums.copy_to_host().sum(), x.sum(dtype=np.float64)),  # the sequential float32 sum is less accurate
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
            close=lambda got, want: (got != want).mean() < 0.01,  # fused multiply-adds move the set's border a little
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

    def twins(title, grid, block, inputs, output, sizes, scalar_sizes=None, close=None):
        """A case whose kernel and C++ function, named by the title's first word, take inputs, output and sizes."""
        name = title.split()[0]
        launcher, twin = kernel(name)[grid, block], getattr(scalar, name)
        device, device_output = [bascule.to_device(array) for array in inputs], bascule.to_device(output)
        return Case(
            title,
            lambda: launcher(*device, device_output, *sizes),
            lambda: twin(*map(pointer, (*inputs, output)), *(scalar_sizes or sizes)),
            lambda: (device_output.copy_to_host(), output),
            close=close,
        )

    def transpose():
        n = 512
        return twins("transpose 512^2", (n // 32, n // 32), (32, 8), [floats(n, n)], np.zeros((n, n), "f4"), [n])

    def histogram():
        n = 1 << 18
        values = random.integers(0, 256, n, dtype="u1")
        return twins("histogram 2^18, shared atomics", 16, 256, [values], np.zeros(256, "i4"), [n], close=equal)

    def scan():
        n = 1 << 18
        values = random.integers(-9, 9, n, dtype="i4")
        return twins("scan 2^18 by shuffles", n // 256, 256, [values], np.zeros(n, "i4"), [], [n], equal)

    def stencil():
        n = 512
        return twins("stencil 512^2, 5 points", (n // 32, n // 8), (32, 8), [floats(n, n)], np.zeros((n, n), "f4"), [n])

    def rows(title):
        count, columns = 512, 256
        out = np.zeros((count, columns), "f4")
        return twins(title, count // 4, (32, 4), [floats(count, columns)], out, [columns], [count, columns])

    def bitonic():
        n = 1 << 14
        values = random.integers(-(2**31), 2**31, n, dtype="i4")
        return twins("bitonic sorts of 512, 2^14", n // 512, 256, [values], np.zeros(n, "i4"), [], [n], equal)

    def spmv():
        n = 1 << 13
        starts = np.concatenate([[0], np.cumsum(random.integers(0, 33, n))]).astype("i4")
        columns = random.integers(0, n, starts[-1], dtype="i4")
        inputs = [starts, columns, floats(len(columns)), floats(n)]
        return twins("spmv of 2^13 rows, CSR", n // 128, 128, inputs, np.zeros(n, "f4"), [n])

    def convolve():
        n = 260
        out = np.zeros((n - 4, n - 4), "f4")
        return twins("convolve 256^2 by 5x5", (8, 32), (32, 8), [floats(n, n), floats(25)], out, [n])

    def black_scholes():
        n = 1 << 16
        inputs = [np.abs(floats(n)) * 10 + at_least for at_least in (50, 50, 0.1)]
        return twins(
            "black_scholes 2^16", n // 256, 256, [array.astype("f4") for array in inputs], np.zeros(n, "f4"), [n]
        )

    def warp_reduce():
        n = 1 << 18
        x, total = np.abs(floats(n)), np.zeros(1, np.float32)
        device_x, sums = bascule.to_device(x), bascule.device_array(32, np.float32)
        launcher = kernel("warp_reduce")[32, 256]
        return Case(
            "warp_reduce 2^18",
            lambda: launcher(device_x, sums, n),
            lambda: scalar.reduce(pointer(x), pointer(total), n),
            lambda: (sums.copy_to_host().sum(), x.sum(dtype=np.float64)),
        )

    def dot_int8():
        count, words = 2048, 64
        inputs = [random.integers(-(2**31), 2**31, shape, dtype="i4") for shape in ((words, count), words)]
        return twins(
            "dot_int8 2048 x 256, dp4a", 16, 128, inputs, np.zeros(count, "i4"), [words], [count, words], equal
        )

    return {
        "saxpy": saxpy,
        "reduce": reduce,
        "matmul": lambda: product("matmul", "matmul 256^3, 16x16 tile", (16, 16), (16, 16)),
        "gemm": lambda: product("gemm", "gemm 256^3, 4x4 register tile", (4, 4), (16, 16)),
        "tensor": lambda: product("tensor", "gemm 256^3 by tensor cores, f16", (4, 4), (32, 4), np.float16),
        "mandelbrot": mandelbrot,
        "nbody": nbody,
        "transpose": transpose,
        "histogram": histogram,
        "scan": scan,
        "stencil": stencil,
        "softmax": lambda: rows("softmax of 512 rows of 256"),
        "layer_norm": lambda: rows("layer_norm of 512 rows of 256"),
        "bitonic": bitonic,
        "spmv": spmv,
        "convolve": convolve,
        "black_scholes": black_scholes,
        "warp_reduce": warp_reduce,
        "dot_int8": dot_int8,
    }


def compile_scalar(directory):
    library = directory / "scalar.so"
    flags = ["-O2", "-fno-tree-vectorize", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run([os.environ.get("CXX", "g++"), *flags, "-o", library, HERE / "emulator_scalar.cpp"], check=True)
    return ctypes.CDLL(str(library))
