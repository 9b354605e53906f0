"""Finds NVRTC and the CUDA headers: named in `bascule.config`, in wheels, or in a toolkit."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path

from bascule import _bascule, config


def locate() -> tuple[list[str], list[str], bool]:
    """NVRTC libraries in order of preference, directories of headers, and whether those are an installation's.

    What is empty leaves the usual places. Directories that a user names may hold the user's own files.
    """
    libraries = [config.nvrtc_library] if config.nvrtc_library else _libraries()
    named = list(config.include_paths)
    return libraries, named or _found_headers(), not named


def _wheel() -> str | None:
    """The directory of NVIDIA's wheels of CUDA 13, if it is where cuda-pathfinder would look first.

    Most often it is, and importing cuda-pathfinder takes as long as importing Bascule.
    """
    in_environment = sys.prefix != sys.base_prefix or not site.ENABLE_USER_SITE
    first = site.getsitepackages()[0] if in_environment else site.getusersitepackages()
    root = f"{first}/nvidia/cu13"
    parts = ("lib/libnvrtc.so.13", "include/cuda_runtime.h", "include/cccl/cuda/std/version")
    return root if all(os.path.isfile(f"{root}/{part}") for part in parts) else None


def _libraries() -> list[str]:
    # One that the process has loaded already wins over the wheels: cuda-pathfinder knows where it is.
    if (root := _wheel()) and "libnvrtc.so" not in Path("/proc/self/maps").read_text():
        return [f"{root}/lib/libnvrtc.so.13"]
    from cuda import pathfinder

    try:
        path = pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path
    except (pathfinder.DynamicLibNotFoundError, RuntimeError):
        return []
    return [path] if path else []


def _found_headers() -> list[str]:
    """The wheels' directories, then those of a toolkit, which has what few wheels have: cuRAND's headers, NVTX."""
    wheels = _header_directories()
    return [*wheels, *_bascule._toolkit_headers()] if wheels else []


def _header_directories() -> list[str]:
    if root := _wheel():
        return [os.path.realpath(f"{root}/include"), os.path.realpath(f"{root}/include/cccl")]
    from cuda import pathfinder

    found: list[str] = []
    for name in ("cudart", "cccl", "curand"):
        located = pathfinder.locate_nvidia_header_directory(name)
        # A toolkit's are added behind all wheels; of a wheel of CUDA 12, cuRAND's have a directory of their own.
        if name == "curand" and (located is None or located.found_via != "site-packages"):
            continue
        if located and located.abs_path and os.path.isdir(located.abs_path):
            found.append(located.abs_path)
    return found
