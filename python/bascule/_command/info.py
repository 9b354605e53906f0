"""`bascule info`: prints the device, driver, NVRTC, headers and cache, and how to install missing parts."""

import argparse
import os
import platform
import warnings
from typing import Any

import bascule
from bascule import _bascule
from bascule._command import cache as _cache
from bascule._command.parser import Commands, add_command, print_json

_EXAMPLES = """\
  bascule info
  bascule info --json
  bascule info --clangd > .clangd       # completion and errors in .cu files
  BASCULE_DEVICE=cuda bascule info      # fails where there is no GPU, and says why"""

# The file that clangd reads. Its own headers replace those of nvcc's wrapper, and the prelude is what Bascule compiles
# before each text.
_CLANGD = """\
If:
  PathMatch: .*\\.cuh?
CompileFlags:
  Add:
    - -xcuda
    - -std=c++17
    - --cuda-gpu-arch=sm_80
    - --cuda-device-only
    - -nocudainc
    - -nocudalib
    - -include__clang_cuda_runtime_wrapper.h
{}
"""
_HEADERS = (
    ("cuda_fp16.h", "nvidia-cuda-runtime"),
    ("cooperative_groups.h", "nvidia-cuda-runtime"),
    ("cuda/std/array", "nvidia-cuda-cccl"),
)

# Libraries whose arrays or dtypes Bascule accepts, with the names of their packages.
_LIBRARIES = (
    ("CuPy", ("cupy", "cupy-cuda12x", "cupy-cuda13x")),
    ("PyTorch", ("torch",)),
    ("Numba CUDA", ("numba-cuda",)),
    ("JAX", ("jax",)),
    ("RMM", ("rmm", "rmm-cu12", "rmm-cu13")),
    ("cuDF", ("cudf", "cudf-cu12", "cudf-cu13")),
    ("Warp", ("warp-lang",)),
    ("PyCUDA", ("pycuda",)),
    ("cuda.core", ("cuda-core",)),
    ("ml_dtypes", ("ml_dtypes",)),
    ("mpi4py", ("mpi4py",)),
)


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands,
        "info",
        "print device, driver, NVRTC, headers, cache and libraries, and how to install what is missing",
        details="Exits with 1 if kernels cannot be compiled or launched.",
        examples=_EXAMPLES,
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON; the keys do not change")
    form.add_argument(
        "--clangd", action="store_true", help="only the settings of clangd for kernels, for a file .clangd"
    )
    parser.set_defaults(run=_info)


def _info(arguments: argparse.Namespace) -> int:
    if arguments.clangd:
        print(_clangd(), end="")
        return 0
    report = _report()
    (print_json if arguments.json else _print)(report)
    return 1 if report["missing"] else 0


def _clangd() -> str:
    import json

    package = os.path.dirname(_bascule.__file__)
    # Bascule's stand-ins for host headers are for NVRTC; clangd has those of a host compiler.
    paths = [path for path in _bascule._nvrtc_info()["include_paths"] if not path.startswith(package)]
    flags = [f"-I{path}" for path in paths] + [f"-include{os.path.join(package, 'prelude.cuh')}"]
    return _CLANGD.format("\n".join(f"    - {json.dumps(flag)}" for flag in flags))


def _report() -> dict[str, Any]:
    from bascule._command.disassembly import find_disassembler

    missing: list[str] = []
    device, driver = _device(missing)
    nvrtc, headers = _nvrtc(missing)
    return {
        "bascule": bascule.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "chosen_device": os.environ.get("BASCULE_DEVICE", "auto"),
        "device": device,
        "driver": driver,
        "nvrtc": nvrtc,
        "headers": headers,
        "disassembler": find_disassembler(),
        "cache": _cached(),
        "libraries": _libraries(),
        "missing": missing,
    }


