"""Finds NVRTC libraries: named in `bascule.config`, in wheels, or in a toolkit; the driver decides which is used."""

import glob
import os
import sys

from bascule import _bascule, config


def locate() -> tuple[list[str], list[str], bool]:
    """Return NVRTC libraries, directories of headers, and whether the headers belong to an installation.

    Of several, one that the driver accepts is used. Without directories, its own headers are used. Directories in
    `config.include_paths` may contain the user's own files.
    """
    libraries = [config.nvrtc_library] if config.nvrtc_library else _libraries()
    named = list(config.include_paths)
    return libraries, named, not named


def _libraries() -> list[str]:
    """Return the NVRTCs of wheels (if there are none, the one that cuda-pathfinder finds) and of toolkits."""
    return [*(_wheels() or _found_elsewhere()), *_bascule._toolkit_libraries()]


def _wheels() -> list[str]:
    """Return the NVRTCs of wheels on sys.path: in nvidia/cu13/lib (CUDA 13) and nvidia/cuda_nvrtc/lib (CUDA 12).

    cuda-pathfinder is not used here: importing it takes as long as importing Bascule, and it finds at most one.
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
