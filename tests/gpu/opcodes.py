"""The instructions whose results are recorded on a GPU: patterns that expand to opcodes, and a kernel for each opcode.

A kernel has 64 threads. Thread t reads 64-bit word i * 64 + t as operand i, truncated to its type, and writes its
results likewise, so that opcodes of all types share one signature. Operations that are not exact in the PTX manual have
the error that it allows; all others must agree bit for bit, except for the payloads of NaNs, which PTX leaves open.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
THREADS = 64

# A type's letter in the constraint of an asm statement, and the type of the variable that holds it.
HOLDERS = {16: ("h", "unsigned short"), 32: ("r", "unsigned"), 64: ("l", "unsigned long long")}
BITS = {
    "u16": 16, "s16": 16, "b16": 16, "f16": 16, "bf16": 16, "e4m3x2": 16, "e5m2x2": 16,
    "u32": 32, "s32": 32, "b32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "tf32": 32,
    "u64": 64, "s64": 64, "b64": 64, "f64": 64,
    "nonzero_u32": 32, "nonzero_s32": 32, "nonzero_u64": 64, "nonzero_s64": 64, "shift": 32, "lane": 32, "angle": 32,
    "root_f16": 16, "root_f16x2": 32, "root_f32": 32, "double_f16": 16, "double_f16x2": 32, "double_f32": 32,
    "least_f64": 64,
}  # fmt: skip
# Floats near one value: its bits, and the step between them. The product of two values near `root` is about the least
# normal number, below which .ftz flushes; `least` is about that number, and `double` about twice that.
NEAR = {
    "root_f16": (0x2000, 1), "root_f32": (0x2000_0000, 1), "double_f16": (0x0800, 1), "double_f32": (0x0100_0000, 1),
    "least_f64": (0x3810_0000_0000_0000, 1 << 27),
}  # fmt: skip
FORMATS = {"f16": (16, 10), "bf16": (16, 7), "f32": (32, 23), "f64": (64, 52)}  # bits, bits of the mantissa


@dataclass(frozen=True)
class Row:
    """`text` is an opcode's pattern, or if it has a space, an instruction with operands $0, $1, ... (results first)."""

    text: str
    result: str
    operands: str  # types, separated by spaces; "T" is the opcode's last type
    relative: float = 0.0  # allowed relative error of the result
    absolute: float = 0.0
    architecture: int = 80


