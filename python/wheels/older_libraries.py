"""Makes libraries without code that a linker takes for those of a system with glibc 2.28 and GCC 8.

    python older_libraries.py C++-COMPILER DIRECTORY

A library that is linked with `-L DIRECTORY` needs nothing newer, although the compiler and its headers are newer. Each
of these libraries has the symbols of this machine's, in the newest version that manylinux_2_28 admits. Functions that
newer headers call and that glibc 2.28 lacks are in older_glibc.c, and those that GCC 8's libstdc++ lacks come from the
compiler's static libstdc++. Both are linked in and hidden.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

# The newest versions of symbols that manylinux_2_28 admits, as in auditwheel's table.
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}
# Libraries whose functions later versions of glibc have in libc itself, by the first letters of the functions' names.
ONCE_SEPARATE = {
    "libpthread.so.0": ("pthread_", "__pthread_", "sem_"),
    "libdl.so.2": ("dladdr", "dlclose", "dlerror", "dlinfo", "dlmopen", "dlopen", "dlsym", "dlvsym"),
}
LOADERS = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")  # libraries too: they have __tls_get_addr
SECTIONS = {"TLS": ('.section .tbss,"awT",%nobits', "%tls_object"), "OBJECT": (".bss", "%object")}


class Symbol(NamedTuple):
    name: str
    version: str
    kind: str  # FUNC, IFUNC, OBJECT or TLS
    size: int

    @property
    def number(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.version.partition("_")[2].split("."))

    @property
    def admitted(self) -> bool:
        return self.number <= NEWEST[self.version.partition("_")[0]]


def run(*command: str | Path, text: str | None = None) -> str:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def symbols_of(library: Path) -> list[Symbol]:
    """The exported symbols whose version has one of the known names and a number."""
    found = []
    for line in run("readelf", "-W", "--dyn-syms", library).splitlines():
        columns = line.split()
        if len(columns) != 8 or columns[6] == "UND" or columns[4] not in ("GLOBAL", "WEAK", "UNIQUE"):
            continue
        name, _, version = columns[7].replace("@@", "@").partition("@")
        if re.fullmatch(rf"({'|'.join(NEWEST)})_[\d.]+", version) and name != version:
            found.append(Symbol(name, version, columns[3], int(columns[2], 0)))
    return found


def older(symbols: list[Symbol], library: str) -> dict[str, list[Symbol]]:
    """For each library of the older system that has a part of them: its symbols, in the newest admitted version."""
    versions: dict[str, list[Symbol]] = {}
    for each in symbols:
        versions.setdefault(each.name, []).append(each)
    made: dict[str, list[Symbol]] = {library: []}
    for name, those in sorted(versions.items()):
        admitted = [each for each in those if each.admitted]
        if not admitted:
            continue
        home = library
        if library == "libc.so.6" and len(admitted) < len(those):  # a newer version marks the move into libc
            homes = [other for other, beginnings in ONCE_SEPARATE.items() if name.startswith(beginnings)]
            if not homes:
                continue
            home = homes[0]
        made.setdefault(home, []).append(max(admitted, key=lambda each: each.number))
    return made


def make_library(compiler: str, path: Path, symbols: list[Symbol]) -> None:
    """Assembles a shared library that exports the symbols and has no code."""
    lines, nodes = [], {}
    for each in symbols:
        section, kind = SECTIONS.get(each.kind, (".text", "%function"))
        size = max(each.size, 1) if each.kind in SECTIONS else 1
        lines += [section, f".globl {each.name}", f".type {each.name}, {kind}", f".size {each.name}, {size}"]
        lines += [f"{each.name}: .skip {size}"]
        nodes.setdefault(each.version, []).append(each.name)
    source, script = path.with_suffix(".s"), path.with_suffix(".map")
    source.write_text("\n".join([*lines, '.section .note.GNU-stack,"",%progbits', ""]))
    script.write_text("".join(f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in nodes.items()))
    run(compiler, "-shared", "-nostdlib", f"-Wl,-soname,{path.name}", f"-Wl,--version-script={script}",
        "-o", path, source)  # fmt: skip


def main(compiler: str, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)

    def file_of_compiler(name: str) -> Path:
        found = Path(run(compiler, f"-print-file-name={name}").strip())
        return found.resolve() if found.is_absolute() else found  # a name that it does not find is printed as it is

    added = directory / "older_glibc.o"
    source = Path(__file__).with_name("older_glibc.c")
    options = ("-x", "c", "-std=gnu17", "-O2", "-fPIC", "-fno-plt", "-fvisibility=hidden")
    run(compiler, *options, "-c", "-o", added, source)
    provided = {line.split()[-1] for line in run("nm", "--defined-only", "--extern-only", added).splitlines()}
    (loader,) = (name for name in LOADERS if file_of_compiler(name).is_absolute())
    for library in ("libc.so.6", "libm.so.6", "libstdc++.so.6", loader):
        wanted = [each for each in symbols_of(file_of_compiler(library)) if each.name not in provided]
        for name, symbols in older(wanted, library).items():
            make_library(compiler, directory / name, symbols)
    archive = directory / "libolder_glibc.a"
    archive.unlink(missing_ok=True)
    run("ar", "rcD", archive, added)

    def quoted(path: Path) -> str:
        return f'"{path}"'

    # What -lc, -lstdc++ and the others find: linker scripts with absolute names.
    separate = " ".join(f"AS_NEEDED({quoted(directory / name)})" for name in (*ONCE_SEPARATE, loader))
    of_libc = [archive, directory / "libc.so.6", file_of_compiler("libc_nonshared.a")]
    scripts = {
        "libc.so": f"GROUP({' '.join(map(quoted, of_libc))} {separate})",
        "libm.so": f"INPUT({quoted(directory / 'libm.so.6')})",
        "libpthread.so": f"INPUT({separate})",
        "libdl.so": f"INPUT({separate})",
        "libstdc++.so": f"INPUT({quoted(directory / 'libstdc++.so.6')} {quoted(file_of_compiler('libstdc++.a'))})",
    }
    for name, text in scripts.items():
        (directory / name).write_text(f"{text}\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]).resolve())
