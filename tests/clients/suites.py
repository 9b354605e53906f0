"""Lists the suites of other projects' tests: where they come from, and what they run on."""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "clients"
SITE_PACKAGES = Path(sysconfig.get_path("purelib"))


@dataclass(frozen=True)
class Copy:
    """A file of a suite's sources that is copied without its conftest.py, with some of its imports renamed."""

    path: str
    renamed: dict[str, str] = field(default_factory=dict)

    def text(self, sources: Path) -> str:
        lines = (sources / self.path).read_text(encoding="utf-8").splitlines(keepends=True)
        renamed = {f"{line}\n": f"{instead}\n" for line, instead in self.renamed.items()}
        if missing := renamed.keys() - set(lines):
            raise SystemExit(f"{sources / self.path} has no line {', '.join(map(repr, sorted(missing)))}")
        return "".join(renamed.get(line, line) for line in lines)


@dataclass(frozen=True)
class Suite:
    """`tests` and `sample` are pytest's arguments; `absent` says why the directory `sources` may be missing.

    `copies` : files of `sources` by the name of the copy. `shim` : the folder of `shims` with another library's names
    on Bascule. `emulate` : the emulated device is in a driver's place. `packages` : a directory of packages that
    precede the environment's.
    """

    name: str
    what: str
    tests: list[str]
    sample: list[str]
    sources: Path | None = None
    absent: str = ""
    copies: dict[str, Copy] = field(default_factory=dict)
    shim: str = ""
    emulate: bool = True
    devices: int = 1
    packages: Path | None = None
    environment: dict[str, str] = field(default_factory=dict)

    def list_file(self) -> Path:
        return HERE / f"{self.name}.toml"


def numba(part: str, *sample: str) -> Suite:
    package = f"numba.cuda.tests.{part}"
    return Suite(
        name=f"numba-{part}",
        what=f"numba-cuda, {part}",
        tests=["--pyargs", package],
        devices=2,
        sample=["--pyargs", *(f"{package}.{module}" for module in sample)],
    )


# NumPy's tests import the arrays of Bascule in one kind of memory as np, and count references to these.
def numpy_dlpack(memory: str) -> Copy:
    return Copy(
        "tests/test_dlpack.py",
        {
            "import sys": "from numpy_on_bascule import counted as sys",
            "import numpy as np": f"from numpy_on_bascule import {memory} as np",
        },
    )


# setup.sh extracts cuda.core's tests from a clone, at one commit.
CUDA_CORE = WORK / "cuda-python" / "cuda_core" / "tests"
NO_CUDA_CORE = (
    "cuda-core publishes its tests only in its repository: "
    "BASCULE_CUDA_PYTHON names a clone of it, or of a fork of it, to setup.sh"
)
# cuda.core's tests look here for the headers of CUDA and CCCL.
CUDA_HEADERS = {"CUDA_PATH": str(SITE_PACKAGES / "nvidia" / "cu13")}


def cuda_core_on_bascule() -> Suite:
    parts = (
        "test_launcher",
        "test_module",
        "test_program",
        "test_linker",
        "test_stream",
        "test_event",
        "graph/test_graph_builder",
    )
    return Suite(
        name="cuda-core-shim",
        what="cuda.core on Bascule",
        tests=[str(CUDA_CORE / f"{part}.py") for part in parts],
        sample=[str(CUDA_CORE / f"{part}.py") for part in ("test_launcher", "test_stream")],
        sources=CUDA_CORE,
        absent=NO_CUDA_CORE,
        environment=CUDA_HEADERS,
        shim="cuda-core",
    )


ON_PTX = ("-p", "cuda_core_on_ptx")
# Tests that need memory shared by file descriptors, NVML, OpenGL, a built extension, or the build itself.
NOT_FOR_THE_DRIVER = (
    "memory_ipc",
    "system",
    "test_graphics.py",
    "cython",
    "test_build_hooks.py",
    "example_tests",
)

SUITES = [
    numba("cudadrv", "test_cuda_memory", "test_events", "test_streams", "test_linker", "test_host_alloc"),
    numba("cudapy", "test_sync", "test_sm", "test_atomics", "test_forall", "test_blackscholes", "test_warp_ops"),
    Suite(
        name="cuda-core",
        what="cuda.core",
        tests=[*ON_PTX, str(CUDA_CORE), *(f"--ignore={CUDA_CORE / part}" for part in NOT_FOR_THE_DRIVER)],
        sample=[*ON_PTX, *(str(CUDA_CORE / f"test_{part}.py") for part in ("launcher", "stream"))],
        sources=CUDA_CORE,
        absent=NO_CUDA_CORE,
        environment={**CUDA_HEADERS, "BASCULE_EMULATED_ARCH": "90"},  # for clusters and conditional nodes
        packages=WORK / "cuda-core-1.1.0",
        devices=3,
    ),
    cuda_core_on_bascule(),
    Suite(
        name="numpy-dlpack",
        what="NumPy's DLPack",
        tests=["test_device.py", "test_pinned.py"],
        sample=["test_device.py", "test_pinned.py"],
        sources=SITE_PACKAGES / "numpy" / "_core",
        absent="NumPy's wheel has no tests here",
        copies={f"test_{memory}.py": numpy_dlpack(memory) for memory in ("device", "pinned")},
        shim="numpy",
        emulate=False,
    ),
    Suite(
        name="pycuda",
        what="PyCUDA's driver",
        tests=["test_driver.py"],
        sample=["test_driver.py"],
        sources=WORK / "pycuda-2026.1",
        absent="no source of PyCUDA was fetched",
        copies={"test_driver.py": Copy("test/test_driver.py")},
        shim="pycuda",
        emulate=False,
    ),
    Suite(
        name="cupy-raw",
        what="CuPy's raw kernels",
        tests=["test_raw.py"],
        sample=["test_raw.py", "-k", "Picklable or (NVRTC and no and jitify and not memory)"],
        sources=WORK / "cupy-14.2.0",
        absent="no source of CuPy was fetched",
        copies={"test_raw.py": Copy("tests/cupy_tests/core_tests/test_raw.py")},
        shim="cupy",
        emulate=False,
        devices=2,
    ),
]
