"""`bascule.compile`: CUDA C++ text to a Module."""

from __future__ import annotations

import os
from pathlib import Path

from bascule import _bascule, _errors, _remembered
from bascule._remembered import modules, with_options

_hits = 0  # of what is remembered; a global of this module, because those are the quickest


def take_hits() -> int:
    """How often a module was remembered since the last call."""
    global _hits
    taken, _hits = _hits, 0
    return taken


def compile(
    source: str | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    options: _bascule.CompileOptions | None = None,
) -> _bascule.Module:
    """Compile CUDA C++ with NVRTC for the current device, or for `options.arch`.

    Parameters
    ----------
    source : str
        The text. Every `__global__` function in it becomes an attribute of the module.
    file : path, instead of `source`
        A file; its directory is searched first for quoted includes.
    options : CompileOptions, optional

    Returns
    -------
    Module
        The same text with the same options is compiled once a process.

    Raises
    ------
    CompileError
        With the line in your text, the text of the line, and a caret.
    LibraryError
        No NVRTC was found; lists every path tried.
    """
    global _hits
    if file is None:
        try:  # written out, because a call more would be half of what compiling again costs
            module = modules[source] if options is None else with_options[source, id(options)][0]
            _hits += 1
            return module
        except (KeyError, TypeError):
            pass
    if (source is None) == (file is None):
        raise _errors.ArgumentTypeError("bascule.compile takes either the text or file=..., and not both")
    if source is not None and not isinstance(source, str):
        hint = "; for a file say bascule.compile(file=...)" if isinstance(source, os.PathLike) else ""
        raise _errors.ArgumentTypeError(f"bascule.compile takes CUDA C++ as a str, got {type(source).__name__}{hint}")
    given = options
    if options is None:
        options = _bascule.CompileOptions()
    if file is not None:
        path = Path(file)
        module = _bascule._make_module(
            _bascule._read_source(os.fspath(path)), os.fspath(path), 1, os.fspath(path.resolve().parent), options
        )
    else:
        module = _bascule._make_module(str(source), "<string>", 1, "", options)
    module._compile()
    if type(source) is str:
        _remembered.keep(source, given, module)
    return module
