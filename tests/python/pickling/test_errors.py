"""Every public exception keeps its class, its text and its attributes."""

from __future__ import annotations

import inspect
import pickle

import cloudpickle
import pytest

import bascule
from bascule import _errors


def raised(call):
    with pytest.raises(bascule.Error) as caught:
        call()
    return caught.value


def compile_error():
    return raised(lambda: bascule.compile("__global__ void k(float* p) { *p = missing; }\n"))


ERRORS = {
    "compile": compile_error,
    "attribute": lambda: raised(lambda: bascule.compile("__global__ void scale() {}").scales),
    "argument": lambda: raised(
        lambda: bascule.compile("__global__ void k(float* p) {}").k[1, 1](bascule.zeros(1, "f8"))
    ),
    "key": lambda: raised(lambda: bascule.from_cuda_array_interface({"version": 3})),
    "file": lambda: raised(lambda: bascule.compile(file="/nowhere/k.cu")),
    "index": lambda: raised(lambda: bascule.zeros(3, "f4")[5]),
    "overflow": lambda: raised(lambda: bascule.compile("__global__ void k(char c) {}").k[1, 1](1000)),
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5, "cloudpickle"])
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_that_was_raised_is_the_same_elsewhere(name, protocol):
    error = ERRORS[name]()
    data = cloudpickle.dumps(error) if protocol == "cloudpickle" else pickle.dumps(error, protocol)
    found = pickle.loads(data)
    assert type(found) is type(error)
    assert (str(found), found.args) == (str(error), error.args)
    for attribute in ("index", "name", "field", "expected", "got", "diagnostics", "log", "name_expression", "options"):
        assert getattr(found, attribute, None) == getattr(error, attribute, None)
    for attribute in ("architecture", "errno", "filename"):
        assert getattr(found, attribute, None) == getattr(error, attribute, None)


def test_a_diagnostic_keeps_its_place_and_its_notes():
    (found,) = pickle.loads(pickle.dumps(compile_error())).diagnostics
    assert found.message == 'identifier "missing" is undefined'
    assert (found.severity, found.file, found.line) == ("error", __file__, compile_error().diagnostics[0].line)
    assert found.source_line


def test_the_attributes_of_every_class_are_kept():
    classes = [each for _, each in inspect.getmembers(_errors, inspect.isclass) if issubclass(each, bascule.Error)]
    assert len(classes) > 15
    for each in classes:
        error = each("a sentence.")
        names = [
            name for base in each.__mro__ for name in vars(base).get("__annotations__", {}) if name != "diagnostic"
        ]
        for name in names:
            setattr(error, name, [f"a {name}"])
        for protocol in range(2, 6):
            found = pickle.loads(pickle.dumps(error, protocol))
            assert type(found) is each
            assert str(found) == "a sentence."
            assert [getattr(found, name) for name in names] == [[f"a {name}"] for name in names]