ROWS = [
    # integers
    Row("{add,sub,min,max}.{u16,s16,u32,s32,u64,s64}", "T", "T T"),
    Row("{add,sub}.sat.s32", "T", "T T"),
    Row("mul.{lo,hi}.{u16,s16,u32,s32,u64,s64}", "T", "T T"),
    Row("mad.{lo,hi}.{u16,s16,u32,s32,u64,s64}", "T", "T T T"),
    Row("mad.hi.sat.s32", "T", "T T T"),
    Row("mul.wide.{u16,s16}", "u32", "T T"),
    Row("mul.wide.{u32,s32}", "u64", "T T"),
    Row("mad.wide.{u16,s16}", "u32", "T T u32"),
    Row("mad.wide.{u32,s32}", "u64", "T T u64"),
    Row("mul24.{lo,hi}.{u32,s32}", "T", "T T"),
    Row("mad24.{lo,hi}.{u32,s32}", "T", "T T T"),
    Row("mad24.hi.sat.s32", "T", "T T T"),
    Row("sad.{u16,s16,u32,s32,u64,s64}", "T", "T T T"),
    *(Row(f"{{div,rem}}.{t}", "T", f"T nonzero_{t}") for t in ("u32", "s32", "u64", "s64")),
    Row("{abs,neg}.{s16,s32,s64}", "T", "T"),
    Row("{popc,clz}.{b32,b64}", "u32", "T"),
    Row("bfind{,.shiftamt}.{u32,s32,u64,s64}", "u32", "T"),
    Row("brev.{b32,b64}", "T", "T"),
    Row("bfe.{u32,s32,u64,s64}", "T", "T shift shift"),
    Row("bfi.{b32,b64}", "T", "T T shift shift"),
    Row("fns.b32", "T", "T lane lane"),
    Row("bmsk.{wrap,clamp}.b32", "T", "shift shift"),
    Row("szext.{wrap,clamp}.{u32,s32}", "T", "T shift"),
    Row("{and,or,xor}.{b16,b32,b64}", "T", "T T"),
    Row("{not,cnot}.{b16,b32,b64}", "T", "T"),
    *(Row(f"lop3.b32 $0, $1, $2, $3, {table:#x};", "b32", "b32 b32 b32") for table in (0x96, 0xE8, 0x1B, 0x80)),
    Row("shl.{b16,b32,b64}", "T", "T shift"),
    Row("shr.{u16,s16,u32,s32,u64,s64}", "T", "T shift"),
    Row("shf.{l,r}.{wrap,clamp}.b32", "T", "T T shift"),
    Row("prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}", "b32", "b32 b32 b32"),
    Row("dp4a.{u32,s32}.{u32,s32}", "T", "b32 b32 T"),
    Row("dp2a.{lo,hi}.{u32,s32}.{u32,s32}", "T", "b32 b32 T"),
    Row("slct.{u16,u32,s32,f32,u64,f64}.s32", "U", "U U s32"),
    Row("slct{,.ftz}.{u32,f32,u64}.f32", "U", "U U f32"),
    *(
        Row(f"{{ {op}.cc.{t} $0, $1, $2; {op}c.{t} $0, $0, $3; }}", t, f"{t} {t} {t}")
        for op, t in product(("add", "sub"), ("u32", "u64"))
    ),
    # float and double
    Row("{add,sub,mul}{,.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32", "T", "T T"),
    Row("{add,sub,mul}{,.rn,.rz,.rm,.rp}.f64", "T", "T T"),
    Row("fma{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32", "T", "T T T"),
    Row("fma{.rn,.rz,.rm,.rp}.f64", "T", "T T T"),
    *(
        row
        for rounding in ("rn", "rz", "rm", "rp")
        for row in (
            Row(f"{{ mul.{rounding}.ftz.f32 $0, $1, $2; }}", "f32", "root_f32 root_f32"),
            Row(f"{{ fma.{rounding}.ftz.f32 $0, $1, $2, $3; }}", "f32", "root_f32 root_f32 double_f32"),
            Row(f"{{ cvt.{rounding}.ftz.f32.f64 $0, $1; }}", "f32", "least_f64"),
        )
    ),
    Row("div{.rn,.rz,.rm,.rp}{,.ftz}.f32", "T", "T T"),
    Row("div{.rn,.rz,.rm,.rp}.f64", "T", "T T"),
    Row("div.full{,.ftz}.f32", "T", "T T", relative=2**-22),
    Row("{rcp,sqrt}{.rn,.rz,.rm,.rp}{,.ftz}.f32", "T", "T"),
    Row("{rcp,sqrt}{.rn,.rz,.rm,.rp}.f64", "T", "T"),
    Row("rcp.approx{,.ftz}.f32", "T", "T", relative=2**-23),
    Row("sqrt.approx{,.ftz}.f32", "T", "T", relative=2**-22),
    Row("rsqrt.approx{,.ftz}.f32", "T", "T", relative=2**-22.9),
    Row("rcp.approx.ftz.f64", "T", "T", relative=2**-20),
    Row("rsqrt.approx.ftz.f64", "T", "T", relative=2**-20),
    Row("{sin,cos}.approx{,.ftz}.f32 $0, $1;", "f32", "angle", absolute=2**-20.9),
    Row("lg2.approx{,.ftz}.f32", "T", "T", relative=2**-22, absolute=2**-22),
    Row("ex2.approx{,.ftz}.f32", "T", "T", relative=2**-22),
    Row("tanh.approx.f32", "T", "T", relative=2**-10.987),
    Row("ex2.approx.{f16,f16x2}", "T", "T", relative=2**-9.9),
    Row("ex2.approx.ftz.{bf16,bf16x2}", "T", "T", relative=2**-7, architecture=90),
    Row("tanh.approx.{f16,f16x2}", "T", "T", absolute=2**-10.987),
    Row("tanh.approx.{bf16,bf16x2}", "T", "T", relative=2**-7, absolute=2**-8, architecture=90),
    Row("{abs,neg}{,.ftz}.f32", "T", "T"),
    Row("{abs,neg}.f64", "T", "T"),
    Row("{min,max}{,.ftz}{,.NaN}.f32", "T", "T T"),
    Row("{min,max}{,.ftz}{,.NaN}.xorsign.abs.f32", "T", "T T", architecture=86),
    Row("{min,max,copysign}.f64", "T", "T T"),
    Row("copysign.f32", "T", "T T"),
    # halves
    Row("{add,sub,mul}{,.rn}{,.ftz}{,.sat}.{f16,f16x2}", "T", "T T"),
    Row("fma.rn{,.ftz}{,.sat,.relu}.{f16,f16x2}", "T", "T T T"),
    *(
        row
        for t in ("f16", "f16x2")
        for row in (
            Row(f"{{ mul.rn.ftz.{t} $0, $1, $2; }}", t, f"root_{t} root_{t}"),
            Row(f"{{ fma.rn.ftz.{t} $0, $1, $2, $3; }}", t, f"root_{t} root_{t} double_{t}"),
        )
    ),
    Row("fma.rn{,.relu}.{bf16,bf16x2}", "T", "T T T"),
    Row("{add,sub,mul}{,.rn}.{bf16,bf16x2}", "T", "T T", architecture=90),
    Row("neg{,.ftz}.{f16,f16x2}", "T", "T"),
    Row("abs{,.ftz}.{f16,f16x2}", "T", "T"),
    Row("{neg,abs}.{bf16,bf16x2}", "T", "T"),
    Row("{min,max}{,.ftz}{,.NaN}.{f16,f16x2}", "T", "T T"),
    Row("{min,max}{,.NaN}.{bf16,bf16x2}", "T", "T T"),
    # conversions
    Row("cvt.{rni,rzi,rmi,rpi}{,.ftz}{,.sat}.{u8,s8,u16,s16,u32,s32,u64,s64}.f32", "C", "f32"),
    Row("cvt.{rni,rzi,rmi,rpi}{,.sat}.{u16,s16,u32,s32,u64,s64}.{f64,f16}", "C", "F"),
    Row("cvt.{rn,rz,rm,rp}{,.sat}.{f16,f32,f64}.{u16,s16,u32,s32,u64,s64}", "C", "F"),
    Row("cvt.{rn,rz,rm,rp}{,.ftz}{,.sat}.f32.f64", "C", "F"),
    Row("cvt.{rn,rz,rm,rp}{,.ftz}{,.sat}.f16.f32", "C", "F"),
    Row("cvt.{rn,rz,rm,rp}{,.sat}.f16.f64", "C", "F"),
    Row("cvt{,.ftz}{,.sat}.f32.f16", "C", "F"),
    Row("cvt{,.sat}.f64.{f16,f32}", "C", "F"),
    Row("cvt.{rni,rzi,rmi,rpi}{,.ftz}{,.sat}.f32.f32", "C", "F"),
    Row("cvt.{rni,rzi,rmi,rpi}{,.sat}.f64.f64", "C", "F"),
    Row("cvt.{rn,rz}{,.relu}.bf16.f32", "C", "F"),
    Row("cvt.{rn,rz}{,.relu}.{f16x2,bf16x2}.f32", "C", "f32 f32"),
    Row("cvt.rna.tf32.f32", "C", "F"),
    Row("cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f32", "C", "f32 f32", architecture=89),
    Row("cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2}", "C", "F", architecture=89),
    Row("cvt.{u8,s8,u16,s16,u32,s32,u64,s64}.{u16,s16,u32,s32,u64,s64}", "C", "F"),
    # PTX has .sat only if a value of the source may be out of the destination's range.
    Row("cvt.sat.{u8,s8}.{u16,s16,u32,s32,u64,s64}", "C", "F"),
    Row("cvt.sat.u16.{s16,u32,s32,u64,s64}", "C", "F"),
    Row("cvt.sat.s16.{u16,u32,s32,u64,s64}", "C", "F"),
    Row("cvt.sat.u32.{s16,s32,u64,s64}", "C", "F"),
    Row("cvt.sat.s32.{u32,u64,s64}", "C", "F"),
    Row("cvt.sat.u64.{s16,s32,s64}", "C", "F"),
    Row("cvt.sat.s64.u64", "C", "F"),
    Row("cvt.pack.sat.{u8,s8}.s32.b32", "b32", "s32 s32 b32"),
    Row("cvt.pack.sat.{u16,s16}.s32", "b32", "s32 s32"),
    # video
    Row("{vadd4,vsub4,vavrg4,vabsdiff4,vmin4,vmax4}.{u32,s32}.{u32,s32}.u32", "b32", "b32 b32 b32"),
    Row("{vadd2,vsub2,vavrg2,vabsdiff2,vmin2,vmax2}.{u32,s32}.{u32,s32}.u32", "b32", "b32 b32 b32"),
    Row("{vadd4,vsub4,vavrg4,vabsdiff4}.{u32,s32}.{u32,s32}.s32.{sat,add}", "b32", "b32 b32 b32"),
    Row("{vadd2,vsub2,vavrg2,vabsdiff2}.{u32,s32}.{u32,s32}.s32.{sat,add}", "b32", "b32 b32 b32"),
    Row("{vadd,vsub,vabsdiff,vmin,vmax}.{u32,s32}.{u32,s32}.{u32,s32}{,.sat}", "b32", "b32 b32"),
    Row("{vadd,vsub}.{u32,s32}.{u32,s32}.u32{,.sat}.{add,min,max}", "b32", "b32 b32 b32"),
    Row("{vadd,vsub}.{u32,s32}.u32.s32{,.sat} $0.b1, $1, $2.h1, $3;", "b32", "b32 b32 b32"),
    Row("{vshl,vshr}.{u32,s32}.{u32,s32}.u32{,.sat}.{clamp,wrap}", "b32", "b32 shift"),
    Row("vmad.s32.{u32,s32}.{u32,s32}{,.sat}{,.shr7}", "b32", "b32 b32 b32"),
    Row("vset.{u32,s32}.{u32,s32}.{lt,ge}", "b32", "b32 b32"),
    # predicates
    *(
        Row(f"{{ .reg .pred p; setp.{c}.{t} p, $1, $2; selp.u32 $0, 1, 0, p; }}", "u32", f"{t} {t}")
        for t, comparisons in (
            ("f32", "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"),
            ("ftz.f32", "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"),
            ("f64", "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"),
            ("f16", "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"),
            ("u32", "eq ne lt le gt ge lo ls hi hs"),
            ("s32", "eq ne lt le gt ge"),
            ("s64", "eq ne lt le gt ge"),
            ("u16", "eq ne lt le gt ge lo ls hi hs"),
        )
        for c in comparisons.split()
    ),
    *(
        Row(f"{{ .reg .pred p; testp.{what}.{t} p, $1; selp.u32 $0, 1, 0, p; }}", "u32", t)
        for what, t in product(["finite", "infinite", "number", "notanumber", "normal", "subnormal"], ("f32", "f64"))
    ),
    Row("set.{eq,lt,geu,nan}{,.ftz}.{u32,f32}.f32", "C", "f32 f32"),
    Row("set.{eq,lt,ge}.u32.{s32,u32,s64,f64}", "C", "F F"),
    # within a warp
    Row("shfl.sync.{up,down,bfly,idx}.b32 $0, $1, 5, 0x1f, 0xffffffff;", "b32", "b32"),
    Row("shfl.sync.{up,down,bfly,idx}.b32 $0, $1, $2, 0x181f, 0xffffffff;", "b32", "b32 lane"),
    *(
        Row(
            f"{{ .reg .pred p, q; setp.lt.s32 p, $1, 0; vote.sync.{how}.pred q, p, 0xffffffff;"
            " selp.u32 $0, 1, 0, q; }",
            "u32", "s32",
        )
        for how in ("all", "any", "uni")
    ),
    Row("{ .reg .pred p; setp.lt.s32 p, $1, 0; vote.sync.ballot.b32 $0, p, 0xffffffff; }", "u32", "s32"),
    Row("match.any.sync.b32 $0, $1, 0xffffffff;", "b32", "lane"),
    Row("match.any.sync.b64 $0, $1, 0xffffffff;", "b32", "b64"),
    Row("redux.sync.{add,min,max}.{u32,s32} $0, $1, 0xffffffff;", "u32", "u32"),
    Row("redux.sync.{and,or,xor}.b32 $0, $1, 0xffffffff;", "u32", "u32"),
]  # fmt: skip


