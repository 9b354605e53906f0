"""The driver's calls affect captures as recorded on a GPU (tests/gpu/captures.py); a difference is noticed."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from child_process import run_python

GPU = Path(__file__).resolve().parents[2] / "gpu"
RECORDS = sorted((GPU / "results").glob("*/captures.json"))


def compared(file: Path) -> subprocess.CompletedProcess[str]:
    """Compares the driver with a record in a separate process, because some objects are never freed."""
    return run_python(GPU / "captures.py", "--compare", file)


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: file.parent.name)
def test_the_driver_treats_captures_as_a_gpus_driver_did(file):
    done = compared(file)
    assert (done.returncode, done.stdout) == (0, "no call differs\n"), done.stdout + done.stderr


@pytest.mark.skipif(not RECORDS, reason="no record of a GPU is here")
def test_a_call_that_would_invalidate_a_capture_is_noticed(tmp_path):
    record = json.loads(RECORDS[0].read_text())
    record["calls"]["cuMemFreeAsync"]["global, own"] = "0 active"
    (tmp_path / "captures.json").write_text(json.dumps(record))
    done = compared(tmp_path / "captures.json")
    assert done.stdout == "cuMemFreeAsync (global, own): recorded 0 active, here 900 invalidated\n"
    assert done.returncode == 1


# Functions of the table that need not be called in the relaxed mode: they look things up, compute on the host, can be
# captured, or belong to captures. cuCtxSynchronize and cuCtxRecordEvent end a capture in every mode, so their callers
# look for captures first.
HARMLESS = {
    *("cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuDeviceGet", "cuDeviceGetCount"),
    *("cuDeviceGetName", "cuDeviceGetAttribute", "cuDevicePrimaryCtxGetState", "cuCtxSetCurrent", "cuCtxGetDevice"),
    *("cuCtxSynchronize", "cuCtxRecordEvent", "cuDeviceTotalMem"),
    *("cuLaunchKernelEx", "cuMemcpyDtoDAsync", "cuMemsetD16Async", "cuMemsetD32Async"),
    *("cuPointerGetAttributes", "cuCtxGetStreamPriorityRange", "cuDeviceCanAccessPeer", "cuStreamGetCaptureInfo"),
    *("cuStreamGetCtx", "cuStreamGetPriority", "cuStreamIsCapturing", "cuStreamBeginCapture", "cuStreamEndCapture"),
    *("cuStreamUpdateCaptureDependencies", "cuThreadExchangeStreamCaptureMode", "cuGraphGetNodes"),
    *("cuGraphAddChildGraphNode", "cuGraphRetainUserObject", "cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col"),
}


def test_what_a_capture_forbids_or_nobody_has_recorded_is_called_in_the_relaxed_mode():
    header = (GPU.parents[1] / "runtime" / "driver" / "driver.hpp").read_text()
    table = dict(re.findall(r"FUNCTION\((cu\w+), \d+, (\w+)\)", header))
    relaxed = {name for name, mode in table.items() if mode == "relaxed"}
    recorded: dict[str, set[str]] = {}
    for file in RECORDS:
        for name, found in json.loads(file.read_text())["calls"].items():
            recorded.setdefault(name, set()).update(found.values())
    harmless = HARMLESS | {n for n, found in recorded.items() if not any("invalidated" in each for each in found)}
    assert set(table) - harmless <= relaxed
