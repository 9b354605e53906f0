"""Compiles the kernels of the tests with one NVRTC in several ways, and loads each PTX on the emulated device.

    python tests/nvrtc_variants.py NVRTC_LIBRARY [INCLUDE_DIRECTORY...]

The ways are those that change the PTX: --use_fast_math, -G, -rdc=true, and none of them. Both libraries are
used through their C functions, without Bascule: every `.entry` of a PTX is looked up, also of kernels that
macros write. A kernel may be refused only for reasons in REFUSALS, and a program may fail to compile only as
COMPILER_LIMITS lists; anything else makes the exit status 1. tests/nvrtc_versions.py runs this for each version.
"""

import ctypes
import os
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEVICE = ROOT / "build" / "dev" / "runtime" / "emulator" / "libbascule_emulator.so"
PRELUDE = ROOT / "build" / "dev" / "jit" / "prelude.cuh"  # the text that Bascule puts before every program
PROGRAMS = [*sorted((ROOT / "tests/kernels").glob("*.cu")), *sorted((ROOT / "tests/emulator/ptx").glob("*.cu"))]

WAYS = {
    "plain": [],
    "fast math": ["--use_fast_math"],
    "debug": ["-G"],
    "relocatable": ["-rdc=true"],
}

# Features that this device lacks, as found in the message with which it refuses a kernel.
REFUSALS = {
    "tex": r"\b(tex|tld4|txq|suld|sust|sured|suq)\.",
    "malloc in kernels": r"'(malloc|free)' in a kernel is not supported",
    "video instructions": r"\bv(add|sub|absdiff|avrg|min|max)[24]\.",
}


@dataclass(frozen=True)
class CompilerLimit:
    """An error of NVRTC in one program: it does not compile, or its PTX is accepted by no assembler."""

    version: tuple[int, int]
    way: str
    program: str
    sentence: str  # in the log, or in the device's refusal of a kernel
    reason: str


COMPILER_LIMITS = [
    CompilerLimit(
        (12, 4), "debug", "library.cu", "Broken module", "12.4's -G breaks on inlined parts of cuda::atomic_ref"
    ),
    CompilerLimit(
        (12, 4), "debug", "words.cu", r"(add|max)\.[us]16x2", "12.4's -G leaves sm_90's __vadd2 in dead branches"
    ),
    CompilerLimit((13, 5), "debug", "bits.cu", "unsupported operation", "13.5's -G has no __dp4a"),
    CompilerLimit((13, 5), "debug", "programs.cu", "unsupported operation", "13.5's -G has no __dp4a"),
]


@dataclass
class Tally:
    kernels: int = 0
    loaded: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    limits: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


