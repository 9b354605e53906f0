"""Finds NVRTC and the CUDA headers: named in `bascule.config`, in wheels, or in a toolkit."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from bascule import config


@dataclass(frozen=True)
class Location:
    """Libraries in order of preference; directories of headers."""

    nvrtc_libraries: list[str] = field(default_factory=list)
    include_paths: list[str] = field(default_factory=list)


def locate() -> Location:
    """From `bascule.config`, else cuda-pathfinder (wheels, conda, CUDA_HOME); empty lists mean the usual places."""
    return Location(
        nvrtc_libraries=[config.nvrtc_library] if config.nvrtc_library else _nvrtc_from_pathfinder(),
        include_paths=list(config.include_paths) or _headers_from_pathfinder(),
    )


def _nvrtc_from_pathfinder() -> list[str]:
    from cuda import pathfinder

    try:
        path = pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path
    except (pathfinder.DynamicLibNotFoundError, RuntimeError):
        return []
    return [path] if path else []


def _headers_from_pathfinder() -> list[str]:
    from cuda import pathfinder

    found: list[str] = []
    for name in ("cudart", "cccl"):
        located = pathfinder.locate_nvidia_header_directory(name)
        if located and located.abs_path and os.path.isdir(located.abs_path):
            found.append(located.abs_path)
    return found