@dataclass(frozen=True)
class Opcode:
    """One instruction with all its modifiers."""

    text: str  # with operands $0, $1, ...
    result: str
    operands: tuple[str, ...]
    relative: float
    absolute: float
    architecture: int

    @property
    def name(self) -> str:
        """The opcode alone if the operands are in order; else the whole instruction."""
        plain = re.fullmatch(r"(\S+) (?:\$\d(?:, )?)+;", self.text)
        return plain[1] if plain else self.text


def alternatives(pattern: str) -> Iterator[str]:
    """`a{b,c}` gives ab and ac; braces that contain spaces are PTX's own."""
    parts = re.split(r"\{([^{}\s]*)\}", pattern)
    for chosen in product(*(part.split(",") if i % 2 else [part] for i, part in enumerate(parts))):
        yield "".join(chosen)


def opcodes() -> list[Opcode]:
    """All opcodes of the rows, in order."""
    made: dict[str, Opcode] = {}
    for row in ROWS:
        for text in alternatives(row.text):
            types = [part for part in text.split(" ")[0].split(".") if part in BITS or part in ("u8", "s8")]
            # T and F: the last type of the opcode; C: the type that it converts to; U: the type that it selects
            meaning = {"T": types[-1:], "F": types[-1:], "C": types[-2:-1], "U": types[:1]}
            if row.result == "C" and len(types) == 1:
                meaning["C"] = types

            def named(name: str, meaning: dict[str, list[str]] = meaning) -> str:
                found = (meaning.get(name) or [name])[0]
                return {"u8": "u32", "s8": "s32"}.get(found, found.removeprefix("ftz."))

            operands = tuple(named(name) for name in row.operands.split())
            if " " not in text:
                text += " " + ", ".join(f"${i}" for i in range(len(operands) + 1)) + ";"
            opcode = Opcode(text, named(row.result), operands, row.relative, row.absolute, row.architecture)
            made[opcode.name] = opcode
    return list(made.values())


