"""Random kernels with and without races, which the checks `shared_races` and `global_races` must tell apart.

    python tests/python/checks/random_races.py --programs 10000 --seed 1

A program is a list of accesses, barriers, fences and flags. A model with one vector clock per thread decides which
pairs of its lines race. Each program is made free of races by barriers; then one of its barriers, fences or atomics is
removed or weakened. The check must report only pairs of lines that race, and one at least if there are any.
"""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

CELLS = 64  # words of each array
HEAD = """
#pragma nv_diag_suppress 177, 550
#define SHARED(a) static_cast<unsigned>(__cvta_generic_to_shared(a))
__device__ __forceinline__ void st4s(unsigned* p, unsigned v) {
    asm volatile("st.shared.u32 [%0], %1;" :: "r"(SHARED(p)), "r"(v) : "memory"); }
__device__ __forceinline__ unsigned ld4s(unsigned* p) {
    unsigned v; asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(SHARED(p)) : "memory"); return v; }
__device__ __forceinline__ void st4g(unsigned* p, unsigned v) {
    asm volatile("st.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
__device__ __forceinline__ unsigned ld4g(unsigned* p) {
    unsigned v; asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ __forceinline__ void st1(unsigned char* p, unsigned v) {
    asm volatile("st.u8 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
__device__ __forceinline__ unsigned ld1(unsigned char* p) {
    unsigned v; asm volatile("ld.u8 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
__device__ __forceinline__ void publish(unsigned* p, unsigned v) {
    asm volatile("st.release.gpu.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory"); }
__device__ __forceinline__ unsigned acquire(unsigned* p) {
    unsigned v; asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v; }
"""


@dataclass(frozen=True)
class Op:
    """An access (write, read, atomic), a barrier, a fence of thread 0, or a hand-over between blocks (wait, signal)."""

    what: str
    array: str = "s"  # s: shared, g: global
    bytes: int = 4
    mask: int = 0  # the cell of thread t is t ^ mask, or t of the block's part
    shift: int = 0  # of the block's part of global memory
    below: int = 64  # the threads that do it
    scope: str = ""  # "_block": of atomics and fences
    flag: int = 0
    strong: bool = False  # wait and signal: acquire and release


BARRIERS = {"tile": 1, "warp": 2, "block": 3}


def text_of(op: Op, line: int, threads: int, blocks: int) -> str:
    part = f"((blockIdx.x + {op.shift}) % {blocks} * {threads})" if op.array == "g" else "0"
    where = f"{op.array} + {part} + (t ^ {op.mask})"
    value = f"{line * 1000 + 1} + t + 200 * blockIdx.x"
    if op.bytes == 1:
        where, value = f"reinterpret_cast<unsigned char*>({op.array} + {part}) + (t ^ {op.mask})", "t + 70 * blockIdx.x"
    suffix = "1" if op.bytes == 1 else f"4{op.array}"
    fence = f"__threadfence{op.scope}();"
    first = "if (t == 0)"
    read = "acquire" if op.strong else "*(volatile unsigned*)"
    texts = {
        "write": f"if (t < {op.below}) st{suffix}({where}, {value});",
        "read": f"if (t < {op.below}) x += ld{suffix}({where});",
        "atomic": f"if (t < {op.below}) x += atomicAdd{op.scope}({where}, 1u);",
        "tile": "__syncwarp(0xffffu << (t & 16));",
        "warp": "__syncwarp();",
        "block": "__syncthreads();",
        "fence": f"{first} {fence}",
        "none": "",
        "wait": f"{first} while ({read}(flags + {op.flag}) < blockIdx.x) {{}}",
        "signal": f"{first} publish(flags + {op.flag}, blockIdx.x + 1);"
        if op.strong
        else f"{first} *(volatile unsigned*)(flags + {op.flag}) = blockIdx.x + 1;",
    }
    return texts[op.what]


def kernel_of(name: str, program: list[Op], threads: int, blocks: int) -> str:
    lines = [text_of(op, k, threads, blocks) for k, op in enumerate(program)]
    body = "\n".join(lines)
    return (
        f"__global__ void {name}(unsigned* g, unsigned* flags, unsigned* out) {{ __shared__ unsigned s[{CELLS}]; "
        f"unsigned t = threadIdx.x, x = 0; (void)s;\n{body}\nout[blockIdx.x * {threads} + t] = x; }}\n"
    )


def races_of(program: list[Op], threads: int, blocks: int) -> set[tuple[int, int]]:
    """The pairs of places in the program that race, by one vector clock for each thread."""
    count = threads * blocks
    clocks = np.zeros((count, count), "i4")
    np.fill_diagonal(clocks, 1)
    fenced = np.zeros((count, count), "i4")
    awaited = np.zeros((count, count), "i4")
    published: dict[int, Any] = {}
    history: dict[Any, list[tuple[int, int, int, Op, int]]] = {}
    races = set()

    def join(group: np.ndarray[Any, Any]) -> None:
        clocks[group] = clocks[group].max(axis=0)
        clocks[group, group] += 1

    for block in range(blocks):
        base = block * threads
        for place, op in enumerate(program):
            first = base
            if op.what in ("write", "read", "atomic"):
                for t in range(min(threads, op.below)):
                    mine = base + t
                    cell = t ^ op.mask
                    part = (block + op.shift) % blocks * threads if op.array == "g" else 0
                    at = 4 * part + cell if op.bytes == 1 else 4 * (part + cell)
                    for byte in range(at, at + op.bytes):
                        earlier = history.setdefault((op.array, byte, block if op.array == "s" else 0), [])
                        for other, time, other_place, did, other_block in earlier:
                            if other == mine or clocks[mine, other] >= time:
                                continue
                            if op.what == "read" and did.what == "read":
                                continue
                            both_atomic = op.what == did.what == "atomic"
                            if both_atomic and (block == other_block or not (op.scope or did.scope)):
                                continue
                            races.add((min(place, other_place), max(place, other_place)))
                        earlier.append((mine, int(clocks[mine, mine]), place, op, block))
            elif op.what == "block":
                join(np.arange(base, base + threads))
            elif op.what in ("warp", "tile"):
                size = 32 if op.what == "warp" else 16
                for start in range(base, base + threads, size):
                    join(np.arange(start, start + size))
            elif op.what == "fence" and not op.scope:
                clocks[first] = np.maximum(clocks[first], awaited[first])
                fenced[first] = clocks[first]
                clocks[first, first] += 1
            elif op.what == "wait" and block > 0:
                given = published[op.flag]
                awaited[first] = np.maximum(awaited[first], given)
                if op.strong:
                    clocks[first] = np.maximum(clocks[first], given)
            elif op.what == "signal":
                published[op.flag] = (clocks if op.strong else fenced)[first].copy()
                clocks[first, first] += 1
    return races


