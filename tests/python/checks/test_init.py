"""The check `init`: values that nothing has written and that decide, address memory or leave the kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import bascule
from bascule import _bascule

from .findings import ALL, bits_of, compiled, found_by, line_of

pytestmark = pytest.mark.usefixtures("emulated")

KERNEL = """
struct Pair { double a; int b; };
struct Small { char a; short b; char c; };
struct Fields { unsigned low : 3, middle : 7, high : 12; };
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int take(Pair p) { return p.b; }
__device__ __noinline__ int nest(int n, const int* p) { return n == 0 ? *p : nest(n - 1, p) + 1; }
__device__ __noinline__ void fill(int* p, int n) { for (int i = 0; i < n; ++i) p[i] = i; }
__device__ int (*volatile pointer)(int) = nullptr;
// in: numbers from 0 on; fresh: nothing has written it
__global__ void k(const int* in, int* fresh, int* out, int n) {
    int t = threadIdx.x;
BODY
}"""


class Planted(NamedTuple):
    wrong: str
    right: str
    words: str
    count: int = 64


BRANCHED = "branched on a value that nothing has written"
INDEX = "used a value that nothing has written as an index"
STORED = "stored a value that nothing has written"
ATOMIC = "by an atomic operation"

PLANTED = {
    "an array of which nothing is written": Planted(
        "out[t] = fresh[t];  // here", "fresh[t] = t; out[t] = fresh[t];", STORED
    ),
    "an element of a fresh array in a sum": Planted(
        """fresh[t / 2 * 2] = t; __syncthreads();
        int x = fresh[t];  // other
        out[t] = x + 1;  // here""",
        "fresh[t] = t; __syncthreads(); out[t] = fresh[t] + 1;",
        STORED,
        32,
    ),
    "a float of a fresh array, times zero": Planted(
        """float x = reinterpret_cast<float*>(fresh)[t];  // other
        reinterpret_cast<float*>(out)[t] = x * n;  // here""",
        "out[t] = 0 * n;",
        STORED,
    ),
    "a branch on a fresh array": Planted(
        "if (fresh[t] > 3) { __syncthreads(); out[t] = t; }  // here",
        "if (in[t] > 3) { out[t] = t; }",
        BRANCHED,
    ),
    "an index of a fresh array": Planted(
        """int i = fresh[t] & 31;  // other
        out[t] = in[i];  // here""",
        "out[t] = in[in[t] & 31];",
        INDEX,
    ),
    "one lane did not write shared memory": Planted(
        """__shared__ int s[64];
        if (t != 5) s[t] = t;
        __syncthreads();
        int x = s[63 - t];  // other
        if (x == n) asm volatile("nanosleep.u32 1;");  // here""",
        """__shared__ int s[64];
        s[t] = t;
        __syncthreads();
        if (s[63 - t] == n) asm volatile("nanosleep.u32 1;");""",
        BRANCHED,
        1,
    ),
    "shared memory is read one element too far": Planted(
        """__shared__ float s[65];
        s[t] = t;
        __syncthreads();
        float x = (s[t] + s[t + 1]) / 2;  // other
        reinterpret_cast<float*>(out)[t] = x;  // here""",
        """__shared__ float s[65];
        s[t] = t; s[64] = 0;
        __syncthreads();
        reinterpret_cast<float*>(out)[t] = (s[t] + s[t + 1]) / 2;""",
        STORED,
        1,
    ),
    "dynamic shared memory that nothing writes": Planted(
        "extern __shared__ int s[]; out[t] = s[t];  // here", "out[t] = 1;", STORED
    ),
    "a local array": Planted(
        """int a[8];
        for (int i = 0; i < n / 8; ++i) a[in[i] & 7] = i;
        int x = a[in[t] & 7];  // other
        out[t] = x * 3;  // here""",
        """int a[8] = {};
        for (int i = 0; i < n; ++i) a[in[i] & 7] = i;
        out[t] = a[in[t] & 7] * 3;""",
        STORED,
        32,
    ),
    "through a function": Planted(
        """int x = twice(fresh[t]);
        if (x == 6) asm volatile("nanosleep.u32 1;");  // here""",
        "if (twice(in[t]) == 6) out[t] = 1;",
        BRANCHED,
    ),
    "through recursion": Planted(
        """int x = nest(3, fresh + t);
        out[t] = x;  // here""",
        "out[t] = nest(3, in + t);",
        STORED,
    ),
    "through a shuffle from one lane": Planted(
        """fresh[t] = t;
        int x = t % 32 == 7 ? fresh[100] : t;  // other
        x = __shfl_sync(~0u, x, t & 15) + 1;
        out[t] = x;  // here""",
        "int x = t % 32 == 7 ? in[50] : t; out[t] = __shfl_sync(~0u, x, t & 15) + 1;",
        STORED,
        4,
    ),
    "the lane of a shuffle": Planted(
        """int x = fresh[t] & 31;
        out[t] = __shfl_sync(~0u, t, x);  // here""",
        "out[t] = __shfl_sync(~0u, t, in[t] & 31);",
        INDEX,
    ),
    "a ballot": Planted(
        """int x = fresh[t];
        unsigned b = __ballot_sync(~0u, x > 2);
        if (b & 4) asm volatile("nanosleep.u32 1;");  // here""",
        "unsigned b = __ballot_sync(~0u, in[t] > 2); if (b & 4) out[t] = 1;",
        BRANCHED,
    ),
    "a counting barrier": Planted(
        """int x = fresh[t];
        out[t] = __syncthreads_count(x > 2);  // here""",
        "out[t] = __syncthreads_count(in[t] > 2);",
        "counted a value that nothing has written at a barrier",
    ),
    "a sum by a warp": Planted(
        """int x = t < 64 - n ? t : fresh[t];
        x = __reduce_add_sync(~0u, x);
        out[t] = x;  // here""",
        "out[t] = __reduce_add_sync(~0u, in[t]);",
        STORED,
        32,
    ),
    "counters that nothing has set to zero": Planted(
        "atomicAdd(fresh + t % 4, 1);  // here",
        "fresh[t] = 0; __syncthreads(); atomicAdd(fresh + t % 4, 1);",
        ATOMIC,
        4,
    ),
    "counters in shared memory": Planted(
        """__shared__ int s[4];
        atomicAdd(s + t % 4, 1);  // here""",
        "__shared__ int s[4]; if (t < 4) s[t] = 0; __syncthreads(); atomicAdd(s + t % 4, 1);",
        ATOMIC,
        4,
    ),
    "an atomic operation's value": Planted(
        """int x = fresh[t] * 3;
        atomicAdd(out + t, x);  // here""",
        "atomicAdd(out + t, in[t] * 3);",
        "passed a value that nothing has written to an atomic operation",
    ),
    "a member that nothing has written": Planted(
        """__shared__ Pair s[64];
        s[t].a = t;
        __syncthreads();
        int x = take(s[63 - t]);
        if (x) asm volatile("nanosleep.u32 1;");  // here""",
        "__shared__ Pair s[64]; s[t].a = t; s[t].b = t; __syncthreads(); if (take(s[63 - t])) out[t] = 1;",
        BRANCHED,
    ),
    "memory of new": Planted(
        """int* p = new int[2];
        int x = p[0];
        if (x > 5) asm volatile("nanosleep.u32 1;");  // here
        delete[] p;""",
        "int* p = new int[2]; p[0] = t; out[t] = p[0]; delete[] p;",
        BRANCHED,
    ),
    "a selection by a fresh value": Planted(
        """int x = fresh[t];
        out[t] = x < 0 ? n : t + 100;  // here""",
        "out[t] = in[t] < 0 ? n : t + 100;",
        STORED,
    ),
    "the divisor": Planted(
        """unsigned x = fresh[t];
        out[t] = n / (x | 1);  // here""",
        "out[t] = n / (in[t] | 1);",
        STORED,
    ),
    "a conversion": Planted(
        """int x = fresh[t];
        reinterpret_cast<float*>(out)[t] = x;  // here""",
        "reinterpret_cast<float*>(out)[t] = in[t];",
        STORED,
    ),
}

