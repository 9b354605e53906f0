"""Runs the tests that need compute capability 9.0 on such an emulated device; checks the limits of architectures."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest
from child_process import run_python

import bascule

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent

# The CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": threads and blocks per
# multiprocessor, KB of shared memory per multiprocessor and per block.
SPECIFICATIONS = {
    75: (1024, 16, 64, 64),
    80: (2048, 32, 164, 163),
    86: (1536, 16, 100, 99),
    89: (1536, 24, 100, 99),
    90: (2048, 32, 228, 227),
}


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run_python(*command, timeout=500, cwd=ROOT, BASCULE_DEVICE="emulated", **variables)


@pytest.mark.parametrize(
    "tests",
    [
        ["test_clusters.py", "test_bulk_copies.py"],
        ["../../gpu/test_on_a_gpu.py", "-k", "cluster or programmatic"],
        ["../kernels/test_async.py", "../kernels/test_pipelines.py"],
        ["../kernels/test_formats.py", "../kernels/test_tensor.py", "-k", "pairs or tf32_keeps or float8 or stored"],
        ["../kernels/test_recorded_opcodes.py", "-k", "answers_what"],
        ["../wgmma/test_products.py", "../wgmma/test_mistakes.py"],
    ],
    ids=["clusters", "gpu", "async", "formats", "opcodes", "wgmma"],
)
def test_they_pass_there(emulated, tests):
    paths = [str((HERE / test).resolve()) if test.endswith(".py") else test for test in tests]
    done = run("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *paths, BASCULE_EMULATED_ARCH="90")
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


@pytest.mark.parametrize("architecture", SPECIFICATIONS)
def test_an_architecture_has_its_limits(emulated, architecture):
    threads, blocks, shared, shared_of_block = SPECIFICATIONS[architecture]
    program = f"""
    import ctypes
    import numpy as np
    import bascule
    kernels = bascule.compile('''
        __global__ void fill(int* out, int n) {{
            extern __shared__ int room[];
            for (int i = threadIdx.x; i < n; i += blockDim.x) room[i] = i;
            __syncthreads();
            for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = room[n - 1 - i];
        }}
        __global__ void architecture(int* out) {{ *out = __CUDA_ARCH__; }}''')
    out = bascule.to_device(np.zeros(1, "i4"))
    kernels.architecture[1, 1](out)
    assert out.copy_to_host()[0] == {10 * architecture}
    assert bascule.current_device().arch == "compute_{architecture}"
    most = {shared_of_block} * 1024
    out = bascule.to_device(np.zeros(most // 4, "i4"))
    kernels.fill[1, 256, None, most](out, most // 4)
    assert (out.copy_to_host() == np.arange(most // 4)[::-1]).all()
    try:
        kernels.fill[1, 256, None, most + 4](out, 1)
    except ValueError as error:
        pass
    else:
        raise AssertionError("more shared memory than there is")
    driver = ctypes.CDLL(bascule._bascule._driver_info()["path"])
    value = ctypes.c_int()
    for attribute, expected in ((39, {threads}), (106, {blocks}), (81, {shared} * 1024), (97, most),
                                (120, {int(architecture >= 90)})):
        assert driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0) == 0
        assert value.value == expected, (attribute, value.value, expected)
    """
    done = run("-c", textwrap.dedent(program), BASCULE_EMULATED_ARCH=str(architecture))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("architecture", ["90", "90a"])
def test_a_device_of_90_takes_code_for_90a(emulated, architecture):
    program = """
    import bascule
    text = '__global__ void k() { asm volatile("wgmma.fence.sync.aligned;"); }'
    bascule.compile(text, options=bascule.CompileOptions(arch="sm_90a")).k[1, 128]()
    bascule.synchronize()
    print(bascule.current_device().arch)
    """
    done = run("-c", textwrap.dedent(program), BASCULE_EMULATED_ARCH=architecture)
    assert done.stdout.strip().startswith("compute_90"), done.stdout + done.stderr


def test_code_of_a_newer_architecture_is_refused(emulated):
    program = """
    import bascule
    kernel = bascule.compile("__global__ void k() {}", options=bascule.CompileOptions(arch="compute_90")).k
    try:
        kernel[1, 1]()
    except bascule.Error as error:
        print(error)
    """
    done = run("-c", textwrap.dedent(program), BASCULE_EMULATED_ARCH="80")
    assert "compute_90" in done.stdout, done.stdout + done.stderr
    assert "sm_80" in done.stdout


def test_a_cluster_is_refused_where_the_architecture_has_none(emulated):
    if bascule.current_device().arch.endswith(("_90", "_90a")):
        pytest.skip("this device has clusters")
    with pytest.raises(NotImplementedError, match="clusters of blocks"):
        bascule.compile("__global__ void k() {}").k.launch(4, 32, (), cluster=2)
