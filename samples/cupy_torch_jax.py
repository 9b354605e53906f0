"""Arrays of CuPy, PyTorch and JAX as arguments of one kernel, each ordered with its library's own stream.

    python samples/cupy_torch_jax.py          needs a GPU and at least one of: cupy-cuda13x, torch, jax[cuda13]

The kernel writes into a CuPy array and a PyTorch tensor, and reads a JAX array, which is immutable. Nobody calls
synchronize: the library's next operation waits for the kernel. Libraries that are missing are left out; without a GPU
there is nothing to show, and the sample says so. The results are compared with NumPy's.
"""

import importlib.util
import sys

import numpy as np

import bascule

KERNEL = r"""
template <class T>
__global__ void saxpy(T a, bascule::array_view<const T> x, bascule::array_view<T> y) {
    for (auto i : bascule::grid_stride(y.size())) y[i] += a * x[i];
}
"""
N = 1 << 20


def with_cupy(saxpy, x, y):
    import cupy

    with cupy.cuda.Stream(non_blocking=True):  # CuPy's arrays name its current stream
        theirs = cupy.asarray(y)
        saxpy.forall(N)(2.0, cupy.asarray(x), theirs)
        return cupy.asnumpy(theirs + 1)


def with_torch(saxpy, x, y):
    import torch

    with torch.cuda.stream(torch.cuda.Stream()):  # tensors name no stream: Bascule asks for the current one
        theirs = torch.asarray(y).cuda()
        saxpy.forall(N)(2.0, torch.asarray(x).cuda(), theirs)
        return (theirs + 1).cpu().numpy()


def with_jax(saxpy, x, y):
    import jax

    theirs = jax.numpy.asarray(x) + 0  # enqueued, perhaps not computed yet
    ours = bascule.to_device(y)
    saxpy.forall(N)(2.0, theirs, ours)
    return ours.copy_to_host() + 1


def main():
    libraries = {"cupy": with_cupy, "torch": with_torch, "jax": with_jax}
    found = [name for name in libraries if importlib.util.find_spec(name)]
    if bascule.current_device().emulated:
        print("skipped: these libraries need a GPU, and kernels run on the emulated device here")
        return
    if not found:
        print("skipped: none of CuPy, PyTorch and JAX is installed; try: pip install cupy-cuda13x")
        return

    print(f"device: {bascule.current_device()!r}")
    x, y = np.random.default_rng(1).random((2, N), dtype=np.float32)
    saxpy = bascule.compile(KERNEL).saxpy
    failed = []
    for name in found:
        error = np.abs(libraries[name](saxpy, x, y) - (y + 2 * x + 1)).max()
        right = error <= 1e-6  # False for NaN
        print(f"{'ok' if right else 'WRONG':6}{name:6} differs from NumPy by at most {error:.1e} (limit 1e-06)")
        if not right:
            failed.append(name)
    if failed:
        sys.exit(f"cupy_torch_jax: {', '.join(failed)}: the result differs from NumPy's; see the lines marked WRONG")


if __name__ == "__main__":
    main()
