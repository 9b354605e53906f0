"""A sparse matrix times a vector: the matrix stays in the CSR arrays in which SciPy made it.

    python samples/spmv.py

Several threads share a row, and a warp shuffle adds up what they found. How many is a template argument: few for the
5-point Laplacian of a grid, a whole warp for a matrix with long rows. SciPy computes the same products.
"""

import sys

import numpy as np
from scipy import sparse

import bascule

KERNEL = r"""
template <int LANES, class T>
__global__ void multiply(const int* row_starts, const int* columns, const T* values, const T* x, T* y, int rows) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = thread / LANES, lane = thread % LANES;
    T sum = 0;
    if (row < rows)
        for (int k = row_starts[row] + lane; k < row_starts[row + 1]; k += LANES) sum += values[k] * x[columns[k]];
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, distance, LANES);  // every thread of the warp takes part
    if (row < rows && lane == 0) y[row] = sum;
}
"""
BLOCK = 128


def laplacian(side):
    """The 5-point Laplacian of a square grid with side * side points."""
    second_difference = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    return sparse.kronsum(second_difference, second_difference, format="csr")


def multiply(matrix, x):
    """`matrix @ x` on the device, and how many threads shared a row."""
    rows = matrix.shape[0]
    of_a_row = matrix.nnz / rows
    lanes = next(lanes for lanes in (1, 2, 4, 8, 16, 32) if lanes == 32 or 2 * lanes > of_a_row)
    kernel = bascule.compile(KERNEL).multiply.instantiate(LANES=lanes)
    # SciPy's own index arrays: int32, as the kernel declares them.
    row_starts, columns, values = (bascule.to_device(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    y = bascule.device_array(rows, matrix.dtype)
    blocks = -(-rows * lanes // BLOCK)
    kernel[blocks, BLOCK](row_starts, columns, values, bascule.to_device(x), y, rows)
    return y.copy_to_host(), lanes


def main():
    rng = np.random.default_rng(1)
    matrices = {
        "laplacian": laplacian(150),
        "random": sparse.random_array((4000, 3000), density=0.02, format="csr", rng=rng, dtype="f4"),
    }
    print(f"device: {bascule.current_device()!r}")
    failed = []
    for name, matrix in matrices.items():
        x = rng.standard_normal(matrix.shape[1]).astype(matrix.dtype)
        got, lanes = multiply(matrix, x)
        expected = matrix.astype("f8") @ x.astype("f8")
        error, limit = np.abs(got - expected).max() / np.abs(expected).max(), 8 * np.finfo(matrix.dtype).eps
        right = error <= limit  # False for NaN
        print(
            f"{'ok' if right else 'WRONG':6}{name:10}{matrix.shape[0]} x {matrix.shape[1]}, {matrix.nnz} values of",
            end=" ",
        )
        print(f"{matrix.dtype}, {lanes} threads a row: differs from SciPy by at most {error:.1e} (limit {limit:.1e})")
        if not right:
            failed.append(name)
    if failed:
        sys.exit(f"spmv: {', '.join(failed)}: the product differs from SciPy's; see the lines marked WRONG")


if __name__ == "__main__":
    main()
