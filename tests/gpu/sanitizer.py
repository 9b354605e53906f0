"""Runs compute-sanitizer over Bascule's own device code: array views, bounds checks, elementwise operations, copies.

    python tests/gpu/sanitizer.py [--tool memcheck|racecheck|initcheck|synccheck] [--out FILE]

Exits with 1 if the tool reports an error, or does not report a planted one, which would show that it checks nothing.
Without compute-sanitizer the program runs as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from collect import replace

import bascule

SECONDS = 55.0 * float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)
# REPORT finds the first line of each report. EXPECTED is part of those that drivers before CUDA 13.2 cause in every
# program that uses Bascule, because it queries one more parameter than a kernel has, to see that there are no more.
REPORT = re.compile(
    r"^=+ ((?:Invalid|Program hit|Error|Uninitialized|Race|Barrier|Misaligned|Leaked)\b.*)", re.MULTILINE
)
EXPECTED = "on CUDA API call to cuKernelGetParamInfo"
PLACES = ["/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer"]
KERNELS = """
__global__ void add(bascule::array_view<const float> x, bascule::array_view<float> y) {
    for (auto i : bascule::grid_stride(y.size())) y[i] += x[i];
}
__global__ void transpose(bascule::array_view<const float, 2> x, bascule::array_view<float, 2> y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < y.extent(0) && j < y.extent(1)) y(i, j) = x(j, i);
}
__global__ void reduce(bascule::array_view<const float> x, float* sum) {
    __shared__ float parts[128];
    float mine = 0;
    for (auto i : bascule::grid_stride(x.size())) mine += x[i];
    parts[threadIdx.x] = mine;
    __syncthreads();
    for (int step = 64; step > 0; step /= 2) {
        if (threadIdx.x < step) parts[threadIdx.x] += parts[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(sum, parts[0]);
}
"""
PLANTED = {
    "memcheck": "__global__ void planted(float* x) { x[1 << 20] = 1; }",
    "racecheck": """
__global__ void planted(float* x) {
    __shared__ float parts[128];
    parts[threadIdx.x] = threadIdx.x;
    x[threadIdx.x] = parts[127 - threadIdx.x];
}
""",
}


def found_sanitizer() -> str | None:
    return shutil.which("compute-sanitizer") or next((place for place in PLACES if Path(place).exists()), None)


def work() -> None:
    """Runs all of Bascule's own device code, on small arrays."""
    module = bascule.compile(KERNELS)
    checked = bascule.compile(KERNELS, options=bascule.CompileOptions(defines={"BASCULE_CHECK_BOUNDS": 1}))
    random = np.random.default_rng(1)
    values = random.random((48, 32), "f4")
    for each in (module, checked):
        x, y = bascule.to_device(values), bascule.to_device(values.T.copy())
        flat = bascule.to_device(values.ravel())
        each.add[4, 128](flat, y.reshape(-1))
        each.transpose[(2, 2), (32, 32)](x, bascule.device_array((32, 48), "f4"))
        total = bascule.zeros(1, "f4")
        each.reduce[4, 128](flat, total)
        np.testing.assert_allclose(total.copy_to_host()[0], values.sum(), rtol=1e-4)
        each.add[4, 128](x[::2, 1], bascule.zeros(24, "f4"))
    for dtype in ("u1", "i2", "i4", "i8", "f2", "f4", "f8"):
        array = bascule.to_device((100 * values).astype(dtype))
        for other in ("i4", "f4", "f8"):
            np.testing.assert_array_equal(
                array.astype(other).copy_to_host(), (100 * values).astype(dtype).astype(other)
            )
        for view in (array.T, array[::2], array[:, ::-1], array[3:40:3, 5:]):
            np.testing.assert_array_equal(view.copy().copy_to_host(), view.copy_to_host())
        array.fill(3)
        array[1::2].fill(4)
        assert array.copy_to_host()[1, 0] == 4
    bascule.full((7, 5), 2.5, "f4").copy_to_host()
    bascule.ones(1001, "f8").astype("f4").copy_to_host()
    stream = bascule.stream()
    with bascule.Graph() as graph:
        module.add[4, 128](flat, y.reshape(-1))
    graph.launch(stream)
    bascule.synchronize()


def plant(tool: str) -> None:
    """Makes one error that the tool must report."""
    kernel = bascule.compile(PLANTED.get(tool, PLANTED["memcheck"])).planted
    x = bascule.zeros(128, "f4")
    kernel[1, 128](x)
    try:
        bascule.synchronize()
    except bascule.CudaError as error:
        print(error)


def run(sanitizer: str | None, tool: str, what: str) -> dict[str, Any]:
    """Runs a part of this program under the tool, or without it if there is none."""
    here = [sys.executable, str(Path(__file__).resolve()), "--here", what, "--tool", tool]
    options = ["--tool", tool, "--error-exitcode", "9", "--print-limit", "100"]
    command = [*([sanitizer, *options] if sanitizer else []), *here]
    environment = {**os.environ, "BASCULE_CACHE_DIR": str(Path("/tmp", f"bascule-sanitizer-{os.getpid()}"))}
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode(errors="replace")
        return {"how": f"did not end within {SECONDS:.0f} s", "said": text[-3000:]}
    text = done.stdout + done.stderr
    found = {"how": "ended", "status": done.returncode, "seconds": round(time.monotonic() - start, 1)}
    reports = REPORT.findall(text)
    summary = re.search(r"ERROR SUMMARY: (\d+) error", text)
    return found | {
        "errors": sum(EXPECTED not in report for report in reports),
        "not printed": max(0, int(summary[1]) - len(reports)) if summary else 0,
        "reports": sorted(set(reports))[:20],
        "said": text[-6000:],
    }


def is_clean(found: dict[str, Any]) -> bool:
    """True if the program succeeded and the tool reported nothing that matters."""
    if found.get("status") == 9:
        return found["errors"] == found["not printed"] == 0 and bool(found["reports"])
    return found.get("status") == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tool", default="memcheck", choices=["memcheck", "racecheck", "initcheck", "synccheck"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--here", choices=["work", "plant"])
    options = parser.parse_args()
    if options.here:
        work() if options.here == "work" else plant(options.tool)
        return 0
    found = found_sanitizer()
    results: dict[str, Any] = {"sanitizer": found, "tool": options.tool}
    for what in ("work", "plant") if found else ("work",):
        results[what] = run(found, options.tool, what)
        print(f"{options.tool}, {what}: {results[what]['how']}, status {results[what].get('status')}", flush=True)
        print("\n".join(results[what].get("reports", [])), flush=True)
        print(results[what]["said"][-2500:], flush=True)
        if options.out:
            replace(options.out, json.dumps(results, indent=1) + "\n")
    planted = not found or (results["plant"]["how"] == "ended" and not is_clean(results["plant"]))
    return int(not is_clean(results["work"]) or not planted)


if __name__ == "__main__":
    sys.exit(main())