def kernel_of(opcode: Opcode, name: str) -> str:
    """CUDA C++ of the opcode's kernel."""
    letters = [HOLDERS[BITS[kind]] for kind in (opcode.result, *opcode.operands)]
    operands = ", ".join(
        f'"{letter}"(static_cast<{holder}>(in[{i * THREADS} + threadIdx.x]))'
        for i, (letter, holder) in enumerate(letters[1:])
    )
    text = re.sub(r"\$(\d)", r"%\1", opcode.text)
    letter, holder = letters[0]
    return (
        f'extern "C" __global__ void {name}(const unsigned long long* in, unsigned long long* out) {{\n'
        f'    {holder} result;\n    asm volatile("{text}" : "={letter}"(result) : {operands});\n'
        "    out[threadIdx.x] = result;\n}\n"
    )


def _special(kind: str) -> list[int]:
    if kind in FORMATS:
        bits, mantissa = FORMATS[kind]
        one = (1 << (bits - 2)) - (1 << mantissa)
        infinity = (1 << (bits - 1)) - (1 << mantissa)
        sign = 1 << (bits - 1)
        plain = [0, 1, (1 << mantissa) - 1, 1 << mantissa, one, one + 1, one - 1, one + (1 << (mantissa - 1)),
                 infinity - 1, infinity, infinity + (1 << (mantissa - 1))]  # fmt: skip
        return plain + [value | sign for value in plain]
    bits = BITS[kind]
    return [0, 1, 2, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1]


