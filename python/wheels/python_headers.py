"""Collects the headers of a Python in a directory whose pyconfig.h suits another processor, and prints its name.

    python python_headers.py PYTHON C++-COMPILER DIRECTORY

pyconfig.h of 64-bit Linux is the same for x86-64 and aarch64, except for what CPython's own sources use. The sizes and
alignments in it are compared with those of the compiler.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

TYPES = {name: name.lower().replace("_", " ") for name in ("DOUBLE", "FLOAT", "INT", "LONG", "SHORT", "LONG_LONG")}
TYPES |= {name: name.lower() for name in ("SIZE_T", "WCHAR_T", "OFF_T", "PID_T", "TIME_T", "FPOS_T", "UINTPTR_T")}
TYPES |= {name: name.lower() for name in ("MAX_ALIGN_T", "PTHREAD_T", "PTHREAD_KEY_T")}
TYPES |= {"LONG_DOUBLE": "long double", "_BOOL": "bool", "VOID_P": "void*"}
INCLUDED = ("cstddef", "cstdint", "cstdio", "ctime", "pthread.h", "sys/types.h")


def run(*command: str | Path, text: str = "") -> str:
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout


def macros(text: str, *options: str) -> dict[str, str]:
    """The macros that are defined after a text, as the host's compiler sees it."""
    shown = run("g++", "-E", "-dM", "-x", "c++", *options, "-", text=text)
    return dict(re.findall(r"^#define (\w+) ?(.*)$", shown, re.MULTILINE))


def assertions(config: dict[str, str]) -> str:
    lines = [f"#include <{name}>" for name in INCLUDED]
    for name, value in config.items():
        for prefix, asks in (("SIZEOF_", "sizeof"), ("ALIGNOF_", "alignof")):
            if name.startswith(prefix):
                lines.append(f'static_assert({asks}({TYPES[name.removeprefix(prefix)]}) == {value}, "{name}");')
    return "\n".join([*lines, ""])


def main(python: str, compiler: str, directory: Path) -> None:
    asked = "import sys, sysconfig; print(sysconfig.get_path('include'), sys.version_info[1], sys.abiflags, sep='\\n')"
    include, minor, flags = run(python, "-c", asked).split("\n")[:3]
    made = directory / f"3.{minor}{flags}"
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(include, made)
    config = macros(
        "#include <pyconfig.h>\n", "-I", include, "-I", str(Path(include).parent)
    )  # Debian's is in two files
    own = sorted(config.items() - macros("").items())
    (made / "pyconfig.h").write_text("".join(f"#define {name} {value}\n" for name, value in own))
    run(compiler, "-x", "c++", "-fsyntax-only", "-", text=assertions(config))
    print(made)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