def _device(missing: list[str]) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    try:
        with warnings.catch_warnings(action="ignore", category=bascule.EmulatedDeviceWarning):
            device = bascule.current_device()
        driver = _bascule._driver_info()
    except bascule.Error as error:
        missing.append(f"driver: {error}")
        return None, None
    version = f"{driver['version'] // 1000}.{driver['version'] % 1000 // 10}"
    return (
        {"repr": repr(device)} | {key: getattr(device, key) for key in ("name", "emulated", "arch", "multiprocessors")},
        {"version": version} | {key: driver[key] for key in ("path", "fallback_reason", "launches_wait")},
    )


def _nvrtc(missing: list[str]) -> tuple[dict[str, Any] | None, dict[str, str | None]]:
    try:
        nvrtc = _bascule._nvrtc_info()
    except bascule.Error as error:
        missing.append(f"NVRTC: {error}")
        return None, {}
    if not nvrtc["accepted"]:
        missing.append(f"NVRTC: {nvrtc['conflict']}")
    suffix = "-cu12" if nvrtc["version"].startswith("12.") else ""
    headers = {}
    for header, package in _HEADERS:
        paths = nvrtc["include_paths"]
        headers[header] = next((path for path in paths if os.path.exists(os.path.join(path, header))), None)
        if headers[header] is None:
            missing.append(f"{header}: pip install {package}{suffix}")
    return {key: nvrtc[key] for key in ("version", "path", "accepted", "conflict")}, headers


def _cached() -> dict[str, Any]:
    directory = bascule.cache.directory()
    found: dict[str, Any] = {"directory": directory, "limit_bytes": bascule.cache.limit_bytes, "problem": ""}
    try:
        entries = bascule.cache.list()
    except bascule.CacheError as error:
        return {**found, "programs": 0, "bytes": 0, "problem": str(error)}
    return {**found, "programs": len(entries), "bytes": sum(entry.bytes for entry in entries)}


def _libraries() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for library, packages in _LIBRARIES:
        for package in packages:
            try:
                found[library] = version(package)
                break
            except PackageNotFoundError:
                continue
    return found


def _print(report: dict[str, Any]) -> None:
    chosen = f"(BASCULE_DEVICE={report['chosen_device']})"
    print(f"bascule    {report['bascule']}, Python {report['python']}, {report['platform']}")
    if device := report["device"]:
        driver = report["driver"]
        print(
            f"device     {device['repr']}, {device['multiprocessors']} SMs, kernels are compiled for {device['arch']}"
        )
        kind = "emulated device" if device["emulated"] else "CUDA driver"
        print(f"driver     {kind} {driver['version']}: {driver['path']} {chosen}")
        if driver["fallback_reason"]:
            print(f"           no GPU is used: {driver['fallback_reason']}")
        if driver["launches_wait"]:
            print("           each launch waits for its kernel (CUDA_LAUNCH_BLOCKING)")
    else:
        print(f"device     none {chosen}")
    nvrtc = report["nvrtc"]
    print(f"nvrtc      {nvrtc['version']}: {nvrtc['path']}" if nvrtc else "nvrtc      none")
    if nvrtc and nvrtc["conflict"] and nvrtc["accepted"]:
        print(f"           {nvrtc['conflict']}")
    for header, path in report["headers"].items():
        print(f"header     {header}: {path or 'not found'}")
    no_disassembler = "none; for bascule compile --sass: pip install nvidia-cuda-nvdisasm"
    print(f"sass       {report['disassembler'] or no_disassembler}")
    print(f"cache      {_cache_line(report['cache'])}")
    libraries = ", ".join(f"{name} {version}" for name, version in report["libraries"].items())
    print(f"libraries  {libraries or 'none whose arrays are known by name'}")
    for sentence in report["missing"]:
        print("missing    " + sentence.replace("\n", "\n           "))
    if not report["missing"]:
        print("missing    nothing")


def _cache_line(cache: dict[str, Any]) -> str:
    if not cache["directory"]:
        why = "BASCULE_CACHE_DIR is empty" if "BASCULE_CACHE_DIR" in os.environ else "there is no home directory"
        return f"none on disk: {why}"
    if cache["problem"]:
        return str(cache["problem"])
    return f"{cache['directory']}: {_cache.summary(cache['programs'], cache['bytes'])}"
