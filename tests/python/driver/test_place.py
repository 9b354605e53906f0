"""The emulated device in the driver's place, as most tests in this directory use it."""

from __future__ import annotations

from .place import prints

PROGRAM = """
device = bascule.current_device()
kernel = bascule.compile("__global__ void k(float* p) { p[threadIdx.x] += 1; }").k
x = bascule.to_device(np.arange(32, dtype="f4"))
kernel[1, 32](x)
print(device.emulated, bool((x.copy_to_host() == np.arange(32) + 1).all()))
"""


def test_bascule_takes_it_for_a_gpu_and_runs_kernels_there():
    assert prints(PROGRAM) == "False True\n"
