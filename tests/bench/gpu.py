"""The costs of launches, memory, compiling and starting on a GPU, compared with the driver and with other libraries.

    python tests/bench/gpu.py [--rounds N] [--json FILE] [--smoke] [--only PART...]

Runs unattended, without a network, for about two minutes. Each library is compared with Bascule in a separate process
(gpu_part.py), so that one that fails or hangs does not affect the others; starting is last (gpu_startup.py). FILE is
rewritten after each process, and FILE with the ending .rows gets every figure as soon as it is known. Times are wall
clock. Libraries that are not installed are skipped with the reason. Without a GPU nothing is measured, which is not a
failure; --smoke runs everything on the emulated device, where the figures mean nothing. A goal that is not met is not a
failure.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import measuring
import peers
from measuring import Result, missing

import bascule
from bascule import _bascule

HERE = Path(__file__).resolve().parent
DEVICE = "BASCULE_BENCH_DEVICE"  # set in the processes that measure
PACKAGES = ["numpy", "cuda-core", "numba-cuda", "cupy-cuda13x", "cupy-cuda12x", "torch", "triton"]
STARTUP = "startup"
PARTS = ["bascule", "cupy", "torch", "triton", "cuda.core", "numba-cuda", STARTUP]
SCALE = float(os.environ.get("BASCULE_GPU_TIME_SCALE") or 1)
SECONDS = 40 * SCALE  # limit for a library's process
STARTUP_SECONDS = 55 * SCALE  # no process that is expected to end later than this is started
ORDER = ["G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", ""]


def versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def command_of(part: str, rounds: int | None, rows: Path) -> list[str]:
    script = "gpu_startup.py" if part == STARTUP else "gpu_part.py"
    command = [sys.executable, str(HERE / script), "--rows", str(rows)]
    if part != STARTUP:
        command.append(part)
        return command + (["--rounds", str(rounds)] if rounds else [])
    return [*command, "--seconds", str(STARTUP_SECONDS), *(["--rounds", "1"] if rounds else [])]


def run_part(part: str, rounds: int | None, rows: Path) -> str:
    """Runs one part. Returns why it failed, or an empty string."""
    limit = STARTUP_SECONDS + SECONDS if part == STARTUP else SECONDS
    start = time.monotonic()
    try:
        done = subprocess.run(
            command_of(part, rounds, rows), stderr=subprocess.PIPE, text=True, errors="replace", timeout=limit
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {limit:.0f} s"
    finally:
        print(f"-- {part}: {time.monotonic() - start:.1f} s\n", flush=True)
    if done.returncode:
        print(done.stderr[-2000:], flush=True)
        return f"ended with status {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1][:200]}"
    return ""


def read(rows: Path) -> tuple[list[dict[str, Any]], list[Result]]:
    """Returns the times (bars) and ratios (rows) so far. Skips a line that a killed process left incomplete."""
    bars: dict[str, dict[str, Any]] = {}
    results: dict[tuple[str, str], Result] = {}
    for line in rows.read_text(encoding="utf-8").splitlines() if rows.exists() else []:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if "bar" in found:
            bars.setdefault(found["bar"]["what"], found["bar"])
        else:
            result = Result(**found["row"])
            results.setdefault((result.number, result.what), result)
    return list(bars.values()), sorted(results.values(), key=lambda result: ORDER.index(result.number))


def write(file: Path, rows: Path, about: dict[str, Any], emulated: bool) -> list[Result]:
    bars, results = read(rows)
    if emulated:
        results = [
            dataclasses.replace(result, verdict="not judged") if result.measured else result for result in results
        ]
    measuring.write_json(file, results, **about, libraries=versions(), bars=bars)
    return results


def measure_in_processes(options: argparse.Namespace) -> int:
    try:
        device = bascule.current_device()
    except bascule.LibraryError as error:
        print(f"gpu: nothing is measured, there is no GPU: {error}")
        return 0
    about = {"device": device.name, "arch": device.arch, "driver": _bascule._driver_info()["version"]}
    emulated = device.emulated or os.environ[DEVICE] == "emulated"
    print(f"{device!r}, {measuring.machine()}\n")
    if emulated:
        print("this tries the program; the figures mean nothing\n")
    file = options.json or Path(tempfile.mkdtemp(prefix="bascule-bench-gpu-"), "bench-gpu.json")
    rows = file.with_suffix(".rows")
    rows.unlink(missing_ok=True)
    failed = []
    for part in options.only or PARTS:
        if reason := run_part(part, options.rounds, rows):
            failed.append(part)
            line = {"row": dataclasses.asdict(missing("", part, "", reason))}
            with rows.open("a", encoding="utf-8") as lines:
                lines.write("\n" + json.dumps(line) + "\n")
        results = write(file, rows, about, emulated)
    print(f"\n{measuring.heading()}")
    for result in results:
        print(result)
    if failed:
        print(f"did not end well: {', '.join(failed)}")
    return int(bool(failed))


def main() -> int:
    parser = argparse.ArgumentParser(description="What Bascule costs on a GPU, beside other libraries.")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows, for plot.py too")
    parser.add_argument("--smoke", action="store_true", help="on the emulated device, to try this program")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART")
    options = parser.parse_args()
    if DEVICE in os.environ:
        os.environ["BASCULE_DEVICE"] = os.environ[DEVICE]
        return measure_in_processes(options)
    if options.smoke:
        os.environ[DEVICE] = "emulated"
        return peers.with_the_driver(__file__, *sys.argv[1:])
    os.environ[DEVICE] = "cuda"
    return subprocess.run([sys.executable, __file__, *sys.argv[1:]]).returncode


if __name__ == "__main__":
    sys.exit(main())