def random_access(random: random.Random, threads: int, blocks: int) -> Op:
    array = random.choice("ssg") if blocks > 1 else random.choice("sssg")
    masks = [mask for mask in (0, 0, 1, 2, 7, 16, 31, 32, 63) if mask < threads]
    return Op(
        random.choice(["write", "write", "read", "read", "read", "atomic"]),
        array=array,
        bytes=4,
        mask=random.choice(masks),
        shift=random.choice([0, 0, 1]) if array == "g" else 0,
        below=random.choice([threads, threads, threads, 16, 40]),
        scope=random.choice(["", "_block"]),
    )


def random_program(random: random.Random) -> tuple[list[Op], int, int]:
    """A program without races."""
    threads, blocks = random.choice([32, 64, 64]), random.choice([1, 2, 2, 3])
    program: list[Op] = []
    flags = 0
    for _ in range(random.randrange(4, 12)):
        if blocks > 1 and random.random() < 0.2:
            strong = random.random() < 0.4
            fence = [] if strong else [Op("fence")]
            inside = replace(random_access(random, threads, blocks), array="g")
            section = [Op("wait", flag=flags, strong=strong), *fence, Op("block"), inside, Op("block"), *fence]
            section.append(Op("signal", flag=flags, strong=strong))
            if not races_of(program + section, threads, blocks):
                program += section
                flags += 1
            continue
        access = random_access(random, threads, blocks)
        if access.what != "atomic" and random.random() < 0.2:
            access = replace(access, bytes=1)
        for barrier in (None, *BARRIERS):
            more = [access] if barrier is None else [Op(barrier), access]
            if not races_of(program + more, threads, blocks):
                program += more
                break
    return program, threads, blocks


def weaken(random: random.Random, program: list[Op]) -> list[Op] | None:
    """The program with one barrier, fence, atomic or order less; lines stay where they are."""
    weaker: dict[str, list[dict[str, Any]]] = {
        "block": [{"what": "none"}, {"what": "warp"}],
        "warp": [{"what": "none"}, {"what": "tile"}],
        "tile": [{"what": "none"}],
        "fence": [{"what": "none"}, {"scope": "_block"}],
        "atomic": [{"what": "write"}, {"scope": "_block"}],
    }
    places = [k for k, op in enumerate(program) if op.what in weaker or op.strong]
    if not places:
        return None
    k = random.choice(places)
    op = program[k]
    changed = replace(op, strong=False) if op.strong else replace(op, **random.choice(weaker[op.what]))
    return [*program[:k], changed, *program[k + 1 :]] if changed != op else None


def check(programs: int, seed: int, batch: int = 100) -> dict[str, int]:
    """Runs programs and their weaker forms. Raises at a report that the model does not have.

    Returns how many have races, how many do not, and of how many the races were missed, because a cell keeps only the
    last accesses.
    """
    import bascule
    from bascule import _bascule

    if __package__:
        from .findings import checking
    else:  # run as a program
        from findings import checking

    random_ = random.Random(seed)
    names = _bascule._check_names().split(",")
    bits = sum(1 << names.index(name) for name in ("shared_races", "global_races"))
    counts = {"with": 0, "without": 0, "missed": 0}
    left = programs
    while left > 0:
        cases = []
        text = HEAD
        for _ in range(min(batch, left)):
            program, threads, blocks = random_program(random_)
            for form in (program, weaken(random_, program)):
                if form is None:
                    continue
                name = f"k{len(cases)}"
                start = text.count("\n") + 2  # the line of the first operation
                text += kernel_of(name, form, threads, blocks)
                cases.append((name, form, threads, blocks, start))
        left -= batch
        module = bascule.compile(text)
        for name, form, threads, blocks, start in cases:
            expected = races_of(form, threads, blocks)
            arrays = [bascule.to_device(np.zeros(n, "u4")) for n in (CELLS * 4, 16, 256)]
            with checking(bits) as findings:
                getattr(module, name).launch(blocks, threads, tuple(arrays))
            found = set()
            for each in findings:
                lines = [
                    side["caller_line"] if side["line"] < HEAD.count("\n") else side["line"]
                    for side in (each, each["other"])
                ]
                found.add(tuple(sorted(line - start for line in lines)))
            counts["with" if expected else "without"] += 1
            counts["missed"] += bool(expected) and not found
            if not found <= expected:
                reports = "\n".join(each["report"] for each in findings)
                source = kernel_of(name, form, threads, blocks)
                raise AssertionError(
                    f"{blocks} blocks of {threads} threads: expected {sorted(expected)}, found {sorted(found)}\n"
                    f"{source}\n{reports}"
                )
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(check(given.programs, given.seed))
    sys.exit(0)
