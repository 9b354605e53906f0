"""Random programs with the same meaning in CUDA C++ and in C++ for the host: no undefined behaviour, no fused products.

A program reads a few words of input, computes with integers and floats of 32 and 64 bits, branches, loops, indexes a
local array, calls a function that is not inlined, and stores all its variables.
"""

from __future__ import annotations

import random

WORDS = 4  # words of input for each thread
RESULTS = 8 + 4 + 4 + 4 + 8  # 64-bit results of a thread

PREAMBLE = """
#ifdef __CUDACC__
#define FUNCTION __device__
#define APART __device__ __noinline__
#define POPC(x) ((unsigned)__popc(x))
#define CLZ(x) ((unsigned)__clz(x))
#define MULHI(x, y) __umulhi(x, y)
#else
#include <cmath>
#include <cstring>
#define FUNCTION static inline
#define APART static __attribute__((noinline))
#define POPC(x) ((unsigned)__builtin_popcount(x))
#define CLZ(x) ((x) ? (unsigned)__builtin_clz(x) : 32u)
#define MULHI(x, y) ((unsigned)((unsigned long long)(x) * (y) >> 32))
#endif
typedef unsigned long long word64;
FUNCTION unsigned bits_of(float x) {  // every NaN alike
    unsigned bits;
    memcpy(&bits, &x, 4);
    return x != x ? 0x7fc00000u : bits;
}
FUNCTION word64 bits_of(double x) {
    word64 bits;
    memcpy(&bits, &x, 8);
    return x != x ? 0x7ff8000000000000ull : bits;
}
FUNCTION float float_of(unsigned bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
FUNCTION double double_of(word64 bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}
FUNCTION int whole(float x) { return x > -2e9f && x < 2e9f ? (int)x : 12345; }
FUNCTION unsigned whole_unsigned(float x) { return x > -0.5f && x < 4e9f ? (unsigned)x : 54321; }
FUNCTION long long whole64(double x) { return x > -9e18 && x < 9e18 ? (long long)x : -7; }
FUNCTION word64 whole64_unsigned(double x) { return x > -0.5 && x < 1.8e19 ? (word64)x : 77; }
"""


