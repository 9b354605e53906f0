"""`bascule.load_module` and `bascule.link`: modules made from compiled code or from several source texts."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bascule import _bascule, _compile, _errors, _places

_Path = str | os.PathLike[str]


@_bascule._public
def load_module(code: _Path | bytes | bytearray | memoryview, *, name: str | None = None) -> _bascule.Module:
    """Load code that was compiled elsewhere: PTX, a cubin, or LTO-IR.

    Parameters
    ----------
    code : path, str or bytes
        A file's name, PTX as a str of several lines, or the bytes of such a file.
    name : str, optional
        The name of the code in messages; the file's name by default.

    Returns
    -------
    Module
        Its kernels are launched as usual. They are found by their C++ names, `module["ns::scale<float>"]` (overloads
        with their parameters, `module["add(float*, int)"]`), and by their mangled names.

    Notes
    -----
    The parameter types come from the mangled names. The parameters of `extern "C"` kernels, and those whose type the
    mangled name does not describe, are checked by size. One of 8 bytes takes an array. For a number pass a NumPy scalar
    or a ctypes number, which is passed with its own type; for `float` and `double` parameters of PTX a Python number is
    enough. Variables are arrays of bytes: `module.get_global("table").view("f4")`.

    nvJitLink, which must be installed, compiles LTO-IR: to machine code for a GPU, to PTX for the emulated device.

    Raises
    ------
    CompileError
        The code cannot be read, or the driver refuses it.
    ArgumentValueError
        The code is of another kind, or for another device.
    LibraryError
        The code is LTO-IR and nvJitLink is not installed.
    FileError
        The file cannot be read.

    Examples
    --------
    >>> module = bascule.load_module("scale.ptx")
    >>> module.scale[1, 32](x, 2.0)
    """
    read, found = _code_of(code, "bascule.load_module takes a file's name, PTX as a str, or bytes")
    return _bascule._load_module(read, name or found)


@_bascule._public
def link(
    parts: Sequence[Any],
    options: _bascule.CompileOptions | Mapping[str, Any] | Sequence[str] | None = None,
) -> _bascule.Module:
    """Link several texts into one module: a text can use functions and variables that another one defines.

    Parameters
    ----------
    parts : list of str, path, bytes or Module
        CUDA C++ texts and files; modules, whose text, options and name expressions are used; PTX, cubins and LTO-IR, as
        for `load_module`.
    options : CompileOptions, dict or list of str, optional
        Options for the texts, as for `bascule.compile`; modules keep their own. -rdc=true is added.

    Returns
    -------
    Module
        A module with the kernels of all parts. There is one copy of each variable. Only those instances of templates
        are in the module that a part names: `bascule.compile(text, name_expressions=[...])`.

    Notes
    -----
    Each text is compiled and cached as a program of its own. The linked program is cached too, by a key of all parts.
    For a GPU nvJitLink links if it is installed next to NVRTC, otherwise the driver. The emulated device has its own
    linker.

    Raises
    ------
    CompileError
        NVRTC rejected a text, two parts define the same name, or no part defines a name that is used. The message names
        the symbol and the texts.
    LibraryError, FileError, ArgumentTypeError, ArgumentValueError
        As for `compile` and `load_module`.

    Examples
    --------
    >>> program = bascule.link([
    ...     "__device__ float twice(float x) { return 2 * x; }",
    ...     "__device__ float twice(float); __global__ void f(float* x) { *x = twice(*x); }",
    ... ])
    >>> program.f[1, 1](x)
    """
    if isinstance(parts, (str, bytes, os.PathLike, _bascule.Module)):
        raise _errors.ArgumentTypeError(
            f"bascule.link takes a list of what is linked: bascule.link([text, other_text]); got {type(parts).__name__}"
        )
    frame = sys._getframe(1)
    return _bascule._link([_to_part(part, frame) for part in parts], _compile._checked(options))


def _to_part(part: Any, frame: Any) -> Any:
    if isinstance(part, _bascule.Module):
        return part
    code, name = _code_of(part, "bascule.link takes texts, files' names, bytes and modules")
    if name == "<bytes>" or _bascule._is_code(code):
        return code, name
    if name == "<PTX>":
        return part, *_places.place_of(part, frame), ""
    return _compile._text_of(name), name, 1, os.fspath(Path(name).resolve().parent)


def _code_of(given: Any, accepted: str) -> tuple[bytes, str]:
    """Return the code as bytes, and its name in messages. `given` is the bytes, a text, or the name of a file."""
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given), "<bytes>"
    if isinstance(given, str) and _is_text(given):
        return _encoded(given), "<PTX>"
    if not isinstance(given, (str, os.PathLike)):
        raise _errors.ArgumentTypeError(f"{accepted}; got {type(given).__name__}")
    path = os.fspath(given)
    return _read(path), path


def _is_text(given: str) -> bool:
    """True if a str is a text and not a file's name."""
    return "\n" in given or "{" in given or ";" in given or not given.strip()


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _errors.ArgumentValueError("the text has half of a character (a lone surrogate)") from None


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError):
        _bascule._read_source(path)  # raises FileError with the system's reason, or an error about the name
        raise
