"""Bascule's own exports, as PyArrow, mpi4py and ArrayViews read them; mpi4py itself if it is installed."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bascule
from producers.catalogue import Exposing
from producers.consumers import Memory, Reads, arrayviews_reads, consumer, mpi4py_reads, pyarrow_reads
from producers.elements import ELEMENTS, PARTICLE

PYARROW, MPI4PY, ARRAYVIEWS = (consumer(name) for name in ["pyarrow", "mpi4py", "arrayviews"])


def arrays(rng: np.random.Generator) -> dict[str, Callable[[], bascule.DeviceArray]]:
    """For each kind of NumPy array, a function that copies one to the device."""
    made = {
        "contiguous": ELEMENTS["<f4"].values(rng, (6, 4)),
        "one dimension": ELEMENTS["<f8"].values(rng, (37,)),
        "0-d": np.asarray(ELEMENTS["<f8"].values(rng, ()), "<f8"),
        "empty": np.empty((0, 3), "<f4"),
        "bytes": ELEMENTS["|u1"].values(rng, (37,)),
        "bool": ELEMENTS["|b1"].values(rng, (37,)),
        "half": ELEMENTS["<f2"].values(rng, (37,)),
        "complex": ELEMENTS["<c16"].values(rng, (37,)),
        "structured": ELEMENTS["particle"].values(rng, (37,)),
    }
    return {name: (lambda values=values: bascule.to_device(values)) for name, values in made.items()}


def viewed(**changes: Any) -> bascule.DeviceArray:
    """An array of 24 floats with another description of its memory."""
    array = bascule.to_device(np.arange(24, dtype="f4"))
    return bascule.as_cuda_array(Exposing(array.__cuda_array_interface__ | changes, owner=array))


def readonly(array: bascule.DeviceArray) -> bascule.DeviceArray:
    interface = array.__cuda_array_interface__
    return bascule.as_cuda_array(Exposing(interface | {"data": (interface["data"][0], True)}, owner=array))


def exports_of(array: bascule.DeviceArray) -> list[dict[str, Any]]:
    """The array's own export; if it has `export`, also one for each version, and one that names no stream."""
    made = [array.__cuda_array_interface__]
    if hasattr(array, "export"):
        for version in range(4):
            made.append(array.export(version=version).__cuda_array_interface__)
        made.append(array.export(stream=None).__cuda_array_interface__)
    return made


KINDS = list(arrays(np.random.default_rng(0)))


@pytest.mark.parametrize("kind", KINDS)
def test_pyarrow_reads_four_fields_and_finds_the_memory(rng, kind):
    array = arrays(rng)[kind]()
    for interface in exports_of(array):
        reads = Reads(interface)
        assert pyarrow_reads(reads) == Memory(interface["data"][0], array.nbytes)
        assert reads.in_order == PYARROW.in_order


@pytest.mark.parametrize("kind", KINDS)
def test_mpi4py_reads_six_fields_and_finds_the_memory(rng, kind):
    array = arrays(rng)[kind]()
    for interface in exports_of(array):
        reads = Reads(interface)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if array.dtype == PARTICLE else "error")
            assert mpi4py_reads(reads) == Memory(interface["data"][0], array.nbytes)
        assert reads.in_order == MPI4PY.in_order
        assert MPI4PY.insisted_on(interface) == []


def test_arrayviews_reads_two_fields_and_finds_the_bytes(rng):
    array = arrays(rng)["bytes"]()
    for interface in exports_of(array):
        reads = Reads(interface)
        assert arrayviews_reads(reads, array.nbytes) == Memory(interface["data"][0], 37)
        assert reads.in_order == ARRAYVIEWS.in_order
        assert ARRAYVIEWS.insisted_on(interface) == []


FORTRAN = {"shape": (6, 4), "strides": (4, 24)}
REVERSED = {"shape": (24,), "strides": (-4,)}
GAPS = {"shape": (3, 4), "strides": (32, 4)}


def test_a_fortran_ordered_export_is_contiguous_for_mpi4py_and_pyarrow():
    array = viewed(**FORTRAN)
    for interface in exports_of(array):
        assert interface["strides"] == (4, 24)
        assert mpi4py_reads(Reads(interface)) == pyarrow_reads(Reads(interface)) == Memory(interface["data"][0], 96)
        assert MPI4PY.insisted_on(interface) == []


def test_a_reversed_export_begins_at_its_first_element_and_pyarrow_finds_its_lowest():
    array = bascule.to_device(np.arange(24, dtype="f4"))
    first = array.__cuda_array_interface__["data"][0]
    changes = {"data": (first + 23 * 4, False)} | REVERSED
    array = bascule.as_cuda_array(Exposing(array.__cuda_array_interface__ | changes, owner=array))
    for interface in exports_of(array):
        assert pyarrow_reads(Reads(interface)) == Memory(first, 96)
        with pytest.raises(BufferError, match="not contiguous"):
            mpi4py_reads(Reads(interface))


