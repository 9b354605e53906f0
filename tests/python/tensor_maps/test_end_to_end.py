"""A kernel loads boxes by a tensor map that Bascule made: coordinates are the array's axes the other way round."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

pytestmark = pytest.mark.usefixtures("hopper")

TEXT = """
#include <cuda.h>
__global__ void tile(const __grid_constant__ CUtensorMap map, int row, int column, float* out) {
    __shared__ alignas(128) float box[ROWS * COLUMNS];
    __shared__ alignas(8) unsigned long long barrier;
    const unsigned at = __cvta_generic_to_shared(&barrier), to = __cvta_generic_to_shared(box);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(at), "r"(BYTES));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];"
                     :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(at) : "memory");
    }
    __syncthreads();
    int done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) out[i] = box[i];
}
"""


def test_a_box_is_loaded_from_where_it_lies_and_filled_outside() -> None:
    host = np.arange(20 * 24, dtype="f4").reshape(20, 24)
    array = bascule.to_device(host)
    for fill, outside in (("zeros", 0.0), ("nan", np.nan)):
        map = bascule.tensor_map(array, (6, 8), fill=fill)
        rows, columns = map.box
        options = bascule.CompileOptions(defines={"BYTES": map.bytes, "ROWS": rows, "COLUMNS": columns})
        kernel = bascule.compile(TEXT, options=options).tile
        for row, column in ((0, 0), (3, 4), (17, 20), (-2, -4)):
            out = bascule.zeros(map.box, "f4")
            kernel[1, 32](map, row, column, out)
            padded = np.pad(host, 30, constant_values=outside)
            expected = padded[30 + row : 30 + row + rows, 30 + column : 30 + column + columns]
            np.testing.assert_array_equal(out.copy_to_host(), expected)


ARRIVES = """
#include <cuda.h>
__global__ void arrives(const __grid_constant__ CUtensorMap map, int* is_over) {
    extern __shared__ __align__(128) char box[];
    __shared__ alignas(8) unsigned long long barrier;
    const unsigned at = __cvta_generic_to_shared(&barrier), to = __cvta_generic_to_shared(box);
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(at), "r"(BYTES));
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %2, %2}], [%3];" :: "r"(to), "l"(&map), "r"(0), "r"(at) : "memory");
    int done = 0;
    for (int tries = 0; tries < 1000000 && !done; ++tries)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");
    *is_over = done;
}
"""


@pytest.mark.parametrize(
    ("shape", "box", "given"),
    [
        ((9, 20, 32), (7, 16, 32), {"element_strides": (2, 3, 1)}),
        ((9, 20, 32), (8, 5, 16), {"element_strides": (8, 7, 1), "swizzle": 32}),
        ((4, 6, 8), (3, 5, 8), {"element_strides": (2, 3, 1), "interleave": 16}),
        ((4, 6, 16), (3, 5, 16), {"element_strides": (1, 2, 1), "interleave": 32, "swizzle": 32}),
    ],
)
def test_as_many_bytes_arrive_as_the_map_says(shape, box, given) -> None:
    map = bascule.tensor_map(bascule.zeros(shape, "f2"), box, **given)
    is_over = bascule.zeros(1, "i4")
    kernel = bascule.compile(ARRIVES, options=bascule.CompileOptions(defines={"BYTES": map.bytes})).arrives
    kernel.launch(1, 1, (map, is_over), shared_bytes=16384)
    assert is_over.copy_to_host()[0] == 1
