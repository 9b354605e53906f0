"""Functions that return the versions of the driver and of cuda.bindings."""

from __future__ import annotations

import importlib.metadata

from cuda.bindings import driver
from cuda.core._utils.cuda_utils import handle_return


def binding_version() -> tuple[int, ...]:
    return tuple(map(int, importlib.metadata.version("cuda-bindings").split(".")[:3]))


def driver_version() -> tuple[int, int, int]:
    version = handle_return(driver.cuDriverGetVersion())
    return version // 1000, version // 10 % 100, version % 10
