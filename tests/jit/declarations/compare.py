"""Compares which kernels a launch finds in a text with what g++ calls in it, for random texts.

    python tests/jit/declarations/compare.py [--texts N] [--seed S]

A text has kernels of few names in two namespaces: overloads, templates, specialisations and device functions of the
same names, in branches of #if, made by macros, with default arguments, and with their parameters in any order. Each is
identified by a number. g++ compiles the same text with calls of every name; the emulated device must run the same
function with the same values, or refuse if C++ has none. Arguments by name must reach the parameters of these names, or
be refused. A template that only a macro defines is requested by the name of its instance, such as `k<float>`.

Not generated: macros in headers, and macros that rename a kernel whose name is in the text.
"""

from __future__ import annotations

import _ctypes
import argparse
import ctypes
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import bascule

TYPES = {"f4": "float", "f8": "double", "i4": "int"}
NAMES = ["k", "l"]
SPACES = ["", "a::"]
CALLS = [(space + name, dtype) for space in SPACES for name in NAMES for dtype in TYPES]
KERNEL_MACROS = """#define BODY(n) { x[0] = n; x[1] = a; x[2] = b; }
#define KERNEL(name, T, n, p, q) __global__ void name(T* x, int p, int q) BODY(n)
#define TEMPLATE template <class T>
#define ENTRY __global__ void
#define PAIR(name, n) KERNEL(name, float, n, a, b) KERNEL(name, double, n + 1, b, a)
#define OPEN(s) namespace s {
#define CLOSE }
"""


@dataclass
class Text:
    rng: random.Random
    number: int = 0
    lines: list[str] = field(default_factory=list)

    def kernel(self, name: str) -> str:
        self.number += 10
        first, second = self.rng.sample(["a", "b"], 2)
        body = f"{{ x[0] = {self.number}; x[1] = a; x[2] = b; }}"
        kind = self.rng.choice(
            ["plain", "plain", "template", "special", "macro", "pair", "entry", "head", "device", "divided"]
        )
        element = self.rng.choice(list(TYPES.values()))
        default = self.rng.choice(["", "", " = 7"])
        parameters = f"int {first}, int {second}{default}"
        match kind:
            case "plain":
                declared = f"__global__ void {name}({element}* x, {parameters});\n" if self.rng.random() < 0.2 else ""
                return declared + f"__global__ void {name}({element}* x, {parameters.removesuffix(' = 7')}) {body}"
            case "template":
                return f"template <class T> __global__ void {name}(T* x, {parameters}) {body}"
            case "special":
                return (
                    f"template <class T, int N = 2> __global__ void {name}(T* x, {parameters}) {body}\n"
                    f"template <> __global__ void {name}<{element}>({element}* x, int b, int a) "
                    + body.replace(str(self.number), str(self.number + 1))
                )
            case "macro":
                return f"KERNEL({name}, {element}, {self.number}, {first}, {second})"
            case "pair":
                return f"PAIR({name}, {self.number})"
            case "entry":
                return f"ENTRY {name}({element}* x, {parameters}) {body}"
            case "head":
                return f"TEMPLATE __global__ void {name}(T* x, {parameters}) {body}"
            case "device":
                return f"__device__ {element} {name}({element} v) {{ return v; }}"
            case _:
                return (
                    f"__global__ void {name}({element}* x,\n{self.condition()}\nint a, int b\n#else\n"
                    f"int b, int a\n#endif\n) {body}"
                )

    def condition(self) -> str:
        return self.rng.choice(
            [
                "#if 0",
                "#if 1",
                "#ifdef ON",
                "#ifdef OFF",
                "#ifndef OFF",
                "#if DIM == 2",
                "#if DIM > 1 && !defined(OFF)",
                "#if __CUDA_ARCH__ >= 900",
            ]
        )

    def block(self, depth: int) -> None:
        for _ in range(self.rng.randint(1, 3)):
            choice = self.rng.random()
            if choice < 0.35 and depth < 3:
                self.lines.append(self.condition())
                self.block(depth + 1)
                if self.rng.random() < 0.6:
                    self.lines.append("#else")
                    self.block(depth + 1)
                self.lines.append("#endif")
            else:
                self.lines.append(self.kernel(self.rng.choice(NAMES)))

    def make(self) -> str:
        self.lines.append(KERNEL_MACROS)
        for _ in range(self.rng.randint(1, 3)):
            opened = self.rng.choice([None, None, "namespace a {", "OPEN(a)"])
            if opened:
                self.lines.append(opened)
            self.block(0)
            if opened:
                self.lines.append("}" if opened.startswith("namespace") else "CLOSE")
        return "\n".join(self.lines) + "\n"


