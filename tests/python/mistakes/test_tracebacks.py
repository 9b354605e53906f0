"""Errors and warnings point at the user's code, not at the package's."""

from __future__ import annotations

import os
import traceback
import warnings

import pytest

import bascule

PACKAGE = os.path.dirname(bascule.__file__)
TEXT = "__global__ void k(int n) {}"


def files_of(error: BaseException) -> list[str]:
    return [entry.filename for entry in traceback.extract_tb(error.__traceback__)]


@bascule.kernel(TEXT)
def k(n):
    return 1 // n


@bascule.kernel("__global__ void broken( {}")
def broken(n):
    return n


@pytest.mark.parametrize(
    "call",
    [
        lambda: bascule.compile("__global__ void k( { }"),
        lambda: bascule.compile(3),
        lambda: bascule.compile(file="no such file.cu"),
        lambda: k(0, 1),
        lambda: k(),
        lambda: k["grid", 1],
        lambda: broken(1),
        lambda: bascule.benchmark(None),
        lambda: bascule.register_producer(3, stream_of=None),
    ],
)
def test_the_traceback_ends_in_the_users_code(call, monkeypatch):
    with pytest.raises(Exception) as caught:
        call()
    assert files_of(caught.value) == [__file__, __file__]
    monkeypatch.setenv("BASCULE_FULL_TRACEBACK", "1")
    with pytest.raises(type(caught.value)) as caught:
        call()
    assert any(file.startswith(PACKAGE) for file in files_of(caught.value))


def test_frames_of_a_launch_rule_stay():
    with pytest.raises(ZeroDivisionError) as caught:
        k(0)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.name, last.line) == (__file__, "k", "return 1 // n")


def test_public_functions_look_like_functions():
    import inspect

    assert list(inspect.signature(bascule.compile).parameters)[:3] == ["source", "options", "file"]
    assert inspect.isroutine(bascule.compile)
    assert bascule.compile.__name__ == "compile"
    assert "NVRTC" in bascule.compile.__doc__
    assert inspect.getsourcefile(inspect.unwrap(bascule.compile)).endswith("_compile.py")


def test_a_warning_points_at_the_line_that_launched():
    class Foreign:
        def __init__(self):
            self.array = bascule.device_array(4, "f4")

        @property
        def __cuda_array_interface__(self):
            interface = dict(self.array.__cuda_array_interface__, version=2)
            del interface["stream"]
            return interface

    kernel = bascule.compile("__global__ void touch(float* x) { x[threadIdx.x] = 1; }").touch
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel[1, 4](Foreign())
        with pytest.raises(bascule.ArgumentError):
            kernel.forall("much")
    warned = [warning for warning in caught if warning.category is bascule.UnorderedProducerWarning]
    assert [warning.filename for warning in warned] == [__file__]
