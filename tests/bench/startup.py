"""The cost of importing Bascule, and of a first result from a warm cache, compared with `import numpy`.

    python tests/bench/startup.py [--rounds N]

The figures are processor times of processes, which other programs on the machine affect least. That of a bare
interpreter is subtracted if two imports are compared.
"""

from __future__ import annotations

import os
import sys

import bench_device
import measuring
from measuring import Benchmark, Row

FIRST_RESULT = """
import bascule
kernel = bascule.compile('''
__global__ void twice(float* x) { x[threadIdx.x] = 2.0f * threadIdx.x; }
''').twice
x = bascule.device_array(32, "f4")
kernel[1, 32](x)
assert x.copy_to_host()[31] == 62
"""


def milliseconds(code: str) -> float:
    """Milliseconds of processor time of an interpreter that runs this code, from start to end."""
    environment = {**os.environ, "BASCULE_EMULATED_EXECUTE": "1", "PYTHONWARNINGS": "ignore"}
    environment["PYTHONPYCACHEPREFIX"] = os.path.join(bench_device.CACHE, "bytecode")  # as in an installed package
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", code], environment)
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        sys.exit(f"startup: this failed in a process of its own:\n{code}")
    return 1e3 * (usage.ru_utime + usage.ru_stime)


def benchmark() -> Benchmark:
    return Benchmark(
        {
            "python": lambda: milliseconds("pass"),
            "numpy": lambda: milliseconds("import numpy"),
            "bascule": lambda: milliseconds("import bascule"),
            "first result": lambda: milliseconds(FIRST_RESULT),
        },
        [
            Row(
                "I1",
                "import bascule / import numpy",
                lambda r: (r["bascule"] - r["python"]) / (r["numpy"] - r["python"]),
                "<= 0.5",
            ),
            Row(
                "S1",
                "start to first result / start with numpy",
                lambda r: r["first result"] / r["numpy"],
                "<= 1.3",
            ),
        ],
        rounds=21,
        what={
            "python": "a bare interpreter",
            "numpy": "import numpy",
            "bascule": "import bascule",
            "first result": "a first result from a warm cache",
        },
        unit="ms",
    )


if __name__ == "__main__":
    measuring.main(benchmark, __doc__)
