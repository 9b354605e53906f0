"""Compares which of several functions a launch chooses with what g++ calls for arguments of the same types.

    python tests/jit/overloads/compare.py [--sets N] [--seed S]

Each set is one to four overloads and templates of one name, and one list of arguments. Excluded are the documented
differences ("Templates, overloads, name expressions"): numbers that a launch refuses where C++ truncates, template
parameters that a launch deduces from the stronger of two arguments, and more than one parameter type besides its own
(int, double or bool) for a Python number. Also excluded are sets in which NVRTC orders fewer functions with packs than
g++, or more with constraints.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bascule

REFUSED = -1
CPP_TYPES = {
    "i4": "int",
    "u4": "unsigned int",
    "i8": "long long",
    "i2": "short",
    "u1": "unsigned char",
    "b1": "bool",
    "f4": "float",
    "f8": "double",
}
FLOATING = ["float", "double"]


@dataclass(frozen=True)
class Argument:
    """A passed value: an array, perhaps read-only, a NumPy scalar, or a Python number."""

    kind: str
    dtype: str
    readonly: bool = False

    @property
    def cpp(self) -> str:
        element = CPP_TYPES[self.dtype]
        return ("const " if self.readonly else "") + element + ("*" if self.kind == "array" else "")

    def value(self) -> object:
        if self.kind == "number":
            return np.dtype(self.dtype).type(1).item()
        if self.kind == "scalar":
            return np.dtype(self.dtype).type(1)
        array = bascule.zeros(4, self.dtype)
        if not self.readonly:
            return array
        described = dict(array.__cuda_array_interface__)
        described["data"] = (described["data"][0], True)
        return bascule.from_cuda_array_interface(described, owner=array)


@dataclass(frozen=True)
class Function:
    """A function of a set, such as `template <class T> void f(const T*, int)`, or one that is not a template."""

    parameters: tuple[str, ...]
    requirement: str = ""

    @property
    def names(self) -> list[str]:
        found = sorted(set(re.findall(r"\b[TU]s?\b", " ".join(self.parameters))))
        return sorted(found, key=lambda name: name.endswith("s"))  # a pack is the last

    def header(self) -> str:
        if not self.names:
            return ""
        named = ", ".join(f"class... {each}" if each.endswith("s") else f"class {each}" for each in self.names)
        return f"template <{named}> {self.requirement}"

    def identity(self) -> tuple[str, ...]:
        """Returns a tuple that is equal for equivalent declarations."""
        order = list(dict.fromkeys(re.findall(r"\b[TU]\b", " ".join(self.parameters))))
        plain = [re.sub(r"\b[TU]\b", lambda found: f"P{order.index(found[0])}", each) for each in self.parameters]
        plain = [each.removesuffix(" const") if "*" in each else each.removeprefix("const ") for each in plain]
        return (*plain, self.requirement)


def any_argument(rng: random.Random) -> Argument:
    kind = rng.choice(["array", "array", "array", "scalar", "scalar", "number"])
    if kind == "array":
        return Argument(kind, rng.choice(["i4", "f4", "i8", "u1", "f8"]), rng.random() < 0.4)
    return Argument(kind, rng.choice(["i4", "f8", "b1"] if kind == "number" else list(CPP_TYPES)))


def fixed_types(rng: random.Random, argument: Argument) -> list[str]:
    """The types without template parameters that a function of the set may declare for this argument."""
    own = CPP_TYPES[argument.dtype]
    if argument.kind == "array":
        pointees = [own, own, own, rng.choice(["int", "float", "double"]), "void"]
        qualifiers = ["", "", "const ", "const ", "volatile ", "const volatile "]
        return [
            f"{qualifier}{pointee}*"
            for pointee in pointees
            for qualifier in qualifiers
            if "volatile" not in qualifier or pointee != "void"
        ]
    others = FLOATING if own in FLOATING else [each for each in CPP_TYPES.values() if each != own]
    return [own, rng.choice(others)] if argument.kind == "number" else [own, own, *others]


def any_function(rng: random.Random, arguments: list[Argument], fixed: list[list[str]]) -> Function | None:
    parameters = []
    claims: dict[str, set[tuple[str, str]]] = {}
    pack = rng.random() < 0.12 and len(arguments) > 1
    for index, (argument, types) in enumerate(zip(arguments, fixed, strict=True)):
        if pack and index == len(arguments) - 1:
            parameters.append("Ts...")
        elif rng.random() < 0.5:
            parameters.append(rng.choice(types))
        else:
            name = rng.choice("TTTU")
            forms = ["{}", "const {}", "{}*", "{}*", "const {}*", "const {}*", "{}* const", "{}**"]
            if argument.kind != "array":
                forms = ["{}", "{}", "{}", "const {}", "{}*"]
            parameters.append(rng.choice(forms).format(name))
            claims.setdefault(name, set()).add((argument.kind, argument.dtype if argument.kind != "array" else ""))
    if any(len(each) > 1 for each in claims.values() if {kind for kind, _ in each} != {"array"}):
        return None  # Bascule deduces from the stronger argument, C++ fails
    function = Function(tuple(parameters))
    if "T" in function.names and rng.random() < 0.1:
        return Function(function.parameters, "requires (sizeof(T) >= 4)")
    return function


def any_set(rng: random.Random) -> tuple[list[Argument], list[Function]]:
    arguments = [any_argument(rng) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
    fixed = [fixed_types(rng, each) for each in arguments]
    functions: dict[tuple[str, ...], Function] = {}
    for _ in range(rng.choice([1, 2, 2, 3, 3, 4])):
        if function := any_function(rng, arguments, fixed):
            functions.setdefault(function.identity(), function)
    return arguments, list(functions.values()) or [Function(tuple(each.cpp for each in arguments))]


def chosen_by_gxx(sets: list[tuple[list[Argument], list[Function]]]) -> list[int]:
    text = [
        "#include <cstdio>",
        "#include <utility>",
        "template <int N> struct Is { static constexpr int number = N; };",
    ]
    calls = []
    for number, (arguments, functions) in enumerate(sets):
        text.append(f"namespace s{number} {{")
        text += [
            f"{each.header()} Is<{index}> f({', '.join(each.parameters)});" for index, each in enumerate(functions)
        ]
        text.append(
            "template <class... A> auto call(int) -> decltype(f(std::declval<A>()...));\n"
            f"template <class... A> Is<{REFUSED}> call(...);\n}}"
        )
        types = ", ".join(each.cpp for each in arguments)
        calls.append(f'std::printf("%d\\n", decltype(s{number}::call<{types}>(0))::number);')
    text.append("int main() {\n" + "\n".join(calls) + "\n}\n")
    with tempfile.TemporaryDirectory() as directory:
        source, program = Path(directory, "choice.cpp"), Path(directory, "choice")
        source.write_text("\n".join(text))
        subprocess.run(["g++", "-std=c++20", "-w", source, "-o", program], check=True)
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return [int(line) for line in output.split()]


def kernel_text(functions: list[Function]) -> str:
    return "\n".join(
        f"{each.header()} __global__ void f({', '.join((*each.parameters[:-1], 'int* which', each.parameters[-1]))})"
        f" {{ *which = {index}; }}"
        for index, each in enumerate(functions)
    )


def chosen_by_bascule(arguments: list[Argument], functions: list[Function]) -> tuple[int, str]:
    which = bascule.zeros(1, "i4")
    values = [each.value() for each in arguments]
    kernel = bascule.compile(kernel_text(functions), options={"std": "c++20"})["f"]
    try:
        kernel[1, 1](*values[:-1], which, values[-1])
    except TypeError as error:
        return REFUSED, str(error)
    except (
        ValueError,
        bascule.CompileError,
    ) as error:  # if the only function needs a writable array, or its constraint fails
        return REFUSED, str(error)
    return int(which.copy_to_host()[0]), ""


def differences(sets: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    made = [any_set(rng) for _ in range(sets)]
    for (arguments, functions), expected in zip(made, chosen_by_gxx(made), strict=True):
        got, why = chosen_by_bascule(arguments, functions)
        compilers_disagree = (got == REFUSED and any("Ts" in each.names for each in functions)) or (
            expected == REFUSED and any(each.requirement for each in functions)
        )
        if got != expected and not compilers_disagree:
            given = ", ".join(f"{each.kind} {each.cpp}" for each in arguments)
            yield f"({given}): g++ {expected}, Bascule {got}\n{kernel_text(functions)}\n{why}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = 0
    for found, difference in enumerate(differences(options.sets, options.seed), 1):  # noqa: B007
        print(difference, flush=True)
    print(f"{options.sets} sets, {found} differ")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