def called(text: str, defines: dict[str, int], folder: Path) -> dict[tuple[str, str], list[int]] | None:
    """What the function called by g++ writes (its number, a, b), for each valid call; None if g++ refuses the text."""
    names = "".join(f"void {name}(none);\n" for name in NAMES)
    prelude = f"struct none {{}};\n{names}namespace a {{ {names} }}\n#line 1\n"
    calls = "".join(
        f"template <class P> int try_{i}(P x) {{ if constexpr (requires {{ {name}(x, 3, 5); }}) "
        f"{{ {name}(x, 3, 5); return 1; }} return 0; }}\n"
        f'extern "C" int call_{i}({TYPES[dtype]}* x) {{ return try_{i}(x); }}\n'
        for i, (name, dtype) in enumerate(CALLS)
    )
    source, library = folder / "text.cpp", folder / f"{abs(hash(text))}.so"
    source.write_text(prelude + text + calls)
    options = ["-std=c++20", "-w", "-O0", "-shared", "-fPIC", "-D__global__=", "-D__device__="]
    capability = bascule.current_device().compute_capability
    architecture = {"__CUDA_ARCH__": 100 * capability[0] + 10 * capability[1]}
    options += [f"-D{name}={value}" for name, value in (architecture | defines).items()]
    done = subprocess.run(
        ["g++", *options, str(source), "-o", str(library)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        return None
    loaded = ctypes.CDLL(str(library))
    results = {}
    for i, (name, dtype) in enumerate(CALLS):
        values = ({"f4": ctypes.c_float, "f8": ctypes.c_double, "i4": ctypes.c_int}[dtype] * 3)()
        if getattr(loaded, f"call_{i}")(values):
            results[name, dtype] = [int(value) for value in values]
    _ctypes.dlclose(loaded._handle)  # the next library may get this one's inode, by which dlopen recognises libraries
    library.unlink()
    return results


def launched(kernel: object, dtype: str, **named: int) -> list[int]:
    x = bascule.zeros(3, dtype)
    kernel[1, 1](x, **named) if named else kernel[1, 1](x, 3, 5)  # type: ignore[index]
    return [int(value) for value in x.copy_to_host()]


def differences(text: str, defines: dict[str, int], expected: dict[tuple[str, str], list[int]]) -> list[str]:
    wrong = []
    module = bascule.compile(text, options={"defines": defines, "std": "c++20"})
    for name, dtype in CALLS:
        right = expected.get((name, dtype))
        if name in NAMES and any(f"a::{name}" == each for each, _ in expected) and right is None:
            continue  # Bascule also finds the kernel without its namespace
        got = None
        words = ""
        for spelled in (name, f"{name}<{TYPES[dtype]}>"):
            try:
                got = launched(module[spelled], dtype)
                break
            except bascule.Error as error:
                words += f"\n      {spelled}: {str(error)[:300]}"
        if got != right:
            wrong.append(f"{name}({TYPES[dtype]}*): {got}, g++ has {right}{words}")
        if right is None or got != right:
            continue
        try:
            got = launched(module[name], dtype, a=3, b=5)
        except bascule.Error:
            continue
        if got != [right[0], 3, 5]:
            wrong.append(f"{name}({TYPES[dtype]}*, a=3, b=5): {got}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    compared = failed = calls = 0
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        while compared < given.texts:
            rng = random.Random(f"{given.seed}/{number}")
            number += 1
            text = Text(rng).make()
            defines = {"DIM": rng.choice([1, 2, 3])} | ({"ON": 1} if rng.random() < 0.5 else {})
            expected = called(text, defines, Path(folder))
            if expected is None:
                continue
            compared += 1
            calls += len(expected)
            if wrong := differences(text, defines, expected):
                failed += 1
                print(f"--- text {number - 1} with {defines}\n{text.removeprefix(KERNEL_MACROS)}", *wrong, sep="\n  ")
    print(f"{compared} texts, {calls} calls that g++ has; {failed} texts differ")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
