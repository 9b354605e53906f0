"""Functions by which cuda.core's tests check results of cuda.bindings, and Bascule's errors by cuda.core's names."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver, nvrtc

import bascule

__all__ = ["CUDAError", "NVRTCError", "driver", "get_binding_version", "handle_return", "nvrtc"]

CUDAError = bascule.Error
NVRTCError = bascule.CompileError


def handle_return(results: tuple[Any, ...]) -> Any:
    status, *values = results
    if status != type(status)(0):
        raise RuntimeError(status)
    return None if not values else values[0] if len(values) == 1 else tuple(values)


def get_binding_version() -> tuple[int, int]:
    return 13, 0
