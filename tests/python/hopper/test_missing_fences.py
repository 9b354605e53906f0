"""Missing proxy fences are faults that name the line of the asynchronous operation. With the fences there are none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from child_process import run_python

ROOT = Path(__file__).resolve().parents[3]

TEXT = """
__global__ void doubled(MAP in, MAP out, void* maps) {
    __shared__ __align__(128) float tile[8][32];
    __shared__ __align__(128) CUtensorMap changed;
    __shared__ u64 full;
    CUtensorMap* const mine = (CUtensorMap*)maps + blockIdx.x;
    const int t = threadIdx.x;
    if (t < 32) {
        ((u32*)&changed)[t] = ((const u32*)&in)[t];
        __syncwarp();
        if (t == 0)
            asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 1;"
                         :: "r"(shared(&changed)) : "memory");
        __syncwarp();
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
                     "[%0], [%1], 128;" :: "l"(mine), "r"(shared(&changed)) : "memory");
    }
    if (t == 0) {
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(mine) : "memory");  // acquire
        init(&full, 1);
        ready();
        expect(&full, 8 * 32 * 4);
        load(tile, *mine, &full, 0, 8 * blockIdx.x);  // loads
    }
    __syncthreads();
    wait_for(&full, 0);
    for (int i = t; i < 8 * 32; i += blockDim.x) tile[i / 32][i % 32] *= 2;
    proxy();  // of the writers
    __syncthreads();
    if (t == 0) {
        proxy();  // of the reader
        STORE(out, tile, 0, 8 * blockIdx.x);  // stores
        stored();
    }
}
"""

PROGRAM = """
import sys
sys.path.insert(0, "tests/python")
import numpy as np
import bascule
from hopper.texts import PRELUDE, TMA
host = np.arange(16 * 32, dtype="f4").reshape(16, 32)
out = bascule.zeros((16, 32), "f4")
maps = [bascule.tensor_map(each, (8, 32)) for each in (bascule.to_device(host), out)]
room = bascule.device_array(2 * 128, "u1")
options = bascule.CompileOptions(arch="sm_90a", lineinfo=True, defines={"STORE": sys.argv[1]})
bascule.compile(PRELUDE + TMA + sys.stdin.read(), options=options).doubled[2, 64](*maps, room)
try:
    assert np.array_equal(out.copy_to_host(), 2 * host)
    print("right")
except bascule.CudaError as error:
    print(error)
"""


def report(store: str, *missing: str) -> str:
    """Runs the kernel without the lines that have these comments. Returns the report, or "right"."""
    lines = [line for line in TEXT.splitlines() if not any(line.endswith("// " + each) for each in missing)]
    done = run_python("-c", PROGRAM, store, input="\n".join(lines), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def require(said: str, line: str, words: str) -> None:
    assert words in said
    assert re.search(rf"called from .*: .*// {line}$", said, re.MULTILINE), said


pytestmark = pytest.mark.usefixtures("hopper", "emulated")


@pytest.mark.parametrize("store", ["store", "add"])
@pytest.mark.parametrize("missing", [[], ["of the writers"], ["of the reader"]])
def test_a_fence_of_the_writers_or_of_the_reader_is_enough(store, missing):
    assert report(store, *missing) == "right\n"


@pytest.mark.parametrize(("store", "name"), [("store", "cp.async.bulk.tensor"), ("add", "cp.reduce.async.bulk.tensor")])
def test_a_tile_that_was_written_is_not_stored_without_a_fence(store, name):
    said = report(store, "of the writers", "of the reader")
    require(said, "stores", "of shared memory, which was written by an ordinary store")
    assert f"  {name} reads byte " in said
    assert "Execute fence.proxy.async" in said


def test_a_changed_map_is_not_used_without_a_fence():
    said = report("store", "acquire")
    require(said, "loads", "the tensor map in memory was changed without a fence.proxy.tensormap since")
    assert "fence.proxy.tensormap::generic.acquire" in said
