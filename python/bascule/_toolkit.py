"""Finds NVRTC: named in `bascule.config`, in wheels, or in a toolkit. Which one compiles is decided by the driver."""

import glob
import os
import sys

from bascule import _bascule, config


def locate() -> tuple[list[str], list[str], bool]:
    """NVRTC libraries, directories of headers, and whether those are an installation's.

    Several libraries leave the choice to the driver. Without directories, the headers are those that belong to the
    library. Directories that a user names may hold the user's own files.
    """
    libraries = [config.nvrtc_library] if config.nvrtc_library else _libraries()
    named = list(config.include_paths)
    return libraries, named, not named


def _libraries() -> list[str]:
    """Every NVRTC of a wheel, else the one that cuda-pathfinder finds (conda's), and those of toolkits."""
    return [*(_wheels() or _found_elsewhere()), *_bascule._toolkit_libraries()]


def _wheels() -> list[str]:
    """NVRTC of the wheels on sys.path: nvidia/cu13/lib of CUDA 13, nvidia/cuda_nvrtc/lib of CUDA 12.

    Importing cuda-pathfinder takes as long as importing Bascule, and it finds one of them at most.
    """
    found: list[str] = []
    for entry in sys.path:
        packages = os.path.join(os.path.realpath(entry), "nvidia")
        found += sorted(glob.glob(f"{glob.escape(packages)}/*/lib/libnvrtc.so.*"))
    return list(dict.fromkeys(found))


def _found_elsewhere() -> list[str]:
    from cuda import pathfinder

    try:
        path = pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path
    except (pathfinder.DynamicLibNotFoundError, RuntimeError):
        return []
    return [path] if path else []