LEGAL = {
    "padding is copied": """
        __shared__ Pair s[64];
        Pair p; p.a = t; p.b = n;
        s[t] = p;
        __syncthreads();
        reinterpret_cast<Pair*>(out)[t / 4] = s[t];""",
    "padding is copied by words": """
        __shared__ Pair s[16];
        if (t < 16) { s[t].a = t; s[t].b = t; }
        __syncthreads();
        out[t] = reinterpret_cast<int*>(s)[t];""",
    "small members and padding": """
        __shared__ Small s[64];
        s[t].a = t; s[t].b = t; s[t].c = t;
        __syncthreads();
        Small x = s[63 - t];
        reinterpret_cast<Small*>(out)[t / 2] = x;
        if (x.a + x.c == 9) out[64 + t] = x.b;""",
    "bit-fields": """
        __shared__ Fields s[64];
        s[t].middle = t;
        s[t].low = in[t];
        __syncthreads();
        if (s[63 - t].middle > 40) out[t] = s[63 - t].low;""",
    "packed bytes": """
        __shared__ unsigned char s[4 * 64];
        s[4 * t] = t; s[4 * t + 2] = n;
        __syncthreads();
        unsigned word = reinterpret_cast<unsigned*>(s)[t];
        out[t] = (word & 0xff) + (word >> 16 & 0xff);
        if ((word & 0x00ff00ffu) == 7) out[t] = __byte_perm(word, 0, 0x4240);""",
    "an array that is partly written and not read further": """
        int a[8];
        int count = in[t] & 7;
        for (int i = 0; i < count; ++i) a[i] = i;
        int sum = 0;
        for (int i = 0; i < count; ++i) sum += a[i];
        out[t] = sum;""",
    "a struct with an unused array is copied": """
        struct Stack { int n; int data[7]; };
        Stack* stacks = reinterpret_cast<Stack*>(fresh);
        if (t < 8) { stacks[t].n = 1; stacks[t].data[0] = t; }
        __syncthreads();
        if (t < 8) { Stack s = stacks[t]; reinterpret_cast<Stack*>(out)[t] = s; }""",
    "a value that is not selected": """
        int x = fresh[t];
        out[t] = in[t] < 1000 ? t : x;""",
    "a value that is not selected, behind a condition": """
        bool small = in[t] < 1000;
        int x = fresh[t];
        if (small || x > 3) out[t] = t;""",
    "a value that is masked out": """
        int x = fresh[t];
        out[t] = (x & 0) + t;
        out[t] = (x << 31 << 1) + t;""",
    "shared memory that another warp writes before a barrier": """
        __shared__ int s[64];
        if (t < 32) { s[t] = t; s[t + 32] = t; }
        __syncthreads();
        out[t] = s[t] + s[63 - t];""",
    "a vector that is partly used": """
        fresh[4 * (t & 15)] = t;
        __syncthreads();
        int4 v = reinterpret_cast<int4*>(fresh)[t & 15];
        out[t] = v.x + 1;""",
    "halves of a pair": """
        __shared__ __align__(4) unsigned short s[128];
        s[2 * t] = t;
        __syncthreads();
        unsigned both = reinterpret_cast<unsigned*>(s)[t], sum;
        asm("add.rn.f16x2 %0, %1, %1;" : "=r"(sum) : "r"(both));
        out[t] = sum & 0xffff;""",
    "values that some lanes do not have": """
        int x = t % 32 < 16 ? in[t] : fresh[t];
        for (int d = 8; d > 0; d /= 2) x += __shfl_down_sync(~0u, x, d);
        if (t % 32 == 0) out[t] = x;""",
    "local memory of a function": """
        int a[16];
        fill(a, 16);
        out[t] = a[in[t] & 15] + 1;""",
    "a call through a pointer": """
        pointer = twice;
        out[t] = pointer(in[t]) + 1;""",
    "an exchange with fresh memory": """
        atomicExch(fresh + t, t);
        out[t] = fresh[t] + 1;""",
    "bits that are compared without the undefined ones": """
        __shared__ unsigned char s[64 * 4];
        s[4 * t + 3] = t;
        __syncthreads();
        if (reinterpret_cast<int*>(s)[t] < 0x40000000) out[t] = 1;
        if (reinterpret_cast<unsigned*>(s)[t] >> 24 == 3) out[t] = 1;""",
}


