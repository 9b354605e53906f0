"""`%load_ext bascule`: cells of CUDA C++ in IPython and Jupyter."""

import argparse
import keyword
import re
import shlex
import sys
import time

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import MagicArgumentParser, argument, magic_arguments

from bascule import _bascule, _errors, _options, _places, _terminal


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add `%%cuda` to IPython or a notebook. `%load_ext bascule` calls this.

    shell : the running InteractiveShell, which keeps the magic and the texts of headers until it ends.

    >>> %load_ext bascule
    """
    shell.register_magics(CudaMagics(shell))


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove `%%cuda`. Kernels of cells stay valid. `%unload_ext bascule` calls this."""
    shell.magics_manager.magics["cell"].pop("cuda", None)


@magics_class
class CudaMagics(Magics):
    """The `%%cuda` magic, and the headers that cells have declared."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.headers: dict[str, str] = {}

    @magic_arguments("%cuda")  # IPython writes one % before it
    @argument("--std", metavar="STANDARD", help="the C++ standard: c++17, c++20 ...")
    @argument("-D", dest="define", metavar="NAME=VALUE", action="append", help="define a macro; may be repeated")
    @argument(
        "-I", dest="include", metavar="DIR", action="append", help="search DIR for included files; may be repeated"
    )
    @argument("--arch", metavar="ARCH", help="compile for this architecture, such as sm_90, not for the device")
    @argument("--debug", action="store_true", help="check every index of a view, and keep debug information")
    @argument(
        "--option",
        metavar="FLAG",
        action="append",
        help="pass FLAG to NVRTC, such as --option=-use_fast_math; may be repeated",
    )
    @argument(
        "--checks",
        metavar="LIST",
        help="turn these checks of the emulated device on for all kernels and the others off: all, memory (none of "
        "the optional ones), or names such as init,shared_races",
    )
    @argument("--name", metavar="MODULE", help="bind the module to this name")
    @argument(
        "--header",
        metavar="NAME",
        help='compile nothing: the cell is the header that other cells #include "NAME"',
    )
    @cell_magic
    def cuda(self, line: str, cell: str) -> _bascule.Module | None:
        """Compile the cell as CUDA C++ and put its kernels into the namespace.

        An unchanged cell is not compiled again, in this notebook or another one, even after a restart of the kernel.
        A changed cell makes new kernels; kernels of the old cell stay valid. The cell's value is the module, unless
        --name binds it.

        Example::

            %%cuda --std c++20 -D FACTOR=2
            __global__ void scale(float* p) { p[threadIdx.x] *= FACTOR; }
        """
        given = _parse(self.cuda.parser, line)
        if given.header is not None:
            self._declare_header(given, line, cell)
            return None
        self._turn_on_checks(given)
        options = self._options(given, cell)
        start = time.perf_counter()
        try:
            module = _bascule._make_module(cell, _name_of_cell(), self._first_line(cell), "", options, ())
            origin = module._compile()
        except (_errors.CompileError, KeyboardInterrupt) as error:
            _shorten_traceback(error)
            raise
        seconds = time.perf_counter() - start
        self._bind(module, given.name)
        print(_summary(module, origin, seconds))
        return None if given.name else module

    def _declare_header(self, given: argparse.Namespace, line: str, cell: str) -> None:
        name = given.header
        others = [other for other, value in vars(given).items() if value and other != "header"]
        if others:
            raise UsageError(f"--header {name} takes no other options: it compiles nothing. Remove them from {line!r}.")
        if not name or name.startswith("/") or any(character in name for character in '"<>\\\n'):
            raise UsageError(f"--header takes a relative name without quotes, like shapes.cuh; got {name!r}.")
        # An empty line replaces the magic's own line, so that errors name lines of the cell.
        self.headers[name] = "\n" * (self._first_line(cell) - 1) + cell
        print(f'{name}: cells find it by #include "{name}"')

    def _turn_on_checks(self, given: argparse.Namespace) -> None:
        if given.checks is None:
            return
        try:
            checks = _bascule._find_checks(given.checks)
        except _errors.ArgumentError as error:
            raise UsageError(f"--checks: {error}") from None
        _bascule._finish_devices()
        _bascule._change_checks(checks, 0xFFFFFFFF ^ checks)

    def _options(self, given: argparse.Namespace, cell: str) -> _bascule.CompileOptions:
        flags = list(given.option or [])
        flags += [f"--std={given.std}"] if given.std is not None else []
        flags += [f"--gpu-architecture={given.arch}"] if given.arch is not None else []
        flags += ["-G"] if given.debug else []
        for define in given.define or []:
            name = define.partition("=")[0]
            if not name.isidentifier():
                raise UsageError(f"-D takes NAME or NAME=VALUE, got {define!r}.")
            flags.append(f"-D{define}")
        flags += [f"-I{directory}" for directory in given.include or []]
        fields = _options.fields_of(flags)
        headers = self._headers_for(cell + "\n" + "\n".join(given.define or []))
        try:
            return _bascule.CompileOptions(**fields, headers=headers)
        except _errors.ArgumentError as error:
            raise UsageError(str(error)) from None

    def _headers_for(self, text: str) -> dict[str, str]:
        """Return the headers that the text may include. A change of another header does not recompile the cell."""
        reached: dict[str, str] = {}
        texts = [text]
        while texts:
            text = texts.pop()
            any_name = _INCLUDES_A_MACRO.search(text) is not None
            for name in self.headers:
                if name not in reached and (any_name or name in text):
                    reached[name] = self.headers[name]
                    texts.append(self.headers[name])
        return dict(sorted(reached.items()))

    def _first_line(self, cell: str) -> int:
        """Return the line of the cell, counted from 1, where the text begins: after the magic's own line."""
        raw = str(self.shell.history_manager.input_hist_raw[-1]) if self.shell.history_manager else ""
        at = raw.rfind(cell.rstrip("\n")) if cell.strip() else -1
        return raw.count("\n", 0, at) + 1 if at > 0 else 2

    def _bind(self, module: _bascule.Module, name: str | None) -> None:
        names: dict[str, object] = {each: module[each] for each in module.kernels if each.isidentifier()}
        if name:
            names[name] = module
        self.shell.push(names)


