"""Calls with invalid arguments: the message names the function and the argument, and no C++ types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import bascule

TEXT = """
__global__ void scale(float* p, float f, int n) { int i = threadIdx.x; if (i < n) p[i] *= f; }
__constant__ float table[4];
"""

NOT_FOR_USERS = re.compile(
    r"incompatible (function|constructor)|_bascule|pybind11|Invoked with|Unable to cast|C\+\+ type|std::|_make_|arg0"
)


class Odd:
    pass


WRONG: list[tuple[Any, ...]] = [
    (),
    (Odd(),),
    ("no such",),
    (1.5,),
    (None,),
    (Odd(), Odd()),
    (Odd(), Odd(), Odd()),
    ("a", Odd()),
    (b"x",),
    ([Odd()],),
    (-1,),
    (2**70,),
    ({},),
    (1, 2, 3, 4, 5, 6, 7, 8, 9),
]

# These are valid without arguments.
LEFT_OUT = {"synchronize", "require_gpu", "clear", "reset"}


def objects() -> dict[str, Any]:
    module = bascule.compile(TEXT)
    x = bascule.to_device(np.arange(8, dtype="f4"))
    launcher = module.scale[1, 32]
    return {
        "bascule": bascule,
        "Module": module,
        "Kernel": module.scale,
        "Launcher": launcher,
        "BoundLaunch": launcher.bind(x, 2, 8),
        "DeviceArray": x,
        "Stream": bascule.stream(),
        "Event": bascule.event(),
        "Graph": bascule.Graph(),
        "Device": bascule.current_device(),
        "CompileOptions": bascule.CompileOptions(),
        "LaunchConfig": bascule.LaunchConfig(1, 1),
        "PointerAttributes": bascule.pointer_attributes(x.__cuda_array_interface__["data"][0]),
    }


def functions(owner: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    special = ("__getitem__", "__setitem__", "__call__", "__contains__", "__dlpack__", "__setattr__")
    names = getattr(owner, "__all__", None) or [name for name in dir(owner) if not name.startswith("_")]
    for name in [*names, *(name for name in special if hasattr(owner, name))]:
        if name not in LEFT_OUT and callable(value := getattr(owner, name)):
            yield name, value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(objects()))
def test_no_public_function_shows_a_cpp_signature_for_wrong_arguments(name: str):
    owner = objects()[name]
    called = errors = 0
    for function_name, function in functions(owner):
        for arguments in WRONG:
            for named in ({}, {"no_such_keyword": 1}):
                called += 1
                try:
                    function(*arguments, **named)
                except Exception as error:
                    errors += 1
                    text = f"{type(error).__name__}: {error}"
                    assert not NOT_FOR_USERS.search(text), f"{name}.{function_name}{arguments}{named}: {text}"
    assert errors > called / 4


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda x, s: s.wait(), ["Stream.wait() lacks the argument 'event'", "Stream.wait(event)"]),
        (lambda x, s: s.wait(1.5), ["needs a bascule.Event for 'event'", "got 1.5 (float)"]),
        (lambda x, s: s.wait(x), ["got a DeviceArray"]),
        (lambda x, s: x.copy(oder="F"), ["DeviceArray.copy() has no parameter 'oder'", "did you mean 'order'"]),
        (lambda x, s: x.copy("C", s), ["takes 1 argument by position, got 2", "DeviceArray.copy(order=..., *, stream"]),
        (lambda x, s: x.copy(5), ["needs a str for 'order', got 5 (int)"]),
        (lambda x, s: bascule.LaunchConfig(), ["bascule.LaunchConfig() lacks the argument 'grid'"]),
        (lambda x, s: bascule.LaunchConfig(1, 1, grid=2), ["'grid' twice"]),
        (lambda x, s: bascule.Module(), ["bascule.Module is not called: bascule.compile(text) makes one"]),
        (lambda x, s: bascule.BitMask(), ["bascule.BitMask is not called", "help(bascule.BitMask)"]),
        (lambda x, s: bascule.device(2**70), ["there is no device 1180591620717411303424"]),
        (lambda x, s: x.reshape(2**70), ["`shape` has 1180591620717411303424", "64 bits"]),
    ],
)
def test_the_message_names_the_function_and_the_argument(call, parts):
    x = bascule.to_device(np.arange(8, dtype="f4"))
    with pytest.raises((TypeError, bascule.ArgumentError)) as caught:
        call(x, bascule.stream())
    for part in parts:
        assert part in str(caught.value)


def test_such_an_error_is_an_argument_error_with_the_name():
    with pytest.raises(bascule.ArgumentError) as caught:
        bascule.stream().wait("now")
    assert isinstance(caught.value, TypeError)
    assert caught.value.name == "event"


@pytest.mark.parametrize(
    ("keyword", "place"),
    [
        ("stream", "third entry in the brackets: scale[grid, block, stream]"),
        ("block", "scale[grid, block](...)"),
        ("shared_mem", "fourth entry in the brackets: scale[grid, block, stream, shared_bytes]"),
        ("cooperative", "scale[bascule.LaunchConfig(grid, block, cooperative=...)](...)"),
        ("sync", "scale[grid, block].options(sync=...)(...)"),
    ],
)
def test_a_keyword_that_belongs_elsewhere_is_named_first_with_its_place(keyword: str, place: str):
    kernel = bascule.compile(TEXT).scale
    x = bascule.to_device(np.arange(8, dtype="f4"))
    rule = bascule.kernel(TEXT, name="scale")(lambda p, f, n: n)
    for call in (kernel[1, 32], kernel[1, 32].bind, kernel[1, 32].explain, kernel.forall(8), rule):
        for arguments in ((x, 2, 8), (x,)):
            with pytest.raises(bascule.ArgumentError, match="'" + keyword + "'") as caught:
                call(*arguments, **{keyword: 1})
            expected = place.replace("scale[", "<lambda>[") if call is rule else place
            assert expected in str(caught.value)
