"""`bascule.compile`: makes a Module of CUDA C++ text."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bascule import _bascule, _errors, _places, _remembered
from bascule._remembered import modules, with_options

# A list while `bascule precompile` imports a program: modules and launch rules are added to it and not compiled.
collected: list[Any] | None = None

_FILES = (".cu", ".cuh", ".cpp", ".cc", ".h", ".hpp")
_CODE_FILES = (".ptx", ".cubin", ".fatbin", ".ltoir")


@_bascule._public_with(modules)
def compile(
    source: str | None = None,
    options: _bascule.CompileOptions | Mapping[str, Any] | Sequence[str] | None = None,
    *,
    file: str | bytes | os.PathLike[str] | None = None,
    name_expressions: Iterable[str] | None = (),
    **others: Any,
) -> _bascule.Module:
    """Compile CUDA C++ with NVRTC for the current device, or for `options.arch`.

    Parameters
    ----------
    source : str
        CUDA C++. Every `__global__` function in it becomes an attribute of the module.
    options : CompileOptions, dict or list of str, optional
        A dict has the fields of CompileOptions. A list has NVRTC's flags: `["-std=c++20", "-DN=4", "-Iinclude"]`;
        those that are fields of CompileOptions set them, the others are passed on.
    file : path, instead of `source`
        A file of CUDA C++; its directory is searched first for quoted includes.
    name_expressions : list of str, optional
        Instances of templates, like `"scale<float>"`, that are compiled in the same run, into the module's image.
        Launches whose arguments select one of them need no further compile; other instances are compiled when a launch
        needs them, or by `Module.instantiate`. Variables can be named too, like `"table<float>"`, or `"&table<float>"`
        if a header declares it; they are then in the image even if no kernel uses them. All kernels of a module use
        one set of variables, named or not.

    Returns
    -------
    Module
        A text is compiled once per process for the same options.

    Raises
    ------
    CompileError
        NVRTC rejected the text. The message has the file, the line, its text, and a caret. The file is the Python file
        that has the text as a string literal; a text that was built at run time is `<string at FILE:LINE>`.
    LibraryError
        NVRTC was not found; the message lists every path tried.
    FileError, ArgumentValueError
        The file cannot be read; it is not UTF-8 text.

    Warns
    -----
    CompileWarning
        NVRTC issued a warning: once per process and text, at the line in your file.
    """
    if file is None and not name_expressions and not others:
        try:  # a text without options was looked up before this function was called
            return with_options[source, id(options)][0]
        except (KeyError, TypeError):
            pass
    for name in others:
        from bascule._options import unexpected_keyword

        raise unexpected_keyword(name)
    if source is not None and file is not None:
        raise _errors.ArgumentTypeError("bascule.compile takes either a text or file=..., not both")
    if source is None and file is None:
        raise _errors.ArgumentTypeError(
            "bascule.compile takes CUDA C++ as a str, or a file's name: bascule.compile(file='kernels.cu'); got None"
        )
    if source is not None and not isinstance(source, str):
        hint = "; for a file use bascule.compile(file=...)" if isinstance(source, os.PathLike) else ""
        if isinstance(source, bytes):
            if _bascule._is_code(source):
                raise _compiled_already("code", "these bytes are")
            hint = ": decode them, source.decode()"
        raise _errors.ArgumentTypeError(f"bascule.compile takes CUDA C++ as a str, got {type(source).__name__}{hint}")
    name_expressions = checked_name_expressions(name_expressions)
    if file is not None:
        path = Path(os.fsdecode(file))
        text = _text_of(os.fspath(path))
        directory = os.fspath(path.resolve().parent)
        module = module_at((os.fspath(path), 1), text, options, name_expressions, directory=directory)
        _compile_module(module)
        return module
    text = str(source)
    if text.endswith(_FILES) and "\n" not in text:
        raise _errors.ArgumentValueError(
            f"bascule.compile takes CUDA C++ text, and {text!r} is the name of a file: bascule.compile(file={text!r})"
        )
    if text.endswith(_CODE_FILES) and "\n" not in text:
        raise _compiled_already(repr(text))
    module = module_at(_places.place_of(text, sys._getframe(1)), text, options, name_expressions)
    _compile_module(module)
    # A dict or a list is not remembered, because the caller may change it before the next call.
    if (
        type(source) is str
        and not name_expressions
        and (options is None or isinstance(options, _bascule.CompileOptions))
    ):
        _remembered.keep(source, options, module)
    return module


def _compiled_already(what: str, subject: str = "") -> _errors.ArgumentValueError:
    """Return the error for PTX and machine code."""
    subject = subject or f"{what} is a file of"
    return _errors.ArgumentValueError(
        f"bascule.compile takes CUDA C++, and {subject} compiled code: bascule.load_module({what})"
    )


def _compile_module(module: _bascule.Module) -> None:
    if collected is None:
        module._compile()
    else:
        collected.append(module)


def module_at(
    place: _places.Place,
    source: str,
    options: Any,
    name_expressions: Sequence[str] = (),
    make: Callable[..., _bascule.Module] = _bascule._make_module,
    directory: str = "",
) -> _bascule.Module:
    """Return the module, not compiled, of a text whose place is known."""
    return make(source, *place, directory, _checked(options), tuple(name_expressions))


def checked_name_expressions(given: Iterable[str] | None) -> tuple[str, ...]:
    """Return `name_expressions` as a tuple. Raises ArgumentError unless all elements are valid str."""
    if given is None:  # the default of CuPy's RawModule
        return ()
    listed = tuple(given) if isinstance(given, Iterable) and not isinstance(given, (str, bytes)) else (given,)
    if isinstance(given, str) or not all(isinstance(each, str) for each in listed):
        raise _errors.ArgumentTypeError(
            f'`name_expressions` is a list of str, like ["scale<float>"]; got {given!r:.80}'
        )
    for each in listed:
        if "\0" in each:
            raise _errors.ArgumentValueError(f"`name_expressions` has {each!r:.80}: no name has a NUL character")
    return listed


def _text_of(path: str) -> str:
    try:
        return _bascule._read_source(path)
    except UnicodeDecodeError as error:
        if _bascule._is_code(error.object):
            raise _compiled_already(repr(path)) from None
        encoding = "utf-16" if error.object[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin1"
        raise _errors.ArgumentValueError(
            f"the file {path} is not UTF-8 text: byte {error.start} is 0x{error.object[error.start]:02x}. If it is "
            f"CUDA C++ in another encoding, convert it: iconv -f {encoding} -t utf-8"
        ) from None


def _checked(options: Any) -> _bascule.CompileOptions:
    if isinstance(options, _bascule.CompileOptions):
        return options
    if options is None:
        return _bascule.CompileOptions()
    from bascule._options import to_options

    return to_options(options)