class Writer:
    """Writes one function; every choice comes from the seed."""

    def __init__(self, seed: int, name: str) -> None:
        self.random = random.Random(seed)
        self.name = name
        self.lines: list[str] = []
        self.loops = 0
        self.counters = 0

    def pick(self, *choices):
        choice = self.random.choice(choices)
        return choice() if callable(choice) else choice

    # --- expressions, `depth` operations deep at most

    def u(self, depth: int) -> str:
        """An expression of type unsigned."""
        r, u = self.random, lambda: self.u(depth - 1)
        if depth <= 0:
            edge = r.choice([0, 1, 2, 31, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, r.getrandbits(32), r.getrandbits(8)])
            return r.choice([f"u{r.randrange(8)}", f"u{r.randrange(8)}", f"u{r.randrange(8)}", f"{edge}u"])
        return self.pick(
            lambda: f"({u()} {r.choice('+-*&|^')} {u()})",
            lambda: f"({u()} {r.choice('+-*&|^')} {u()})",
            lambda: f"({u()} {r.choice(['<<', '>>'])} ({u()} & 31))",
            lambda: f"(unsigned)((int){u()} >> ({u()} & 31))",
            lambda: f"({u()} {r.choice('/%')} ({u()} | 1u))",
            lambda: f"({u()} {r.choice('/%')} {r.choice([3, 7, 10, 16, 641, 1000003])}u)",
            lambda: f"(unsigned)((int){u()} {r.choice('/%')} ((int)({u()} & 0xffff) + 1))",
            lambda: f"(unsigned)((int){u()} {r.choice('/%')} {r.choice([3, -7, 10, 16, -1000])})",
            lambda: f"(unsigned)({r.choice(['unsigned char', 'signed char', 'short', 'unsigned short'])}){u()}",
            lambda: f"(unsigned){self.w(depth - 1)}",
            lambda: f"(unsigned)({self.w(depth - 1)} >> 32)",
            lambda: f"({self.c(depth - 1)} ? {u()} : {u()})",
            lambda: f"{r.choice(['POPC', 'CLZ'])}({u()})",
            lambda: f"MULHI({u()}, {u()})",
            lambda: f"bits_of({self.f(depth - 1)})",
            lambda: f"(unsigned)whole({self.f(depth - 1)})",
            lambda: f"whole_unsigned({self.f(depth - 1)})",
            lambda: f"array[{u()} & 7]",
            lambda: f"(unsigned)bytes[{u()} % 13]",
            lambda: f"(~{u()})",
            lambda: f"(unsigned)({self.c(depth - 1)})",
        )

    def w(self, depth: int) -> str:
        """A 64-bit integer expression."""
        r, w = self.random, lambda: self.w(depth - 1)
        if depth <= 0:
            edge = r.choice([0, 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, r.getrandbits(64)])
            return r.choice([f"w{r.randrange(4)}", f"w{r.randrange(4)}", f"{edge}ull"])
        return self.pick(
            lambda: f"({w()} {r.choice('+-*&|^')} {w()})",
            lambda: f"({w()} {r.choice(['<<', '>>'])} ({self.u(depth - 1)} & 63))",
            lambda: f"(word64)((long long){w()} >> ({self.u(depth - 1)} & 63))",
            lambda: f"({w()} {r.choice('/%')} ({w()} | 1ull))",
            lambda: f"(word64)((long long){w()} {r.choice('/%')} ((long long)({w()} >> 20) + 1))",
            lambda: f"(word64){self.u(depth - 1)}",
            lambda: f"(word64)(long long)(int){self.u(depth - 1)}",
            lambda: f"((word64){self.u(depth - 1)} * {self.u(depth - 1)})",
            lambda: f"({self.c(depth - 1)} ? {w()} : {w()})",
            lambda: f"bits_of({self.d(depth - 1)})",
            lambda: f"(word64)whole64({self.d(depth - 1)})",
            lambda: f"whole64_unsigned({self.d(depth - 1)})",
        )

    def real(self, depth: int, own, letter: str, suffix: str) -> str:
        """A floating-point expression; float and double share this."""
        r = self.random
        if depth <= 0:
            number = r.choice(["0.0", "1.0", "1.5", "0.1", "1e-38", "3e37", str(r.uniform(0, 100))])
            return r.choice([f"{letter}{r.randrange(4)}", f"{letter}{r.randrange(4)}", f"{number}{suffix}"])
        x = lambda: own(depth - 1)  # noqa: E731
        return self.pick(
            lambda: f"({x()} {r.choice('+-*/')} {x()})",
            lambda: f"({x()} {r.choice('+-*/')} {x()})",
            lambda: f"sqrt{suffix}(fabs{suffix}({x()}))",
            lambda: f"{r.choice(['fabs', 'floor', 'ceil', 'trunc', 'rint'])}{suffix}({x()})",
            lambda: f"fma{suffix}({x()}, {x()}, {x()})",
            lambda: f"(-{x()})",
            lambda: f"({self.c(depth - 1)} ? {x()} : {x()})",
        )

    def f(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.6:
            return self.real(depth, self.f, "f", "f")
        u = lambda: self.u(depth - 1)  # noqa: E731
        return self.pick(
            lambda: f"(float){self.d(depth - 1)}",
            lambda: f"(float)(int){u()}",
            lambda: f"(float){u()}",
            lambda: f"(float){self.w(depth - 1)}",
            lambda: f"(float)(long long){self.w(depth - 1)}",
            lambda: f"float_of({u()})",
            lambda: f"(float)(signed char){u()}",
            lambda: f"(float)(unsigned short){u()}",
        )

    def d(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.6:
            return self.real(depth, self.d, "d", "")
        return self.pick(
            lambda: f"(double){self.f(depth - 1)}",
            lambda: f"(double)(int){self.u(depth - 1)}",
            lambda: f"(double){self.u(depth - 1)}",
            lambda: f"(double){self.w(depth - 1)}",
            lambda: f"(double)(long long){self.w(depth - 1)}",
            lambda: f"double_of({self.w(depth - 1)})",
        )

    def c(self, depth: int) -> str:
        """A condition."""
        r = self.random
        relation = r.choice(["<", "<=", ">", ">=", "==", "!="])
        d = depth - 1
        return self.pick(
            lambda: f"({self.u(d)} {relation} {self.u(d)})",
            lambda: f"((int){self.u(d)} {relation} (int){self.u(d)})",
            lambda: f"((short){self.u(d)} {relation} (short){self.u(d)})",
            lambda: f"({self.w(d)} {relation} {self.w(d)})",
            lambda: f"((long long){self.w(d)} {relation} (long long){self.w(d)})",
            lambda: f"({self.f(d)} {relation} {self.f(d)})",
            lambda: f"({self.d(d)} {relation} {self.d(d)})",
            lambda: f"(!{self.c(d)})" if depth > 0 else f"({self.u(0)} & 1u)",
            lambda: f"({self.c(d)} {r.choice(['&&', '||'])} {self.c(d)})" if depth > 0 else f"({self.u(0)} & 4u)",
        )

    # --- statements

    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def assignment(self, indent: int) -> None:
        r, depth = self.random, self.random.randint(1, 3)
        self.line(
            indent,
            self.pick(
                lambda: f"u{r.randrange(8)} = {self.u(depth)};",
                lambda: f"u{r.randrange(8)} {r.choice('+-*^|&')}= {self.u(depth)};",
                lambda: f"w{r.randrange(4)} = {self.w(depth)};",
                lambda: f"f{r.randrange(4)} = {self.f(depth)};",
                lambda: f"d{r.randrange(4)} = {self.d(depth)};",
                lambda: f"array[{self.u(1)} & 7] = {self.u(depth)};",
                lambda: f"bytes[{self.u(1)} % 13] = (unsigned char){self.u(depth)};",
                lambda: (
                    f"u{r.randrange(8)} = {self.name}_apart({self.u(1)}, {self.d(1)}, {self.w(1)}, &w{r.randrange(4)});"
                ),
            ),
        )

    def block(self, indent: int, statements: int, depth: int) -> None:
        for _ in range(statements):
            kind = self.random.random()
            if depth <= 0 or kind < 0.55:
                self.assignment(indent)
            elif kind < 0.75:
                self.line(indent, f"if ({self.c(2)}) {{")
                self.block(indent + 1, self.random.randint(1, 3), depth - 1)
                if self.random.random() < 0.5:
                    self.line(indent, "} else {")
                    self.block(indent + 1, self.random.randint(1, 3), depth - 1)
                self.line(indent, "}")
            elif kind < 0.9 and self.loops < 2:
                self.loop(indent, depth)
            else:
                self.switch(indent, depth)

    def loop(self, indent: int, depth: int) -> None:
        counter = f"k{self.counters}"
        self.counters += 1
        self.loops += 1
        limit = self.random.choice([f"{self.random.randint(1, 9)}u", f"(u{self.random.randrange(8)} & 15u)"])
        self.line(indent, "#pragma unroll 1")  # NVRTC may take minutes for the unrolled code
        self.line(
            indent, f"for (unsigned {counter} = 0, end{counter} = {limit}; {counter} < end{counter}; ++{counter}) {{"
        )
        self.block(indent + 1, self.random.randint(1, 2), depth - 1)
        self.line(indent + 1, f"if ({self.c(1)}) {self.random.choice(['break', 'continue'])};")
        self.line(indent + 1, f"u{self.random.randrange(8)} += {counter};")
        self.block(indent + 1, 1, depth - 1)
        self.line(indent, "}")
        self.loops -= 1

    def switch(self, indent: int, depth: int) -> None:
        self.line(indent, f"switch ({self.u(1)} % 6) {{")
        for case in self.random.sample(range(6), self.random.randint(2, 5)):
            self.line(indent + 1, f"case {case}: {{")
            self.block(indent + 2, self.random.randint(1, 2), depth - 1)
            self.line(indent + 1, "}" if self.random.random() < 0.3 else "} break;")
        self.line(indent + 1, "default: ;")
        self.line(indent, "}")

    def write(self) -> str:
        r = self.random
        self.line(0, f"APART unsigned {self.name}_apart(unsigned x, double y, word64 z, word64* p) {{")
        self.line(1, f"*p {r.choice('+^-')}= z * {r.getrandbits(30) | 1}u;")
        self.line(1, f"if (y < {r.uniform(-5, 5)}) return x {r.choice('+*^')} {r.getrandbits(20)}u;")
        self.line(1, "return x ^ (unsigned)(bits_of(y * 3.0) >> 17);")
        self.line(0, "}")
        self.line(0, f"FUNCTION void {self.name}(const unsigned* in, word64* out) {{")
        self.line(
            1, "unsigned u0 = in[0], u1 = in[1], u2 = in[2], u3 = in[3], u4 = 1, u5 = u0 ^ u1, u6 = 7, u7 = u2 >> 9;"
        )
        self.line(1, "word64 w0 = (word64)u0 << 32 | u1, w1 = u2, w2 = (word64)(long long)(int)u3, w3 = w0 * w1;")
        self.line(1, "float f0 = float_of(u0), f1 = (float)(int)u1, f2 = 0.5f, f3 = float_of(u3 & 0x807fffffu);")
        self.line(1, "double d0 = double_of(w0), d1 = (double)w1, d2 = -0.25, d3 = (double)f1 / 3.0;")
        self.line(1, "unsigned array[8] = {u0, u1, u2, u3, 5, 6, 7, 8};")
        self.line(1, "unsigned char bytes[13] = {1, 2, 3, (unsigned char)u0};")
        self.block(1, 10, 3)
        values = [f"u{k}" for k in range(8)] + [f"w{k}" for k in range(4)]
        values += [f"bits_of(f{k})" for k in range(4)] + [f"bits_of(d{k})" for k in range(4)]
        values += [f"array[{k}] + bytes[{k} + 5] * 4294967296ull" for k in range(8)]
        for k, value in enumerate(values):
            self.line(1, f"out[{k}] = {value};")
        self.line(0, "}")
        return "\n".join(self.lines) + "\n"


def write_programs(seeds: range) -> tuple[str, str]:
    """Returns the same programs for the device (kernels p0, p1, ...) and for the host (functions of the same names)."""
    device = host = PREAMBLE
    for seed in seeds:
        text = Writer(seed, f"f{seed}").write()
        device += text + f"__global__ void p{seed}(const unsigned* in, word64* out, int n) {{\n"
        device += "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        device += f"    if (i < n) f{seed}(in + {WORDS} * i, out + {RESULTS} * (long long)i);\n}}\n"
        host += text + f'extern "C" void p{seed}(const unsigned* in, word64* out, int n) {{\n'
        host += f"    for (int i = 0; i < n; ++i) f{seed}(in + {WORDS} * i, out + {RESULTS} * (long long)i);\n}}\n"
    return device, host
