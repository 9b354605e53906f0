"""Whole kernels with wgmma, compared with NumPy: products of matrices of every kind of elements, and attention."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import bascule

from .programs import compiled, multiply

# Rows of A and of B transposed are contiguous; a stage has 128 bytes of K. Two warpgroups multiply, each 64 rows of a
# tile of 128 x 64, and a third one copies.
SPECIALISED = """
constexpr int stages = 3, rows = 128, columns = 64, stage = (rows + columns) * 128;
extern "C" __global__ void __launch_bounds__(384, 1)
gemm(const char* a, const char* b, ELEMENT* out, int n, int k_bytes) {
    extern __shared__ __align__(1024) char tiles[];
    __shared__ u64 full[stages], empty[stages];
    const int group = threadIdx.x / 128, thread = threadIdx.x % 128, steps = k_bytes / 128;
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; ++s) { init(full + s, 128); init(empty + s, 256); }
    }
    __syncthreads();
    a += (size_t)blockIdx.y * rows * k_bytes;
    b += (size_t)blockIdx.x * columns * k_bytes;
    if (group == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        for (int t = 0; t < steps; ++t) {
            wait_for(empty + t % stages, t / stages % 2 ^ 1);
            const u32 at = shared(tiles) + t % stages * stage;
            for (int i = thread; i < rows * 8; i += 128)
                copy16(at + swizzled(i / 8, i % 8), a + (size_t)(i / 8) * k_bytes + t * 128 + i % 8 * 16);
            for (int i = thread; i < columns * 8; i += 128)
                copy16(at + rows * 128 + swizzled(i / 8, i % 8), b + (size_t)(i / 8) * k_bytes + t * 128 + i % 8 * 16);
            copies_committed();
            if (t > 0) { copies_done<1>(); proxy(); arrive(full + (t - 1) % stages); }
        }
        copies_done<0>();
        proxy();
        arrive(full + (steps - 1) % stages);
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    ELEMENT d[32];
    for (int t = 0; t < steps; ++t) {
        wait_for(full + t % stages, t / stages % 2);
        const u32 at = shared(tiles) + t % stages * stage;
        fence();
        for (int k = 0; k < 4; ++k)
            multiply(d, descriptor(at + group * 64 * 128 + k * 32, 16, 1024),
                     descriptor(at + rows * 128 + k * 32, 16, 1024), t > 0 || k > 0);
        commit();
        wait<1>();
        if (t > 0) arrive(empty + (t - 1) % stages);
    }
    wait<0>();
    const int row = blockIdx.y * rows + group * 64 + thread / 32 * 16 + thread % 32 / 4;
    for (int i = 0; i < 32; ++i)
        out[(row + i % 4 / 2 * 8) * (size_t)n + blockIdx.x * columns + i / 4 * 8 + thread % 4 * 2 + i % 2] = d[i];
}
"""
FLOATS = ", 1, 1"
KINDS = {
    "f16": ("m64n64k16", "f32.f16.f16", FLOATS + ", 0, 0", "f2", 1e-5),
    "bf16": ("m64n64k16", "f32.bf16.bf16", FLOATS + ", 0, 0", ml_dtypes.bfloat16, 1e-5),
    "tf32": ("m64n64k8", "f32.tf32.tf32", FLOATS, "f4", 1e-5),
    "e4m3": ("m64n64k32", "f32.e4m3.e4m3", FLOATS, ml_dtypes.float8_e4m3fn, 1e-3),
    "e5m2": ("m64n64k32", "f32.e5m2.e5m2", FLOATS, ml_dtypes.float8_e5m2, 1e-3),
    "s8": ("m64n64k32", "s32.s8.s8", "", "i1", 0),
    "u8": ("m64n64k32", "s32.u8.u8", "", "u1", 0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_warp_specialised_product_of_matrices(kind):
    shape, types, scales, dtype, tolerance = KINDS[kind]
    dtype = np.dtype(dtype)
    integers = tolerance == 0
    m, n, k = 256, 128, 5 * 128 // dtype.itemsize
    rng = np.random.default_rng(3)
    if integers:
        a, b = (rng.integers(-128 if dtype.kind == "i" else 0, 128, (rows, k)).astype(dtype) for rows in (m, n))
    else:
        a, b = (rng.standard_normal((rows, k)).astype("f4").astype(dtype) for rows in (m, n))
        if kind == "tf32":
            a, b = ((x.view("u4") & 0xFFFFE000).view("f4") for x in (a, b))
    element = "int" if integers else "float"
    text = multiply("multiply", shape, types, scales) + SPECIALISED.replace("ELEMENT", element)
    out = bascule.to_device(np.full((m, n), -7, "i4" if integers else "f4"))
    config = bascule.LaunchConfig((n // 64, m // 128), 384, shared_bytes=3 * 192 * 128)
    compiled(text)["gemm"][config](*(bascule.to_device(x.view("i1")) for x in (a, b)), out, n, k * dtype.itemsize)
    exact = a.astype("i8" if integers else "f8") @ b.astype("i8" if integers else "f8").T
    if integers:
        assert np.array_equal(out.copy_to_host(), exact)
    else:
        magnitude = np.abs(a.astype("f8")) @ np.abs(b.astype("f8")).T
        assert (np.abs(out.copy_to_host() - exact) <= tolerance * magnitude).all()


ATTENTION = """
extern "C" __global__ void __launch_bounds__(128)
attention(const char* q, const char* k, const char* v, float* out, int keys) {
    __shared__ __align__(1024) char sq[64 * 128], sk[64 * 128], sv[64 * 128];
    const int thread = threadIdx.x;
    for (int i = thread; i < 64 * 8; i += 128) copy16(shared(sq) + swizzled(i / 8, i % 8), q + i * 16);
    float o[32] = {}, most[2] = {-1e30f, -1e30f}, sum[2] = {};
    for (int t = 0; t < keys; t += 64) {
        for (int i = thread; i < 64 * 8; i += 128) {
            copy16(shared(sk) + swizzled(i / 8, i % 8), k + t * 128 + i * 16);
            copy16(shared(sv) + swizzled(i / 8, i % 8), v + t * 128 + i * 16);
        }
        copies_committed();
        copies_done<0>();
        proxy();
        __syncthreads();
        float s[32];
        fence();
        for (int c = 0; c < 4; ++c)
            scores(s, descriptor(shared(sq) + c * 32, 16, 1024), descriptor(shared(sk) + c * 32, 16, 1024), c > 0);
        commit();
        wait<0>();
        u32 p[4][4];
        for (int half = 0; half < 2; ++half) {
            float next = most[half];
            for (int i = 0; i < 32; ++i) if (i % 4 / 2 == half) next = fmaxf(next, s[i] * 0.125f);
            for (int w = 1; w < 4; w *= 2) next = fmaxf(next, __shfl_xor_sync(~0u, next, w));
            const float scale = expf(most[half] - next);
            most[half] = next;
            sum[half] *= scale;
            for (int i = 0; i < 32; ++i) {
                if (i % 4 / 2 != half) continue;
                s[i] = expf(s[i] * 0.125f - next);
                sum[half] += s[i];
                o[i] *= scale;
            }
        }
        for (int i = 0; i < 16; ++i)
            asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(p[i / 4][i % 4]) : "f"(s[2 * i + 1]), "f"(s[2 * i]));
        fence();
        for (int c = 0; c < 4; ++c) values(o, p[c], descriptor(shared(sv) + c * 2048, 16, 1024), 1);
        commit();
        wait<0>();
        __syncthreads();
    }
    for (int half = 0; half < 2; ++half)
        for (int w = 1; w < 4; w *= 2) sum[half] += __shfl_xor_sync(~0u, sum[half], w);
    for (int i = 0; i < 32; ++i)
        out[(thread / 32 * 16 + thread % 32 / 4 + i % 4 / 2 * 8) * 64 + i / 4 * 8 + thread % 4 * 2 + i % 2] =
            o[i] / sum[i % 4 / 2];
}
"""


def test_attention_with_probabilities_in_registers():
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal((rows, 64)).astype("f2") for rows in (64, 256, 256))
    text = multiply("scores", "m64n64k16", "f32.f16.f16", FLOATS + ", 0, 0")
    text += multiply("values", "m64n64k16", "f32.f16.f16", FLOATS + ", 1", 4) + ATTENTION
    out = bascule.to_device(np.zeros((64, 64), "f4"))
    compiled(text)["attention"][1, 128](*(bascule.to_device(x.view("i1")) for x in (q, k, v)), out, 256)
    scores = q.astype("f8") @ k.astype("f8").T / 8
    weights = np.exp(scores - scores.max(1, keepdims=True))
    wanted = weights / weights.sum(1, keepdims=True) @ v.astype("f8")
    np.testing.assert_allclose(out.copy_to_host(), wanted, atol=2e-3)