_INCLUDES_A_MACRO = re.compile(r'^[ \t]*#[ \t]*include[ \t]+[^"<\s]', re.MULTILINE)


def _parse(parser: MagicArgumentParser, line: str) -> argparse.Namespace:
    try:
        given = parser.parse_args(shlex.split(line))
    except (UsageError, ValueError) as error:
        raise UsageError(f"%%cuda {line}: {error}. %%cuda? lists the options.") from None
    if given.name is not None and (not given.name.isidentifier() or keyword.iskeyword(given.name)):
        raise UsageError(f"--name takes a name that Python can bind, like blur; got {given.name!r}.")
    return given


def _name_of_cell() -> str:
    """Return the running cell's name, such as In[3], as in tracebacks and fault reports."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        name = _places.display(frame.f_code.co_filename)
        if name != frame.f_code.co_filename:
            return name
    return "<cell>"


def _summary(module: _bascule.Module, origin: str | None, seconds: float) -> str:
    names = ", ".join(module.kernels)
    if origin is None:
        return f"{names}: compiled when a launch or instantiate() gives the template arguments"
    return f"{names}: compiled in {seconds:.2f} s" if origin == "compiled" else f"{names}: cached"


def _shorten_traceback(error: _errors.CompileError | KeyboardInterrupt) -> None:
    """Make the traceback show only the message, in colour. The frames belong to the magic and not to the cell."""
    text = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])
    error._render_traceback_ = lambda: _terminal.coloured(text).split("\n")  # type: ignore[method-assign, union-attr]
