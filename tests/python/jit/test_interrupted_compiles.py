"""Ctrl-C while NVRTC compiles: the wait ends at once, the compile continues, and its image is in the cache."""

from __future__ import annotations

import itertools
import os
import pty
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from child_process import run_python

import bascule
from bascule import _progress

numbers = itertools.count()


def new_text() -> str:
    """A kernel that no test has compiled."""
    return f"__global__ void number_{os.getpid()}_{next(numbers)}(int* p) {{ *p = 1; }}"


class Hold:
    """Makes NVRTC wait before it begins, until the test calls this object."""

    def __init__(self) -> None:
        bascule.compile(new_text())  # loads NVRTC
        self.holds = True
        bascule._bascule._hold_compiles(True)

    def __call__(self) -> None:
        self.holds = False
        bascule._bascule._hold_compiles(False)


@pytest.fixture
def held() -> Iterator[Hold]:
    hold = Hold()
    yield hold
    hold()


@pytest.fixture
def ctrl_c(held: Hold, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sends Ctrl-C as soon as a held compile is shown, which is when the main thread has waited for half a second.

    Other compiles may take as long on a busy machine; there KeyboardInterrupt would be unexpected.
    """

    def show(what: str, seconds: float) -> None:
        if held.holds:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(_progress, "show", show)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_wait_ends_and_the_image_is_kept(held: Hold, ctrl_c: None) -> None:
    text = new_text()
    before = bascule.cache.stats()
    with pytest.raises(KeyboardInterrupt) as caught:
        bascule.compile(text)
    assert "goes on; its image will be in the cache" in "".join(caught.value.__notes__)
    held()
    (name,) = bascule.compile(text).kernels  # waits for the compile that continues
    assert name.startswith("number_")
    after = bascule.cache.stats()
    assert (after.nvrtc_calls - before.nvrtc_calls, after.compiled - before.compiled) == (1, 1)


def test_the_same_text_can_be_interrupted_again(held: Hold, ctrl_c: None) -> None:
    text = new_text()
    before = bascule.cache.stats().nvrtc_calls
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            bascule.compile(text)
    held()
    bascule.compile(text)
    assert bascule.cache.stats().nvrtc_calls - before == 1


def test_a_launch_that_compiles_can_be_interrupted_and_launched_again(held: Hold, ctrl_c: None) -> None:
    module = bascule.compile("template <class T> __global__ void put(T* p) { *p = 7; } // " + new_text())
    x = bascule.to_device(np.zeros(1, "f4"))
    with pytest.raises(KeyboardInterrupt):
        module.put[1, 1](x)
    held()
    module.put[1, 1](x)
    assert x.item(0) == 7


@pytest.mark.parametrize("why", ["disabled", "unknown headers"])
def test_a_compile_that_keeps_nothing_can_be_interrupted(held: Hold, ctrl_c: None, why: str) -> None:
    text = new_text()
    if why == "unknown headers":
        text = "#define NAME <cuda_fp16.h>\n#include NAME\nconst char* when = __TIME__;\n" + text
        with pytest.raises(KeyboardInterrupt):
            bascule.compile(text)
        return
    with bascule.cache.disabled(), pytest.raises(KeyboardInterrupt):
        bascule.compile(text)


def test_an_error_of_the_text_is_raised_after_an_interrupted_wait(held: Hold, ctrl_c: None) -> None:
    text = new_text().replace("*p = 1", "*p = missing")
    with pytest.raises(KeyboardInterrupt):
        bascule.compile(text)
    held()
    with pytest.raises(bascule.CompileError, match="missing"):
        bascule.compile(text)


def test_another_thread_that_waits_for_the_same_text_gets_it(held: Hold, ctrl_c: None) -> None:
    text = new_text()
    with pytest.raises(KeyboardInterrupt):
        bascule.compile(text)
    modules: list[bascule.Module] = []
    thread = threading.Thread(target=lambda: modules.append(bascule.compile(text)))
    thread.start()
    held()
    thread.join(60)
    assert modules
    assert modules[0].kernels


def test_a_signal_whose_handler_raises_nothing_lets_the_wait_go_on(held: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def handler(number: int, frame: object) -> None:
        seen.append(number)
        held()

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        monkeypatch.setattr(_progress, "show", lambda what, seconds: os.kill(os.getpid(), signal.SIGUSR1))
        bascule.compile(new_text())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen


def test_what_is_compiled_is_named(held: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def show(what: str, seconds: float) -> None:
        assert seconds >= 0.5
        shown.append(what)
        held()

    monkeypatch.setattr(_progress, "show", show)
    module = bascule.compile("template <class T> __global__ void put(T* p) {} // " + new_text())
    module.put.instantiate("float").prepare()
    assert shown[0].startswith("put<float> of <string at ")


def test_a_display_that_fails_costs_no_compile(held: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    def show(what: str, seconds: float) -> None:
        held()
        raise RuntimeError("no display")

    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda details: ignored.append(details.exc_value))
    monkeypatch.setattr(_progress, "show", show)
    assert bascule.compile(new_text()).kernels
    assert "no display" in str(ignored[0])


# --- Whole programs ---------------------------------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys, threading
import bascule
from bascule import _progress
signal.signal(signal.SIGINT, signal.default_int_handler)
text = "__global__ void scale(float* p) { *p *= 2; }"
def hold():
    bascule._bascule._hold_compiles(True)
def release():
    bascule._bascule._hold_compiles(False)
"""


def run(program: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return run_python(
        "-c", PROGRAM + textwrap.dedent(program), BASCULE_DEVICE="emulated", BASCULE_CACHE_DIR=str(directory)
    )


def test_the_image_of_an_interrupted_compile_is_on_disk_after_the_program(tmp_path: Path) -> None:
    first = run(
        """
        def show(what, seconds):  # the signal comes while the main thread waits, most probably
            threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
        _progress.show = show
        hold()
        try:
            bascule.compile(text)
        except KeyboardInterrupt:
            print("interrupted")
        release()  # the end of the program waits for NVRTC, and for the file
        """,
        tmp_path,
    )
    assert (first.returncode, first.stdout, first.stderr) == (0, "interrupted\n", "")
    second = run("print(bascule.compile(text).scale.origin, bascule.cache.stats().nvrtc_calls)", tmp_path)
    assert second.stdout == "disk 0\n", second.stderr


def on_a_terminal(program: str, directory: Path, **environment: str) -> str:
    """The output of a program on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM + textwrap.dedent(program)],
        env={
            **os.environ,
            "BASCULE_DEVICE": "emulated",
            "BASCULE_CACHE_DIR": str(directory),
            "TERM": "xterm",
            **environment,
        },
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    output = b""
    try:
        while part := os.read(ours, 4096):
            output += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0, output.decode()
    watchdog.cancel()
    return output.decode()


SHOWN_ONCE = """
show = _progress.show
def show_once(what, seconds):
    show(what, seconds)
    release()
_progress.show = show_once
hold()
bascule.compile(text)
print("done")
"""


def test_a_terminal_shows_a_long_compile_and_then_no_trace_of_it(tmp_path: Path) -> None:
    pytest.importorskip("rich", reason="the display needs rich")
    output = on_a_terminal(SHOWN_ONCE, tmp_path)
    assert "compiling" in output
    assert "<string>" in output
    end = output[output.rindex("compiling") :]
    assert "\x1b[2K" in end  # the line is erased
    assert "\x1b[?25h" in end  # the cursor is shown again
    assert end.endswith("done\r\n")


def test_a_terminal_without_rich_or_without_its_controls_shows_nothing(tmp_path: Path) -> None:
    without_rich = "import importlib.util\nimportlib.util.find_spec = lambda name: None\n" + SHOWN_ONCE
    assert on_a_terminal(without_rich, tmp_path / "a") == "done\r\n"
    assert on_a_terminal(SHOWN_ONCE, tmp_path / "b", TERM="dumb") == "done\r\n"


def test_a_file_gets_no_progress(tmp_path: Path) -> None:
    result = run(SHOWN_ONCE, tmp_path)
    assert (result.stdout, result.stderr) == ("done\n", "")
