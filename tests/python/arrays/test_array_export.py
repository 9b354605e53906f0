"""Tests what arrays export in each version of the interface, the stream's lifetime, opt-outs and pointer attributes."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest
from child_process import printed_by
from conftest import ForeignArray, traced

import bascule

# The entries that each version's text defines. Bascule omits `mask` and `descr` where an array does not need them.
ENTRIES = {
    0: {"shape", "typestr", "data", "version", "strides"},
    1: {"shape", "typestr", "data", "version", "strides"},
    2: {"shape", "typestr", "data", "version", "strides"},
    3: {"shape", "typestr", "data", "version", "strides", "stream"},
}


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_each_version_has_its_own_entries(version):
    stream = bascule.stream()
    x = bascule.to_device(np.zeros((3, 4), "f4"), stream=stream)
    fields = x.export(version=version).__cuda_array_interface__
    assert set(fields) == ENTRIES[version]
    assert fields["version"] == version
    assert fields["shape"] == (3, 4)
    assert fields["typestr"] == "<f4"
    assert fields["data"] == x.__cuda_array_interface__["data"]
    # Versions 0 and 1 do not define strides of None.
    assert fields["strides"] == ((16, 4) if version < 2 else None)
    assert x[:, ::2].export(version=version).__cuda_array_interface__["strides"] == (16, 8)
    assert x[3:].export(version=version).__cuda_array_interface__["data"] == (0, False)
    structured = bascule.to_device(np.zeros(2, [("a", "<i4"), ("b", "<f8")]))
    assert structured.export(version=version).__cuda_array_interface__["descr"] == [("a", "<i4"), ("b", "<f8")]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_version_is_read_back_the_same(version, scale):
    x = bascule.to_device(np.arange(12, dtype="f4").reshape(3, 4))
    again = bascule.as_cuda_array(x.T.export(version=version))
    assert (again.shape, again.strides, again.dtype) == (x.T.shape, x.T.strides, x.dtype)
    np.testing.assert_array_equal(again.copy_to_host(), x.T.copy_to_host())
    scale[1, 32](x.export(version=version), 2, 12)
    np.testing.assert_array_equal(x.copy_to_host().ravel(), np.arange(12) * 2)


def test_by_default_the_stream_is_named_and_never_0():
    assert bascule.device_array(3, "f4").__cuda_array_interface__["stream"] == 1
    assert bascule.device_array(3, "f4", stream=0).__cuda_array_interface__["stream"] == 1
    assert bascule.device_array(3, "f4", stream=2).__cuda_array_interface__["stream"] == 2
    x = bascule.device_array(3, "f4", stream=bascule.stream())
    assert x.export().__cuda_array_interface__ == x.__cuda_array_interface__
    assert x.export(stream=None).__cuda_array_interface__["stream"] is None


def test_a_wrong_export_is_named():
    x = bascule.device_array(3, "f4")
    for version in (-1, 4):
        with pytest.raises(ValueError, match=rf"`version` must be 0, 1, 2 or 3, got {version}"):
            x.export(version=version)
    for stream in (False, 1, "none"):
        with pytest.raises(TypeError, match="True .* or None"):
            x.export(stream=stream)


@pytest.mark.parametrize("derive", [lambda x: x, lambda x: x[1:].T, lambda x: bascule.as_cuda_array(ForeignArray(x))])
def test_the_exported_stream_outlives_its_exporter(derive, scale):
    stream = bascule.stream()
    x = derive(bascule.to_device(np.ones(64, "f4"), stream=stream))
    handle = stream.handle
    with traced() as operations:
        del stream
        gc.collect()
        fields = x.__cuda_array_interface__
        assert fields["stream"] == handle
        borrowed = bascule.external_stream(handle)  # a consumer that has only the dict
        scale[1, 64, borrowed](x, 3, 63)
        borrowed.synchronize()
    assert handle not in [o.stream for o in operations if o.kind == "destroy"]
    assert (x.copy_to_host()[:63] == 3).all()
    with traced() as operations:
        del x, borrowed
        gc.collect()
        bascule.synchronize()
    assert handle in [o.stream for o in operations if o.kind == "destroy"]


def test_a_view_keeps_its_owner_alive_and_takes_over_its_stream():
    stream = bascule.stream()
    array = bascule.device_array(8, "f4", stream=stream)
    foreign = ForeignArray(array)
    view = bascule.as_cuda_array(foreign)
    unordered = bascule.as_cuda_array(foreign, sync=False)
    alive = weakref.ref(foreign)
    assert view.stream.handle == stream.handle
    assert unordered.stream is None
    assert unordered.__cuda_array_interface__["stream"] is None
    del foreign, unordered
    gc.collect()
    assert alive() is not None
    del view
    gc.collect()
    assert alive() is None


# --- The opt-out of the consumer

OPT_OUT = """
import numpy as np, bascule
from bascule import emulated
print(bascule.config.cuda_array_interface_sync)
kernel = bascule.compile("__global__ void k(float* p) { *p = 1; }").k
class Foreign:
    def __init__(self, array): self.array = array
    @property
    def __cuda_array_interface__(self): return self.array.__cuda_array_interface__
