"""The cost of a launch beyond the driver's own calls, as ratios.

    python tests/bench/launch.py [--rounds N]

The kernels do not run (the emulated device's null mode), so that only the way to the driver is measured. The driver's
share, cuCtxGetCurrent and cuLaunchKernelEx called from a C loop, is measured too and subtracted.
"""

import ctypes

import bench_device  # noqa: F401
import measuring
from by_ctypes import CtypesLauncher, load_function
from launches import BLOCK, GRID, MOST, Launches, bench_native
from measuring import Benchmark, Round, Row, native

from bascule import _bascule

(bench_pybind,) = native("bench_pybind")

CALLS = 2000
COUNTS = (1, 3, MOST // 2, MOST)  # of arrays
KINDS = ("own", "exchange", "interface")


def benchmark() -> Benchmark:
    launches = Launches()
    library = _bascule._driver_info()["path"]
    ptx = launches.module.arrays3.ptx
    bench_native.load_driver(library, ptx, "arrays3")
    driver = ctypes.CDLL(library)
    function = load_function(driver, ptx, "arrays3")
    by_pybind = bench_pybind.Launcher(
        ctypes.cast(driver.cuLaunchKernelEx, ctypes.c_void_p).value,
        ctypes.cast(driver.cuCtxGetCurrent, ctypes.c_void_p).value,
        function.value,
        GRID,
        BLOCK,
    )
    interface = launches.arguments("interface")
    calls = {
        "no-op": (bench_native.noop, interface),
        "ctypes": (CtypesLauncher(driver, function, GRID, BLOCK), interface),
        "pybind11": (by_pybind, interface),
        "bound": (launches.launcher(3).bind(*launches.arguments("own")), ()),
    }
    for kind in KINDS:
        for count in COUNTS:
            calls[f"{kind} {count}"] = (launches.launcher(count), launches.arguments(kind, count))
    producer, pointers = interface[0], launches.pointers[:3]
    functions = {
        "driver": lambda: bench_native.time_driver_launches(CALLS, *pointers, 2.0, 1, GRID, BLOCK) / CALLS,
        "read": lambda: bench_native.time_reads(producer, CALLS) / CALLS,
    } | {
        name: lambda call=call, passed=passed: bench_native.time_calls(call, passed, CALLS) / CALLS
        for name, (call, passed) in calls.items()
    }
    return Benchmark(
        functions,
        rows(),
        rounds=41,
        what={
            "no-op": "a function of C that does nothing, 4 arguments",
            "read": "one read of __cuda_array_interface__ from a C producer",
            "driver": "cuCtxGetCurrent and cuLaunchKernelEx from a C loop",
            "interface 3": "kernel[grid, block](3 arrays of that producer, 1 float)",
            "own 3": "kernel[grid, block](3 arrays of bascule, 1 float)",
            "exchange 3": "kernel[grid, block](3 arrays by an exchange table, 1 float)",
            "bound": "the launch of 3 arrays of bascule, bound",
            "pybind11": "a launcher by pybind11 with py::args, 3 arrays of that producer",
            "ctypes": "a launcher by ctypes, 3 arrays of that producer",
        },
        keep=launches,
    )


def beyond(name: str, over: str, factor: int = 1):
    """The time of `name` beyond the driver, divided by `factor` times that of `over`."""
    return lambda r: (r[name] - r["driver"]) / (factor * r[over])


def both_beyond(name: str, over: str):
    return lambda r: (r[name] - r["driver"]) / (r[over] - r["driver"])


def slope(r: Round, kind: str, first: int, last: int) -> float:
    """The time that one more array adds to a launch, averaged from `first` to `last` arrays."""
    return (r[f"{kind} {last}"] - r[f"{kind} {first}"]) / (last - first)


def one_more(kind: str):
    return lambda r: slope(r, kind, 3, MOST) / slope(r, "interface", 3, MOST)


def linear(kind: str):
    return lambda r: slope(r, kind, COUNTS[-2], MOST) / slope(r, kind, 1, COUNTS[-2])


def rows() -> list[Row]:
    return [
        Row("L1", "launch beyond the driver / 3 reads", beyond("interface 3", "read", 3), "<= 1.6"),
        Row("L2", "own arrays beyond the driver / no-op", beyond("own 3", "no-op"), "<= 14"),
        Row("L2", "exchange beyond the driver / no-op", beyond("exchange 3", "no-op"), "<= 19"),
        Row("L3", "one more array: own / interface", one_more("own"), "<= 0.12"),
        Row("L3", "one more array: exchange / interface", one_more("exchange"), "<= 0.12"),
        Row("L4", "bound beyond the driver / no-op", beyond("bound", "no-op"), "<= 10"),
        Row("L7", "interface, beyond the driver / ctypes", both_beyond("interface 3", "ctypes"), "<= 0.14"),
        Row("L7", "interface, beyond the driver / pybind11", both_beyond("interface 3", "pybind11"), "<= 0.22"),
        Row("L8", "own: array 9 to 16 / array 2 to 8", linear("own"), "0.9 to 1.1"),
        Row("L8", "interface: array 9 to 16 / array 2 to 8", linear("interface"), "0.9 to 1.1"),
    ]


if __name__ == "__main__":
    measuring.main(benchmark, __doc__)
