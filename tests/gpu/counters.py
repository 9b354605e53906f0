"""Compares the counts of `bascule.emulated.profile()` with Nsight Compute's counters of the same kernels on a GPU.

    python tests/gpu/counters.py [--out FILE]

The kernels are those of tests/python/profiles, whose counts are also found by hand. Instructions are not compared: the
emulated device counts those of PTX. Without ncu, or if it may not read the counters, only the emulated device's counts
are recorded. Exits with 1 if a count differs.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from collect import ROOT, replace

import bascule

SECONDS = 60.0 * float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)
PLACES = ["/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/ncu"]
# A count of the emulated device, and the counters of ncu whose sum it is.
COUNTERS = {
    "global_loads": ["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"],
    "global_load_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
    "global_stores": ["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"],
    "global_store_sectors": ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
    "bank_conflicts": ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"],
    "shared_requests": ["smsp__sass_inst_executed_op_shared_ld.sum", "smsp__sass_inst_executed_op_shared_st.sum"],
    "local_requests": [
        "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum",
        "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum",
    ],
}
ARRAYS: list[bascule.DeviceArray] = []  # what the runs access


def runs() -> dict[str, Callable[[], None]]:
    """Launches of one kernel each."""
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    kernels = bascule.compile(importlib.import_module("profiles.conftest").TEXT)
    ARRAYS[:] = [bascule.to_device(np.zeros(1 << 14, "i4")) for _ in range(2)]
    y, x = (bascule.raw_pointer(each.__cuda_array_interface__["data"][0]) for each in ARRAYS)
    return {
        "copy float": lambda: kernels.copy.instantiate("float", 1, 0)[2, 128](y, x),
        "copy double": lambda: kernels.copy.instantiate("double", 1, 0)[2, 128](y, x),
        "copy float4": lambda: kernels.copy.instantiate("float4", 1, 0)[2, 128](y, x),
        "copy float, stride 2": lambda: kernels.copy.instantiate("float", 2, 0)[2, 128](y, x),
        "copy float, stride 32": lambda: kernels.copy.instantiate("float", 32, 0)[2, 128](y, x),
        "copy float, offset 1": lambda: kernels.copy.instantiate("float", 1, 1)[2, 128](y, x),
        "shared float, stride 1": lambda: kernels.shared.instantiate("float", 1)[1, 32](y, x),
        "shared float, stride 2": lambda: kernels.shared.instantiate("float", 2)[1, 32](y, x),
        "shared float, stride 32": lambda: kernels.shared.instantiate("float", 32)[1, 32](y, x),
        "shared double, stride 2": lambda: kernels.shared.instantiate("double", 2)[1, 32](y, x),
        "shared float4, stride 2": lambda: kernels.shared.instantiate("float4", 2)[1, 32](y, x),
        "transpose": lambda: kernels.transpose.instantiate(0)[(2, 2), (32, 8)](y, x, 64),
        "transpose, padded": lambda: kernels.transpose.instantiate(1)[(2, 2), (32, 8)](y, x, 64),
        "local": lambda: kernels.local[1, 32](y, 1),
    }


def emulated() -> None:
    """Prints the counts of each run on the emulated device."""
    counts = {}
    for name, launch in runs().items():
        with bascule.emulated.profile() as taken:
            launch()
        (kernel,) = taken.kernels.values()
        counts[name] = {count: dataclasses.asdict(kernel)[count] for count in COUNTERS}
    print(json.dumps(counts))


def launch_all() -> None:
    for launch in runs().values():
        launch()
    bascule.synchronize()


def own(part: str, device: str) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of a part of this program on a device."""
    command = [sys.executable, str(Path(__file__).resolve()), "--here", part]
    return command, {**os.environ, "BASCULE_DEVICE": device, "BASCULE_EMULATED_ARCH": "90a"}


def counts_of_ncu(ncu: str) -> dict[str, Any]:
    """The counts of each run on the GPU, or `said` with the end of ncu's output."""
    command, environment = own("launch", "cuda")
    wanted = ",".join(counter for counters in COUNTERS.values() for counter in counters)
    options = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--metrics", wanted]
    try:
        done = subprocess.run([*options, *command], capture_output=True, text=True, timeout=SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        return {"said": f"ncu did not end within {SECONDS:.0f} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    rows = [row for row in csv.DictReader(lines) if row.get("ID", "").isdigit()]
    names = list(runs())
    if len(rows) != len(names):
        return {"said": f"{len(rows)} kernels of {len(names)}: {(done.stdout + done.stderr)[-1500:]}"}

    def sum_of(row: dict[str, str], counters: list[str]) -> int:
        return round(sum(float(row[counter].replace(",", "")) for counter in counters))

    return {
        name: {count: sum_of(row, counters) for count, counters in COUNTERS.items()}
        for name, row in zip(names, rows, strict=True)
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--here", choices=["emulated", "launch"])
    options = parser.parse_args()
    if options.here:
        emulated() if options.here == "emulated" else launch_all()
        return 0
    command, environment = own("emulated", "emulated")
    here = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    ncu = shutil.which("ncu") or next((place for place in PLACES if Path(place).exists()), None)
    there = counts_of_ncu(ncu) if ncu else {"said": "ncu was not found"}
    results = {"ncu": ncu, "counters": COUNTERS, "emulated": here, "gpu": there}
    if options.out:
        replace(options.out, json.dumps(results, indent=1) + "\n")
    if "said" in there:
        print(there["said"])
        return 0
    different = [
        f"{name}, {count}: {value} on the emulated device, {there[name][count]} on the GPU"
        for name, counts in here.items()
        for count, value in counts.items()
        if value != there[name][count]
    ]
    print("\n".join(different) or "every count is the same")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
