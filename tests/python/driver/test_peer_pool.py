"""`peer=True` opens Bascule's own pool, and detects other libraries' pools, which it cannot open."""

from __future__ import annotations

import textwrap

from .place import prints as prints_on_driver

OPENING = """
kernel = bascule.compile("__global__ void add(int* p, const int* q) { p[threadIdx.x] += q[threadIdx.x]; }").add
here = bascule.to_device(np.arange(8, dtype="i4"))
with bascule.device(1):
    there = bascule.to_device(np.arange(8, dtype="i4"))
launcher = kernel[1, 8].options(peer=True)

class Array:
    def __init__(self, address):
        data = {"data": (address, False), "stream": 1}
        self.__cuda_array_interface__ = {"shape": (8,), "typestr": "<i4", "version": 3, **data}
"""
FOREIGN = """
import ctypes
context = ctypes.c_void_p()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1) == 0
assert driver.cuCtxPushCurrent_v2(context) == 0
address, plain, pool = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_void_p()
assert driver.cuMemAllocAsync(ctypes.byref(address), 32, None) == 0
assert driver.cuMemAlloc_v2(ctypes.byref(plain), 32) == 0
assert driver.cuMemsetD32_v2(address, 0, 8) == 0 and driver.cuMemsetD32_v2(plain, 0, 8) == 0
assert driver.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 1) == 0
assert driver.cuCtxPopCurrent_v2(ctypes.byref(context)) == 0
"""


def prints(program: str) -> str:
    return prints_on_driver(OPENING + FOREIGN + textwrap.dedent(program), uses=(0, 1))


def test_arrays_are_copied_between_devices_that_do_not_open_their_pools():
    program = """
    with bascule.device(1):
        there[...] = here[::-1]
        here[::2] = there[4:]
    print(there.copy_to_host().tolist(), here.copy_to_host().tolist())
    """
    assert prints(program) == "[7, 6, 5, 4, 3, 2, 1, 0] [3, 1, 2, 3, 1, 5, 0, 7]\n"


def test_arrays_of_ours_are_reached_from_another_device():
    program = """
    launcher(here, there)
    print(here.copy_to_host())
    with bascule.device(1):
        late = bascule.to_device(np.full(8, 100, "i4"))  # made after the pool was opened
    launcher(here, late)
    print(here.copy_to_host())
    """
    expected = "[ 0  2  4  6  8 10 12 14]\n[100 102 104 106 108 110 112 114]\n"
    assert prints(program) == expected


def test_memory_of_another_librarys_pool_is_refused_until_its_owner_opens_it():
    program = """
    launcher(here, Array(plain.value))
    for _ in range(2):
        try:
            launcher(here, Array(address.value))
        except bascule.ArgumentError as error:
            text = str(error)
            print(text.startswith("argument 2 'q'"), "cudaMemPoolSetAccess" in text, "device 0" in text)
    class Access(ctypes.Structure):
        _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int), ("flags", ctypes.c_int)]
    assert driver.cuMemPoolSetAccess(pool, ctypes.byref(Access(1, 0, 3)), 1) == 0
    launcher(here, Array(address.value))
    print(here.copy_to_host())
    """
    expected = "True True True\n" * 2 + "[0 1 2 3 4 5 6 7]\n"
    assert prints(program) == expected


def test_our_arrays_of_another_librarys_pool_are_told_too():
    program = """
    def allocate(nbytes, stream):
        return address.value
    with bascule.device(1):
        before = bascule.set_allocator((allocate, lambda *arguments: None))
        theirs = bascule.device_array(8, "i4")
        bascule.set_allocator(before)
    try:
        launcher(here, theirs)
    except bascule.ArgumentError as error:
        print("cudaMemPoolSetAccess" in str(error))
    """
    assert prints(program) == "True\n"


def test_the_emulated_driver_opens_pools_one_by_one():
    """cuCtxEnablePeerAccess does not open pools: a kernel that accesses a pool's memory faults."""
    program = """
    launcher(here, Array(plain.value))  # peer access is on
    try:
        launcher(here, bascule.raw_pointer(address.value))
        bascule.synchronize()
    except bascule.CudaError as error:
        print(error.code_name)
    """
    assert prints(program) == "CUDA_ERROR_ILLEGAL_ADDRESS\n"