x = Foreign(bascule.to_device(np.zeros(1, "f4"), stream=bascule.stream()))
kernel[1, 1](x)
c = bascule.stream()
for setting in (None, True, False):
    if setting is not None:
        bascule.config.cuda_array_interface_sync = setting
    with emulated.trace() as operations:
        kernel[1, 1, c](x)
        view = bascule.as_cuda_array(x)
    kinds = [o.kind for o in operations if o.kind in ("record", "wait", "launch")]
    print(kinds, view.__cuda_array_interface__["stream"] is None)
"""


@pytest.mark.parametrize("value", ["", "1", "0"])
def test_foreign_streams_can_be_ignored_by_setting_or_environment(value, emulated):
    printed = printed_by("-c", OPT_OUT, BASCULE_CUDA_ARRAY_INTERFACE_SYNC=value)
    ordered = "['record', 'wait', 'launch', 'record', 'wait'] False"
    ignored = "['launch'] True"
    default = ignored if value == "0" else ordered
    assert printed.splitlines() == [str(value != "0"), default, ordered, ignored]


# --- What counts as an array


class Raises:
    def __init__(self, error):
        self.error = error

    @property
    def __cuda_array_interface__(self):
        raise self.error


def test_is_cuda_array_reads_the_attribute_as_the_parser_does():
    x = bascule.device_array(3, "f4")
    assert bascule.is_cuda_array(x)
    assert bascule.is_cuda_array(ForeignArray(x))
    assert bascule.is_cuda_array(x.export(version=0))
    for other in (3, None, "x", np.zeros(3), bascule.DeviceArray, ForeignArray, Raises(AttributeError("on the CPU"))):
        assert not bascule.is_cuda_array(other)
    with pytest.raises(RuntimeError, match="requires grad"):
        bascule.is_cuda_array(Raises(RuntimeError("requires grad")))


# --- Attributes of pointers


def test_pointer_attributes_tell_kind_addresses_and_extent():
    device = bascule.device_array(1000, "f4")
    found = bascule.pointer_attributes(device[10:])
    address = device.__cuda_array_interface__["data"][0]
    assert (found.kind, found.device, found.host_address) == ("pool", 0, None)
    assert found.device_address == address + 40
    assert found.allocation[0] == address
    assert found.allocation[1] >= 4000
    assert bascule.pointer_attributes(address + 40).device_address == address + 40
    assert bascule.pointer_attributes(ForeignArray(device)).kind == "pool"
    assert "pool memory" in repr(found)

    for make, kind in ((bascule.pinned_array, "pinned"), (bascule.managed_array, "managed")):
        array = make(1000, "f4")
        found = bascule.pointer_attributes(array)
        assert found.kind == kind
        assert found.context or kind == "managed"  # a GPU's driver may report none for managed memory
        assert found.host_address == np.asarray(array).ctypes.data
        assert bascule.pointer_attributes(np.asarray(array)[5:]).device_address == found.device_address + 20


def test_memory_of_no_device_is_an_error():
    host = np.zeros(1000)
    for nothing in (host, host.ctypes.data, 64, bascule.device_array(0, "f4")):
        with pytest.raises(ValueError, match="no device can use the memory"):
            bascule.pointer_attributes(nothing)
    for wrong in ("x", 1.5, True):
        with pytest.raises(TypeError, match="pointer_attributes takes an address"):
            bascule.pointer_attributes(wrong)
    with pytest.raises(ValueError, match=r"2\*\*64"):
        bascule.pointer_attributes(-1)


def test_pool_memory_is_told_apart(emulated):
    bascule.device_array(1, "f4")
    driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    address = ctypes.c_uint64()
    assert driver.cuMemAllocAsync(ctypes.byref(address), ctypes.c_size_t(4096), ctypes.c_void_p(1)) == 0
    try:
        found = bascule.pointer_attributes(address.value)
        assert (found.kind, found.device_address, found.allocation[0]) == ("pool", address.value, address.value)
    finally:
        assert driver.cuMemFreeAsync(address, ctypes.c_void_p(1)) == 0
