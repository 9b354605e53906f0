"""A launch uses code that was compiled ahead, also on devices whose code is for exactly their architecture."""

from __future__ import annotations

import pytest

from .place import prints

PROGRAM = """
module = bascule.compile("template <class T> __global__ void scale(T* p, T f) { p[threadIdx.x] *= f; }")
module.precompile({"scale": ["float"]}, progress=False)
before = bascule.cache.stats().nvrtc_calls
x = bascule.ones(4, "f4")
module.scale[1, 4](x, 2)
print(x.copy_to_host(), bascule.cache.stats().nvrtc_calls - before)
"""


@pytest.mark.parametrize("arch", ["80", "90", "90a"])
def test_a_launch_compiles_nothing(arch, tmp_path):
    said = prints(PROGRAM, BASCULE_EMULATED_ARCH=arch, BASCULE_CACHE_DIR=str(tmp_path))
    assert said == "[2. 2. 2. 2.] 0\n"
