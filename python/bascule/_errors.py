"""Exceptions and warnings. Each exception derives from `Error`, most from a matching built-in exception too."""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bascule import _terminal
from bascule._displayed import DisplayedAsHtml, drawing

if TYPE_CHECKING:
    from types import FrameType

    from bascule._bascule import Diagnostic
    from bascule._findings import Finding

# Each class that `bascule` exports is added to this below its definition.
__all__: list[str] = []


class Error(DisplayedAsHtml, Exception):
    """The base class of Bascule's exceptions."""


__all__ += ["Error"]


class ArgumentError(Error):
    """An argument that a kernel, a launch or an array cannot take; raised before anything was enqueued.

    Attributes
    ----------
    index : int
        Position of the argument, from 0; -1 if the error is not about an argument of a kernel.
    name : str
        Name of the kernel's parameter.
    field : str
        The key of the array interface, or the option, that is wrong.
    expected, got : str
        What was expected and what was passed.
    """

    index: int
    name: str
    field: str
    expected: str
    got: str


__all__ += ["ArgumentError"]


class ArgumentTypeError(ArgumentError, TypeError):
    """The argument is of the wrong type."""


class ArgumentValueError(ArgumentError, ValueError):
    """The argument has the right type and an invalid value."""


class ArgumentOverflowError(ArgumentError, OverflowError):
    """The number does not fit the declared type."""


class ArgumentKeyError(ArgumentError, KeyError, ValueError):
    """An array interface lacks a required key."""

    __str__ = Exception.__str__  # KeyError would quote the message


class ArgumentIndexError(ArgumentError, IndexError):
    """An index is out of range or of the wrong type."""


class ArgumentBufferError(ArgumentError, BufferError):
    """DLPack cannot exchange the array in the requested way."""


class ArgumentNotImplementedError(ArgumentError, NotImplementedError):
    """The argument is valid but not supported."""


class CacheError(Error, RuntimeError):
    """An operation on the cache on disk failed. Compiling never raises this."""


__all__ += ["CacheError"]


class CompileError(Error, RuntimeError):
    """The text could not be compiled or linked, or has no such kernel.

    `str(error)` is plain text. The interpreter prints an uncaught CompileError in colour on a terminal; the environment
    variables NO_COLOR and FORCE_COLOR are respected.

    Attributes
    ----------
    diagnostics : list of Diagnostic
        All messages of NVRTC, including warnings, with places in your own files: severity, number, file, line, column,
        message, notes, source_line.
    log : str
        NVRTC's log, with the lines of your text.
    name_expression : str
        The requested kernel; empty if the text itself has the error.
    options : list of str
        The options that NVRTC was called with.
    architecture : str
        The architecture that the text was compiled for, such as 'sm_90'.
    """

    diagnostics: Sequence[Diagnostic] = ()
    log: str = ""
    name_expression: str = ""
    options: Sequence[str] = ()
    architecture: str = ""

    def __str__(self) -> str:
        text = super().__str__()
        return _terminal.coloured(text) if _terminal.prints_uncaught_errors_in_colour() else text

    def _render_traceback_(self) -> list[str]:
        return list(drawing().traceback(self))


__all__ += ["CompileError"]


class KernelAttributeError(CompileError, AttributeError):
    """A module has no kernel of this name."""

    def __reduce__(self) -> tuple[type[KernelAttributeError], tuple[object, ...], dict[str, object]]:
        return type(self), self.args, {**self.__dict__, "name": self.name}


class FileError(Error, OSError):
    """A file cannot be read, or `keep_sources` cannot write it.

    Attributes
    ----------
    errno : int
        The error number, such as errno.EACCES.
    filename : str
        The path as it was given.
    """

    __str__ = Exception.__str__  # OSError would build its own message

    def __reduce__(self) -> tuple[type[FileError], tuple[object, ...], dict[str, object]]:
        return type(self), self.args, {**self.__dict__, "errno": self.errno, "filename": self.filename}


__all__ += ["FileError"]


class MissingFileError(FileError, FileNotFoundError):
    """There is no such file."""


class LibraryError(Error, OSError):
    """A library or a tool cannot be loaded or used: NVRTC, nvJitLink, the driver, the emulated device, a disassembler.

    Attributes
    ----------
    library : str
        The library that was looked for.
    paths_tried : list of str
        Every path tried, in order.
    loader_message : str
        The dynamic loader's message.
    """

    library: str
    paths_tried: list[str]
    loader_message: str


__all__ += ["LibraryError"]


