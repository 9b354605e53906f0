"""The cost of reading an array's interface beyond reading the attribute, as a ratio.

    python tests/bench/parse.py [--rounds N]

A producer in C makes its dict at each read, as CuPy's and Numba's do. The figure is the whole parse of such a dict,
with every check, relative to one read of the attribute. Both run in loops of C, in turn, and the ratio is the median
over the rounds, so that a noisy machine affects both sides.
"""

import time
from collections.abc import Callable

import bench_device  # noqa: F401
import measuring
from measuring import Benchmark, Row, native

import bascule

(bench_native,) = native("bench_native")

CALLS = 5000
parse = bascule._bascule._parse


def time_parse(descriptor: object) -> float:
    """Nanoseconds of a parse: the additional time of one more call among many, so that the call itself cancels out."""
    start = time.thread_time_ns()
    parse(descriptor, 1)
    middle = time.thread_time_ns()
    parse(descriptor, CALLS + 1)
    return (time.thread_time_ns() - middle - (middle - start)) / CALLS


def producer(interned: bool = True) -> object:
    return bench_native.Producer(0x7F0000000000, 1024, "<f4", interned=interned)


def descriptors() -> dict[str, object]:
    """Descriptors by name: of one axis as the C producer makes them, and others as other libraries make them."""
    made = producer().__cuda_array_interface__
    return {
        "the C producer's dict": made,
        "the same, keys not interned": producer(interned=False).__cuda_array_interface__,
        "the same with descr": {**made, "descr": [("", "<f4")]},
        "two axes with strides": {**made, "shape": (32, 32), "strides": (128, 4)},
        "eight axes with strides": {**made, "shape": (2,) * 8, "strides": tuple(4 << d for d in range(7, -1, -1))},
    }


def benchmark() -> Benchmark:
    read = producer()
    functions: dict[str, Callable[[], float]] = {"read": lambda: bench_native.time_reads(read, CALLS) / CALLS}
    for name, descriptor in descriptors().items():
        functions[name] = lambda descriptor=descriptor: time_parse(descriptor)
    plain, *others = descriptors()
    return Benchmark(
        functions,
        [
            Row("L9", "parse: keys not interned / interned", lambda r: r[others[0]] / r[plain], "<= 1.15"),
            Row("", f"parse / read: {plain}", lambda r: r[plain] / r["read"], "<= 0.5"),
            *(Row("", f"parse / read: {name}", lambda r, name=name: r[name] / r["read"]) for name in others),
        ],
        rounds=41,
        what={"read": "one read of __cuda_array_interface__ from a C producer"}
        | {name: f"parse and checks: {name}" for name in descriptors()},
    )


if __name__ == "__main__":
    measuring.main(benchmark, __doc__)
