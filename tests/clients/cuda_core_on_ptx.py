"""A pytest plugin that implements with the driver what cuda.core's own tests need from other libraries.

The emulated device runs PTX and no machine code, and the CUDA runtime, which needs NVIDIA's own driver, does not run.
"""

from __future__ import annotations

from typing import Any

import cuda.core
from cuda.bindings import driver, nvjitlink, runtime
from cuda.core import _program

Status = runtime.cudaError_t


class Program(_program.Program):
    def compile(self, target_type: str, *args: Any, **options: Any) -> Any:
        return super().compile("ptx" if target_type == "cubin" else target_type, *args, **options)


def of_runtime(results: tuple[Any, ...]) -> tuple[Any, ...]:
    """Results with the runtime's error code, which has the same number as the driver's where both have one."""
    return Status(int(results[0])), *results[1:]


def current_device() -> tuple[Status, int]:
    status, device = driver.cuCtxGetDevice()
    return Status.cudaSuccess, int(device) if status == driver.CUresult.CUDA_SUCCESS else 0


cuda.core.Program = _program.Program = Program
runtime.cudaDeviceSynchronize = lambda: of_runtime(driver.cuCtxSynchronize())
runtime.cudaDeviceGetPCIBusId = lambda length, device: of_runtime(driver.cuDeviceGetPCIBusId(length, device))
runtime.cudaGetDevice = current_device
runtime.cudaDeviceGetAttribute = lambda attribute, device: of_runtime(
    driver.cuDeviceGetAttribute(driver.CUdevice_attribute(int(attribute)), device)
)
# cuda.core 1.1 asks an nvJitLink for its version before it checks whether the function exists, and so never uses the
# driver's linker if nvJitLink lacks it. cuda.core 1.2 uses it then.
nvjitlink.version = lambda: (12, 2)
# cuda.core counts devices by NVML, which comes with NVIDIA's driver.
cuda.core.system.get_num_devices = lambda: int(driver.cuDeviceGetCount()[1])
