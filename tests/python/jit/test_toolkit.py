"""Where NVRTC and the CUDA headers are looked for."""

import json
import subprocess
import sys

import pytest

from bascule import _toolkit

# In a process that has not loaded NVRTC: one that is loaded already is found before the wheels.
BOTH_WAYS = """
import json
from bascule import _toolkit

quick = [_toolkit._libraries(), _toolkit._header_directories()]
_toolkit._wheel = lambda: None
print(json.dumps([quick, [_toolkit._libraries(), _toolkit._header_directories()]]))
"""


def test_the_wheels_are_found_where_cuda_pathfinder_finds_them():
    root = _toolkit._wheel()
    if root is None:
        pytest.skip("NVIDIA's wheels of CUDA 13 are not installed here")
    ran = subprocess.run([sys.executable, "-c", BOTH_WAYS], capture_output=True, text=True, check=True)
    quick, by_pathfinder = json.loads(ran.stdout)
    assert quick == by_pathfinder
    assert quick[0] == [f"{root}/lib/libnvrtc.so.13"]
