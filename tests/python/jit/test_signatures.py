"""Every row of the table of signatures, compiled by NVRTC, launched, and compared with NumPy's values."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import numpy as np
import pytest

import bascule

from .signature_table import COPY, ROWS, Row

SHARED = defaultdict(list)  # the rows of each text
for _row in ROWS:
    SHARED[_row.types].append(_row)


def kernel_of(row: Row) -> bascule.Kernel:
    """The row's kernel, whose name has the row's number."""
    rows = SHARED[row.types]
    kernels = [each.source.replace("void k(", f"void k{number}(") for number, each in enumerate(rows)]
    return bascule.compile("\n".join([row.types + COPY, *kernels]))[f"k{rows.index(row)}"]


def test_the_table_has_at_least_120_kernels_of_different_claims():
    assert len(ROWS) >= 120
    assert [claim for claim, times in Counter(row.claim for row in ROWS).items() if times > 1] == []


@pytest.mark.parametrize("row", [row for row in ROWS if row.error is None], ids=lambda row: row.claim)
def test_the_kernel_receives(row: Row):
    kernel = kernel_of(row)
    margin = 64
    out = bascule.to_device(np.full(len(row.received) + margin, 0xA5, "u1"))
    kernel[1, 1](*row.arguments(), out)
    got = bytearray(out.copy_to_host().tobytes())
    for place in row.padding:
        got[place] = row.received[place]
    assert re.sub(r"^void k\d+", "void k", kernel.signature) == row.signature
    assert got[: len(row.received)] == row.received
    assert got[len(row.received) :] == b"\xa5" * margin


@pytest.mark.parametrize("row", [row for row in ROWS if row.error is not None], ids=lambda row: row.claim)
def test_refused(row: Row):
    kernel = kernel_of(row)
    arguments = row.arguments()
    with pytest.raises(row.error) as caught:
        kernel[1, 1](*arguments)
    assert isinstance(caught.value, bascule.ArgumentError)
    message = str(caught.value)
    assert message.startswith("argument 1 'p': ")
    for part in row.says:
        assert part in message
    assert re.search(r"[.)]$", message)
