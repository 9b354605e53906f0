"""Processes that start together with one empty cache compile each program once in sum."""

import json
import os
import subprocess
import sys
from pathlib import Path

PROCESSES, KERNELS = 8, 3

# Prints a line when it is ready, begins when it reads one, and prints what it counted.
PROGRAM = f"""
import json, sys
import bascule

print("ready", flush=True)
sys.stdin.readline()
right = True
for factor in range(1, {KERNELS} + 1):
    text = f"__global__ void fill(int* x) {{{{ x[threadIdx.x] = {{factor}} * threadIdx.x; }}}}"
    x = bascule.zeros(4, "i4")
    bascule.compile(text).fill[1, 4](x)
    right = right and x.copy_to_host().tolist() == [factor * i for i in range(4)]
stats = bascule.cache.stats()
counts = {{name: getattr(stats, name) for name in ("compiled", "nvrtc_calls", "from_disk")}}
print(json.dumps(counts | {{"right": right}}))
"""


def test_processes_that_start_together_compile_each_program_once(tmp_path: Path) -> None:
    environment = os.environ | {"BASCULE_CACHE_DIR": str(tmp_path / "cache")}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    assert all(rank.stdout.readline() == "ready\n" for rank in ranks)  # type: ignore[union-attr]
    for rank in ranks:
        rank.stdin.write("go\n")  # type: ignore[union-attr]
        rank.stdin.flush()  # type: ignore[union-attr]
    told = [json.loads(rank.communicate(timeout=120)[0]) for rank in ranks]
    assert all(rank["right"] for rank in told)
    in_sum = {name: sum(rank[name] for rank in told) for name in ("compiled", "nvrtc_calls", "from_disk")}
    assert in_sum == {"compiled": KERNELS, "nvrtc_calls": KERNELS, "from_disk": KERNELS * (PROCESSES - 1)}
