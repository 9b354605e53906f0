"""`python -m bascule`: what this installation found and what is missing, and the compiled programs on disk."""

from __future__ import annotations

import argparse
import io
import os
import platform
import signal
import sys
import warnings

import bascule
from bascule import _bascule, _cache_command


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bascule", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    described = "print device, driver, NVRTC and headers, with paths and versions"
    commands.add_parser("info", help=described, description=described).set_defaults(run=info)
    _cache_command.add_parser(commands)
    arguments = parser.parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names and paths may have any character
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has seen enough; what is still in the buffer goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (bascule.Error, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return status


def info(_: argparse.Namespace) -> int:
    """Print the report; 0 when kernels can be compiled and launched, 1 when something is missing."""
    missing: list[str] = []
    print(f"bascule    {bascule.__version__}, Python {platform.python_version()}, {platform.platform()}")
    missing += _print_driver()
    missing += _print_nvrtc()
    for sentence in missing:
        print(f"missing    {sentence}")
    if not missing:
        print("missing    nothing")
    return 1 if missing else 0


def _print_driver() -> list[str]:
    chosen = os.environ.get("BASCULE_DEVICE", "auto")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bascule.EmulatedDeviceWarning)
            device = bascule.current_device()
        driver = _bascule._driver_info()
    except bascule.Error as error:
        print(f"device     none (BASCULE_DEVICE={chosen})")
        return [f"driver: {error}"]
    print(f"device     {device!r}, {device.multiprocessors} SMs, kernels are compiled for {device.arch}")
    kind = "emulated device" if driver["emulated"] else "CUDA driver"
    version = f"{driver['version'] // 1000}.{driver['version'] % 1000 // 10}"
    print(f"driver     {kind} {version}: {driver['path']} (BASCULE_DEVICE={chosen})")
    if driver["fallback_reason"]:
        print(f"           no GPU is used: {driver['fallback_reason']}")
    return []


def _print_nvrtc() -> list[str]:
    try:
        nvrtc = _bascule._nvrtc_info()
    except bascule.Error as error:
        print("nvrtc      none")
        return [f"NVRTC: {error}"]
    print(f"nvrtc      {nvrtc['version']}: {nvrtc['path']}")
    missing = []
    for header, package in (
        ("cuda_fp16.h", "nvidia-cuda-runtime"),
        ("cooperative_groups.h", "nvidia-cuda-runtime"),
        ("cuda/std/array", "nvidia-cuda-cccl"),
    ):
        found = next((path for path in nvrtc["include_paths"] if os.path.exists(os.path.join(path, header))), None)
        print(f"header     {header}: {found or 'not found'}")
        if found is None:
            missing.append(f"{header}: pip install {package}")
    return missing


if __name__ == "__main__":
    sys.exit(main())
