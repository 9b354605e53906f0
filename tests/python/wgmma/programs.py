"""Texts of kernels with wgmma, and the layouts of their results."""

from __future__ import annotations

import functools

import numpy as np

import bascule

PRELUDE = """
using u32 = unsigned;
using u64 = unsigned long long;
__device__ u32 shared(const void* p) { return (u32)__cvta_generic_to_shared(p); }
// A matrix in shared memory with rows of 128 bytes and a swizzle of 128 bytes.
__device__ u64 descriptor(u32 at, u32 leading, u32 stride) {
    return (at & 0x3ffff) >> 4 | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32 | 1ull << 62;
}
__device__ u32 swizzled(u32 row, u32 unit) { return row * 128 + (unit ^ row % 8) * 16; }
__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ void wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
__device__ void proxy() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ void copy16(u32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from) : "memory");
}
__device__ void copies_committed() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ void copies_done() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }
__device__ void init(u64* b, u32 count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(shared(b)), "r"(count));
}
__device__ void arrive(u64* b) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(shared(b)) : "memory"); }
__device__ void wait_for(u64* b, u32 parity) {
    asm volatile("{.reg .pred p;\\nL: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\\n@p bra DONE;\\nbra L;\\nDONE:}"
                 :: "r"(shared(b)), "r"(parity) : "memory");
}
"""


def multiply(name: str, shape: str, types: str, scales: str, a_registers: int = 0) -> str:
    """A function that runs one wgmma: (d, a, b, adds), with A from a descriptor or from registers."""
    n = int(shape[shape.index("n") + 1 : shape.index("k")])
    letter, element = ("r", "int") if types.startswith("s32") else ("f", "float")
    d = ", ".join(f"%{i}" for i in range(n // 2))
    outputs = ", ".join(f'"+{letter}"(d[{i}])' for i in range(n // 2))
    after = n // 2 + max(a_registers, 1)
    if a_registers:
        a = "{" + ", ".join(f"%{n // 2 + i}" for i in range(a_registers)) + "}"
        inputs, parameter = ", ".join(f'"r"(a[{i}])' for i in range(a_registers)), "const u32 (&a)[4]"
    else:
        a, inputs, parameter = f"%{n // 2}", '"l"(a)', "u64 a"
    return f"""
__device__ void {name}({element} (&d)[{n // 2}], {parameter}, u64 b, int adds) {{
    asm volatile("{{.reg .pred p;\\nsetp.ne.b32 p, %{after + 1}, 0;\\n"
                 "wgmma.mma_async.sync.aligned.{shape}.{types} {{{d}}}, {a}, %{after}, p{scales};}}"
                 : {outputs} : {inputs}, "l"(b), "r"(adds));
}}
"""


@functools.cache
def compiled(text: str, debug: bool = False) -> bascule.Module:
    return bascule.compile(PRELUDE + text, options=bascule.CompileOptions(arch="sm_90a", debug=debug))


def gathered(registers: np.ndarray) -> np.ndarray:
    """The matrix of 64 rows from the accumulators of 128 threads, shape (128, n / 2)."""
    thread, i = np.indices(registers.shape)
    rows = thread // 32 * 16 + thread % 32 // 4 + i % 4 // 2 * 8
    made = np.empty((64, 2 * registers.shape[1]), registers.dtype)
    made[rows, i // 4 * 8 + thread % 4 * 2 + i % 2] = registers
    return made
