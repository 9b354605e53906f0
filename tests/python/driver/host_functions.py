"""A pytest plugin: during each test, a host function written in Python is in flight on another stream.

It repeatedly waits for the GIL while it holds the lock of the emulated driver (schedule `threads`), so a test in which
a thread calls the driver with the GIL never ends. Then the stacks of all threads are written, and the run ends.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import threading
from collections.abc import Iterator

import pytest

import bascule

SECONDS_OF_A_TEST = 100

stacks = os.fdopen(os.dup(2), "w")  # pytest redirects the original descriptor later


class HostFunctions:
    """A thread that issues the next host function when one has returned."""

    def __init__(self) -> None:
        bascule.current_device()
        self.driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])  # calls through it release the GIL
        self.called = 0
        self.returned = threading.Event()
        self.function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.call)
        self.over = False
        self.thread = threading.Thread(target=self.issue, daemon=True)
        self.thread.start()

    def call(self, _: object) -> None:
        self.called += 1
        self.returned.set()

    def issue(self) -> None:
        self.driver.bascule_emulated_bookkeeping(1)  # keeps the calls out of traces
        device_context, stream = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(device_context), 0) == 0
        assert self.driver.cuCtxSetCurrent(device_context) == 0
        assert self.driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
        while not self.over:
            self.returned.clear()
            issued = self.driver.cuLaunchHostFunc(stream, self.function, None) == 0  # fails after a fault
            self.returned.wait(1 if issued else 0.01)

    def end(self) -> None:
        self.over = True
        self.thread.join()


@pytest.fixture(scope="session")
def host_functions() -> Iterator[HostFunctions]:
    functions = HostFunctions()
    yield functions
    functions.end()


@pytest.fixture(autouse=True)
def in_flight(host_functions: HostFunctions) -> Iterator[None]:
    faulthandler.dump_traceback_later(SECONDS_OF_A_TEST, exit=True, file=stacks)
    yield
    faulthandler.cancel_dump_traceback_later()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects tests that need a schedule in which work does not run until something waits for it."""
    lazy = [item for item in items if item.get_closest_marker("lazy")]
    config.hook.pytest_deselected(items=lazy)
    items[:] = [item for item in items if item not in lazy]
