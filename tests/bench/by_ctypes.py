"""A launcher in plain Python and ctypes that makes the same checks as Bascule. Row L7 compares Bascule with it."""

from __future__ import annotations

import ctypes
from typing import Any

SIZES = {"<f4": 4}


def load_function(driver: ctypes.CDLL, ptx: str, name: str) -> ctypes.c_void_p:
    """Returns a CUfunction in the current context."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check(driver.cuModuleLoadData(ctypes.byref(module), ptx.encode()))
    check(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
    return function


def check(result: int) -> None:
    if result != 0:
        raise RuntimeError(f"the driver returned CUresult {result}")


def pointer_of(array: Any, typestr: str, written: bool, stream: int) -> int:
    """Reads and checks the interface, of version 0 to 3, of a contiguous array. Returns the pointer."""
    interface = array.__cuda_array_interface__
    version, shape = interface["version"], interface["shape"]
    if not isinstance(version, int) or not 0 <= version <= 3:
        raise ValueError(f"version {version!r} of the interface is not known")
    if not isinstance(shape, tuple) or any(not isinstance(extent, int) or extent < 0 for extent in shape):
        raise ValueError(f"shape must be a tuple of integers >= 0, not {shape!r}")
    if interface["typestr"] != typestr:
        raise TypeError(f"the kernel declares {typestr}, got {interface['typestr']}")
    strides = interface.get("strides")
    if strides is not None:
        expected = SIZES[typestr]
        for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
            if extent > 1 and stride != expected:
                raise ValueError("the array is not contiguous")
            expected *= extent
    if interface.get("mask") is not None:
        raise ValueError("the array has a mask")
    pointer, readonly = interface["data"]
    if written and readonly:
        raise ValueError("the array is read-only, and the kernel writes it")
    if pointer % SIZES[typestr]:
        raise ValueError("the pointer is not aligned")
    produced = interface.get("stream")
    if produced == 0:
        raise ValueError("stream must not be 0")
    if produced is not None and produced != stream:
        raise ValueError("the array is produced on another stream")
    return pointer


class CtypesLauncher:
    """Takes three arrays of float, of which the last is written, and a float."""

    def __init__(self, driver: ctypes.CDLL, function: ctypes.c_void_p, grid: int, block: int) -> None:
        self.driver, self.function, self.grid, self.block = driver, function, grid, block
        self.stream = 1

    def __call__(self, *arguments: Any) -> None:
        if len(arguments) != 4:
            raise TypeError(f"the kernel takes 4 arguments, got {len(arguments)}")
        values: list[Any] = [
            ctypes.c_void_p(pointer_of(array, "<f4", number == 2, self.stream))
            for number, array in enumerate(arguments[:3])
        ]
        values.append(ctypes.c_float(arguments[3]))
        parameters = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in values))
        context = ctypes.c_void_p()
        check(self.driver.cuCtxGetCurrent(ctypes.byref(context)))
        check(
            self.driver.cuLaunchKernel(
                self.function, self.grid, 1, 1, self.block, 1, 1, 0, ctypes.c_void_p(self.stream), parameters, None
            )
        )