class CudaError(Error, RuntimeError):
    """A driver call failed.

    Attributes
    ----------
    code : int
        The CUresult value.
    code_name : str
        Its name, such as 'CUDA_ERROR_ILLEGAL_ADDRESS'.
    call : str
        The driver function that failed.
    doing : str
        The operation that the call was part of.
    report : str
        The emulated device's report of the fault; empty on a GPU.
    launch : str
        After a fault that destroyed the context: the launch that caused it (on a GPU the most likely one), and the line
        of code that launched it.
    """

    code: int
    code_name: str
    call: str
    doing: str
    report: str
    launch: str


__all__ += ["CudaError"]


class OutOfMemoryError(CudaError, MemoryError):
    """The device has no memory left for an array, or for a module's variables."""


__all__ += ["OutOfMemoryError"]


class CheckError(Error, RuntimeError):
    """A kernel did something that is always an error, which a check of the emulated device found.

    Raised where the host next waits, while `bascule.emulated.checks` or BASCULE_EMULATED_CHECKS turns checks on. The
    kernel has finished, and the device can still be used.

    Attributes
    ----------
    kind : str
        The check that made the first finding, such as 'init'.
    findings : list of bascule.emulated.Finding
        One for each place in a kernel, with the line, the thread, the access and the report.
    """

    kind: str = ""
    findings: Sequence[Finding] = ()

    def to_json(self) -> str:
        """Return the findings as a JSON array, for other programs."""
        import json

        return json.dumps([finding.to_dict() for finding in self.findings], indent=2)


__all__ += ["CheckError"]


class RaceError(CheckError):
    """Operations on different streams touched the same bytes, and nothing ordered them: a wait is missing.

    Raised where the host next waits, on the emulated device, while `bascule.emulated.checks("races")` or
    BASCULE_EMULATED_CHECKS=races looks for them. `findings` also has what other checks found.

    Attributes
    ----------
    races : list of str
        One report per race: both operations with their streams and lines, the bytes, and the missing wait.
    """

    races: list[str]


__all__ += ["RaceError"]


class EmulatedDeviceWarning(UserWarning):
    """No GPU was found, so kernels run on the emulated device. Issued once per process."""


__all__ += ["EmulatedDeviceWarning"]


class CompileWarning(UserWarning):
    """NVRTC compiled the text with a warning. Issued once per process and text, at the line in your file.

    Attributes
    ----------
    diagnostic : Diagnostic
    """

    diagnostic: Diagnostic


__all__ += ["CompileWarning"]


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the innermost line outside of this package and of IPython, which runs a cell's magic."""
    package = os.path.join(os.path.dirname(__file__), "")

    def is_users(frame: FrameType) -> bool:
        return not (
            frame.f_code.co_filename.startswith((package, "<frozen importlib"))
            or str(frame.f_globals.get("__name__")).startswith("IPython.")
        )

    frame = sys._getframe().f_back
    while frame is not None and frame.f_back is not None and not is_users(frame):
        frame = frame.f_back
    if frame is None:  # called by C code alone
        warnings.warn(message, category, stacklevel=1)
        return
    variables = frame.f_globals
    registry = variables.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        message, category, frame.f_code.co_filename, frame.f_lineno, variables.get("__name__"), registry
    )


def issue_warnings(diagnostics: Sequence[Diagnostic]) -> None:
    """Issue the warnings of a compile. The extension module calls this after it has stored the image."""
    for diagnostic in diagnostics:
        text = diagnostic.message
        if diagnostic.number:
            digits = diagnostic.number.removesuffix("-D")
            text += f' [{diagnostic.number}; extra=["-diag-suppress={digits}"] silences it]'
        line = diagnostic.line or 1
        if diagnostic.source_line and not linecache.getline(diagnostic.file, line):
            text += f"\n  {diagnostic.source_line.strip()}"  # Python cannot find the line when it prints the warning
        warning = CompileWarning(text)
        warning.diagnostic = diagnostic
        warnings.warn_explicit(warning, CompileWarning, diagnostic.file, line)


class UnorderedProducerWarning(UserWarning):
    """Arrays of this type do not name a stream, and their library's stream is not known. Issued once per type."""


__all__ += ["UnorderedProducerWarning"]


class CacheWarning(UserWarning):
    """Compiled programs cannot be kept on disk and are compiled again in every process. Issued once per process."""


__all__ += ["CacheWarning"]


# All classes, under the names that tracebacks and pickles use.
NAMED_IN_TRACEBACKS = {
    name for name, value in globals().items() if isinstance(value, type) and issubclass(value, Error | Warning)
}
for _name in NAMED_IN_TRACEBACKS:
    globals()[_name].__module__ = "bascule"
