"""Operations that a DeviceArray does not support raise, and are not in its help."""

from __future__ import annotations

import operator
import pydoc

import numpy as np
import pytest

import bascule

BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift"]


@pytest.fixture
def x() -> bascule.DeviceArray:
    return bascule.zeros(3, "f4")


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("other", [1, 2.5, np.ones(3), [1, 2, 3], "own"], ids=repr)
def test_operators_name_what_has_them_on_either_side_and_in_place(name, other, x):
    if isinstance(other, str):
        other = bascule.ones(3, "f4")
    library = r"x\.copy_to_host\(\) and NumPy"
    if not x.device.emulated:  # on a GPU the message names an installed library
        library += r"|cupy\.asarray\(x\), which views .*|torch\.as_tensor\(x, device='cuda'\), which views .*"
    calls = [(getattr(operator, name), x, other), (getattr(operator, "i" + name.rstrip("_")), x, other)]
    if not (isinstance(other, list) and name in ("add", "mul")):  # those try the list's operator first
        calls.append((getattr(operator, name), other, x))
    for call, left, right in calls:
        with pytest.raises(TypeError, match=rf"no arithmetic \(.*: use ({library}), or write a kernel"):
            call(left, right)


def test_the_other_operators_say_what_to_use(x):
    for call in (operator.neg, operator.pos, operator.invert, abs, lambda x: divmod(x, 2), lambda x: pow(x, 2, 5)):
        with pytest.raises(TypeError, match="no arithmetic"):
            call(x)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        for left, right in ((x, 1), (1, x), (x, x), (x, x.copy()), (x, None), (x, "x"), (np.ones(3), x)):
            with pytest.raises(TypeError, match=r"(is not compared by|has no) [<=>!]+: |no arithmetic \(numpy\.\w+\)"):
                compare(left, right)
    for call in (iter, list, sum, lambda x: np.array([*x])):
        with pytest.raises(TypeError, match="not iterable.*copy_to_host"):
            call(x)
    with pytest.raises(TypeError, match="truth value"):
        bool(x)
    with pytest.raises(TypeError, match="`in` is not supported"):
        1 in x  # noqa: B015
    assert {x: 1}[x] == 1
    assert x in [bascule.ones(1, "f4"), x][1:]


def test_help_shows_what_an_array_can_do_and_no_refusal():
    text = pydoc.plain(pydoc.render_doc(bascule.DeviceArray))
    for refused in ("__add__", "__radd__", "__iadd__", "__lt__", "__bool__", "__iter__", "__contains__", "__neg__"):
        assert refused not in text
    for able in ("copy_to_host", "astype", "ravel", "__getitem__"):
        assert able in text
    assert len(text.splitlines()) < 340
