"""Runs random C++ on the emulated device, through NVRTC, and on the host, through g++: both must compute the same.

    python tests/emulator/random_cpp.py [--programs N] [--seed N]     by default the NVRTC that Bascule finds

The programs are about memory: structures by value with padding, nested ones, unions, bit-fields, arrays with indices
that are known at run time, volatile variables, functions that are not inlined, 64-bit multiply-high, branches, loops
and switches. They have one thread's semantics and no undefined behaviour. Not generated: shared memory, atomics and
operations among threads (emulator_random_programs has them), floating point that is not exact, recursion, templates,
classes with virtual functions, and pointers to functions.

A difference may be the compiler's: with seed 1465, NVRTC 13.0 and 13.5 and nvcc 13.0 copy a structure after it has
changed, as the PTX shows, and nvcc -G does not.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import bascule

THREADS = 64
SCALARS = (
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "unsigned",
    "long long",
    "unsigned long long",
)
PROLOGUE = """
typedef unsigned long long u64;
#ifdef __CUDACC__
#define FN static __device__ __noinline__
#define HI(a, b) __umul64hi(a, b)
#define SHI(a, b) ((u64)__mul64hi((long long)(a), (long long)(b)))
#else
#define FN static __attribute__((noinline))
#define HI(a, b) ((u64)((unsigned __int128)(a) * (b) >> 64))
#define SHI(a, b) ((u64)((__int128)(long long)(a) * (long long)(b) >> 64))
#endif
FN u64 mix(u64 h, u64 x) { h = (h ^ x) * 0x9E3779B97F4A7C15ull; return h ^ h >> 29; }
"""
EPILOGUE = """
#ifdef __CUDACC__
extern "C" __global__ void k(const unsigned* in, u64* out) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  out[t] = run(in[t]);
}
#else
extern "C" void k(unsigned n, const unsigned* in, u64* out) { for (unsigned t = 0; t < n; ++t) out[t] = run(in[t]); }
#endif
"""


class Program:
    """A program text. Every value of an expression is a u64, which is converted when it is stored."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.text = PROLOGUE
        # Type -> the paths of its scalars: (path, array length or 0, whether it is a float or double).
        self.types: dict[str, list[tuple[str, int, bool]]] = {}
        for number in range(self.chance.randint(1, 4)):
            self.structure(f"S{number}")
        for number in range(self.chance.randint(1, 3)):
            self.function(number)
        self.text += "FN u64 run(unsigned x) {\n  u64 r = 1;\n"
        for name in self.types:
            self.text += f"  {name} v{name}; fill{name}(v{name}, x); r = mix(r, hash{name}(v{name}));\n"
        for number, name in self.functions.items():
            self.text += f"  v{name} = f{number}(v{name}, x + {number}u, r); r = mix(r, hash{name}(v{name}));\n"
        self.text += "  return r;\n}\n" + EPILOGUE

    functions: dict[int, str]

    def structure(self, name: str) -> None:
        chance, members, paths = self.chance, "", []
        for index in range(chance.randint(1, 7)):
            kind, member = chance.randrange(8), f"m{index}"
            scalar = chance.choice(SCALARS)
            if kind == 0 and self.types:
                inner = chance.choice(list(self.types))
                count = chance.choice((0, 0, 2))
                members += f"  {inner} {member}{f'[{count}]' if count else ''};\n"
                for path, length, floats in self.types[inner]:
                    paths += [
                        (f"{member}{f'[{i}]' if count else ''}.{path}", length, floats) for i in range(count or 1)
                    ]
            elif kind == 1:
                length = chance.choice((2, 4, 8, 16))
                members += f"  {scalar} {member}[{length}];\n"
                paths.append((member, length, False))
            elif kind == 2:
                for part in range(chance.randint(1, 4)):
                    width = chance.randint(1, 8 * ctypes.sizeof(self.ctype(scalar)))
                    members += f"  {scalar} {member}_{part} : {width};\n"
                    paths.append((f"{member}_{part}", 0, False))
            elif kind == 3:
                members += f"  union {{ unsigned w; unsigned char b[4]; unsigned short h[2]; }} {member};\n"
                paths.append(
                    chance.choice(((f"{member}.w", 0, False), (f"{member}.b", 4, False), (f"{member}.h", 2, False)))
                )
                paths.append((f"{member}.w", 0, False))
            elif kind == 4:
                members += f"  {chance.choice(('float', 'double'))} {member};\n"
                paths.append((member, 0, True))
            else:
                members += f"  {scalar} {member};\n"
                paths.append((member, 0, False))
        align = chance.choice(("", "", "", "alignas(16) "))
        self.text += f"struct {align}{name} {{\n{members}}};\n"
        self.types[name] = paths
        fill, digest = "", ""
        for path, length, floats in paths:
            value = "x = x * 1664525u + 1013904223u"
            for at in [f"s.{path}[{i}]" for i in range(length)] or [f"s.{path}"]:
                fill += f"  {value}; {at} = {'(int)(x >> 20)' if floats else 'x * 0x10001ull >> 3'};\n"
                digest += f"  h = mix(h, (u64){'(long long)' if floats else ''}{at});\n"
        self.text += f"FN void fill{name}({name}& s, unsigned x) {{\n{fill}}}\n"
        self.text += f"FN u64 hash{name}(const {name}& s) {{\n  u64 h = 7;\n{digest}  return h;\n}}\n"

    @staticmethod
    def ctype(name: str) -> type:
        return {"char": ctypes.c_byte, "short": ctypes.c_short, "long long": ctypes.c_longlong}.get(
            name.removeprefix("signed ").removeprefix("unsigned "), ctypes.c_int
        )

    def function(self, number: int) -> None:
        if number == 0:
            self.functions = {}
        name = self.chance.choice(list(self.types))
        self.functions[number] = name
        body = "".join(self.statement(name, 2) for _ in range(self.chance.randint(2, 8)))
        self.text += f"FN {name} f{number}({name} s, unsigned x, u64 y) {{\n  volatile unsigned v = x;\n"
        self.text += f"  {name} c = s;\n{body}  return s;\n}}\n"

    def place(self, name: str) -> tuple[str, bool]:
        path, length, floats = self.chance.choice(self.types[name])
        index = self.chance.choice((str(self.chance.randrange(max(length, 1))), f"(x + v) & {length - 1}u"))
        return f"{self.chance.choice('ssc')}.{path}" + (f"[{index}]" if length else ""), floats

    def value(self, name: str, depth: int) -> str:
        chance = self.chance
        if depth == 0 or chance.randrange(4) == 0:
            path, floats = self.place(name)
            return chance.choice(
                (
                    f"(u64){'(long long)' if floats else ''}{path}",
                    "y",
                    "(u64)x",
                    "(u64)v",
                    f"{chance.getrandbits(64)}ull",
                )
            )
        a, b = self.value(name, depth - 1), self.value(name, depth - 1)
        return chance.choice(
            (
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} ^ {b})", f"({a} & {b})", f"({a} | {b})",
                f"({a} >> ({b} & 63u))", f"({a} << ({b} & 63u))", f"HI({a}, {b})", f"SHI({a}, {b})",
                f"({a} / ({b} | 1u))", f"({a} % ({b} | 1u))", f"({a} < {b} ? {b} : {a})", f"(u64)(unsigned char){a}",
                f"(u64)(long long)(int){a}", f"(u64)({a} == {b})",
            )
        )  # fmt: skip

    def statement(self, name: str, depth: int) -> str:
        chance = self.chance
        kind = chance.randrange(10 if depth else 6)
        path, floats = self.place(name)
        if kind < 4:
            return f"  {path} = {'(int)(short)' if floats else ''}{self.value(name, 3)};\n"
        if kind == 4:
            return chance.choice(("  c = s;\n", "  v = v + 3u;\n", f"  v = (unsigned){self.value(name, 2)};\n"))
        if kind == 5:
            return f"  y = mix(y, hash{name}({chance.choice('sc')}));\n"
        inner = "".join(self.statement(name, depth - 1) for _ in range(chance.randint(1, 3)))
        if kind == 6:
            return f"  for (unsigned i = 0; i < {chance.choice(('3u', '(x & 7u)', '(v & 3u)'))}; ++i) {{\n{inner}  }}\n"
        if kind == 7:
            cases = f"case 0: {inner} case 1: v = v + 1u; break; default: y += 5u;"
            return f"  switch ((unsigned)({self.value(name, 1)} & 3u)) {{ {cases} }}\n"
        other = "".join(self.statement(name, depth - 1) for _ in range(chance.randint(0, 2)))
        return f"  if ({self.value(name, 2)} & 1u) {{\n{inner}  }} else {{\n{other}  }}\n"


