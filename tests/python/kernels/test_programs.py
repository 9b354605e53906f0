"""Random programs have the same results on the device and with the host's own compiler."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import bascule

from .conftest import given, wanted
from .programs import RESULTS, WORDS, write_programs

EDGES = [
    0,
    1,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    0x7F800000,
    0xFF800000,
    0x3F800000,
    0x00000001,
    0x7FC00000,
    0x4B000001,
]
THREADS = 97
COMPILER = shutil.which("c++") or shutil.which("g++")


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler for the host")
@pytest.mark.filterwarnings("ignore::bascule.CompileWarning")  # random arithmetic divides by zero and wraps
@pytest.mark.parametrize("first", [0, 8])
def test_random_programs_give_what_the_host_computes(rng, tmp_path, first):
    seeds = range(first, first + 8)
    device, host = write_programs(seeds)
    source, library = tmp_path / "programs.cpp", tmp_path / "programs.so"
    source.write_text(host)
    # Without -frounding-math, g++ compiles 0.0f - (float)i as -(float)i, which is -0 instead of 0 for i = 0.
    exact = ["-O1", "-frounding-math", "-fwrapv", "-ffp-contract=off", "-fno-builtin-fma", "-w", "-shared", "-fPIC"]
    subprocess.run([COMPILER, *exact, source, "-o", library], check=True)
    functions = ctypes.CDLL(str(library))
    module = bascule.compile(device, options=bascule.CompileOptions(extra=["--fmad=false"]))
    words = rng.integers(0, 2**32, (THREADS, WORDS), dtype="u4")
    for row in words[:60]:
        row[:] = np.where(rng.random(WORDS) < 0.6, rng.choice(EDGES, WORDS), row)
    for seed in seeds:
        out = wanted((THREADS, RESULTS), "u8")
        module[f"p{seed}"][4, 33](given(words), out, THREADS)
        expected = np.empty((THREADS, RESULTS), "u8")
        functions[f"p{seed}"](words.ctypes.data_as(ctypes.c_void_p), expected.ctypes.data_as(ctypes.c_void_p), THREADS)
        np.testing.assert_array_equal(out.read(), expected, err_msg=f"program {seed}")
