"""Parsing allocates nothing, counted by a library that is preloaded into a separate process."""

from __future__ import annotations

from pathlib import Path

from child_process import printed_by

COUNTER = Path(__file__).resolve().parents[3] / "build" / "dev" / "tests" / "bench" / "count_allocations.so"

# A thousand more parses must allocate nothing more. A structure's layout allocates, which shows that the counter works.
PROGRAM = """
import ctypes
from bascule._bascule import _parse

counter = ctypes.CDLL(None).bascule_allocations
counter.restype = ctypes.c_ulong

def allocations(descriptor, times):
    before = counter()
    _parse(descriptor, times)
    return counter() - before

def more(descriptor):
    _parse(descriptor, 10)
    return allocations(descriptor, 1001) - allocations(descriptor, 1)

for dimensions in range(9):
    shape = (2,) * dimensions
    strides = tuple(4 << d for d in reversed(range(dimensions)))
    fields = dict(shape=shape, typestr="<f4", data=(0x7f0000000000, False), version=3, stream=(1 << 47) + 64)
    for changes in ({}, {"strides": strides}, {"strides": None, "descr": [("", "<f4")], "mask": None}):
        print(dimensions, sorted(changes), more({**fields, **changes}))
print("structure", more({**fields, "typestr": "|V4", "descr": [("a", "<f4")]}))
"""


def test_a_parse_of_up_to_eight_dimensions_allocates_nothing() -> None:
    # LD_PRELOAD splits at spaces, which the path may have, so it names a file in the current directory.
    printed = printed_by("-c", PROGRAM, cwd=COUNTER.parent, LD_PRELOAD=f"./{COUNTER.name}", PYTHONMALLOC="malloc")
    *lines, counted = printed.splitlines()
    assert len(lines) == 27
    assert [line for line in lines if not line.endswith(" 0")] == []
    assert int(counted.split()[-1]) >= 1000
