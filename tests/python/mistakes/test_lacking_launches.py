"""Launches without the shared memory or the cooperation that their kernel needs: the fault names the remedy."""

from __future__ import annotations

import pytest

from .fault_reports import report_of

pytestmark = pytest.mark.usefixtures("emulated")

KERNELS = '''
module = bascule.compile("""
#include <cooperative_groups.h>
__device__ float first(const float* s) { return s[threadIdx.x]; }
__global__ void dynamic(float* p) {
    extern __shared__ float s[];
    s[threadIdx.x] = p[threadIdx.x];  // dynamic
    __syncthreads();
    p[threadIdx.x] = first(s);
}
__global__ void fixed(float* p) {
    __shared__ float s[16];
    s[threadIdx.x] = p[threadIdx.x];  // fixed
    __syncthreads();
    p[threadIdx.x] = s[0];
}
__global__ void whole_grid(float* p, int n) {
    if (n == 1) __trap();  // own trap
    p[threadIdx.x] = 1;
    cooperative_groups::this_grid().sync();  // sync
    p[threadIdx.x] = 2;
}
""")
x = bascule.to_device(np.zeros(32, "f4"))
'''
BRACKETS = "kernel[grid, block, stream, shared_bytes]"


@pytest.mark.parametrize(("given", "said"), [("", 0), (", 0, 64", 64)])
def test_an_array_without_dynamic_shared_memory_is_explained(tmp_path, given, said):
    report = report_of(tmp_path, KERNELS + f"module.dynamic[1, 32{given}](x)\nreport_of(bascule.synchronize)")
    place = report.place("// dynamic")
    assert report.headline == f"illegal address: kernel 'dynamic' wrote 4 bytes of shared memory at {place}"
    assert f"the kernel has an extern __shared__ array, and the launch gave it {said} bytes" in report.text
    assert f"Give the size of the array in bytes: it is the fourth entry of the brackets, {BRACKETS}." in report.text


def test_enough_shared_memory_is_no_fault(tmp_path):
    report = report_of(tmp_path, KERNELS + "module.dynamic[1, 32, 0, 128](x)\nreport_of(bascule.synchronize)")
    assert report.text == "nothing was raised\n"


def test_an_array_of_fixed_size_is_not_explained_by_the_launch(tmp_path):
    report = report_of(tmp_path, KERNELS + "module.fixed[1, 32](x)\nreport_of(bascule.synchronize)")
    assert "the block has 64 bytes of shared memory, and this access is at byte 64" in report.text
    assert "extern" not in report.text
    assert BRACKETS not in report.text


def test_a_grid_that_synchronises_without_a_cooperative_launch_is_explained(tmp_path):
    report = report_of(tmp_path, KERNELS + "module.whole_grid[1, 32](x, 0)\nreport_of(bascule.synchronize)")
    assert report.headline.endswith(f" kernel 'whole_grid' executed a trap at {report.place('// sync')}")
    assert "synchronises its grid (cooperative_groups), and this launch was not cooperative" in report.text
    assert "Launch it cooperatively: kernel[bascule.LaunchConfig(grid, block, cooperative=True)]." in report.text


def test_the_advice_about_cooperation_is_right(tmp_path):
    program = "module.whole_grid[bascule.LaunchConfig(1, 32, cooperative=True)](x, 0)\nreport_of(bascule.synchronize)"
    assert report_of(tmp_path, KERNELS + program).text == "nothing was raised\n"


def test_a_trap_of_the_kernels_own_is_not_explained_by_the_launch(tmp_path):
    report = report_of(tmp_path, KERNELS + "module.whole_grid[1, 32](x, 1)\nreport_of(bascule.synchronize)")
    assert report.headline.endswith(f" at {report.place('// own trap')}")
    assert "cooperative" not in report.text
