"""The examples in the docstrings of arrays work as shown."""

from __future__ import annotations

import doctest

import pytest

import bascule

METHODS = ["__getitem__", "__setitem__", "item", "ravel", "reshape", "transpose", "view", "astype", "copy", "fill",
           "copy_to_host", "copy_from_host", "export"]  # fmt: skip
FUNCTIONS = ["to_device", "device_array", "device_array_like", "zeros", "zeros_like", "ones", "full", "pinned_array",
             "managed_array", "as_cuda_array", "from_cuda_array_interface",
             "is_cuda_array", "pointer_attributes", "set_allocator"]  # fmt: skip
DOCUMENTED = {
    "DeviceArray": bascule.DeviceArray,
    **{name: getattr(bascule.DeviceArray, name) for name in METHODS},
    **{name: getattr(bascule, name) for name in FUNCTIONS},
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_example_runs(name):
    example = doctest.DocTestParser().get_doctest(DOCUMENTED[name].__doc__, {}, name, None, 0)
    assert example.examples
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=report.append)
    assert result.failed == 0, "".join(report)
