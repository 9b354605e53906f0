"""If the host must not use managed memory while kernels may run (WSL, old GPUs), Bascule waits for kernels first."""

from __future__ import annotations

import signal

import pytest

from .place import prints, run_on_driver

NOT_AT_ONCE = {"BASCULE_EMULATED_CONCURRENT_MANAGED": "0", "BASCULE_EMULATED_SCHEDULE": "threads"}

PENDING = """
x = bascule.managed_array(8, "f4")
np.asarray(x)[:] = 1
other = bascule.device_array(8, "f4")
kernel = bascule.compile("__global__ void k(float* p) { p[threadIdx.x] += 1; }").k
kernel[1, 8, bascule.stream()](other)  # has nothing to do with x
"""


@pytest.mark.parametrize(
    "use",
    [
        "print(np.asarray(x).sum())",
        "print(np.array(x, copy=True).sum())",
        "print(np.from_dlpack(x).sum())",
        "print(bascule.to_device(x).copy_to_host().sum())",
        "print(x.copy_to_host().sum())",
        "print(float(x.item(0)) * 8)",
        "print(other.copy_from_host(x) or other.copy_to_host().sum())",
        "print(x.copy_from_host(np.ones(8, 'f4')) or x.copy_to_host().sum())",
    ],
)
def test_what_bascule_does_with_managed_memory_comes_after_every_kernel(use):
    assert prints(PENDING + use, **NOT_AT_ONCE) == "8.0\n"


def test_copies_from_views_of_managed_memory_are_the_devices():
    program = """
    view = np.asarray(x)
    kernel[1, 8](other)
    print(bascule.to_device(view).copy_to_host().sum())
    kernel[1, 8](other)
    print(bascule.to_device(view[::2]).copy_to_host().sum())  # the host must rearrange it
    kernel[1, 8](other)
    bascule.ones(8, "f4").copy_to_host(out=view)
    bascule.synchronize()
    print(view.sum())
    """
    assert prints(PENDING + "if True:" + program, **NOT_AT_ONCE) == "8.0\n4.0\n8.0\n"


def test_the_emulated_driver_reports_a_use_by_the_host_while_a_kernel_may_run():
    program = """
    view = np.asarray(x)
    kernel[1, 8](other)
    print(view[0])
    """
    ended = run_on_driver(PENDING + "if True:" + program, **NOT_AT_ONCE)
    assert ended.returncode == -signal.SIGSEGV
    assert "the host used managed memory while a kernel may run" in ended.stderr
    assert "bascule.synchronize()" in ended.stderr
    assert 'File "<string>"' in ended.stderr  # printed by Python's own handler


@pytest.mark.parametrize("wait", ["bascule.synchronize()", "stream.synchronize()", "event.synchronize()"])
def test_after_a_wait_for_the_kernels_the_host_may_use_it(wait):
    program = f"""
    stream, event = bascule.stream(), bascule.event()
    view = np.asarray(x)
    kernel[1, 8, stream](other)
    event.record(stream)
    {wait}
    print(view.sum())
    """
    assert prints(PENDING + "if True:" + program, **NOT_AT_ONCE) == "8.0\n"


def test_where_both_may_use_it_at_once_nothing_waits():
    program = """
    driver.bascule_emulated_call_count.restype = ctypes.c_uint64
    def waits():
        return driver.bascule_emulated_call_count(b"cuCtxSynchronize")
    before = waits()
    print(np.asarray(x).sum(), waits() - before)
    """
    assert prints(PENDING + "if True:" + program, BASCULE_EMULATED_SCHEDULE="threads") == "8.0 0\n"
