"""The checks `shared_races` and `global_races`: planted races with kind and both lines, and corrected kernels."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import pytest
from child_process import run_python

import bascule

from .findings import bits_of, checking

pytestmark = pytest.mark.usefixtures("emulated")


class Planted(NamedTuple):
    """A kernel `void k(int* a, int* b)`. FIX(...) is what the racing one lacks, BAD(...) what the correct one lacks.

    One access is at the line `// here`, the other at `// there`, or at the same line. `words` are in the report.
    """

    body: str
    words: str
    kind: str = "shared_races"
    grid: int = 1
    block: int = 64
    cooperative: bool = False


HEAD = """
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
#ifdef RIGHT
#define FIX(...) __VA_ARGS__
#define BAD(...)
#else
#define FIX(...)
#define BAD(...) __VA_ARGS__
#endif
__device__ __forceinline__ void copy16(void* to, const void* from) {
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from) : "memory");
}
"""

PLANTED = {
    "no barrier between writes and reads": Planted(
        """
        __shared__ int s[64];
        s[threadIdx.x] = a[threadIdx.x];  // here
        FIX(__syncthreads();)
        b[threadIdx.x] = s[63 - threadIdx.x];  // there
        """,
        "put __syncthreads() between",
    ),
    "no barrier between reads and the next writes": Planted(
        """
        __shared__ int s[64];
        for (int i = 0; i < 4; ++i) {
            s[threadIdx.x] = a[threadIdx.x] + i;  // here
            __syncthreads();
            b[threadIdx.x] += s[(threadIdx.x + 32) % 64];  // there
            FIX(__syncthreads();)
        }
        """,
        "put __syncthreads() between",
    ),
    "two buffers with a barrier too few": Planted(
        """
        __shared__ int s[2][64];
        for (int i = 0; i < 6; ++i) {
            s[i % FIX(2) BAD(1)][threadIdx.x] = a[threadIdx.x] + i;  // here
            __syncthreads();
            b[threadIdx.x] += s[i % FIX(2) BAD(1)][63 - threadIdx.x];  // there
        }
        """,
        "a thread of its block",
    ),
    "a tree of sums without a barrier": Planted(
        """
        __shared__ int s[64];
        s[threadIdx.x] = a[threadIdx.x];
        __syncthreads();
        for (int n = 32; n > 0; n /= 2) {
            if (threadIdx.x < n)
                s[threadIdx.x] += s[threadIdx.x + n];  // here
            FIX(__syncthreads();)
        }
        if (threadIdx.x == 0) b[0] = s[0];
        """,
        "__syncwarp()",
    ),
    "a warp's sum without __syncwarp": Planted(
        """
        __shared__ int s[32];
        int t = threadIdx.x;
        s[t] = a[t];  // here
        FIX(__syncwarp();)
        b[t] = s[t ^ 1];  // there
        """,
        "put __syncwarp() between",
        block=32,
    ),
    "a shuffle does not order": Planted(
        """
        __shared__ int s[32];
        s[threadIdx.x] = a[threadIdx.x];  // here
        int v = __shfl_xor_sync(~0u, int(threadIdx.x), 1);
        FIX(__syncwarp();)
        b[threadIdx.x] = s[v];  // there
        """,
        "a thread of its warp",
        block=32,
    ),
    "a part of a warp": Planted(
        """
        __shared__ int s[32];
        auto tile = cg::tiled_partition<FIX(8) BAD(4)>(cg::this_thread_block());
        s[threadIdx.x] = a[threadIdx.x];  // here
        tile.sync();
        b[threadIdx.x] = s[threadIdx.x ^ 4];  // there
        """,
        "a thread of its warp",
        block=32,
    ),
    "a histogram in shared memory without atomics": Planted(
        """
        __shared__ int bins[4];
        if (threadIdx.x < 4) bins[threadIdx.x] = 0;
        __syncthreads();
        FIX(atomicAdd(&bins[threadIdx.x % 4], 1);)
        BAD(bins[threadIdx.x % 4] += 1;)  // here
        __syncthreads();
        if (threadIdx.x < 4) b[threadIdx.x] = bins[threadIdx.x];
        """,
        "shared memory",
    ),
    "a histogram in global memory without atomics": Planted(
        """
        FIX(atomicAdd(&b[threadIdx.x % 4], 1);)
        BAD(b[threadIdx.x % 4] += 1;)  // here
        """,
        "another block",
        "global_races",
        grid=3,
        block=4,
    ),
    "an atomic sum that is read without a barrier": Planted(
        """
        __shared__ int sum;
        if (threadIdx.x == 0) sum = 0;
        __syncthreads();
        atomicAdd(&sum, a[threadIdx.x]);  // here
        FIX(__syncthreads();)
        if (threadIdx.x == 63) b[0] = sum;  // there
        """,
        "atomic",
    ),
    "a sum that is not zero yet": Planted(
        """
        __shared__ int sum;
        if (threadIdx.x == 0) sum = 0;  // here
        FIX(__syncthreads();)
        atomicAdd(&sum, 1);  // there
        """,
        "changed 4 bytes atomically",
    ),
    "different values in one instruction": Planted(
        """
        __shared__ int s;
        if (threadIdx.x FIX(== 3)) s = threadIdx.x;  // here
        __syncwarp();
        b[threadIdx.x] = s;
        """,
        "which of the different values stays is undefined",
        block=32,
    ),
    "flag without a fence": Planted(
        """
        volatile int* flag = a;
        if (blockIdx.x == 0) {
            b[0] = 7;  // here
            FIX(__threadfence();)
            *flag = 1;
        } else {
            while (*flag == 0) {}
            __threadfence();
            b[1] = b[0];  // there
        }
        """,
        "__threadfence()",
        "global_races",
        grid=2,
        block=1,
        cooperative=True,
    ),
    "flag without the reader's fence": Planted(
        """
        volatile int* flag = a;
        if (blockIdx.x == 0) {
            b[0] = 7;  // here
            __threadfence();
            *flag = 1;
        } else {
            while (*flag == 0) {}
            FIX(__threadfence();)
            b[1] = b[0];  // there
        }
        """,
        "__threadfence()",
        "global_races",
        grid=2,
        block=1,
        cooperative=True,
    ),
    "fence of a block between blocks": Planted(
        """
        volatile int* flag = a;
        if (blockIdx.x == 0) {
            b[0] = 7;  // here
            FIX(__threadfence();) BAD(__threadfence_block();)
            *flag = 1;
        } else {
            while (*flag == 0) {}
            __threadfence();
            b[1] = b[0];  // there
        }
        """,
        "another block",
        "global_races",
        grid=2,
        block=1,
        cooperative=True,
    ),
    "a plain flag": Planted(
        """
        FIX(volatile) int* flag = a;
        if (threadIdx.x == 32) {
            *flag = 1;  // here
        } else if (threadIdx.x == 0) {
            b[1] = *flag;  // there
        }
        """,
        "a thread of its block",
        "global_races",
    ),
    "last block without a fence": Planted(
        """
        __shared__ bool last;
        __shared__ int sum;
        if (threadIdx.x == 0) {
            b[1 + blockIdx.x] = blockIdx.x;  // here
            FIX(__threadfence();)
            last = atomicAdd(a, 1) == gridDim.x - 1;
            __threadfence();
        }
        __syncthreads();
        if (last && threadIdx.x < gridDim.x) {
            if (threadIdx.x == 0) sum = 0;
            __syncwarp((1u << gridDim.x) - 1);
            atomicAdd(&sum, b[1 + threadIdx.x]);  // there
        }
        """,
        "another block",
        "global_races",
        grid=4,
    ),
    "spin lock without a fence": Planted(
        """
        if (threadIdx.x == 0) {
            while (atomicCAS(a, 0, 1) != 0) {}
            FIX(__threadfence();)
            b[0] += 1;  // here
            FIX(__threadfence();)
            atomicExch(a, 0);
        }
        """,
        "another block",
        "global_races",
        grid=4,
    ),
    "spin lock with release alone": Planted(
        """
        cuda::atomic_ref<int, cuda::thread_scope_device> lock(a[0]);
        int free = 0;
        while (!lock.compare_exchange_strong(free, 1, cuda::std::FIX(memory_order_acquire) BAD(memory_order_relaxed)))
            free = 0;
        b[0] += 1;  // here
        lock.store(0, cuda::std::memory_order_release);
        """,
        "another block",
        "global_races",
        grid=4,
        block=1,
    ),
    "release of block scope": Planted(
        """
        using device = cuda::atomic_ref<int, cuda::thread_scope_device>;
        using wrong = cuda::atomic_ref<int, cuda::thread_scope_block>;
        FIX(device) BAD(wrong) mine(a[0]);
        device theirs(a[1]);
        if (blockIdx.x == 0) {
            b[0] = 1;  // here
            theirs.store(1, cuda::std::FIX(memory_order_release) BAD(memory_order_relaxed));
        } else {
            while (theirs.load(cuda::std::memory_order_acquire) == 0) {}
            b[1] = b[0];  // there
        }
        """,
        "another block",
        "global_races",
        grid=2,
        block=1,
        cooperative=True,
    ),
    "atomics of block scope between blocks": Planted(
        """
        FIX(atomicAdd(b, 1);) BAD(atomicAdd_block(b, 1);)  // here
        """,
        "block scope do not order blocks",
        "global_races",
        grid=2,
    ),
    "named barrier of other warps": Planted(
        """
        __shared__ int s[96];
        s[threadIdx.x] = a[threadIdx.x];  // here
        if (threadIdx.x < 64) {
            FIX(asm volatile("bar.sync 1, 64;" ::: "memory");)
            BAD(asm volatile("bar.sync %0, 32;" :: "r"(1 + threadIdx.x / 32) : "memory");)
            b[threadIdx.x] = s[63 - threadIdx.x];  // there
        }
        """,
        "a thread of its block",
        block=96,
    ),
    "a producer that arrives too early": Planted(
        """
        __shared__ int s[32];
        if (threadIdx.x < 32) {
            BAD(asm volatile("bar.arrive 1, 64;" ::: "memory");)
            s[threadIdx.x] = a[threadIdx.x];  // here
            FIX(asm volatile("bar.arrive 1, 64;" ::: "memory");)
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            b[threadIdx.x] = s[63 - threadIdx.x];  // there
        }
        """,
        "a thread of its block",
    ),
    "bytes of one word that overlap": Planted(
        """
        __shared__ unsigned char s[64];
        s[threadIdx.x FIX(| 0) BAD(/ 32 * 32)] = threadIdx.x;  // here
        __syncthreads();
        b[threadIdx.x] = s[threadIdx.x];
        """,
        "wrote 1 byte",
        block=64,
    ),
    "bit-fields in one word": Planted(
        """
        __shared__ struct { unsigned x : 8, y : 4, FIX(:0,) z : 20; } s;
        if (threadIdx.x == 0) s.y = 3;  // here
        if (threadIdx.x == 32) s.z = 5;  // there
        __syncthreads();
        b[threadIdx.x] = s.y + s.z;
        """,
        "a thread of its block",
    ),
    "halves that two threads write": Planted(
        """
        __shared__ short s[64];
        s[threadIdx.x] = a[threadIdx.x];  // here
        FIX(__syncthreads();)
        b[threadIdx.x] = s[threadIdx.x ^ 32];  // there
        """,
        "2 bytes",
    ),
    "vectors": Planted(
        """
        __shared__ int4 s[64];
        s[threadIdx.x] = make_int4(a[threadIdx.x], 1, 2, 3);  // here
        FIX(__syncthreads();)
        b[threadIdx.x] = reinterpret_cast<int*>(s)[threadIdx.x ^ 32];  // there
        """,
        "16 bytes",
    ),
    "a grid without its barrier": Planted(
        """
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        b[i] = i;  // here
        FIX(cg::this_grid().sync();) BAD(__syncthreads();)
        a[i] = b[gridDim.x * blockDim.x - 1 - i];  // there
        """,
        "another block",
        "global_races",
        grid=4,
        cooperative=True,
    ),
    "neighbours in global memory": Planted(
        """
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        FIX(a[i] = b[i] + b[i + 1];)
        BAD(b[i] = b[i] + b[i + 1];)  // here
        """,
        "global memory",
        "global_races",
        grid=4,
    ),
    "mbarrier before it is initialised": Planted(
        """
        __shared__ cuda::barrier<cuda::thread_scope_block> bar;
        if (threadIdx.x == 0) init(&bar, 64);
        FIX(__syncthreads();)
        BAD(if (threadIdx.x < 32) __syncwarp(); else __nanosleep(100);)
        bar.arrive_and_wait();
        """,
        "mbarrier",
    ),
    "mbarrier that a thread does not wait for": Planted(
        """
        __shared__ cuda::barrier<cuda::thread_scope_block> bar;
        __shared__ int s[64];
        if (threadIdx.x == 0) init(&bar, 64);
        __syncthreads();
        s[threadIdx.x] = a[threadIdx.x];  // here
        auto token = bar.arrive();
        FIX(bar.wait(std::move(token));)
        b[threadIdx.x] = s[63 - threadIdx.x];  // there
        """,
        "a thread of its block",
    ),
    "copy that is read before its wait": Planted(
        """
        __shared__ alignas(16) int s[64 * 4];
        copy16(s + 4 * threadIdx.x, a + 4 * threadIdx.x);
        FIX(asm volatile("cp.async.wait_all;" ::: "memory");)
        __syncthreads();
        b[threadIdx.x] = s[(threadIdx.x * 4 + 128) % 256];
        asm volatile("cp.async.wait_all;" ::: "memory");
        """,
        "copied",
    ),
}

LEGAL = {
    "read-only sharing": "b[blockIdx.x * 64 + threadIdx.x] = a[0] + a[threadIdx.x];",
    "equal values": "__shared__ int s; s = 1; __syncthreads(); b[blockIdx.x * 64 + threadIdx.x] = s;",
    "neighbours' bytes": """
        __shared__ unsigned char s[64];
        s[threadIdx.x] = threadIdx.x;
        reinterpret_cast<unsigned char*>(b)[threadIdx.x] = threadIdx.x;
        __syncthreads();
        b[64 + blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];""",
    "atomics of all scopes": """
        __shared__ int s;
        if (threadIdx.x == 0) s = 0;
        __syncthreads();
        atomicAdd_block(&s, 1);
        atomicAdd(&s, 1);
        atomicAdd_system(b, 1);
        atomicAdd(b, 1);
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd_block(b + 1 + blockIdx.x, s);""",
    "a volatile flag alone": """
        volatile int* flag = a + blockIdx.x;
        if (threadIdx.x == 40) *flag = 1;
        if (threadIdx.x == 3) b[blockIdx.x] = *flag;""",
    "threads that return before a barrier": """
        __shared__ int s[64];
        if (threadIdx.x >= 48) return;
        s[threadIdx.x] = threadIdx.x;
        __syncthreads();
        b[blockIdx.x * 64 + threadIdx.x] = s[47 - threadIdx.x];""",
    "fences before a barrier": """
        __shared__ bool last;
        b[1 + blockIdx.x * 64 + threadIdx.x] = 1;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) last = atomicAdd(a, 1) == gridDim.x - 1;
        __syncthreads();
        __threadfence();
        if (last) for (int i = threadIdx.x; i < gridDim.x * 64; i += 64) b[1 + i] += 1;""",
    "cuda::barrier": """
        __shared__ cuda::barrier<cuda::thread_scope_block> bar;
        __shared__ int s[64];
        if (threadIdx.x == 0) init(&bar, 64);
        __syncthreads();
        for (int i = 0; i < 5; ++i) {
            s[threadIdx.x] = i;
            bar.arrive_and_wait();
            b[blockIdx.x * 64 + threadIdx.x] += s[63 - threadIdx.x];
            bar.arrive_and_wait();
        }""",
    "cuda::pipeline": """
        __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
        __shared__ alignas(16) int s[2][64];
        auto block = cg::this_thread_block();
        auto pipe = cuda::make_pipeline(block, &state);
        for (int i = 0; i < 8; ++i) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, s[i % 2], a + 64 * i, cuda::aligned_size_t<16>(256), pipe);
            pipe.producer_commit();
            pipe.consumer_wait();
            b[blockIdx.x * 64 + threadIdx.x] += s[i % 2][63 - threadIdx.x];
            pipe.consumer_release();
        }""",
    "memory that another thread has freed": """
        for (int i = 0; i < 8; ++i) {
            int* p = new int[4];
            for (int k = 0; k < 4; ++k) p[k] = k + i;
            b[blockIdx.x * 64 + threadIdx.x] += p[3];
            delete[] p;
        }""",
    "acquire and release": """
        cuda::atomic_ref<int, cuda::thread_scope_block> flag(a[blockIdx.x]);
        if (threadIdx.x == 0) {
            b[blockIdx.x] = 3;
            flag.store(1, cuda::std::memory_order_release);
        } else if (threadIdx.x == 32) {
            while (flag.load(cuda::std::memory_order_acquire) == 0) {}
            b[blockIdx.x] += 1;
        }""",
}


def kernel(number: int, body: str) -> str:
    return f"__global__ void k{number}(int* a, int* b) {{\n{body}\n}}\n"


TEXT = HEAD + "".join(kernel(number, each.body) for number, each in enumerate(PLANTED.values()))
LEGAL_TEXT = HEAD + "".join(kernel(number, body) for number, body in enumerate(LEGAL.values()))


@functools.cache
def compiled(text: str, right: bool) -> bascule.Module:
    return bascule.compile(text, options=bascule.CompileOptions(defines={"RIGHT": 1} if right else {}))


def findings_of(launch: Any) -> list[dict[str, Any]]:
    with checking(bits_of("shared_races") | bits_of("global_races")) as found:
        launch()
    return found


def run(kernel: Any, grid: int, block: int, cooperative: bool = False) -> list[dict[str, Any]]:
    a = bascule.to_device(np.zeros(4096, "i4"))
    b = bascule.to_device(np.zeros(4096, "i4"))
    return findings_of(lambda: kernel.launch(grid, block, (a, b), cooperative=cooperative))


def lines_of(number: int) -> set[int]:
    """The lines in TEXT that the comments of this kernel mark."""
    start = TEXT[: TEXT.index(f"void k{number}(")].count("\n") + 1
    body = list(PLANTED.values())[number].body.split("\n")
    return {start + 1 + k for k, line in enumerate(body) if line.endswith(("// here", "// there"))}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_race_is_reported_with_both_lines(name):
    number = list(PLANTED).index(name)
    case = PLANTED[name]
    found = run(getattr(compiled(TEXT, False), f"k{number}"), case.grid, case.block, case.cooperative)
    assert found, "no race was found"
    lines = lines_of(number)
    for each in found:
        assert each["kind"] == case.kind, each["report"]
        if lines:
            assert {each["line"], each["other"]["line"]} <= lines, each["report"]
    assert case.words in "".join(each["report"] for each in found)
    assert len(found) <= 2, [each["report"] for each in found]


@pytest.mark.parametrize("name", PLANTED)
def test_the_corrected_kernel_has_no_race(name):
    number = list(PLANTED).index(name)
    case = PLANTED[name]
    found = run(getattr(compiled(TEXT, True), f"k{number}"), case.grid, case.block, case.cooperative)
    assert not found, [each["report"] for each in found]


@pytest.mark.parametrize("name", LEGAL)
def test_a_correct_kernel_has_no_race(name):
    number = list(LEGAL).index(name)
    found = run(getattr(compiled(LEGAL_TEXT, True), f"k{number}"), 4, 64)
    assert not found, [each["report"] for each in found]


TOUCHES_MUCH = """
import bascule, numpy as np
kernel = bascule.compile('extern "C" __global__ void k(int* x) { x[1024 * (blockIdx.x * 256 + threadIdx.x)] = 1; }')
x = bascule.to_device(np.zeros(1 << 24, "i4"))
with bascule.emulated.checks("global_races"):
    for _ in range(2):
        kernel.k[64, 256](x)
"""


def test_memory_that_is_not_watched_is_told_once():
    done = run_python("-c", TOUCHES_MUCH)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Races in the rest of its memory are not found.") == 1
