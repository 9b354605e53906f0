"""Shared by the tests of the kernel corpus: kernels by name, arrays between poisoned margins, comparisons."""

from __future__ import annotations

import multiprocessing
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bascule
from bascule import _bascule

# Selects another NVRTC (tests/nvrtc_versions.py). It is here because processes that tests start import this too.
if "BASCULE_TEST_NVRTC" in os.environ:
    bascule.config.nvrtc_library = os.environ["BASCULE_TEST_NVRTC"]
    bascule.config.include_paths = os.environ["BASCULE_TEST_INCLUDE"].split(os.pathsep)

CORPUS = Path(__file__).resolve().parents[2] / "kernels"
MARGIN = 256  # bytes on each side; keeps the alignment that vector types need

SIZES = [1, 31, 33, 257, 1000, 4099]
BLOCKS = [32, 33, 97, 256]

Array = np.ndarray[Any, Any]


def poison(dtype: Any) -> Array:
    """One element that is never a valid result: a NaN with a payload, or 0xA5 in every byte."""
    dtype = np.dtype(dtype)
    if dtype.kind in "fc":
        part = dtype.itemsize // (2 if dtype.kind == "c" else 1)
        bits = {2: 0x7EAD, 4: 0x7FC0DEAD, 8: 0x7FF8DEADDEADDEAD}[part]
        return np.array([bits] * (dtype.itemsize // part), f"u{part}").view(dtype)
    return np.full(dtype.itemsize, 0xA5, "u1").view(dtype)


class Guarded:
    """An array on the device with poison before and after it; `read` fails if the poison was changed."""

    def __init__(self, host: Array) -> None:
        self.shape, self.dtype = host.shape, host.dtype
        margin = np.resize(poison(self.dtype), MARGIN // self.dtype.itemsize)
        self._before = margin.tobytes()
        whole = np.concatenate([margin, host.ravel(), margin])
        self._array = bascule.to_device(whole.view("u1"))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        fields = dict(self._array.__cuda_array_interface__)
        address, readonly = fields["data"]
        fields.update(data=(address + MARGIN, readonly), shape=self.shape, typestr=self.dtype.str)
        fields.pop("descr", None)
        fields["strides"] = None
        return fields

    @property
    def pointer(self) -> Any:
        """The address as a raw pointer, which parameters that point to structs accept. Keep the array alive."""
        return bascule.raw_pointer(self.__cuda_array_interface__["data"][0])

    def read(self) -> Array:
        """Returns the contents; checks that the margins are unchanged."""
        raw = self._array.copy_to_host()
        assert raw[:MARGIN].tobytes() == self._before, "written before the first element"
        assert raw[-MARGIN:].tobytes() == self._before, "written behind the last element"
        return raw[MARGIN:-MARGIN].view(self.dtype).reshape(self.shape)


def given(host: Any, dtype: Any = None) -> Guarded:
    """An array that the kernel reads, or reads and writes."""
    return Guarded(np.ascontiguousarray(host, dtype))


def wanted(shape: int | tuple[int, ...], dtype: Any) -> Guarded:
    """An array that the kernel must fill: its elements are poisoned too."""
    shape = (shape,) if isinstance(shape, int) else shape
    return Guarded(np.resize(poison(dtype), shape))


def blocks_for(work: int, block: int) -> int:
    return (work + block - 1) // block


def assert_within_ulps(result: Array, exact: Any, ulps: float, what: str = "") -> None:
    """Checks that `result` is within `ulps` units in the last place, of its own type, of `exact` (of a wider type)."""
    exact = np.asarray(exact)
    unit = np.spacing(np.abs(exact).astype(result.dtype)).astype(exact.dtype)
    away = np.abs(result.astype(exact.dtype) - exact) / unit
    assert np.isfinite(away).all(), f"{what} not finite: {result[~np.isfinite(away)][:5]}"
    farthest = away.max(initial=0)
    assert farthest <= ulps, f"{what} {farthest} units away, at {np.argmax(away)}; {ulps} allowed"


def kernels_of(file: Path) -> dict[str, int]:
    """The kernels of a file in order, each with the __CUDA_ARCH__ that the #if around it requires, or 0."""
    text = re.sub(r"//.*", "", file.read_text())
    kernels: dict[str, int] = {}
    needed = [0]
    kernel_name = r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\("
    pieces = rf"#if __CUDA_ARCH__ >= (\d+)|(#if)|(#endif)|{kernel_name}"
    for architecture, other, end, kernel in re.findall(pieces, text):
        if end:
            needed.pop()
        elif kernel:
            kernels[kernel] = needed[-1]
        else:
            needed.append(needed[-1] if other else int(architecture))
    return kernels


def architecture() -> int:
    """The __CUDA_ARCH__ of code for the current device."""
    number = re.match(r"(?:sm|compute)_(\d+)", bascule.current_device().arch)
    assert number, bascule.current_device()
    return 10 * int(number[1])


def has_architecture(needed: int) -> bool:
    return architecture() >= needed


def find_kernel(name: str) -> bascule.Kernel:
    """Returns a kernel: `find_kernel("map.saxpy")` is saxpy of tests/kernels/map.cu. A file is compiled once per
    process, with exactly the kernels that kernels_of returns. Skips the test if the kernel is for a newer
    architecture."""
    file, _, function = name.partition(".")
    kernels = _needed.setdefault(file, kernels_of(CORPUS / f"{file}.cu"))
    needed = kernels[function.rpartition("::")[2]]
    if not has_architecture(needed):
        pytest.skip(f"{name} needs compute capability {needed // 100}.{needed // 10 % 10}")
    if file not in _modules:
        _modules[file] = bascule.compile(file=CORPUS / f"{file}.cu")
        compiled = [qualified.rpartition("::")[2] for qualified in _modules[file].kernels]
        assert compiled == [kernel for kernel, least in kernels.items() if has_architecture(least)]
    return _modules[file][function]


@pytest.fixture
def newer_device() -> None:
    """Skips the test below compute capability 9.0: kernels in files *_newer.cu have no #if that excludes them there.

    clusters/test_as_sm_90 runs these tests on an emulated device of 9.0.
    """
    if not has_architecture(900):
        pytest.skip("needs compute capability 9.0")


_modules: dict[str, bascule.Module] = {}
_needed: dict[str, dict[str, int]] = {}


@pytest.fixture(scope="session")
def kernel() -> Callable[[str], bascule.Kernel]:
    return find_kernel


@pytest.fixture(scope="session", autouse=True)
def what_compiled(record_testsuite_property: Callable[[str, object], None]) -> Iterator[None]:
    """Records in the report with which NVRTC the corpus was compiled, and how many of its kernels."""
    yield
    record_testsuite_property("nvrtc", _bascule._nvrtc_info()["version"])
    record_testsuite_property("kernels", sum(len(module.kernels) for module in _modules.values()))


def in_a_child(function: Callable[..., None], *arguments: Any) -> None:
    """Calls `function`, of a test module, in a child process, because its kernels may destroy the context."""
    child = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    child.start()
    child.join()
    assert child.exitcode == 0, f"{function.__name__} failed in its process: see what it wrote"
