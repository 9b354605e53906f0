"""cuDF's columns with nulls through kernels that ask which elements are valid."""

from __future__ import annotations

import numpy as np
import pytest

import bascule
from producers.catalogue import exports
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


def test_a_mask_said_to_be_bytes_of_another_number_is_refused(valid_or, rng):
    """Since 26.02 the bits are exported as so many bytes: what they mean cannot be known from the dict."""
    values = values_of(SINCE, rng)
    column = Produced(SINCE, values, rng.integers(0, 256, 64, dtype="u1"))
    out = bascule.to_device(np.full(values.shape, np.nan, "f4"))
    with pytest.raises(ValueError, match="argument 1 'x'.*mask"):
        valid_or[1, 32](column.object, -1, out)
    bascule.synchronize()
    assert np.isnan(out.copy_to_host()).all()
