"""cuDF's columns with nulls through kernels that ask which elements are valid."""

from __future__ import annotations

import numpy as np
import pytest

import bascule
from producers.catalogue import Exposing, exports
from producers.kernels import values_of
from producers.memory import Produced

KERNELS = """
__global__ void valid_or(bascule::masked_view<const float> x, float otherwise, float* out) {
    for (auto i : bascule::grid_stride(x.size())) out[i] = x.valid(i) ? x[i] : otherwise;
}
"""
BEFORE, SINCE = (
    next(export for export in exports() if str(export) == name)
    for name in ["cuDF: with nulls, before 26.02", "cuDF: with nulls"]
)


@pytest.fixture(scope="module")
def valid_or() -> bascule.Kernel:
    return bascule.compile(KERNELS).valid_or


def test_the_bits_of_a_column_say_which_elements_are_valid(valid_or, rng):
    values, bits = values_of(BEFORE, rng), rng.integers(0, 256, 64, dtype="u1")
    column = Produced(BEFORE, values, bits)
    column.write()
    out = bascule.to_device(np.full(values.shape, np.nan, "f4"))
    valid_or[1, 32](column.object, -1, out)
    valid = np.unpackbits(bits, bitorder="little", count=values.size).astype(bool)
    assert 0 < valid.sum() < values.size
    assert (out.copy_to_host() == np.where(valid, values, -1)).all()


def of_library(package: str, interface: dict[str, object]) -> Exposing:
    """An object whose class is one of `package`."""
    return type("Buffer", (Exposing,), {"__module__": f"{package}.core.buffer"})(interface)


@pytest.mark.parametrize("package", ["cudf", "pylibcudf"])
@pytest.mark.parametrize("of_cudf", ["the mask", "the array"])
@pytest.mark.parametrize("size", [1, 37, 64, 65, 512])
def test_masks_of_cudf_are_bits_whatever_their_size(valid_or, rng, size, of_cudf, package):
    values, bits = rng.random(size).astype("f4"), rng.integers(0, 256, 64 if size <= 512 else 128, dtype="u1")
    data, mask = bascule.to_device(values), bascule.to_device(bits)
    described = Exposing(mask.__cuda_array_interface__)
    if of_cudf == "the mask":
        described = of_library(package, mask.__cuda_array_interface__)
    interface = {**data.__cuda_array_interface__, "mask": described}
    column = of_library(package, interface) if of_cudf == "the array" else Exposing(interface)
    valid = np.unpackbits(bits, bitorder="little", count=size).astype(bool)
    out = bascule.to_device(np.full(size, np.nan, "f4"))
    valid_or[1, 32](column, -1, out)
    np.testing.assert_array_equal(out.copy_to_host(), np.where(valid, values, -1))
    imported = bascule.as_cuda_array(column)
    assert isinstance(imported.mask, bascule.BitMask)
    np.testing.assert_array_equal(imported.copy_to_host().mask, ~valid)


def test_64_bytes_for_64_elements_are_refused_where_nothing_tells_what_they_are(valid_or):
    data, mask = bascule.to_device(np.ones(64, "f4")), bascule.to_device(np.ones(64, "u1"))
    fields = mask.__cuda_array_interface__
    out = bascule.to_device(np.zeros(64, "f4"))
    with pytest.raises(ValueError, match=r"'mask'.*one bit an element.*\|b1"):
        valid_or[1, 32](Exposing({**data.__cuda_array_interface__, "mask": Exposing(fields)}), -1, out)
    for exact in (mask, of_library("cupy", fields), Exposing({**fields, "typestr": "|b1"})):
        valid_or[1, 32](Exposing({**data.__cuda_array_interface__, "mask": exact}), -1, out)
        assert (out.copy_to_host() == 1).all()


def test_a_mask_said_to_be_bytes_of_another_number_is_refused(valid_or, rng):
    """Since 26.02 cuDF exports the bits as bytes: their meaning cannot be known from the dict."""
    values = values_of(SINCE, rng)
    column = Produced(SINCE, values, rng.integers(0, 256, 64, dtype="u1"))
    out = bascule.to_device(np.full(values.shape, np.nan, "f4"))
    with pytest.raises(ValueError, match="argument 1 'x'.*mask"):
        valid_or[1, 32](column.object, -1, out)
    bascule.synchronize()
    assert np.isnan(out.copy_to_host()).all()
