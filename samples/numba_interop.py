"""Arrays and streams of Numba in a kernel of Bascule, and an array of Bascule in Numba: nothing is copied between them.

    python samples/numba_interop.py         needs Numba: pip install numba-cuda

Both use one device. Without a GPU that is the emulated one, which is made the driver of this process before Numba
looks for one. (Numba's own kernels run there too, where NVVM is installed: pip install "numba-cuda[cu13]".) The results
are compared with NumPy's.
"""

import sys

import numpy as np

import bascule

if bascule.current_device().emulated:
    bascule.emulated.install()
try:
    from numba import cuda
except ImportError as error:
    sys.exit(f"numba_interop: {error}; install Numba by: pip install numba-cuda")

KERNEL = r"""
// array_view takes arrays with any strides: columns of Numba's, rows of ours.
template <class T>
__global__ void saxpy(T a, bascule::array_view<const T> x, bascule::array_view<T> y) {
    for (auto i : bascule::grid_stride(y.size())) y[i] += a * x[i];
}
"""
ROWS, COLUMNS, LIMIT = 5000, 4, 4e-15


def main():
    print(f"device: {bascule.current_device()!r}; for Numba: {cuda.get_current_device().name}")
    table, vector = np.random.default_rng(1).random((2, ROWS, COLUMNS))
    saxpy = bascule.compile(KERNEL).saxpy

    # Numba's arrays, made on a stream of Numba's, which they name: the kernel waits for the copy to the device, and
    # copy_to_host, which Numba enqueues on that stream, waits for the kernel. The host waits only for the result.
    stream = cuda.stream()
    theirs, x = cuda.to_device(table, stream=stream), cuda.to_device(vector, stream=stream)
    saxpy[40, 128](2.0, x[:, 0], theirs[:, 3])
    got = theirs.copy_to_host(stream=stream)
    stream.synchronize()
    after = table.copy()
    after[:, 3] += 2 * vector[:, 0]
    comparisons = {"Numba's array after Bascule's kernel": np.abs(got - after).max()}

    # An array of Bascule and one of Numba in one launch; then Numba reads Bascule's, without a copy on the device.
    ours = bascule.to_device(table[0])
    saxpy[1, 128](3.0, theirs[1], ours)
    view = cuda.as_cuda_array(ours)
    comparisons["Bascule's array, read by Numba"] = np.abs(view.copy_to_host() - (table[0] + 3 * after[1])).max()

    shared = view.__cuda_array_interface__["data"] == ours.__cuda_array_interface__["data"]
    print(f"Numba reads {'the same memory' if shared else 'a COPY'}")
    for name, error in comparisons.items():
        verdict = "ok" if error <= LIMIT else "WRONG"  # NaN is wrong
        print(f"{verdict:6}{name}: differs from NumPy by at most {error:.1e} (limit {LIMIT:g})")
    if not shared or not all(error <= LIMIT for error in comparisons.values()):
        sys.exit("numba_interop: an array is not what NumPy says; see the lines above")


if __name__ == "__main__":
    main()
