"""`bascule`, also `python -m bascule`: the command line."""
# PYTHON_ARGCOMPLETE_OK

import io
import os
import signal
import sys
from collections.abc import Sequence

import bascule
from bascule import _terminal
from bascule._command import parser as _parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. `arguments` defaults to those of the process."""
    _replace_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names and paths may have any character
    try:
        try:
            return _run(arguments)
        finally:  # argparse prints help and usage errors and then raises SystemExit
            sys.stdout.flush()
            sys.stderr.flush()
    except BrokenPipeError:
        _discard_unwritten()
        return 128 + signal.SIGPIPE
    except OSError as error:  # such as a full disk; _run has reported other errors
        _discard_unwritten()
        return _fail(error, 1)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _replace_closed_streams() -> None:
    """Open /dev/null for a stdout or stderr that was closed at the start (`>&-`), which Python represents by None."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _discard_unwritten() -> None:
    """Redirect a stream that cannot be written to /dev/null, so that the interpreter's flush at exit does not fail."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: Sequence[str] | None) -> int:
    parser = _parser.make_parser()
    if "_ARGCOMPLETE" in os.environ:
        _parser.complete(parser)
    try:
        chosen = _parser.parse(parser, arguments)
        _parser.show_warnings_briefly()
        return int(chosen.run(chosen))
    except BrokenPipeError:
        raise
    except _parser.UsageError as error:
        return _fail(error, 2)
    except (bascule.Error, OSError, MemoryError) as error:
        return _fail(error, 1)


def _fail(error: BaseException, status: int) -> int:
    try:
        sys.stdout.flush()  # printed output comes before the error
    except OSError:
        _discard_unwritten()
    # For a fault, print only the emulated device's report: there was one launch, and the process ends.
    text = f"error: {getattr(error, 'report', '') or _message(error)}"
    if isinstance(error, bascule.CompileError) and "include_paths" in text:
        text += "\nOn the command line include_paths is -I DIRECTORY."
    print(_terminal.coloured(text) if _terminal.shows_colour() else text, file=sys.stderr)
    return status


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and not isinstance(error, bascule.Error) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


if __name__ == "__main__":
    sys.exit(main())
