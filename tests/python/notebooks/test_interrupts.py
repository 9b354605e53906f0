"""The stop button ends a compile and an endless kernel; the next cell works. Long compiles are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .sessions import Session

HOLD, RELEASE = "bascule._bascule._hold_compiles(True)", "bascule._bascule._hold_compiles(False)"

# With this, a compile that is held continues as soon as its display is shown.
SHOW_ONCE = """
from bascule import _progress
show = _progress.show
def show_once(what, seconds):
    show(what, seconds)
    bascule._bascule._hold_compiles(False)
    _progress.show = show
_progress.show = show_once
"""


@pytest.fixture(autouse=True)
def compiles_go_on_afterwards(notebook: Session) -> Any:
    yield
    notebook.run(RELEASE)


def when_shown(act: Callable[[], None]) -> Callable[[str, dict[str, Any]], None]:
    """Returns a callback that calls `act` once, at the first display, which is the compile's."""
    done: list[bool] = []

    def on_message(kind: str, content: dict[str, Any]) -> None:
        if kind == "display_data" and not done:
            done.append(True)
            act()

    return on_message


def cell_of(number: int) -> str:
    return f"%%cuda\n__global__ void number(int* p) {{ *p = {number}; }}"


def number(notebook: Session) -> str:
    return notebook.evaluate("x = bascule.to_device(np.zeros(1, 'i4')); number[1, 1](x); int(x[0])")


def calls(notebook: Session) -> int:
    return int(notebook.evaluate("bascule.cache.stats().nvrtc_calls"))


def test_a_compile_is_interrupted_and_its_image_is_kept(notebook: Session) -> None:
    notebook.run(cell_of(0))  # loads NVRTC
    before = calls(notebook)
    notebook.run(HOLD)
    cell = notebook.run(cell_of(1), on_message=when_shown(notebook.interrupt))
    assert cell.error_name == "KeyboardInterrupt"
    assert "goes on; its image will be in the cache" in cell.error
    assert "File " not in cell.error  # no frame of the magic
    assert cell.displays[-1] == ""  # the display was removed
    notebook.run(RELEASE)
    notebook.run(cell_of(1))  # waits for the compile that continues
    assert number(notebook) == "1"
    assert calls(notebook) - before == 1


def test_other_cells_run_while_the_interrupted_compile_goes_on(notebook: Session) -> None:
    notebook.run(cell_of(2))
    notebook.run(HOLD)
    notebook.run(cell_of(3), on_message=when_shown(notebook.interrupt))
    assert notebook.run(cell_of(2)).text == "number: cached\n"
    assert number(notebook) == "2"


def test_an_endless_kernel_is_interrupted_and_the_next_cell_works(notebook: Session) -> None:
    notebook.run(
        '%%cuda\n__global__ void endless(volatile int* p) {\n    printf("running\\n");\n    while (*p == 0) {}\n}'
    )

    def stop(kind: str, content: dict[str, Any]) -> None:
        if kind == "stream" and "running" in content["text"]:
            notebook.interrupt()

    cell = notebook.run("endless[1, 1](bascule.to_device(np.zeros(1, 'i4')))", on_message=stop)
    assert cell.text == "running\n"  # printed while the kernel ran
    assert cell.error_name == "KeyboardInterrupt"
    assert "kernel 'endless'" in cell.error
    notebook.run(cell_of(4))
    assert number(notebook) == "4"


def test_a_long_compile_is_shown_with_its_time_and_then_no_more(notebook: Session) -> None:
    notebook.run(SHOW_ONCE + HOLD)
    cell = notebook.run(cell_of(5))
    assert cell.status == "ok", cell.error
    first, *_, last = cell.displays
    assert first.startswith("compiling In[")
    assert first.rstrip().endswith(" s")
    assert last == ""


def test_a_fast_compile_and_a_cached_one_show_nothing(notebook: Session) -> None:
    assert notebook.run(cell_of(5)).displays == []
    assert notebook.run(cell_of(5)).displays == []
