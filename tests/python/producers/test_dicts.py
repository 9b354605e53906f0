"""The dicts that other libraries export, each on real device memory through a real kernel."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from conftest import traced

import bascule
from producers.catalogue import Export, Raising, exports, libraries
from producers.elements import ELEMENTS, Programs
from producers.kernels import programs_for, read_through_kernels, same, values_of, write_through_a_kernel
from producers.memory import Produced

ALL = list(exports())
READABLE = [export for export in ALL if export.goes_through_a_kernel]
RAISING = [export for export in ALL if export.raises]
REFUSED = [export for export in ALL if export.refused]


@pytest.fixture(scope="module")
def programs() -> Programs:
    return programs_for([export for export in ALL if export.interface])


@contextmanager
def nothing_issued() -> Iterator[None]:
    """The block issues no operation, as counted by the emulated device; not checked on a GPU."""
    if not bascule.current_device().emulated:
        yield
        return
    with traced() as operations:
        yield
    assert not operations


def bits_of_a_mask(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 256, 64, dtype="u1")


def produced(export: Export, rng: np.random.Generator) -> tuple[np.ndarray, Produced]:
    view = export.host_view(values_of(export, rng))
    return view, Produced(export, view, bits_of_a_mask(rng))


@pytest.mark.parametrize("export", READABLE, ids=str)
def test_what_the_dict_says_is_what_a_kernel_reads(programs, rng, export):
    view, array = produced(export, rng)
    element = ELEMENTS[export.values["dtype"]]
    for got, expected in read_through_kernels(programs, element, view, array.object, before=array.write):
        assert same(got, expected)


@pytest.mark.parametrize("export", READABLE, ids=str)
def test_a_kernel_writes_the_elements_and_no_byte_beside_them(programs, rng, export):
    view, array = produced(export, rng)
    element = ELEMENTS[export.values["dtype"]]
    data = array.interface["data"]
    if data[1] or (view.size and 0 in view.strides):
        with nothing_issued(), pytest.raises(ValueError, match="argument 1 'x'"):
            write_through_a_kernel(programs, element, view, array.object)
        return
    array.write()
    write_through_a_kernel(programs, element, view, array.object)
    # Structures are compared by their fields: a kernel may leave anything in the padding.
    got, expected = array.memory.bytes_now(), array.memory.bytes_after(element.expected)
    if element.dtype.names is None:
        assert (got == expected).all()
    else:
        inside = slice(array.memory.MARGIN, -array.memory.MARGIN)
        assert same(got[inside].view(element.dtype), expected[inside].view(element.dtype))
        outside = np.r_[0 : array.memory.MARGIN, got.size - array.memory.MARGIN : got.size]
        assert (got[outside] == expected[outside]).all()


ON_A_STREAM = [
    export for export in READABLE if export.interface.get("stream") is not None and 0 not in export.values["shape"]
]


@pytest.mark.parametrize("export", ON_A_STREAM, ids=str)
def test_a_launch_elsewhere_waits_for_the_stream_in_the_dict(programs, rng, export, emulated):
    """The memory is poison until the producer's stream has run, and nothing runs before it must."""
    view, array = produced(export, rng)
    elsewhere = bascule.stream()
    element = ELEMENTS[export.values["dtype"]]
    for got, expected in read_through_kernels(
        programs, element, view, array.object, stream=elsewhere, before=array.write
    ):
        assert same(got, expected)


@pytest.mark.parametrize("export", RAISING, ids=str)
def test_what_the_property_raises_reaches_the_user(programs, export):
    error = getattr(builtins, export.raises["error"])(f"as the library says: {export.raises['says']}")
    with nothing_issued(), pytest.raises(TypeError if isinstance(error, AttributeError) else type(error)) as got:
        programs["floating_f4_flat"][1, 32](Raising(error), bascule.raw_pointer(16), 1)
    assert export.raises["says"] in str(got.value)
    if not isinstance(error, AttributeError):
        assert got.value is error


@pytest.mark.parametrize("export", REFUSED, ids=str)
def test_what_cannot_be_taken_is_refused_before_the_first_operation(programs, rng, export):
    view, array = produced(export, rng)
    out = bascule.device_array(view.nbytes, "u1")
    kernel = programs[f"{ELEMENTS[export.values['dtype']].name}_flat"]
    with nothing_issued(), pytest.raises(getattr(builtins, export.refused["error"])) as got:
        kernel[1, 32](array.object, out, view.size)
    for words in ["argument 1 'x'", *export.refused["says"]]:
        assert words in str(got.value)


@pytest.mark.parametrize("library", libraries(), ids=lambda library: library.library)
def test_every_row_says_where_it_was_read(library):
    for export in library.exports:
        assert export.source in library.sources, export.case
        assert (export.interface is None) == (export.raises is not None), export.case
    for source in library.sources.values():
        assert set(source) == {"repository", "commit", "path", "line"}
        assert len(source["commit"]) == 40
        assert int(source["commit"], 16)
        assert source["repository"].count("/") == 1
        assert source["line"] > 0
    assert {export.source for export in library.exports} <= set(library.sources)


def test_no_row_is_left_out_of_the_tests():
    wrong = [export for export in ALL if export.wrong]
    assert len(READABLE) + len(RAISING) + len(REFUSED) + len(wrong) == len(ALL)
    assert {library.library for library in libraries()} >= {
        *("Numba", "CuPy", "PyTorch", "JAX", "cuDF", "cuML", "cuSignal", "RMM", "Warp", "PyCUDA")
    }