def operand(kind: str, random: np.random.Generator) -> Words:
    """A word per thread: special values, numbers of usual size, and arbitrary bits."""
    if kind in ("shift", "lane"):
        return random.integers(0, 40 if kind == "shift" else 32, THREADS, dtype=np.uint64)
    if kind == "angle":  # within a period, where the manual bounds the error
        return random.uniform(-np.pi, np.pi, THREADS).astype(np.float32).view(np.uint32).astype(np.uint64)
    if kind in NEAR:
        start, step = NEAR[kind]
        made = (start + step * random.integers(-4, 5, THREADS)).astype(np.uint64)
        return made | random.integers(0, 2, THREADS, dtype=np.uint64) << np.uint64(BITS[kind] - 1)
    if kind.endswith("x2") and kind[:-2] in FORMATS | NEAR:
        half = kind[:-2]
        return operand(half, random) | random.permutation(operand(half, random)) << np.uint64(16)
    nonzero = kind.startswith("nonzero_")
    kind = kind.removeprefix("nonzero_")
    bits = BITS[kind]
    made = random.integers(0, 1 << 64, THREADS, dtype=np.uint64) >> np.uint64(64 - bits)
    if kind in ("f32", "f64", "f16", "bf16"):
        usual = (random.standard_normal(THREADS) * 2.0 ** random.integers(-12, 12, THREADS)).astype(np.float64)
        if kind == "f64":
            words = usual.view(np.uint64)
        elif kind == "f16":
            words = usual.astype(np.float16).view(np.uint16).astype(np.uint64)
        else:
            words = usual.astype(np.float32).view(np.uint32).astype(np.uint64)
            words = words >> np.uint64(16) if kind == "bf16" else words
        made = np.where(random.random(THREADS) < 0.5, words, made)
    else:
        small = random.random(THREADS) < 0.3
        made = np.where(small, made & np.uint64(0x3F), made)
    special = np.array(_special(kind), np.uint64)
    made = np.where(random.random(THREADS) < 0.35, random.choice(special, THREADS), made)
    return np.where(made == 0, np.uint64(3), made) if nonzero else made


