"""Exceptions and warnings. Each derives from `Error` and from the built-in that fits."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bascule import _terminal

if TYPE_CHECKING:
    from bascule._bascule import Diagnostic


class Error(Exception):
    """The base of every exception that Bascule raises on purpose."""


class ArgumentError(Error):
    """An argument that a kernel, a launch or an array cannot take; raised before anything was enqueued.

    Attributes
    ----------
    index : int
        Of the argument, from 0; -1 when no argument of a kernel is meant.
    name : str
        Of the argument, as the kernel's parameter is called.
    field : str
        The key of the array interface or the option that is wrong.
    expected, got : str
        What was declared and what was given.
    """

    index: int
    name: str
    field: str
    expected: str
    got: str


class ArgumentTypeError(ArgumentError, TypeError):
    """The argument is of the wrong type."""


class ArgumentValueError(ArgumentError, ValueError):
    """The argument is of the right type and has a value that cannot be."""


class ArgumentOverflowError(ArgumentError, OverflowError):
    """The number does not fit the declared type."""


class ArgumentKeyError(ArgumentError, KeyError, ValueError):
    """An array interface lacks a required key."""

    __str__ = Exception.__str__  # KeyError would quote the message


class ArgumentIndexError(ArgumentError, IndexError):
    """An index that the array does not have."""


class ArgumentBufferError(ArgumentError, BufferError):
    """An array cannot be exchanged by DLPack as it was asked for."""


class ArgumentNotImplementedError(ArgumentError, NotImplementedError):
    """Valid, and not supported yet."""


class CompileError(Error, RuntimeError):
    """NVRTC refused the text, or the text has no kernel of that name.

    `str(error)` is plain text. Where the interpreter itself prints an uncaught one to a terminal, it is coloured;
    NO_COLOR and FORCE_COLOR in the environment are respected.

    Attributes
    ----------
    diagnostics : list of Diagnostic
        All that NVRTC said, warnings too, at the places of your own files: severity, number, file, line, column,
        message, notes, source_line.
    log : str
        NVRTC's own words, at the lines of your text.
    name_expression : str
        The kernel asked for; empty when the text itself is at fault.
    options : list of str
    architecture : str
    """

    diagnostics: Sequence[Diagnostic] = ()
    log: str = ""
    name_expression: str = ""
    options: Sequence[str] = ()
    architecture: str = ""

    def __str__(self) -> str:
        text = super().__str__()
        return _terminal.coloured(text) if _terminal.prints_uncaught_errors_in_colour() else text


class KernelAttributeError(CompileError, AttributeError):
    """A module was asked for an attribute that is no kernel of its text."""


class LibraryError(Error, OSError):
    """NVRTC, the driver or the emulated device cannot be loaded.

    Attributes
    ----------
    library : str
    paths_tried : list of str
        In order.
    loader_message : str
    """

    library: str
    paths_tried: list[str]
    loader_message: str


class CudaError(Error, RuntimeError):
    """A driver call failed.

    Attributes
    ----------
    code : int
        The CUresult.
    code_name : str
    call : str
        The driver's function.
    doing : str
        What it was for.
    report : str
        The emulated device's report of the fault; empty on a GPU.
    launch : str
        Of a fault that lost the context: which launch most likely caused it, and where it was made.
    """

    code: int
    code_name: str
    call: str
    doing: str
    report: str
    launch: str


class RaceError(Error, RuntimeError):
    """Operations on different streams touched the same bytes, and nothing ordered them: a wait is missing.

    Raised where the host next waits, on the emulated device, while `bascule.emulated.checks(races=True)` or
    BASCULE_EMULATED_CHECKS=races looks for them.

    Attributes
    ----------
    races : list of str
        A report each: both operations with their streams and places, the bytes, and which wait is missing.
    """

    races: list[str]


class EmulatedDeviceWarning(UserWarning):
    """No GPU was found, so kernels run on the emulated device. Issued once a process."""


class CompileWarning(UserWarning):
    """NVRTC compiled the text and warned. Issued once a process for a text, at the line of your file.

    Attributes
    ----------
    diagnostic : Diagnostic
    """

    diagnostic: Diagnostic


def issue_warnings(diagnostics: Sequence[Diagnostic]) -> None:
    """Called by the extension module once the image that they are about is stored."""
    for diagnostic in diagnostics:
        text = diagnostic.message
        if diagnostic.number:
            digits = diagnostic.number.removesuffix("-D")
            text += f' [{diagnostic.number}; extra=["-diag-suppress={digits}"] silences it]'
        line = diagnostic.line or 1
        if diagnostic.source_line and not linecache.getline(diagnostic.file, line):
            text += f"\n  {diagnostic.source_line.strip()}"  # nobody else can show it
        warning = CompileWarning(text)
        warning.diagnostic = diagnostic
        warnings.warn_explicit(warning, CompileWarning, diagnostic.file, line)


class UnorderedProducerWarning(UserWarning):
    """Arrays of a type name no stream, and nobody knows which one they are ordered with. Issued once a type."""


class CacheWarning(UserWarning):
    """Compiled programs cannot be kept on disk, and are compiled again in each process. Issued once a process."""
