"""Random headers under random changes: what the cache gives must be what a compile without it gives.

    python tests/python/cache/truth.py --sequences 10000 --seed 1

A sequence is a tree of headers, a text that reads them, and changes of the tree. After each change the text is compiled
with the cache in memory and, once that is cleared, with that on disk. Whenever the cache had an image, the same text is
compiled without the cache, and both must be equal byte for byte. Kernels that were compiled before are launched with
structs and asked for variables, whose layouts and types also come from the headers: the answer is that of their own
image, or an error. Kernels that were pickled before are unpickled: their code must be what a compile gives now. Some
compiles run while headers, links and directories change and change back. Exits with 1 if anything was stale.

Sequences take turns, so that headers grow older than the clock of the file system ticks: both ways of checking a header
are used, its content and its times. Everything but time is determined by the seed.
"""

from __future__ import annotations

import argparse
import mmap
import os
import pickle
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("BASCULE_DEVICE", "emulated")
    os.environ["BASCULE_CACHE_DIR"] = tempfile.mkdtemp(prefix="bascule-truth-")

import numpy as np

import bascule

HEADERS = 6
DIRECTORIES = ("source", "first", "other", "second", "second/deep")  # `first` is a link to `real`
AT_ONCE = 100  # sequences that take turns

PASTE = "#define CAT_(a, b) a##b\n#define CAT(a, b) CAT_(a, b)\n"
# Ways in which a text includes a header NAME. The cache cannot prove anything about headers included as in DOUBTFUL.
PLAIN = (
    '#if __has_include("NAME")\n#include "NAME"\n#endif\n',
    "#if __has_include(<NAME>)\n#include <NAME>\n#endif\n",
    '#if defined(__has_include) && \\\n    __has_include("NAME") /* why */\n# include <NAME>\n#endif\n',
    '#if 0\n#elif (1 && __has_include ( <NAME> ))\n%:include "NAME" // why\n#endif\n',
    '#if __has_include("deep/NAME")\n#include "deep/NAME"\n#endif\n',
    "#if __has_include(<NAME>)\n#define PROBED_NUMBER 1\n#endif\n",
    '#if 0\ndon\'t /*\n#endif\n#if __has_include("NAME")\n#include "NAME"\n#endif\n//*/\n',
    "// #include H\n/*\n#include H\n*/\n#if __has_include(<../first/NAME>)\n#include <../first/NAME>\n#endif\n",
)
# As above, through a macro. A header may define CHOSEN for another one; if it is undefined, nothing is included.
COMPUTED = (
    '#undef H\n#define H "NAME"\n#if __has_include("NAME")\n#include H\n#endif\n',
    "#undef STD\n#define STD(h) <h>\n#if __has_include(<NAME>)\n#include STD(NAME) // why\n#endif\n",
    '#undef S\n#undef S_\n#define S_(x) #x\n#define S(x) S_(x)\n#if __has_include("NAME")\n#include S(NAME)\n#endif\n',
    "#undef NTH\n#define NTH(n) <h##n.h>\n#if __has_include(<NAME>)\n#include NTH(NUMBER)\n#endif\n",
    "#undef DIR\n#if __has_include(<deep/NAME>)\n#define DIR deep\n#elif __has_include(<../first/NAME>)\n"
    "#define DIR ../first\n#endif\n#undef IN\n#define IN(h) <DIR/h>\n#ifdef DIR\n#include IN(NAME)\n#endif\n",
    '#if __has_include("NAME")\n#undef CHOSEN\n#define CHOSEN "NAME"\n#endif\n',
    "#if __has_include(<NAME>)\n#undef CHOSEN\n#define CHOSEN <NAME>\n#endif\n",
    "#undef CHOSEN\n",
    "#ifdef CHOSEN\n#include CHOSEN\n#endif\n",
    "#ifdef CHOSEN\n#include \\\nCHOSEN\n#undef CHOSEN\n#endif\n",
)
DOUBTFUL = (
    '#undef HAS\n#define HAS __has_include\n#if HAS("NAME")\n#include "NAME"\n#endif\n',
    "#undef WRAP\n#undef Q\n#define WRAP(x) __has_include(x)\n#define Q WRAP\n#if Q(<NAME>)\n#include <NAME>\n#endif\n",
    '#undef OPT\n#undef HAS_OPT\n#define OPT "NAME"\n#define HAS_OPT __has_include(OPT)\n'
    "#if HAS_OPT\n#include OPT\n#endif\n",
    PASTE + '#if CAT(__has_, include)("NAME")\n#include "NAME"\n#endif\n',
    '#undef H\n#define H "NAME"\n#if 0\ndon\'t /*\n#endif\n#if __has_include(H)\n#include H\n#endif\n//*/\n',
    '#undef H\n#define H <NAME>\n#define S_NUMBER "x"R"(\n#if __has_include(H)\n#include H\n#endif\n//)"\n',
    '#undef H\n#define H "NAME"\n// \\ \n#if __has_include(H)\n#include H\n#endif\n',
    "#define ID(x) x\n#if ID(__has_include(<NAME>))\n#include <NAME>\n#endif\n",
    PASTE + '#define ID(x) x\n#if ID(CAT)(__has_, include)("NAME")\n#include "NAME"\n#endif\n',
    PASTE + '#undef HALF\n#define HALF CAT(__has_,\n#if HALF include)("NAME")\n#include "NAME"\n#endif\n',
)
SYMBOLS = "".join(
    f"#ifndef VALUE_{i}\n#define VALUE_{i} 0\n#endif\n#ifndef TWICE_{i}\n#define TWICE_{i} 0\n#endif\n"
    f"#ifdef PROBED_{i}\n#define SEEN_{i} 1\n#else\n#define SEEN_{i} 0\n#endif\n"
    for i in range(HEADERS)
)
# All have the same size, so that an edit changes nothing but the content.
LAYOUTS = (
    "struct S { float a; int b; }; typedef float number;",
    "struct S { int b; float a; }; typedef int   number;",
)
KERNEL = (
    SYMBOLS
    + f"#ifndef LAYOUT\n{LAYOUTS[0]}\n#endif\n__device__ number variable;\n"
    + 'extern "C" __global__ void f(S s, float* p) { p[0] = s.a; p[1] = s.b; variable = 3; }\n'
    + 'extern "C" __global__ void k(int* p) {\n'
    + "".join(f"p[{i}] = VALUE_{i} + 10 * TWICE_{i} + 20 * SEEN_{i};\n" for i in range(HEADERS))
    + "}\n"
)


