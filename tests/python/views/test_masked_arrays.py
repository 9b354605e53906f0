"""DeviceArrays with masks: kept, exported again, and exchanged with numpy.ma, where true and false are inverted."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import bascule

from .arrays import Exposed, strided

COUNT = """
__global__ void count(bascule::masked_view<const float, 2> x, int* out) {
    *out = 0;
    for (int i = 0; i < x.extent(0); ++i) for (int j = 0; j < x.extent(1); ++j) *out += x.valid(i, j);
}
"""


@pytest.fixture(scope="module")
def count():
    kernel = bascule.compile(COUNT).count
    out = bascule.to_device(np.zeros(1, "i4"))

    def run(array) -> int:
        kernel[1, 1](array, out)
        return int(out.copy_to_host()[0])

    return run


def random_masked(rng, shape=(6, 7), dtype="f4"):
    return np.ma.array(strided(rng, shape, dtype), mask=rng.integers(0, 2, shape).astype(bool))


def same(a: np.ma.MaskedArray, b: np.ma.MaskedArray) -> bool:
    """True if masks and values are equal, values under the mask included."""
    return np.array_equal(np.ma.getdata(a), np.ma.getdata(b)) and np.array_equal(
        np.ma.getmaskarray(a), np.ma.getmaskarray(b)
    )


def test_to_device_inverts_the_mask_of_numpy_ma(rng, count):
    host = random_masked(rng)
    array = bascule.to_device(host)
    assert np.array_equal(array.mask.copy_to_host(), ~host.mask)
    assert count(array) == host.count()


@pytest.mark.parametrize("dtype", ["f4", "i8", "c16", "?"])
def test_a_masked_array_comes_back_as_it_went(rng, dtype):
    for shape in [(6, 7), (0,), (5,), ()]:
        host = random_masked(rng, shape, dtype)
        back = bascule.to_device(host).copy_to_host()
        assert isinstance(back, np.ma.MaskedArray)
        assert same(host, back)
        assert back.dtype == host.dtype


def test_an_array_of_numpy_ma_without_a_mask_is_an_array_without_a_mask(rng):
    array = bascule.to_device(np.ma.array(np.arange(5)))
    assert array.mask is None
    assert type(array.copy_to_host()) is np.ndarray
    assert bascule.to_device(np.arange(5)).mask is None
    assert "mask" not in array.__cuda_array_interface__


def test_a_mask_for_each_field_is_refused():
    host = np.ma.zeros(3, dtype=[("a", "f4"), ("b", "i4")])
    host["a"][1] = np.ma.masked
    with pytest.raises(NotImplementedError, match="a mask per field.*array.data"):
        bascule.to_device(host)


def test_a_masked_array_is_copied_into_one_that_has_a_place_for_the_mask(rng):
    host = random_masked(rng)
    array = bascule.to_device(host)
    out = np.ma.array(np.full(host.shape, 77, "f4"))
    assert array.copy_to_host(out=out) is out
    assert same(out, host)
    with pytest.raises(ValueError, match="`out` cannot hold.*numpy.ma"):
        array.copy_to_host(out=np.zeros(host.shape, "f4"))


def test_copy_from_host_leaves_the_mask_and_refuses_another(rng):
    host = random_masked(rng)
    array = bascule.to_device(host)
    values = np.full(host.shape, 3, "f4")
    array.copy_from_host(values)
    assert same(array.copy_to_host(), np.ma.array(values, mask=host.mask))
    with pytest.raises(NotImplementedError, match="numpy.ma.*values.data"):
        array.copy_from_host(host)
    array.mask.copy_from_host(np.ones(host.shape, bool))
    assert not array.copy_to_host().mask.any()


@pytest.mark.parametrize("dtype", ["?", "i2", "u8"])
@pytest.mark.parametrize("sync", [True, False])
def test_an_imported_array_keeps_its_mask_and_exports_it_again(rng, count, dtype, sync):
    x = strided(rng, (6, 7), "f4")
    for shape in [(6, 7), (7,), (6, 1)]:
        mask = strided(rng, shape, dtype)
        mask[...] = np.where(rng.integers(0, 2, shape), mask, 0)
        valid = np.broadcast_to(mask != 0, x.shape)
        exposed = Exposed(x, mask=Exposed(mask))
        array = bascule.as_cuda_array(exposed, sync=sync)
        assert (exposed.reads, exposed.fields["mask"].reads) == (1, 1)
        again = bascule.as_cuda_array(array)
        exported = array.__cuda_array_interface__["mask"].__cuda_array_interface__
        assert exported["data"] == exposed.fields["mask"].fields["data"]
        assert exported["shape"] == shape
        for each in (array, again):
            assert same(each.copy_to_host(), np.ma.array(x, mask=~valid))
            assert count(each) == valid.sum()


def test_a_bit_mask_is_kept_as_bits(rng, count):
    x = strided(rng, (6, 7), "f4")
    for shape in [(6, 7), (7,), (1, 1)]:
        valid = rng.integers(0, 2, shape).astype(bool)
        packed = np.packbits(valid.ravel(), bitorder="little")
        mask = Exposed(packed, shape=shape, strides=None, typestr="<t1", version=0)
        exposed = Exposed(x, mask=mask)
        array = bascule.from_cuda_array_interface(exposed.__cuda_array_interface__, exposed)
        everywhere = np.broadcast_to(valid, x.shape)
        assert isinstance(array.mask, bascule.BitMask)
        assert array.mask.shape == shape
        assert array.mask.size == valid.size
        assert np.array_equal(array.mask.copy_to_host(), valid)
        exported = array.mask.__cuda_array_interface__
        assert exported["typestr"][1:] == "t1"
        assert exported["data"] == mask.fields["data"]
        assert exported["strides"] is None
        assert same(array.copy_to_host(), np.ma.array(x, mask=~everywhere))
        assert count(array) == count(bascule.as_cuda_array(array)) == everywhere.sum()


def test_a_mask_is_bound_to_its_own_stream_and_else_to_that_of_its_array():
    first, second = bascule.stream(), bascule.stream()
    ones = np.ones(4, bool)
    for fields, expected in [({}, first.handle), ({"stream": second.handle}, second.handle)]:
        for mask in (Exposed(ones, **fields), Exposed(ones, shape=(4,), strides=None, typestr="<t1", **fields)):
            exposed = Exposed(np.ones(4, "f4"), mask=mask, stream=first.handle)
            array = bascule.as_cuda_array(exposed)
            assert array.mask.__cuda_array_interface__["stream"] == expected
            unordered = bascule.as_cuda_array(exposed, sync=False)
            assert unordered.mask.__cuda_array_interface__["stream"] is None
            assert unordered.mask.stream is None


def test_an_array_keeps_its_mask_alive_and_lets_it_go():
    mask = Exposed(np.ones(4, bool))
    exposed = Exposed(np.ones(4, "f4"), mask=mask)
    array = bascule.as_cuda_array(exposed)
    del exposed.fields["mask"]
    gone = weakref.ref(mask)
    del mask
    gc.collect()
    assert gone() is not None
    kept = array.mask
    del array
    gc.collect()
    assert gone() is not None
    del kept
    gc.collect()
    assert gone() is None
