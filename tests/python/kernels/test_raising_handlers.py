"""A signal handler that raises may run in any Python code of the main thread, also in code that Bascule calls itself.
The program gets the exception wherever that was."""

from __future__ import annotations

import itertools
import linecache
import re
import signal
import sys
import textwrap
import types
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from child_process import run_python

import bascule
from bascule import _places

SOURCE = "__global__ void increment(int* p) { p[threadIdx.x] += 1; }"


class TooLate(Exception):  # noqa: N818 - named as in a program
    """Handlers of time limits often raise an Exception of their own."""


@pytest.fixture(params=[KeyboardInterrupt, SystemExit, TooLate])
def kind(request: pytest.FixtureRequest) -> Iterator[type[BaseException]]:
    """The class of what the handler of SIGUSR1 raises."""
    raised: type[BaseException] = request.param

    def handler(number: int, frame: object) -> None:
        raise raised

    before = signal.signal(signal.SIGUSR1, handler)
    yield raised
    signal.signal(signal.SIGUSR1, before)


def signals_once(function: Callable[..., object]) -> Callable[..., object]:
    """The function, but its first call gets the signal."""
    calls = itertools.count()

    def first(*arguments: object) -> object:
        if next(calls) == 0:
            signal.raise_signal(signal.SIGUSR1)
        return function(*arguments)

    return first


names = itertools.count()


def run(statement: str, **variables: object) -> None:
    """Runs the statement on a line that no launch has been made from, and gives Python time to raise."""
    code = compile(f"{statement}\nfor _ in range(1000): pass", f"<line {next(names)}>", "exec")
    exec(code, variables)


@pytest.mark.parametrize(
    "statement", ["k[1, 32](x)", "k.forall(32)(x)", "k.launch((1,), (32,), (x,))", "x.fill(3)", "bascule.synchronize()"]
)
def test_while_the_line_of_an_operation_is_looked_up(
    statement: str, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    k = bascule.compile(SOURCE).increment
    x = bascule.to_device(np.zeros(32, "i4"))
    k[1, 32](x)
    bascule.synchronize()
    asked = []
    signals = signals_once(lambda: None)

    def getline(*place: object) -> str:
        asked.append(place)
        signals()
        return ""

    monkeypatch.setattr(linecache, "getline", getline)
    try:
        run(statement, k=k, x=x, bascule=bascule)
    except kind:
        assert asked
    else:
        assert not asked
        assert not re.match(r"k\[|k\.forall", statement), "a launch has a line also without the search for races"
    monkeypatch.undo()
    bascule.synchronize()
    before = x.copy_to_host()
    k[1, 32](x)
    np.testing.assert_array_equal(x.copy_to_host(), before + 1)


def test_while_the_text_between_brackets_is_read(kind: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    k = bascule.compile(SOURCE).increment
    monkeypatch.setattr(_places, "holds_one_tuple", signals_once(lambda *place: False))
    with pytest.raises(kind):
        run("k[1, 32]", k=k)


def test_while_the_name_of_a_notebooks_cell_is_asked_for(
    kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    k = bascule.compile(SOURCE).increment
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setattr(_places, "display", signals_once(lambda file: "In[1]"))
    with pytest.raises(kind):
        run("k[1, 32]", k=k)


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_a_line_that_cannot_be_read_for_lack_of_memory_or_stack_fails_no_launch(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def getline(*place: object) -> str:
        raise error

    k = bascule.compile(SOURCE).increment
    x = bascule.to_device(np.zeros(32, "i4"))
    monkeypatch.setattr(linecache, "getline", getline)
    run("k[1, 32](x)", k=k, x=x)
    assert x.copy_to_host().tolist() == [1] * 32


def test_while_a_stream_calls_a_function(kind: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the function itself raises goes to sys.unraisablehook, so an Exception of a handler goes there too."""
    reported: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reported.append(report.exc_value))
    got: list[BaseException] = []
    stream = bascule.stream()
    try:
        stream.launch_host_function(signals_once(lambda: None))
        run("stream.synchronize()", stream=stream)
    except BaseException as error:
        got.append(error)
    assert [type(error) for error in [*got, *reported]] == [kind]
    assert issubclass(kind, Exception) or got


class Odd:
    """An object whose attribute `name` gets the signal when it is read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> object:
        if name == self.name:
            signal.raise_signal(signal.SIGUSR1)
        raise AttributeError(name)

    def __len__(self) -> int:
        if self.name == "len":
            signal.raise_signal(signal.SIGUSR1)
        raise TypeError("no length")

    def __getitem__(self, index: int) -> object:
        raise TypeError("no elements")

    def __int__(self) -> int:
        signal.raise_signal(signal.SIGUSR1)
        return 0


class Resource:
    """An allocator in RMM's form that returns the object."""

    def __init__(self, given: object) -> None:
        self.given = given

    def allocate(self, size: int, stream: object) -> object:
        return self.given

    def deallocate(self, *arguments: object) -> None: ...


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("a stream", "__cuda_stream__"),
        ("a stream", "ptr"),
        ("an index", "dtype"),
        ("an argument", "__array_interface__"),
        ("a grid", "len"),
        ("an allocator", "malloc"),
        ("an address", "value"),
        ("an address", "int"),
    ],
)
@pytest.mark.parametrize("kind", [KeyboardInterrupt], indirect=True)
def test_while_an_object_of_the_program_is_asked_what_it_is(what: str, name: str, kind: type[BaseException]) -> None:
    k = bascule.compile(SOURCE).increment
    x = bascule.to_device(np.zeros(32, "i4"))
    odd = Odd(name)
    use: dict[str, Callable[[], object]] = {
        "a stream": lambda: bascule.external_stream(odd),
        "an index": lambda: x[odd],
        "an argument": lambda: k[1, 32](odd),
        "a grid": lambda: k[odd, 32],
        "an allocator": lambda: bascule.set_allocator(odd),
        "an address": lambda: empty_of(Resource(odd)),
    }
    with pytest.raises(kind):
        use[what]()


def empty_of(resource: object) -> object:
    before = bascule.get_allocator()
    bascule.set_allocator(resource)
    try:
        return bascule.device_array(4, "f4")
    finally:
        bascule.set_allocator(before)


def test_while_a_notebook_prints_what_a_kernel_has_printed() -> None:
    ended = run_python(
        "-c",
        textwrap.dedent(
            """
            import signal, sys
            signal.signal(signal.SIGINT, signal.default_int_handler)
            class Out:
                __module__ = "ipykernel.iostream"
                said = ""
                def write(self, text):
                    if not self.said and "from the kernel" in text:
                        self.said = text
                        signal.raise_signal(signal.SIGINT)
                def flush(self): ...
            sys.stdout = Out()
            import bascule
            module = bascule.compile('__global__ void k() { printf("from the kernel\\\\n"); }')
            try:
                module.k[1, 1]()
                bascule.synchronize()
                for _ in range(1000): pass
            except KeyboardInterrupt:
                sys.exit(7)
            """
        ),
        BASCULE_DEVICE="emulated",
    )
    assert (ended.returncode, ended.stderr) == (7, "")