def test_gaps_are_seen_by_every_consumer():
    for interface in exports_of(viewed(**GAPS)):
        with pytest.raises(ValueError, match="non-contiguous"):
            pyarrow_reads(Reads(interface))
        with pytest.raises(BufferError, match="not contiguous"):
            mpi4py_reads(Reads(interface))
        with pytest.raises(AssertionError):
            arrayviews_reads(Reads(interface), 96)


def test_the_read_only_flag_reaches_mpi4py(rng):
    for interface in exports_of(readonly(arrays(rng)["one dimension"]())):
        assert mpi4py_reads(Reads(interface), writable=False).nbytes == 37 * 8
        with pytest.raises(BufferError, match="not writable"):
            mpi4py_reads(Reads(interface))


@pytest.fixture(scope="module")
def frombuffer() -> Callable[..., Any]:
    """mpi4py's own reader. It prefers `__dlpack__`, so a dict is wrapped in an object that has only the interface."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    import mpi4py

    mpi4py.rc.initialize = False  # no MPI is needed to read a buffer
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"mpi4py finds no MPI library: {error}")

    def read(exporter: Any, **options: Any) -> Any:
        return MPI.buffer.frombuffer(Exposing(exporter) if isinstance(exporter, dict) else exporter, **options)

    return read


@pytest.mark.parametrize("kind", KINDS)
def test_mpi4py_itself_finds_the_memory_of_every_export(rng, frombuffer, kind):
    array = arrays(rng)[kind]()
    for interface in exports_of(array):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if array.dtype == PARTICLE else "error")
            buffer = frombuffer(interface)
        assert Memory(buffer.address, buffer.nbytes) == Memory(interface["data"][0], array.nbytes)
        assert not buffer.readonly


def test_mpi4py_itself_finds_the_memory_of_an_array_whatever_it_asks_first(rng, frombuffer):
    """mpi4py asks for DLPack first, and then for the interface."""
    array = arrays(rng)["contiguous"]()
    buffer = frombuffer(array)
    assert Memory(buffer.address, buffer.nbytes) == Memory(array.__cuda_array_interface__["data"][0], array.nbytes)
    with pytest.raises(BufferError, match="not writable|read-only"):
        frombuffer(readonly(array))


@pytest.mark.parametrize("changes", [FORTRAN, GAPS], ids=["Fortran order", "gaps"])
def test_mpi4py_itself_and_its_transcription_agree_on_strides(frombuffer, changes):
    for interface in exports_of(viewed(**changes)):
        try:
            memory = mpi4py_reads(Reads(interface))
        except BufferError:
            with pytest.raises(BufferError, match="not contiguous"):
                frombuffer(interface)
        else:
            buffer = frombuffer(interface)
            assert Memory(buffer.address, buffer.nbytes) == memory


def test_mpi4py_itself_honours_the_read_only_flag(rng, frombuffer):
    for interface in exports_of(readonly(arrays(rng)["one dimension"]())):
        assert frombuffer(interface, readonly=True).readonly
        with pytest.raises(BufferError, match="not writable"):
            frombuffer(interface)


@pytest.mark.parametrize(
    ("changes", "types"),
    [
        ({"data": [4096, False]}, "tuple"),
        ({"shape": [8]}, "tuple"),
        ({"strides": [4]}, "tuple"),
        ({"descr": (("", "<f4"),)}, "list"),
        ({"typestr": b"<f4"}, "str"),
    ],
    ids=str,
)
def test_the_types_that_the_file_names_are_those_that_mpi4py_insists_on(frombuffer, changes, types):
    interface = bascule.to_device(np.zeros(8, "f4")).__cuda_array_interface__ | changes
    assert MPI4PY.insisted_on(interface)
    with pytest.raises(TypeError, match=f"Expected {types}"):
        frombuffer(interface)


def test_pyarrow_itself_finds_the_memory(rng):
    if importlib.util.find_spec("pyarrow") is None:
        pytest.skip("pyarrow is not installed")
    if importlib.util.find_spec("pyarrow._cuda") is None:
        pytest.skip("this pyarrow was built without its CUDA module")
    if bascule.current_device().emulated:
        pytest.skip("pyarrow cannot use the emulated device: it opens the driver by itself")
    from pyarrow import cuda

    array = arrays(rng)["contiguous"]()
    buffer = cuda.Context(array.device.ordinal).buffer_from_object(array)
    assert Memory(buffer.address, buffer.size) == Memory(array.__cuda_array_interface__["data"][0], array.nbytes)
