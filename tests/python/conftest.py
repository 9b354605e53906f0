"""Every Python test runs on the emulated device unless BASCULE_DEVICE says otherwise: the same tests run on a GPU."""

from __future__ import annotations

import atexit
import gc
import importlib.metadata
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

os.environ.setdefault("BASCULE_DEVICE", "emulated")
# Nothing runs before something forces it: what is missing between two streams shows.
os.environ.setdefault("BASCULE_EMULATED_SCHEDULE", "lazy")
# A race between streams fails the test that has it: looking for them costs less than a tenth.
if os.environ["BASCULE_DEVICE"] == "emulated":
    os.environ.setdefault("BASCULE_EMULATED_CHECKS", "memory,races")
# What earlier runs compiled is nothing to go by: each has a cache of its own, which its child processes share.
os.environ["BASCULE_CACHE_DIR"] = tempfile.mkdtemp(prefix="bascule-cache-")

import numpy as np
import pytest

import bascule

# Installed, the plugin is found by pytest itself.
if not importlib.metadata.entry_points(group="pytest11", name="bascule"):
    pytest_plugins = ["bascule.pytest_plugin"]

atexit.register(shutil.rmtree, os.environ["BASCULE_CACHE_DIR"], ignore_errors=True)

SCALE = """
__global__ void scale(float* p, float f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= f;
}
"""


class ForeignArray:
    """An array of another library: exposes the interface, counts how often it is read."""

    def __init__(self, array: bascule.DeviceArray, **changes: object) -> None:
        self.array = array
        self.changes = changes
        self.reads = 0

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
    """As a change: the key is left out."""


def pytest_runtest_setup() -> None:
    """What earlier tests enqueued gives its arrays up before, not in the middle of what this one looks at."""
    if bascule._bascule._owners_held():
        bascule.synchronize()


@contextmanager
def traced() -> Iterator[list[bascule.emulated.Operation]]:
    """The operations of the block alone: garbage of earlier tests is freed before, not inside."""
    gc.collect()
    gc.disable()
    try:
        with bascule.emulated.trace() as operations:
            yield operations
    finally:
        gc.enable()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261121)


@pytest.fixture(scope="session")
def scale() -> bascule.Kernel:
    return bascule.compile(SCALE).scale


@pytest.fixture
def unordered() -> Iterator[None]:
    """The test's own program leaves something unordered on purpose: nobody looks for races in it."""
    if not bascule.current_device().emulated:
        yield
        return
    with bascule.emulated.checks(races=False):
        yield


@pytest.fixture
def emulated() -> None:
    if not bascule.current_device().emulated:
        pytest.skip("needs the emulated device's trace or report")
