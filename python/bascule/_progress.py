"""Shows what NVRTC compiles while the main thread waits for it, in a line of rich on a terminal or below a cell."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text


class _Terminal:
    """A line on the terminal. Only `update` draws it, not a thread; it is erased at the end."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(
            console=Console(file=sys.stderr),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def update(self, what: str, seconds: float) -> None:
        self._live.update(_line(what, seconds), refresh=True)

    def close(self) -> None:
        self._live.stop()


class _Cell:
    """An output of the cell, emptied at the end. Does not use rich's Live, which needs ipywidgets."""

    _handle: Any = None

    def update(self, what: str, seconds: float) -> None:
        from IPython.display import display

        if self._handle is None:
            self._handle = display(_line(what, seconds), display_id=True)
        else:
            self._handle.update(_line(what, seconds))

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)


_shown: _Terminal | _Cell | None = None
_is_looked_for = False  # set at the first call for a compile, so that `_place` is called once even if it fails


def show(what: str, seconds: float) -> None:
    """Show that `what` has been compiling for `seconds`. Called several times a second, in the main thread."""
    global _shown, _is_looked_for
    if not _is_looked_for:
        _is_looked_for = True
        _shown = _place()
    if _shown is not None:
        _shown.update(what, seconds)


def hide() -> None:
    """Remove the line. Called when the compile has ended or the wait for it was interrupted."""
    global _shown, _is_looked_for
    shown, _shown, _is_looked_for = _shown, None, False
    if shown is not None:
        shown.close()


def _place() -> _Terminal | _Cell | None:
    """Return where to show the line; None without rich, or if stderr is neither a notebook's nor a capable terminal."""
    if importlib.util.find_spec("rich") is None:
        return None
    if type(sys.stdout).__module__ == "ipykernel.iostream":
        return _Cell()
    if os.getenv("TERM") != "dumb" and sys.stderr is not None and sys.stderr.isatty():
        return _Terminal()
    return None


def _line(what: str, seconds: float) -> Text:
    from rich.text import Text

    return Text.assemble(("compiling ", "bold"), f"{what}  {seconds:.1f} s")