class Sequence:
    """One tree of headers and the text that reads them."""

    def __init__(self, seed: int, number: int, root: Path) -> None:
        self.chance = random.Random(f"{seed}:{number}")
        self.number = number
        self.root = root
        self.changes: list[str] = []  # names of the changes so far
        self.forms = self.chance.choice((PLAIN, COMPUTED, PLAIN + COMPUTED))
        self.doubtful = self.chance.choice((0.0, 0.0, 0.2, 1.0))  # probability of a form from DOUBTFUL
        for directory in ("real", *DIRECTORIES):
            if directory != "first":
                (root / directory).mkdir(parents=True, exist_ok=True)
        (root / "first").symlink_to("real")
        for _ in range(self.chance.randint(2, 8)):
            path = self.some_path()
            path.write_text(self.some_header(path))
        text = "".join(self.ask_for(i) for i in range(HEADERS) if self.chance.random() < 0.7)
        self.text = f"// {number}\n{text}{KERNEL}"
        self.file: Path | None = None
        if self.chance.random() < 0.3:
            self.file = root / "source" / "text.cu"
            self.file.write_text(self.text)
        self.kept: dict[str, str] = {}  # contents before they were overwritten
        self.steps = self.chance.randint(4, 8)
        self.module: bascule.Module | None = None  # compiled at an earlier step
        self.pickled: bytes | None = None

    def some_path(self) -> Path:
        return self.root / self.chance.choice(DIRECTORIES) / f"h{self.chance.randrange(HEADERS)}.h"

    def some_header(self, path: Path) -> str:
        number = int(path.stem[1:])
        begin = self.chance.choice(("#pragma once\n", f"#ifndef GUARD_{number}\n#define GUARD_{number}\n"))
        end = "" if begin.startswith("#p") else "#endif\n"
        value = (
            f"#ifdef VALUE_{number}\n#define TWICE_{number} 1\n#else\n#define VALUE_{number} {self.digit()}\n#endif\n"
        )
        # A header includes only headers of higher numbers, which prevents cycles.
        if self.chance.random() < 0.4:
            value += f"#ifndef LAYOUT\n#define LAYOUT 1\n{self.chance.choice(LAYOUTS)}\n#endif\n"
        others = range(number + 1, HEADERS)
        asked = [self.ask_for(each) for each in others if self.chance.random() < 0.3]
        return begin + value + "".join(asked) + end

    def ask_for(self, number: int) -> str:
        form = self.chance.choice(DOUBTFUL if self.chance.random() < self.doubtful else self.forms)
        return form.replace("NAME", f"h{number}.h").replace("NUMBER", str(number))

    def digit(self) -> int:
        return self.chance.randrange(1, 10)

    def compile(self) -> tuple[str, str]:
        """Returns the PTX, or "does not compile", and its origin."""
        try:
            kernel = self.compiled().k
            return kernel.ptx, kernel.origin
        except bascule.CompileError:
            return "does not compile", "compiled"

    def compiled(self) -> bascule.Module:
        options = bascule.CompileOptions(
            include_paths=[self.root / "first", self.root / "second"],
            arch="compute_80",
            extra=["-minimal"],  # without features that the texts do not use, NVRTC takes three quarters of the time
        )
        if self.file is None:
            return bascule.compile(self.text, options=options)
        return bascule.compile(file=self.file, options=options)

    def hold(self) -> None:
        """Keeps a module and a pickle of its kernel. Replaces kept ones only sometimes."""
        if self.module is not None and self.chance.random() < 0.6:
            return
        try:
            self.module = self.compiled()
            self.pickled = pickle.dumps(self.module.k)
        except bascule.CompileError:
            self.module = None

    def ask(self) -> str:
        """Uses the kept module's struct or variable. Returns "right", "refused" or a text that begins with "wrong"."""
        question = self.chance.choice(("scalar", "tuple", "variable"))
        kernel, p = self.module.f, bascule.zeros(2, "f4")
        fields = {"a": (1.5, "f4"), "b": (7, "i4")}
        # The kept image itself shows in which order the kernel reads the members.
        order = "ab" if re.search(r"ld\.param\.f32\s+%f\d+, \[f_param_0\];", kernel.ptx) else "ba"
        value = tuple(fields[name][0] for name in order)
        if question == "scalar":
            value = np.array(value, dtype=[(name, fields[name][1]) for name in order])[()]
        try:
            if question != "variable":
                kernel[1, 1](value, p)
                if p.copy_to_host().tolist() != [1.5, 7]:
                    return "wrong"
            found = self.module.get_global("variable")
            return "right" if found.dtype == ("f4" if order == "ab" else "i4") else "wrong"
        except bascule.Error as error:
            return "refused" if "Compile the text again" in str(error) else f"wrong: {error}"

    def unpickled(self) -> str:
        """The PTX of the kernel that was pickled earlier, after unpickling."""
        try:
            return str(pickle.loads(self.pickled).ptx)
        except bascule.CompileError:
            return "does not compile"

    def compile_disturbed(self) -> None:
        """Compiles while another thread makes a change and undoes it."""
        disturb = self.chance.choice(
            (self.edit_and_restore, self.exchange_link, self.exchange_directories, self.appear)
        )
        before, during = (self.chance.random() * 0.04 for _ in range(2))
        self.changes.append(f"{disturb.__name__} during a compile")

        def run() -> None:
            time.sleep(before)
            try:
                disturb(lambda: time.sleep(during))
            except OSError:
                pass

        self.text = f"{self.text}//\n"  # a text that no cache has seen
        if self.file is not None:
            self.file.write_text(self.text)
        thread = threading.Thread(target=run)
        thread.start()
        self.compile()
        thread.join()

    def edit_and_restore(self, wait: Callable[[], None]) -> None:
        path = self.existing()
        text, before = path.read_text(), path.stat()
        path.write_text(self.edited(path))
        wait()
        path.write_text(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def exchange_link(self, wait: Callable[[], None]) -> None:
        link, aside = self.root / "first", self.root / "aside"
        link.rename(aside)
        link.symlink_to("other")
        wait()
        aside.rename(link)

    def exchange_directories(self, wait: Callable[[], None]) -> None:
        one, other, aside = self.root / "real", self.root / "other", self.root / "aside"
        one.rename(aside)
        other.rename(one)
        wait()
        one.rename(other)
        aside.rename(one)

    def appear(self, wait: Callable[[], None]) -> None:
        path = self.some_path()
        if path.exists():
            return
        path.write_text(self.some_header(path))
        wait()
        path.unlink()

    def change(self) -> None:
        """Makes one change to the tree."""
        changes: list[Callable[[], None]] = [self.edit, self.edit_quietly, self.replace, self.map, self.restore]
        changes += [self.write, self.write, self.delete, self.rename, self.link, self.hard_link, self.directory]
        changes += [self.permit, self.touch, self.leave, self.relink, self.reorder, self.reorder]
        change = self.chance.choice(changes)
        self.steps -= 1
        self.changes.append(change.__name__)
        try:
            change()
        except OSError:
            self.changes[-1] += " (refused)"  # for example, a directory or a broken link is in the way

    def existing(self) -> Path:
        """Returns an existing header, or a path without one if there is none."""
        found = sorted(self.root.rglob("h?.h"))
        return self.chance.choice(found) if found else self.some_path()

    def edited(self, path: Path) -> str:
        """Returns the file's content with a random digit, of the same size. Remembers the content for `restore`."""
        text = path.read_text()
        self.kept[str(path)] = text
        at = text.find("#define VALUE_") + len("#define VALUE_0 ")
        return text[:at] + str(self.digit()) + text[at + 1 :]

    def edit(self) -> None:
        path = self.existing()
        path.write_text(self.edited(path))

    def edit_quietly(self) -> None:
        path = self.existing()
        text, before = self.edited(path), path.stat()
        path.write_text(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def replace(self) -> None:
        path = self.existing()
        text, before = self.edited(path), path.stat()
        new = path.with_suffix(".new")
        new.write_text(text)
        os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
        new.replace(path)

    def map(self) -> None:
        path = self.existing()
        text = self.edited(path).encode()
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[:] = text

    def write(self) -> None:
        path = self.some_path()
        path.write_text(self.some_header(path))

    def restore(self) -> None:
        if self.kept:
            path, text = self.chance.choice(sorted(self.kept.items()))
            Path(path).write_text(text)

    def reorder(self) -> None:
        """Swaps the struct's members and changes the variable's type."""
        found = [path for path in sorted(self.root.rglob("h?.h")) if "LAYOUT" in path.read_text()]
        if not found:
            return
        path = self.chance.choice(found)
        text = path.read_text()
        self.kept[str(path)] = text
        one, other = LAYOUTS if LAYOUTS[0] in text else LAYOUTS[::-1]
        path.write_text(text.replace(one, other))

    def relink(self) -> None:
        link = self.root / "first"
        target = "other" if os.readlink(link) == "real" else "real"
        link.unlink()
        link.symlink_to(target)

    def delete(self) -> None:
        self.existing().unlink()

    def rename(self) -> None:
        path = self.existing()
        path.rename(self.root / self.chance.choice(DIRECTORIES) / path.name)

    def link(self) -> None:
        target, path = self.existing(), self.some_path()
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    def hard_link(self) -> None:
        target, path = self.existing(), self.some_path()
        path.unlink(missing_ok=True)
        path.hardlink_to(target)

    def directory(self) -> None:
        self.some_path().mkdir()

    def permit(self) -> None:
        path = self.existing()
        path.chmod(0o000 if path.stat().st_mode & 0o400 else 0o644)

    def touch(self) -> None:
        os.utime(self.existing(), (1, 1))

    def leave(self) -> None:
        pass


class Oracle:
    """Runs sequences and counts the results."""

    def __init__(self, seed: int, root: Path) -> None:
        self.seed = seed
        self.root = root
        self.counts: Counter[str] = Counter()
        self.stale: list[str] = []

    def run(self, numbers: range) -> None:
        """Runs these sequences in turns."""
        running = [Sequence(self.seed, number, self.root / str(number)) for number in numbers]
        while running:
            true = [self.compile_through_memory(sequence) for sequence in running]
            bascule.cache.clear()
            for sequence, expected in zip(running, true, strict=True):
                self.compile_through_disk(sequence, expected)
            for sequence, expected in zip(running, true, strict=True):
                self.ask_what_was_compiled(sequence, expected)
            for sequence in running:
                sequence.hold()
                sequence.change()
                if sequence.chance.random() < 0.2:
                    sequence.compile_disturbed()
                    self.counts["disturbed"] += 1
            self.counts["sequences"] += sum(not sequence.steps for sequence in running)
            running = [sequence for sequence in running if sequence.steps]
        shutil.rmtree(self.root)
        bascule.cache.clear(disk=True)

    def compile_through_memory(self, sequence: Sequence) -> str:
        """Returns the PTX that is correct now."""
        got, origin = sequence.compile()
        self.counts["steps"] += 1
        self.counts[origin] += 1
        if origin == "compiled":
            return got
        with bascule.cache.disabled():
            true, _ = sequence.compile()
        self.compare(sequence, origin, got, true)
        return true

    def compile_through_disk(self, sequence: Sequence, true: str) -> None:
        got, origin = sequence.compile()
        if origin != "compiled":
            self.counts[origin] += 1
        else:
            self.counts["refused" if true == "does not compile" else "doubtful"] += 1
        self.compare(sequence, origin, got, true)

    def ask_what_was_compiled(self, sequence: Sequence, true: str) -> None:
        if sequence.module is None:
            return
        answer = sequence.ask()
        self.counts[f"answer {answer.partition(':')[0]}"] += 1
        if answer not in ("right", "refused"):
            self.compare(sequence, "a probe", answer, "right")
        if sequence.text == sequence.module.source:
            self.counts["unpickled"] += 1
            self.compare(sequence, "a pickle", sequence.unpickled(), true)

    def compare(self, sequence: Sequence, origin: str, got: str, true: str) -> None:
        if got != true:
            done = ", ".join(sequence.changes) or "the first compile"
            self.stale.append(
                f"sequence {sequence.number} of seed {self.seed}, from {origin}, after {done}: {got[:300]}"
                if origin[:2] == "a "
                else f"sequence {sequence.number} of seed {self.seed}, from {origin}, after {done}"
            )

    def report(self) -> str:
        counts = self.counts
        return (
            f"seed {self.seed}: {counts['sequences']} sequences, {counts['steps']} steps; stale {len(self.stale)}, "
            f"doubtful {counts['doubtful']}, do not compile {counts['refused']}; "
            f"compiled {counts['compiled']}, from memory {counts['memory']}, from disk {counts['disk']}; "
            f"disturbed {counts['disturbed']}, answered {counts['answer right']}, refused answers "
            f"{counts['answer refused']}, unpickled {counts['unpickled']}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the number of the first sequence")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no more batches after this time")
    arguments = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="bascule-truth-"))
    oracle = Oracle(arguments.seed, root)
    end = time.monotonic() + arguments.seconds
    try:
        last = arguments.first + arguments.sequences
        for begin in range(arguments.first, last, AT_ONCE):
            if time.monotonic() > end:
                break
            oracle.run(range(begin, min(begin + AT_ONCE, last)))
            print(oracle.report(), flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(os.environ["BASCULE_CACHE_DIR"], ignore_errors=True)
    for stale in oracle.stale:
        print("stale:", stale)
    return 1 if oracle.stale else 0


if __name__ == "__main__":
    sys.exit(main())
