"""`bascule.load_module` and `bascule.link`: modules that are not one CUDA C++ text."""

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
        A file's name, PTX as a str of several lines, or what such a file holds.
    name : str, optional
        What messages call it; the file's name unless it is given.

    Returns
    -------
    Module
        Its kernels are launched like any. They are found by the names that C++ has for them,
        `module["ns::scale<float>"]`, of overloaded ones with the parameters, `module["add(float*, int)"]`, and by their
        mangled names.

    Notes
    -----
    The parameter types come from the mangled names. A kernel that is `extern "C"`, and a parameter of a type that the
    name does not tell, are checked by size: a parameter of 8 bytes takes an array; for a number pass a NumPy scalar or
    a ctypes number, whose type is what is passed. PTX tells `float` and `double` by itself. Variables of the code are
    arrays of bytes: `module.get_global("table").view("f4")`.

    LTO-IR becomes machine code by nvJitLink, where that is installed. The emulated device runs PTX, and LTO-IR by way
    of it.

    Raises
    ------
    CompileError
        The code cannot be read, or the driver refuses it.
    ArgumentValueError
        It is code of another kind, or for another device.
    LibraryError
        LTO-IR without nvJitLink.
    FileError
        The file cannot be read.

    Examples
    --------
    >>> module = bascule.load_module("scale.ptx")
    >>> module.scale[1, 32](x, 2.0)
    """
    if isinstance(code, (bytes, bytearray, memoryview)):
        return _bascule._load_module(bytes(code), name or "<bytes>")
    if isinstance(code, str) and _is_text(code):
        return _bascule._load_module(_encoded(code), name or "<PTX>")
    if not isinstance(code, (str, os.PathLike)):
        raise _errors.ArgumentTypeError(
            f"bascule.load_module takes a file's name, PTX as a str, or bytes; got {type(code).__name__}"
        )
    path = os.fspath(code)
    return _bascule._load_module(_read(path), name or path)


@_bascule._public
def link(
    parts: Sequence[Any],
    options: _bascule.CompileOptions | Mapping[str, Any] | Sequence[str] | None = None,
) -> _bascule.Module:
    """Make one module of several texts: what one of them declares `extern`, another one defines.

    Parameters
    ----------
    parts : list of str, path, bytes or Module
        CUDA C++ texts, and files of them; modules, of which the text, the options and the name expressions are taken;
        PTX, cubins and LTO-IR, as `load_module` takes them.
    options : CompileOptions, dict or list of str, optional
        How the texts are compiled, as in `bascule.compile`; modules keep their own. -rdc=true is added.

    Returns
    -------
    Module
        With the kernels of all parts. The parts share one copy of each variable that one of them defines. Templates are
        there as far as a part names their instances: `bascule.compile(text, name_expressions=[...])`.

    Notes
    -----
    Each text is compiled as a program of its own, into the cache; the linked program is in the cache too, by what all
    parts are. For a GPU nvJitLink links, where it is installed beside NVRTC, the driver elsewhere; the emulated device
    links by itself.

    Raises
    ------
    CompileError
        NVRTC rejected a text; or two parts define a name, or none defines one that is used: the message names the
        symbol and the texts.
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
    if isinstance(part, (bytes, bytearray, memoryview)):
        return bytes(part), "<bytes>"
    if isinstance(part, str) and _is_text(part):
        if _bascule._is_code(_encoded(part)):
            return _encoded(part), "<PTX>"
        return part, *_places.place_of(part, frame), ""
    if not isinstance(part, (str, os.PathLike)):
        raise _errors.ArgumentTypeError(
            f"bascule.link takes texts, files' names, bytes and modules; got {type(part).__name__}"
        )
    path = os.fspath(part)
    code = _read(path)
    if _bascule._is_code(code):
        return code, path
    return _compile._text_of(path), path, 1, os.fspath(Path(path).resolve().parent)


def _is_text(given: str) -> bool:
    """Whether a str is a text, and not a file's name."""
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
        _bascule._read_source(path)  # raises: FileError with the system's reason, or what is wrong with the name
        raise
