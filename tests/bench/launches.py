"""The launches that benchmarks measure: arrays and a float, passed in each way that Bascule accepts arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from measuring import native

import bascule

bench_native, exchange_native = native("bench_native", "exchange_native")

GRID, BLOCK = 4, 256
SIZE = GRID * BLOCK
MOST = 16  # arrays
Loop = Callable[[Iterable[int]], None]


def kernel(arrays: int) -> str:
    """The text of a kernel that takes this number of arrays and a float."""
    inputs = "".join(f"const float* x{i}, " for i in range(arrays - 1))
    terms = "".join(f" + x{i}[i]" for i in range(arrays - 1))
    return f"""
extern "C" __global__ void arrays{arrays}({inputs}float* out, float a) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a{terms};
}}
"""


TENSOR_MAP = """
struct alignas(64) CUtensorMap { char opaque[128]; };
extern "C" __global__ void mapped(const __grid_constant__ CUtensorMap map, const float* x, float* out, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a + x[i] + map.opaque[0];
}
"""
SMALL_FORMATS = {"bf16": (4, 16), "fp8": (10, 8)}  # DLPack's codes and bits; the fp8 is float8_e4m3fn
TEXT = kernel(1) + kernel(3) + kernel(MOST // 2) + kernel(MOST)


# A type that Bascule takes for torch.Tensor by its name, and therefore for one that is never read-only.
TorchLike = type("Tensor", (exchange_native.Tensor,), {"__module__": "torch"})


class Launches:
    """Launchers, and tuples of arguments for them by the kind of arrays."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bascule.EmulatedDeviceWarning)
            self.module = bascule.compile(TEXT)
            self.mapped = bascule.compile(TENSOR_MAP).mapped
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
        """A callable and its arguments, by name."""
        launcher = self.launcher(3)
        cases: dict[str, tuple[Callable[..., object], tuple[Any, ...]]] = {
            kind: (launcher, self.arguments(kind)) for kind in self.arrays
        }
        cases["bound"] = (launcher.bind(*self.arguments("own")), ())
        cases["own, 16 arrays"] = (self.launcher(MOST), self.arguments("own", MOST))
        cases["nothing"] = (bench_native.noop, self.arguments("own"))
        cases["compile again"] = (bascule.compile, (TEXT,))
        cases["copy"] = (self.owners[0].copy, ())
        for name, kind in (
            ("tensor map", "own"),
            ("tensor map, exchange", "exchange"),
            ("tensor map, dict", "interface"),
        ):
            array, *others = self.arrays[kind][:3]
            cases[name] = (self.mapped[GRID, BLOCK], (bascule.tensor_map(array, 256), *others, 2.0))
        for name, (code, bits) in SMALL_FORMATS.items():
            tensor = TorchLike(self.pointers[0], (SIZE,), code=code, bits=bits)
            others = self.arrays["exchange"][1:3]
            cases[f"tensor map, {name}"] = (self.mapped[GRID, BLOCK], (bascule.tensor_map(tensor, 256), *others, 2.0))
        return cases

    def ways(self) -> dict[str, tuple[Loop, Loop]]:
        """Ways to write a launch in a loop, by name, each with a loop for comparison.

        The second loop calls a kept launcher, and evaluates the same expression on an object that does nothing.
        """
        module, kernel, stream = self.module, self.module.arrays3, bascule.stream()
        x, y, out, a = self.arguments("own")
        empty = bench_native.Empty()
        kept, on_stream, for_work = kernel[GRID, BLOCK], kernel[GRID, BLOCK, stream], kernel.forall(SIZE)

        def subscript(rounds: Iterable[int], k: Any = kernel, g: int = GRID, b: int = BLOCK) -> None:
            for _ in rounds:
                k[g, b](x, y, out, a)

        def kept_and_subscript(rounds: Iterable[int], e: Any = empty, g: int = GRID, b: int = BLOCK) -> None:
            for _ in rounds:
                kept(x, y, out, a)
                e[g, b]

        def attribute(rounds: Iterable[int], m: Any = module, g: int = GRID, b: int = BLOCK) -> None:
            for _ in rounds:
                m.arrays3[g, b](x, y, out, a)

        def kept_and_attribute(rounds: Iterable[int], e: Any = empty, g: int = GRID, b: int = BLOCK) -> None:
            for _ in rounds:
                kept(x, y, out, a)
                e.k[g, b]

        def with_stream(rounds: Iterable[int], k: Any = kernel, g: int = GRID, b: int = BLOCK) -> None:
            for _ in rounds:
                k[g, b, stream](x, y, out, a)

        def kept_and_stream(rounds: Iterable[int], e: Any = empty, g: int = GRID, b: int = BLOCK) -> None:
            for _ in rounds:
                on_stream(x, y, out, a)
                e[g, b, stream]

        def forall(rounds: Iterable[int], k: Any = kernel, n: int = SIZE) -> None:
            for _ in rounds:
                k.forall(n)(x, y, out, a)

        def kept_and_forall(rounds: Iterable[int], e: Any = empty, n: int = SIZE) -> None:
            for _ in rounds:
                for_work(x, y, out, a)
                e.forall(n)

        return {
            "k[g, b]": (subscript, kept_and_subscript),
            "m.k[g, b]": (attribute, kept_and_attribute),
            "k[g, b, stream]": (with_stream, kept_and_stream),
            "k.forall(n)": (forall, kept_and_forall),
        }