def inputs_of(opcode: Opcode) -> Words:
    """The inputs, determined by the opcode's text and therefore equal on every machine."""
    random = np.random.Generator(np.random.PCG64(zlib.crc32(opcode.text.encode())))
    return np.stack([operand(kind, random) for kind in opcode.operands])


def as_numbers(kind: str, words: Words) -> npt.NDArray[np.float64]:
    """The floating-point values of a type's bits; for pairs, of both halves."""
    if kind.endswith("x2"):
        low, high = words & np.uint64(0xFFFF), words >> np.uint64(16)
        return np.concatenate([as_numbers(kind[:-2], low), as_numbers(kind[:-2], high)])
    if kind == "f64":
        return words.view(np.float64)
    if kind == "f16":
        return words.astype(np.uint16).view(np.float16).astype(np.float64)
    shifted = words << np.uint64(16) if kind == "bf16" else words
    return shifted.astype(np.uint32).view(np.float32).astype(np.float64)


def different(opcode: Opcode, expected: Words, got: Words) -> npt.NDArray[np.bool_]:
    """True for results that differ by more than the manual allows."""
    is_float = opcode.result.removesuffix("x2") in FORMATS
    if not is_float:
        return np.asarray(expected != got)
    a, b = as_numbers(opcode.result, expected), as_numbers(opcode.result, got)
    if opcode.relative or opcode.absolute:
        with np.errstate(all="ignore"):
            within = np.abs(a - b) <= opcode.relative * np.abs(a) + opcode.absolute
        equal = within | (a == b)
    elif opcode.result.endswith("x2"):
        low, high = np.uint64(0xFFFF), np.uint64(16)
        equal = np.concatenate([expected & low == got & low, expected >> high == got >> high])
    else:
        equal = expected == got
    return np.asarray(~(equal | (np.isnan(a) & np.isnan(b))))
