"""The launches that benchmarks measure: arrays and a float, given in each way that Bascule takes arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from measuring import native

import bascule

bench_native, exchange_native = native("bench_native", "exchange_native")

GRID, BLOCK = 4, 256
SIZE = GRID * BLOCK
MOST = 16  # arrays


def kernel(arrays: int) -> str:
    """The text of a kernel that takes so many arrays and a float."""
    inputs = "".join(f"const float* x{i}, " for i in range(arrays - 1))
    terms = "".join(f" + x{i}[i]" for i in range(arrays - 1))
    return f"""
extern "C" __global__ void arrays{arrays}({inputs}float* out, float a) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a{terms};
}}
"""


TEXT = kernel(1) + kernel(3) + kernel(MOST // 2) + kernel(MOST)


# A type that is never read-only, as Bascule knows of torch.Tensor by its name.
TorchLike = type("Tensor", (exchange_native.Tensor,), {"__module__": "torch"})


class Launches:
    """Launchers, and tuples of arguments for them by how the arrays are given."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bascule.EmulatedDeviceWarning)
            self.module = bascule.compile(TEXT)
            self.owners = [bascule.device_array(SIZE, "f4") for _ in range(MOST)]
        self.pointers = [array.__cuda_array_interface__["data"][0] for array in self.owners]
        self.other_stream = bascule.stream()
        self.arrays: dict[str, list[Any]] = {
            "own": self.owners,
            "exchange": [TorchLike(pointer, (SIZE,)) for pointer in self.pointers],
            "interface": [self.producer(pointer) for pointer in self.pointers],
            "uninterned": [self.producer(pointer, interned=False) for pointer in self.pointers],
        }
        foreign = self.producer(self.pointers[0], self.other_stream.handle)
        self.arrays["foreign"] = [foreign, *self.arrays["own"][1:]]

    @staticmethod
    def producer(pointer: int, stream: int = 1, interned: bool = True) -> Any:
        return bench_native.Producer(pointer, SIZE, "<f4", stream, interned=interned)

    def launcher(self, arrays: int) -> bascule.Launcher:
        return self.module[f"arrays{arrays}"][GRID, BLOCK]

    def arguments(self, kind: str, arrays: int = 3) -> tuple[Any, ...]:
        return (*self.arrays[kind][:arrays], 2.0)

    def cases(self) -> dict[str, tuple[Callable[..., object], tuple[Any, ...]]]:
        """What is called with which arguments, by name."""
        launcher = self.launcher(3)
        cases: dict[str, tuple[Callable[..., object], tuple[Any, ...]]] = {
            kind: (launcher, self.arguments(kind)) for kind in self.arrays
        }
        cases["bound"] = (launcher.bind(*self.arguments("own")), ())
        cases["own, 16 arrays"] = (self.launcher(MOST), self.arguments("own", MOST))
        cases["nothing"] = (bench_native.noop, self.arguments("own"))
        cases["compile again"] = (bascule.compile, (TEXT,))
        cases["copy"] = (self.owners[0].copy, ())
        return cases