class Nvrtc:
    """The C functions of one NVRTC."""

    def __init__(self, library: str, include_paths: list[str]) -> None:
        self._library = ctypes.CDLL(library)
        self._options = [
            "-arch=compute_80",
            "-std=c++17",
            f"-include={PRELUDE}",
            *(f"-I{path}" for path in include_paths),
        ]
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)

    def compile(self, file: Path, options: list[str]) -> tuple[bytes | None, str]:
        """The PTX and the log; no PTX if it does not compile."""
        program = ctypes.c_void_p()
        text, name = file.read_bytes(), os.fsencode(file)
        self._check("nvrtcCreateProgram", ctypes.byref(program), text, name, 0, None, None)
        try:
            words = [os.fsencode(option) for option in [*self._options, *options]]
            result = self._library.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
            log = self._read(program, "ProgramLog").decode(errors="replace").strip("\0\n")
            return (self._read(program, "PTX") if result == 0 else None), log
        finally:
            self._check("nvrtcDestroyProgram", ctypes.byref(program))

    def _read(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._check(f"nvrtcGet{what}", program, text)
        return text.raw

    def _check(self, function: str, *arguments: object) -> None:
        if result := getattr(self._library, function)(*arguments):
            raise RuntimeError(f"{function} answered {result}")


class Device:
    """The emulated device, as any client of the driver's C functions sees it."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(str(DEVICE))
        context = ctypes.c_void_p()
        for result in (
            self._library.cuInit(0),
            self._library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
            self._library.cuCtxSetCurrent(context),
        ):
            if result:
                raise RuntimeError(f"the emulated device does not start: {result}")

    def load(self, ptx: bytes) -> tuple[list[str], dict[str, str]]:
        """The runnable kernels, and the refusals of the others. Raises ValueError if the whole PTX is refused."""
        module = ctypes.c_void_p()
        if result := self._library.cuModuleLoadData(ctypes.byref(module), ptx):
            raise ValueError(f"the PTX is refused ({result}): {self._report()}")
        loaded, refused = [], {}
        for name in re.findall(rb"^\s*(?:\.\w+\s+)*\.entry\s+([\w$]+)", ptx, re.MULTILINE):
            function = ctypes.c_void_p()
            if self._library.cuModuleGetFunction(ctypes.byref(function), module, name) == 0:
                loaded.append(name.decode())
            else:
                refused[name.decode()] = self._report()
        self._library.cuModuleUnload(module)
        return loaded, refused

    def _report(self) -> str:
        text = ctypes.create_string_buffer(1 << 16)
        self._library.bascule_emulated_last_report(text, ctypes.c_size_t(len(text)))
        return text.value.decode()


def family(reason: str) -> str | None:
    return next((name for name, pattern in REFUSALS.items() if re.search(pattern, reason)), None)


def first_errors(log: str) -> str:
    lines = log.splitlines()
    return "\n    ".join([line for line in lines if "error" in line.lower()][:3] or lines[:3])


def limit_of(nvrtc: Nvrtc, way: str, file: Path, text: str) -> CompilerLimit | None:
    for limit in COMPILER_LIMITS:
        same = (limit.version, limit.way, limit.program) == (nvrtc.version, way, file.name)
        if same and re.search(limit.sentence, text):
            return limit
    return None


def try_program(nvrtc: Nvrtc, device: Device, way: str, file: Path, tally: Tally) -> None:
    ptx, log = nvrtc.compile(file, WAYS[way])
    if ptx is None:
        if limit := limit_of(nvrtc, way, file, log):
            tally.limits[file.name] = limit.reason
        else:
            tally.failures.append(f"{file.name} does not compile: {first_errors(log)}")
        return
    try:
        loaded, refused = device.load(ptx)
    except ValueError as error:
        tally.failures.append(f"{file.name}: {error}")
        return
    if not loaded and not refused:
        tally.failures.append(f"{file.name}: no kernel was found in its PTX")
    tally.kernels += len(loaded) + len(refused)
    tally.loaded += len(loaded)
    for kernel, reason in refused.items():
        if known := family(reason):
            tally.refused[known] += 1
        elif limit := limit_of(nvrtc, way, file, reason):
            tally.refused["by the compiler's fault"] += 1
            tally.limits[file.name] = limit.reason
        else:
            tally.failures.append(f"{file.name}: {kernel}: {reason}")


def print_tally(way: str, tally: Tally) -> None:
    refused = ", ".join(f"{name} {count}" for name, count in sorted(tally.refused.items())) or "none"
    print(f"  {way:<12} {tally.loaded:>4} of {tally.kernels} kernels load; refused: {refused}")
    for program, reason in tally.limits.items():
        print(f"               {program} is not whole: {reason}")
    for failure in tally.failures:
        print(f"  {way}: FAILED: {failure}")


def main() -> int:
    library, *include_paths = sys.argv[1:]
    nvrtc, device = Nvrtc(library, include_paths), Device()
    print(f"NVRTC {nvrtc.version[0]}.{nvrtc.version[1]}, {len(PROGRAMS)} programs, loaded on the emulated device:")
    failed = False
    for way in WAYS:
        tally = Tally()
        for file in PROGRAMS:
            try_program(nvrtc, device, way, file, tally)
        print_tally(way, tally)
        failed |= bool(tally.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