def text_with(body: str) -> str:
    return KERNEL.replace("BODY", body)


def run(body: str) -> list[dict[str, Any]]:
    kernel = compiled(text_with(body)).k
    previous = _bascule._change_checks(bits_of("init"), 0)  # arrays that are made now have undefined bytes
    try:
        given = bascule.to_device(np.arange(256, dtype="i4"))
        fresh = bascule.device_array(256, "i4")
        out = bascule.to_device(np.zeros(512, "i4"))
        return found_by("init", kernel[1, 64, None, 256], given, fresh, out, 32)
    finally:
        _bascule._change_checks(previous, ALL ^ previous)


@pytest.mark.parametrize("name", PLANTED)
def test_a_use_of_an_unwritten_value_is_found(name: str) -> None:
    planted = PLANTED[name]
    text = text_with(planted.wrong)
    found = run(planted.wrong)
    assert len(found) == 1, [each["report"] for each in found]
    report = found[0]["report"]
    assert (found[0]["kind"], found[0]["line"]) == ("init", line_of(text, "here")), report
    assert planted.words in report
    assert found[0]["count"] == planted.count, report
    if "// other" in text:
        assert found[0]["other"]["line"] == line_of(text, "other"), report


@pytest.mark.parametrize("name", PLANTED)
def test_the_corrected_kernel_is_silent(name: str) -> None:
    assert [found["report"] for found in run(PLANTED[name].right)] == []


@pytest.mark.parametrize("name", LEGAL)
def test_a_correct_kernel_is_silent(name: str) -> None:
    assert [found["report"] for found in run(LEGAL[name])] == []


def test_operations_of_the_host_define_memory() -> None:
    """Copies of undefined memory are undefined; fills and copies from the host define it."""
    kernel = compiled(text_with("if (fresh[t] == 5) out[t] = 1;")).k
    previous = _bascule._change_checks(bits_of("init"), 0)
    try:
        out = bascule.to_device(np.zeros(512, "i4"))

        def count(fresh: Any) -> int:
            return sum(found["count"] for found in found_by("init", kernel[1, 64], out, fresh, out, 32))

        fresh = bascule.device_array(256, "i4")
        copied = fresh.copy()
        assert count(copied) == 64
        copied[:32].copy_from_host(np.arange(32, dtype="i4"))
        assert count(copied) == 32
        copied[:48].fill(1)
        assert count(copied) == 16
        assert count(bascule.zeros(256, "i4")) == 0
        del copied
        assert count(bascule.device_array(256, "i4")) == 64
        _bascule._change_checks(0, ALL)
        assert count(fresh) == 0, "memory from before the check was on counts as defined"
    finally:
        _bascule._change_checks(previous, ALL ^ previous)
