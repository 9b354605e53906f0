"""Every Python test runs on the emulated device unless BASCULE_DEVICE says otherwise: the same tests run on a GPU."""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager

os.environ.setdefault("BASCULE_DEVICE", "emulated")
# Work runs only when something waits for it, so that a missing wait between two streams shows.
os.environ.setdefault("BASCULE_EMULATED_SCHEDULE", "lazy")
# A race between streams fails the test. The search takes less than a tenth of the time.
if os.environ["BASCULE_DEVICE"] == "emulated":
    os.environ.setdefault("BASCULE_EMULATED_CHECKS", "memory,races")
# A test in which a driver function is called with the GIL fails.
os.environ.setdefault("BASCULE_TEST_GIL", "1")
# BLAS threads would spin for a tenth of a second in each of a thousand processes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Each run has its own cache, shared with its child processes, so that tests do not depend on earlier runs. If the
# installed plugin has already imported bascule, the directory is already chosen.
if "bascule" not in sys.modules or "BASCULE_CACHE_DIR" not in os.environ:
    os.environ["BASCULE_CACHE_DIR"] = tempfile.mkdtemp(prefix="bascule-cache-")
    atexit.register(shutil.rmtree, os.environ["BASCULE_CACHE_DIR"], ignore_errors=True)

import numpy as np
import pytest

import bascule

# If the package is installed, pytest finds the plugin itself.
if not importlib.metadata.entry_points(group="pytest11", name="bascule"):
    pytest_plugins = ["bascule.pytest_plugin"]

SCALE = """
__global__ void scale(float* p, float f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= f;
}
"""


def require_tensor_maps() -> None:
    """Skips a test on devices that have no tensor maps."""
    arch = bascule.current_device().arch
    if int(arch.rpartition("_")[2].rstrip("af")[:-1]) < 9:
        pytest.skip(f"needs compute capability 9.0, and this is {arch}: tensor_maps/test_as_sm_90 runs it")


class ForeignArray:
    """An array of another library: exposes the interface, and counts how often it is read."""

    def __init__(self, array: bascule.DeviceArray, **changes: object) -> None:
        self.array = array
        self.changes = changes
        self.reads = 0
        # Marks the memory as usable by any stream, not only by the array's.
        array.export(stream=None).__cuda_array_interface__  # noqa: B018

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        self.reads += 1
        fields = dict(self.array.__cuda_array_interface__)
        for key, value in self.changes.items():
            if value is Missing:
                fields.pop(key, None)
            else:
                fields[key] = value
        return fields


class Missing:
    """Stands for an omitted key in changes of a descriptor."""


class MissingLibraries:
    """The last finder on sys.meta_path: a test file that imports a missing module of `names` is skipped.

    On development machines everything in tests/requirements.txt is installed; a machine with a GPU has only some of it.
    """

    names = frozenset(
        [
            "IPython",
            "PIL",
            "cloudpickle",
            "hypothesis",
            "jupyter_client",
            "matplotlib",
            "ml_dtypes",
            "nbclient",
            "nbconvert",
            "nbformat",
        ]
    )
    collecting = False  # false outside collection, because Bascule's own imports handle missing modules

    def find_spec(self, name: str, *_: object) -> None:
        if self.collecting and name in self.names:
            pytest.skip(f"{name} is not installed", allow_module_level=True)


missing_libraries = MissingLibraries()
sys.meta_path.append(missing_libraries)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, object, object]:
    missing_libraries.collecting = isinstance(collector, pytest.Module)
    try:
        return (yield)
    finally:
        missing_libraries.collecting = False


@pytest.fixture(autouse=True, scope="module")
def small_heap() -> None:
    """Freezes the objects that exist before a module's tests, such as the collected tests: gc.collect() skips them."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup() -> None:
    """Releases the arrays of work from earlier tests now, and not during this test."""
    if bascule._bascule._owners_held():
        bascule.synchronize()


@contextmanager
def traced() -> Iterator[list[bascule.emulated.Operation]]:
    """Records the operations of the block alone: garbage of earlier tests is freed before it."""
    gc.collect()
    gc.disable()
    try:
        with bascule.emulated.trace() as operations:
            yield operations
    finally:
        gc.enable()


@pytest.fixture(autouse=hasattr(bascule._bascule, "_calls_with_gil"))
def no_call_with_the_gil() -> Iterator[None]:
    """Fails if a driver function is called with the GIL; see python/bindings/support/gil_check.cpp."""
    yield
    assert bascule._bascule._calls_with_gil() == {}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261121)


@pytest.fixture(scope="session")
def scale() -> bascule.Kernel:
    return bascule.compile(SCALE).scale


@pytest.fixture
def unordered() -> Iterator[None]:
    """Disables the search for races, for tests that leave something unordered on purpose."""
    if not bascule.current_device().emulated:
        yield
        return
    with bascule.emulated.checks(races=False):
        yield


@pytest.fixture
def unchecked(emulated: None) -> Iterator[None]:
    """Disables the checks of kernels, except races between streams, for tests whose kernel is wrong on purpose."""
    before = bascule._bascule._change_checks(0, ~1 & 0xFFFFFFFF)
    yield
    bascule.synchronize()
    bascule._bascule._change_checks(before, 0)


@functools.cache
def stands_in() -> bool:
    """True if the emulated device is loaded in place of a GPU's driver, so that Bascule takes it for a GPU."""
    driver = bascule._bascule._driver_info()
    return not driver["emulated"] and hasattr(ctypes.CDLL(driver["path"]), "bascule_emulated_abi")


def has_two_devices() -> bool:
    """True if a process can have two devices: the emulated device can be configured to have several."""
    driver = bascule._bascule._driver_info()
    return driver["device_count"] >= 2 or driver["emulated"] or stands_in()


@pytest.fixture(scope="session")
def machine_code() -> None:
    """Skips the test if the emulated device is in the place of a GPU's driver: it cannot run linked machine code."""
    if stands_in():
        pytest.skip("on a GPU Bascule links machine code, and the emulated device in the driver's place runs PTX alone")


@pytest.fixture
def emulated() -> None:
    if not bascule.current_device().emulated:
        pytest.skip("needs the emulated device's reports, policies or search for races")


@pytest.fixture
def stale_handles() -> None:
    """Skips the test on a GPU, whose driver may crash when a stream that was destroyed or never existed is used."""
    if not bascule.current_device().emulated:
        pytest.skip("a driver may end the process that uses a stream which is gone")


@pytest.fixture
def two_devices() -> None:
    if not has_two_devices():
        pytest.skip("needs two devices")
