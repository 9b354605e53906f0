"""Bascule's kernels cannot use memory and streams of a context that is not primary."""

from __future__ import annotations

import pytest

from .place import prints, run_on_driver

# Like pycuda.autoinit: creates a context, which stays current.
PYCUDA = """
context, address, stream = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
driver.cuInit(0)
driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0)

def new(allocate, *arguments):
    address = ctypes.c_uint64()
    assert allocate(ctypes.byref(address), ctypes.c_size_t(128), *arguments) == 0
    return Foreign(address.value)

kernel = bascule.compile("__global__ void k(float* p) { p[threadIdx.x] = 1; }").k
driver.cuStreamCreate(ctypes.byref(stream), 1)
"""

CURE = "pycuda.autoprimaryctx"


@pytest.mark.parametrize(
    "call",
    [
        "kernel[1, 32](new(driver.cuMemAlloc_v2))",
        "kernel[1, 32].bind(new(driver.cuMemAlloc_v2))",
        "bascule.as_cuda_array(new(driver.cuMemAlloc_v2))",
        "kernel[1, 32, stream.value](bascule.device_array(32, 'f4'))",
        "bascule.external_stream(stream.value)",
        "bascule.device_array(32, 'f4', stream=stream.value)",
    ],
)
def test_what_is_of_another_context_is_refused_with_the_cure(call):
    told = prints(PYCUDA + f"print(refusal(lambda: {call}))")
    assert "primary" in told
    assert CURE in told


TWO = {"uses": (), "BASCULE_EMULATED_DEVICES": "2"}  # the only device would have a context anyway


def test_the_refusal_names_the_argument_and_makes_no_context():
    told = prints(PYCUDA + "print(refusal(lambda: kernel[1, 32](new(driver.cuMemAlloc_v2))), contexts())", **TWO)
    assert "argument 1 'p'" in told
    assert told.endswith("[]\n")


def test_pinned_and_managed_memory_is_reached_from_every_context():
    program = """
    pinned, managed = new(driver.cuMemHostAlloc, 2), new(driver.cuMemAllocManaged, 1)
    kernel[1, 32](pinned)
    kernel[1, 32](managed)
    bascule.synchronize()
    for each in pinned, managed:
        print(ctypes.c_float.from_address(each.__cuda_array_interface__["data"][0]).value)
    """
    assert prints(PYCUDA + "if True:" + program) == "1.0\n1.0\n"


def test_bascules_own_arrays_work_beside_another_current_context():
    program = """
    x = bascule.to_device(np.zeros(32, "f4"))
    kernel[1, 32](x)
    print(x.copy_to_host().sum(), x.device.ordinal)
    current = ctypes.c_void_p()
    driver.cuCtxGetCurrent(ctypes.byref(current))
    print(current.value == context.value)
    """
    assert prints(PYCUDA + "if True:" + program) == "32.0 0\nTrue\n"


def test_memory_that_becomes_a_primary_contexts_is_taken():
    program = """
    primary = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(primary), 0)  # as pycuda.autoprimaryctx
    driver.cuCtxSetCurrent(primary)
    mine = new(driver.cuMemAlloc_v2)
    kernel[1, 32](mine)
    print(bascule.as_cuda_array(mine).copy_to_host().sum())
    """
    assert prints(PYCUDA + "if True:" + program) == "32.0\n"


def test_on_the_emulated_driver_such_memory_is_a_fault_in_a_kernel():
    program = """
    raw = bascule.compile("__global__ void r(unsigned long long p) { *(float*)p = 1; }").r
    raw[1, 1](new(driver.cuMemAlloc_v2).__cuda_array_interface__["data"][0])
    bascule.synchronize()
    """
    reason = "a kernel on an H100 reaches the memory of all contexts of the process"
    ended = run_on_driver(PYCUDA + "if True:" + program, only_emulated=reason)
    assert ended.returncode == 1
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in ended.stderr


def test_a_context_of_device_1_is_told_from_its_primary_one():
    program = """
    other = ctypes.c_void_p()
    driver.cuCtxCreate_v2(ctypes.byref(other), 0, 1)
    print(bascule.current_device().ordinal)
    print(refusal(lambda: kernel[1, 32](new(driver.cuMemAlloc_v2))))
    print(contexts())
    """
    told = prints(PYCUDA + "if True:" + program, uses=()).splitlines()
    assert told[0] == "1"
    assert "a context of device 1 that is not the device's primary one" in told[1]
    assert told[2] == "[]"


# Pinned memory, which every context can access, with a stream handle such as 1 or 2, which is valid in every context.
NAMED_BY_NUMBER = """
def named_by(number):
    return Foreign(new(driver.cuMemHostAlloc, 2).__cuda_array_interface__["data"][0], stream=number)

template = bascule.compile("template <class T> __global__ void k(T* p) { p[threadIdx.x] = 1; }").k
"""

LAUNCHES = "kernel[1, 32](named)", "template[1, 32](named)"


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(
    "call",
    [
        *LAUNCHES,
        "bascule.as_cuda_array(named)",
        "bascule.device_array(32, 'f4').__setitem__(slice(None), named)",
        "kernel[1, 32, {number}](bascule.device_array(32, 'f4'))",
        "bascule.external_stream({number})",
    ],
)
def test_default_streams_of_another_context_are_refused_with_the_cure(call, number):
    program = f"""
    named = named_by({number})
    call = lambda: {call.format(number=number)}
    print(refusal(call))
    driver.cuCtxSetCurrent(None)
    print(refusal(call))  # now there is only the primary context
    driver.cuCtxSetCurrent(context)
    print(refusal(call))  # also of a type whose arrays are read by the fast path
    """
    first, without, again = prints(PYCUDA + NAMED_BY_NUMBER + "if True:" + program).splitlines()
    assert first == again
    assert "default stream" in first
    assert CURE in first
    if call in LAUNCHES:
        assert first.startswith("argument 1 'p': ")
    assert without == "taken"


def test_arrays_without_a_stream_are_taken_beside_another_context():
    program = """
    named = named_by(1)
    driver.cuCtxSetCurrent(None)
    view = bascule.as_cuda_array(named)  # its stream is the primary context's from here on
    driver.cuCtxSetCurrent(context)
    kernel[1, 32](view)
    kernel[1, 32](named_by(None))
    bascule.synchronize()
    print(view.copy_to_host().sum())
    """
    assert prints(PYCUDA + NAMED_BY_NUMBER + "if True:" + program) == "32.0\n"