def on_host(text: str, given: np.ndarray, directory: Path) -> np.ndarray:
    source, library = directory / "program.cpp", directory / "program.so"
    source.write_text(text, encoding="utf-8")
    command = [
        "g++",
        "-O1",
        "-w",
        "-std=c++17",
        "-fwrapv",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        source,
        "-o",
        library,
    ]
    subprocess.run(command, check=True, timeout=120)
    out = np.zeros(len(given), np.uint64)
    handle = ctypes.CDLL(str(library))
    handle.k(ctypes.c_uint(len(given)), ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(out.ctypes.data))
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(handle._handle))
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    options = bascule.CompileOptions(extra=["-fmad=false"])
    failed = 0
    for seed in range(arguments.seed, arguments.seed + arguments.programs):
        text = Program(seed).text
        given = np.random.default_rng(seed).integers(0, 2**32, THREADS, dtype=np.uint32)
        with tempfile.TemporaryDirectory() as directory:
            wanted = on_host(text, given, Path(directory))
        out = bascule.zeros(THREADS, "u8")
        bascule.compile(text, options=options)["k"][2, THREADS // 2](bascule.to_device(given), out)
        if wrong := int((out.copy_to_host() != wanted).sum()):
            failed += 1
            print(f"--seed {seed} --programs 1: {wrong} of {THREADS} results differ")
    print(f"{arguments.programs} programs from seed {arguments.seed}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
