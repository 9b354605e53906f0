"""Runs blocks of Python, read from stdin, in one namespace: prints a separator and then the output of each block."""

from __future__ import annotations

import ctypes
import sys
import traceback
import warnings
from pathlib import Path

SEPARATOR = "\x1e"
LIBC = ctypes.CDLL(None)


def show_warning(message: Warning | str, category: type[Warning], *_place: object, **_more: object) -> None:
    print(f"{category.__module__}.{category.__qualname__}: {message}")


def main() -> None:
    warnings.showwarning = show_warning
    path = Path("example.py").resolve()  # the file that messages and source lines refer to
    names: dict[str, object] = {"__name__": "__main__", "__file__": str(path)}
    program = ""
    for block in sys.stdin.read().split(SEPARATOR):
        first = program.count("\n")
        program += block
        path.write_text(program)
        print(end=SEPARATOR, flush=True)
        try:
            exec(compile("\n" * first + block, str(path), "exec"), names)
        except Exception as error:
            sys.stdout.flush()
            print("Traceback: " + "".join(traceback.format_exception_only(error)), end="")
        sys.stdout.flush()
        LIBC.fflush(None)  # flushes the output of kernels


if __name__ == "__main__":
    main()
