"""Products of matrices: tiles arrive by TMA, and warpgroups multiply them by wgmma. NumPy computes the same."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from wgmma.programs import multiply
from wgmma.test_products import ATTENTION, KINDS

import bascule

from .texts import compiled

pytestmark = pytest.mark.usefixtures("hopper")

# Three warpgroups: one thread of the last one loads tiles, the others multiply 64 rows each.
SPECIALISED = """
constexpr int stages = 3, rows = 128, columns = 64, stage = (rows + columns) * 128;
extern "C" __global__ void __launch_bounds__(384, 1) gemm(MAP a, MAP b, ELEMENT* out, int n, int steps) {
    extern __shared__ __align__(1024) char tiles[];
    __shared__ u64 full[stages], empty[stages];
    const int group = threadIdx.x / 128, thread = threadIdx.x % 128;
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) { init(full + s, 1); init(empty + s, 256); }
        ready();
    }
    __syncthreads();
    if (group == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (thread != 0) return;
        for (int t = 0; t < steps; ++t) {
            const int s = t % stages;
            wait_for(empty + s, t / stages % 2 ^ 1);
            expect(full + s, stage);
            load(tiles + s * stage, a, full + s, t * PER_ROW, blockIdx.y * rows);
            load(tiles + s * stage + rows * 128, b, full + s, t * PER_ROW, blockIdx.x * columns);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    ELEMENT d[32];
    for (int t = 0; t < steps; ++t) {
        const int s = t % stages;
        wait_for(full + s, t / stages % 2);
        const u32 at = shared(tiles) + s * stage;
        fence();
        for (int k = 0; k < 4; ++k)
            multiply(d, descriptor(at + group * 64 * 128 + k * 32, 16, 1024),
                     descriptor(at + rows * 128 + k * 32, 16, 1024), t > 0 || k > 0);
        commit();
        wait<0>();
        arrive(empty + s);
    }
    const int row = blockIdx.y * rows + group * 64 + thread / 32 * 16 + thread % 32 / 4;
    for (int i = 0; i < 32; ++i)
        out[(row + i % 4 / 2 * 8) * (size_t)n + blockIdx.x * columns + i / 4 * 8 + thread % 4 * 2 + i % 2] = d[i];
}
"""


def tiles_of(array: np.ndarray, rows: int) -> bascule.TensorMap:
    """Returns a map of the array in device memory, with tiles of rows of 128 bytes."""
    return bascule.tensor_map(bascule.to_device(array), (rows, 128 // array.itemsize), swizzle=128)


def operands(
    kind: str, m: int, n: int, k: int, rows: tuple[int, int] = (64, 64)
) -> tuple[list[bascule.TensorMap], np.ndarray, np.ndarray]:
    """Returns maps of A and of B transposed, their exact product, and the sums of the products' magnitudes."""
    dtype, tolerance = np.dtype(KINDS[kind][3]), KINDS[kind][4]
    rng = np.random.default_rng(5)
    if tolerance == 0:
        least = -128 if dtype.kind == "i" else 0
        a, b = (rng.integers(least, 128, (rows, k)).astype(dtype) for rows in (m, n))
        wide = "i8"
    else:
        a, b = (rng.standard_normal((rows, k)).astype("f4").astype(dtype) for rows in (m, n))
        wide = "f8"
        if kind == "tf32":
            a, b = ((x.view("u4") & 0xFFFFE000).view("f4") for x in (a, b))
    maps = [tiles_of(x, count) for x, count in zip((a, b), rows, strict=True)]
    return maps, a.astype(wide) @ b.astype(wide).T, np.abs(a.astype(wide)) @ np.abs(b.astype(wide)).T


def check(out: bascule.DeviceArray, exact: np.ndarray, magnitude: np.ndarray, tolerance: float) -> None:
    assert (np.abs(out.copy_to_host().astype(exact.dtype) - exact) <= tolerance * magnitude).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipelined_product_with_a_warpgroup_that_loads(kind):
    shape, types, scales, dtype, tolerance = KINDS[kind]
    per_row = 128 // np.dtype(dtype).itemsize
    m, n, k = 256, 128, 5 * per_row
    maps, exact, magnitude = operands(kind, m, n, k, (128, 64))
    out = bascule.to_device(np.full((m, n), -7, "i4" if tolerance == 0 else "f4"))
    text = multiply("multiply", shape, types, scales) + SPECIALISED
    module = compiled(text, PER_ROW=per_row, ELEMENT="int" if tolerance == 0 else "float")
    config = bascule.LaunchConfig((n // 64, m // 128), 384, shared_bytes=3 * sum(each.bytes for each in maps))
    module["gemm"][config](*maps, out, n, k // per_row)
    check(out, exact, magnitude, tolerance)


# One warpgroup, one stage. EPILOGUE stores the sums `d` of 64 x 64 elements at (row, column).
SIMPLE = """
extern "C" __global__ void __launch_bounds__(128) gemm(MAP a, MAP b, MAP c, int steps) {
    __shared__ __align__(1024) char ta[64 * 128], tb[64 * 128];
    __shared__ __align__(128) RESULT made[64 * 64];
    __shared__ u64 full;
    const int thread = threadIdx.x, row = blockIdx.y * 64, column = blockIdx.x * 64, first = blockIdx.z * steps;
    if (thread == 0) { init(&full, 1); ready(); }
    __syncthreads();
    float d[32] = {};
    for (int t = 0; t < steps; ++t) {
        if (thread == 0) {
            expect(&full, 2 * 64 * 128);
            load(ta, a, &full, (first + t) * 64, row);
            load(tb, b, &full, (first + t) * 64, column);
        }
        wait_for(&full, t % 2);
        fence();
        for (int k = 0; k < 4; ++k)
            multiply(d, descriptor(shared(ta) + k * 32, 16, 1024), descriptor(shared(tb) + k * 32, 16, 1024), 1);
        commit();
        wait<0>();
        __syncthreads();
    }
    for (int i = 0; i < 32; ++i)
        made[(thread / 32 * 16 + thread % 32 / 4 + i % 4 / 2 * 8) * 64 + i / 4 * 8 + thread % 4 * 2 + i % 2] = d[i];
    proxy();
    __syncthreads();
    if (thread == 0) { EPILOGUE(c, made, column, row); stored(); }
}
"""
F16 = multiply("multiply", *KINDS["f16"][:3])


@pytest.mark.parametrize(("m", "n", "k"), [(128, 192, 256), (100, 72, 136)])
def test_a_product_that_is_stored_by_tma_as_halves(m, n, k):
    maps, exact, magnitude = operands("f16", m, n, k)
    out = bascule.to_device(np.full((m, n), np.nan, "f2"))
    module = compiled("#include <cuda_fp16.h>\n" + F16 + SIMPLE, RESULT="__half", EPILOGUE="store")
    module["gemm"][(-(-n // 64), -(-m // 64)), 128](*maps, bascule.tensor_map(out, (64, 64)), -(-k // 64))
    check(out, exact, magnitude + 1, 2**-9)


def test_a_product_whose_parts_along_k_are_added_by_tma():
    m, n, k, parts = 128, 128, 512, 4
    maps, exact, magnitude = operands("f16", m, n, k)
    out = bascule.zeros((m, n), "f4")
    module = compiled(F16 + SIMPLE, RESULT="float", EPILOGUE="add")
    module["gemm"][(n // 64, m // 64, parts), 128](*maps, bascule.tensor_map(out, (64, 64)), k // 64 // parts)
    check(out, exact, magnitude, 1e-5)


# Two blocks of a cluster multiply other rows of A by the same columns of B; each loads half of them for both.
CLUSTER = """
extern "C" __global__ void __cluster_dims__(1, 2, 1) gemm(MAP a, MAP b, float* out, int n, int steps) {
    __shared__ __align__(1024) char ta[64 * 128], tb[64 * 128];
    __shared__ u64 full;
    const int thread = threadIdx.x, rank = blockIdx.y % 2, row = blockIdx.y * 64, column = blockIdx.x * 64;
    if (thread == 0) { init(&full, 1); ready(); }
    cluster_sync();
    float d[32] = {};
    for (int t = 0; t < steps; ++t) {
        if (thread == 0) {
            expect(&full, 2 * 64 * 128);
            load(ta, a, &full, t * 64, row);
            load_for_all(tb + rank * 32 * 128, b, &full, t * 64, column + rank * 32, 3);
        }
        wait_for(&full, t % 2);
        fence();
        for (int k = 0; k < 4; ++k)
            multiply(d, descriptor(shared(ta) + k * 32, 16, 1024), descriptor(shared(tb) + k * 32, 16, 1024), 1);
        commit();
        wait<0>();
        cluster_sync();
    }
    for (int i = 0; i < 32; ++i)
        out[(row + thread / 32 * 16 + thread % 32 / 4 + i % 4 / 2 * 8) * n + column + i / 4 * 8 + thread % 4 * 2 +
            i % 2] = d[i];
}
"""


def test_a_product_in_clusters_with_multicast():
    m, n, k = 256, 128, 192
    maps, exact, magnitude = operands("f16", m, n, k, (64, 32))
    out = bascule.full((m, n), np.nan, "f4")
    compiled(F16 + CLUSTER)["gemm"][(n // 64, m // 64), 128](*maps, out, n, k // 64)
    check(out, exact, magnitude, 1e-5)


def test_attention_whose_tiles_arrive_by_tma():
    text = ATTENTION
    for old, new in (
        ("const char* q, const char* k, const char* v", "MAP q, MAP k, MAP v"),
        ("    const int thread = threadIdx.x;\n", "    __shared__ u64 full;\n    const int thread = threadIdx.x;\n"),
        (
            "    for (int i = thread; i < 64 * 8; i += 128) copy16(shared(sq) + swizzled(i / 8, i % 8), q + i * 16);\n",
            "    if (thread == 0) { init(&full, 1); ready(); expect(&full, 3 * 8192); load(sq, q, &full, 0, 0); }\n"
            "    __syncthreads();\n",
        ),
        (
            text[
                text.index("        for (int i = thread; i < 64 * 8; i += 128) {") : text.index("        float s[32];")
            ],
            "        if (thread == 0) {\n"
            "            if (t > 0) expect(&full, 2 * 8192);\n"
            "            load(sk, k, &full, 0, t);\n"
            "            load(sv, v, &full, 0, t);\n"
            "        }\n"
            "        wait_for(&full, t / 64 % 2);\n",
        ),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    functions = multiply("scores", "m64n64k16", "f32.bf16.bf16", ", 1, 1, 0, 0") + multiply(
        "values", "m64n64k16", "f32.f16.f16", ", 1, 1, 1", 4
    )
    rng = np.random.default_rng(8)
    q, k = (rng.standard_normal((rows, 64)).astype("f4").astype(ml_dtypes.bfloat16) for rows in (64, 192))
    v = rng.standard_normal((192, 64)).astype("f2")
    out = bascule.full((64, 64), np.nan, "f4")
    compiled(functions + text)["attention"][1, 128](*(tiles_of(x, 64) for x in (q, k, v)), out, 192)
    scores = q.astype("f8") @ k.astype("f8").T / 8
    weights = np.exp(scores - scores.max(1, keepdims=True))
    right = weights / weights.sum(1, keepdims=True) @ v.astype("f8")
    assert np.abs(out.copy_to_host() - right).max() < 4e-3
