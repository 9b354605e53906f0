"""Questions to the compiler about an image are answered from that image's headers, or refused with the reason."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import bascule

FORWARD = "struct S { float a; int b; };\ntypedef float number;\n#define COUNT 1\n"
BACKWARD = "struct S { int b; float a; };\ntypedef int number;\n#define COUNT 2\n"
TEXT = """
#include "s.h"
__device__ number variable[2];
__global__ void fields(S s, float* out) { out[0] = s.a; out[1] = s.b; variable[0] = COUNT; }
__global__ void elements(const S* s, float* out) { out[0] = s->a; out[1] = s->b; }
"""
# The cache cannot prove which headers this text reads.
DOUBTFUL = TEXT.replace('#include "s.h"', '#define HEADER "s.h"\n#include HEADER')
HAS_CHANGED = "has changed since .* was compiled"

texts = pytest.mark.parametrize("text", [TEXT, DOUBTFUL], ids=["proven", "doubtful"])


@pytest.fixture
def header(tmp_path: Path) -> Path:
    path = tmp_path / "s.h"
    path.write_text(FORWARD)
    return path


def compiled(header: Path, text: str) -> bascule.Module:
    # A unique comment for each test, so that no cache of the process has the text.
    text = f"// {header}\n{text}"
    module = bascule.compile(text, options=bascule.CompileOptions(include_paths=[header.parent]))
    assert module.fields.ptx
    return module


def launched(kernel: bascule.Kernel, value: object) -> list[float]:
    out = bascule.zeros(2, "f4")
    kernel[1, 1](value, out)
    return out.copy_to_host().tolist()


SCALAR = np.array((1.5, 7), dtype=[("a", "f4"), ("b", "i4")])[()]
VALUES = [pytest.param(lambda: SCALAR, id="scalar"), pytest.param(lambda: (1.5, 7), id="tuple")]


@texts
@pytest.mark.parametrize("value", VALUES)
def test_a_struct_has_the_layout_of_its_image_after_an_edit(header, text, value):
    module = compiled(header, text)
    header.write_text(BACKWARD)
    with pytest.raises(bascule.Error, match="Compile the text again"):
        launched(module.fields, value())
    header.write_text(FORWARD)
    assert launched(module.fields, value()) == [1.5, 7.0]


@texts
def test_an_array_of_structs_is_compared_with_the_layout_of_its_image(header, text):
    module = compiled(header, text)
    header.write_text(BACKWARD)
    array = bascule.to_device(np.array([(7, 1.5)], dtype=[("b", "i4"), ("a", "f4")]))
    with pytest.raises(bascule.Error, match="Compile the text again"):
        launched(module.elements, array)


@texts
def test_a_probe_of_a_variable_has_the_type_of_its_image(header, text):
    module = compiled(header, text)
    launched(module.fields, SCALAR)
    header.write_text(BACKWARD)
    with pytest.raises(bascule.Error, match="Compile the text again"):
        module.get_global("variable")
    header.write_text(FORWARD)
    assert module.get_global("variable").dtype == np.float32
    header.write_text(BACKWARD)
    after = compiled(header, text)
    launched(after.fields, np.array((7, 1.5), dtype=[("b", "i4"), ("a", "f4")])[()])
    assert after.get_global("variable").dtype == np.int32


def test_the_error_of_a_stale_probe_names_the_header(header):
    module = compiled(header, TEXT)
    header.write_text(BACKWARD)
    with pytest.raises(bascule.Error, match=f"the header {header} has changed since .*test_stale_answers.py"):
        launched(module.fields, SCALAR)


def test_a_stale_probe_is_answered_where_the_headers_of_the_image_were_asked_before(header):
    first = compiled(header, TEXT)
    assert launched(first.fields, SCALAR) == [1.5, 7.0]
    second = compiled(header, TEXT)
    header.write_text(BACKWARD)
    assert launched(second.fields, SCALAR) == [1.5, 7.0]


def test_an_edit_that_changes_nothing_is_no_stale_probe(header):
    module = compiled(header, TEXT)
    header.unlink()
    header.write_text(FORWARD)
    assert launched(module.fields, SCALAR) == [1.5, 7.0]


def test_a_probe_without_the_cache_is_not_stale(header):
    with bascule.cache.disabled():
        module = compiled(header, TEXT)
        header.write_text(BACKWARD)
        with pytest.raises(bascule.Error, match=HAS_CHANGED):
            launched(module.fields, SCALAR)


@texts
def test_unpickled_kernels_are_not_stale(header, text):
    kernel = compiled(header, text).fields
    pickled = pickle.dumps(kernel)
    assert launched(pickle.loads(pickled), SCALAR) == [1.5, 7.0]
    header.write_text(BACKWARD)
    found = pickle.loads(pickled)
    assert launched(found, (7, 1.5)) == [1.5, 7.0]
    assert found.ptx == compiled(header, text).fields.ptx


@texts
def test_unpickled_kernels_share_a_module_until_a_header_changes(header, text):
    pickled = pickle.dumps(compiled(header, text))
    first, second = pickle.loads(pickled), pickle.loads(pickled)
    launched(first.fields, SCALAR)
    third = pickle.loads(pickled)
    launched(third.fields, SCALAR)
    third.get_global("variable").copy_to_host()
    address = first.get_global("variable").__cuda_array_interface__["data"]
    assert second.get_global("variable").__cuda_array_interface__["data"] == address
    assert third.get_global("variable").__cuda_array_interface__["data"] == address


@texts
def test_a_kernel_whose_header_has_gone_unpickles_and_does_not_compile(header, text):
    kernel = compiled(header, text).fields
    pickled = pickle.dumps(kernel)
    assert pickle.loads(pickled).ptx == kernel.ptx
    header.unlink()
    found = pickle.loads(pickled)
    with pytest.raises(bascule.CompileError, match="s.h"):
        found.ptx  # noqa: B018
    with pytest.raises(bascule.Error, match="Compile the text again"):
        launched(kernel, SCALAR)
