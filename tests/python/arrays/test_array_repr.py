"""`repr` of an array formats the values as NumPy does, and never raises."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from child_process import printed_by
from conftest import traced

import bascule

SHAPES = [(), (0,), (3, 0), (1,), (5,), (1000,), (1001,), (5000,), (40, 50), (2, 900), (3, 20, 30), (7, 7, 7, 7)]


@pytest.mark.parametrize("dtype", ["f4", "i8", "b1", "c16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_are_printed_as_numpy_prints_them(shape, dtype, rng):
    host = np.asarray(rng.standard_normal(shape) * 10).astype(dtype)
    text = repr(bascule.to_device(host))
    expected = np.array2string(host, separator=", ", prefix="DeviceArray(", threshold=1000, edgeitems=3)
    assert text.startswith(f"DeviceArray({expected}, shape={shape}, dtype={host.dtype}, ")


def test_a_view_is_printed(rng):
    host = rng.integers(0, 100, (30, 60))
    text = repr(bascule.to_device(host)[::-2, ::-1].T)
    expected = np.array2string(host[::-2, ::-1].T, separator=", ", prefix="DeviceArray(", threshold=1000)
    assert text.startswith(f"DeviceArray({expected}, ")


@pytest.mark.parametrize("shape", [(), (8,), (3, 4), (5000,), (2, 900)], ids=str)
def test_what_is_masked_is_printed_as_numpy_prints_it(shape, rng):
    host = np.ma.array(rng.integers(0, 100, shape), mask=rng.integers(0, 2, shape))
    elements = np.asarray(host.data).astype("O")
    elements[host.mask] = np.ma.masked_print_option
    expected = np.array2string(elements, separator=", ", prefix="DeviceArray(", threshold=1000, edgeitems=3)
    assert repr(bascule.to_device(host)).startswith(f"DeviceArray({expected}, shape={shape}, ")


def test_of_a_long_array_the_ends_alone_are_read():
    x = bascule.to_device(np.zeros(1_000_000))
    repr(x)
    with traced() as operations:
        repr(x)
    assert sum(o.bytes for o in operations if o.kind == "copy") < 1000


def test_it_waits_for_the_bound_stream(scale):
    stream = bascule.stream()
    x = bascule.to_device(np.ones(4, "f4"), stream=stream)
    scale[1, 32, stream](x, 3, 4)
    assert "[3., 3., 3., 3.]" in repr(x)


FAULT = """
import numpy as np, bascule
x = bascule.to_device(np.zeros(4, "f4"))
k = bascule.compile("__global__ void k(float* p) { p[1 << 30] = 1; }").k
k[1, 1](x)
print(repr(x))
print(repr(x))
"""


def test_after_a_fault_it_says_what_is_wrong_instead_of_raising(emulated):
    lines = printed_by("-c", FAULT).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("<bascule.DeviceArray shape=(4,) dtype=float32 on emulated:0: values cannot be read:")
        assert "illegal address: kernel 'k' wrote 4 bytes of global memory" in line


def test_a_capture_is_left_alone():
    stream = bascule.stream()
    x = bascule.to_device(np.zeros(4), stream=stream)
    stream.synchronize()
    driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    handle, graph = ctypes.c_void_p(stream.handle), ctypes.c_void_p()
    assert driver.cuStreamBeginCapture_v2(handle, 0) == 0
    assert repr(x).endswith(": its stream is being captured>")
    with pytest.raises(bascule.CudaError, match="The capture goes on"):
        x.copy_to_host()
    assert driver.cuStreamEndCapture(handle, ctypes.byref(graph)) == 0
    assert driver.cuGraphDestroy(graph) == 0
    assert "[0., 0., 0., 0.]" in repr(x)


def test_a_read_only_array_says_so():
    x = bascule.to_device(np.zeros(2))
    fields = dict(x.__cuda_array_interface__)
    fields["data"] = (fields["data"][0], True)
    assert "read-only" in repr(bascule.from_cuda_array_interface(fields, owner=x))
