"""What Bascule remembers of memory stays correct when other libraries free memory without telling Bascule."""

from __future__ import annotations

import pytest

from .place import prints

# Another library: memory in the primary context of a device, freed and allocated again by the driver's functions.
OTHER = """
driver.cuInit(0)
primary = []
for device in range(2):
    primary.append(ctypes.c_void_p())
    if device in USES:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(primary[device]), device)

def allocate(function, device, *arguments, bytes=128):
    address = ctypes.c_uint64()
    driver.cuCtxSetCurrent(primary[device])
    assert function(ctypes.byref(address), ctypes.c_size_t(bytes), *arguments) == 0
    driver.cuCtxSetCurrent(primary[0])
    return address.value

def free(address):
    assert driver.cuMemFree_v2(ctypes.c_uint64(address)) == 0

driver.bascule_emulated_call_count.restype = ctypes.c_uint64
def queries(call):
    before = driver.bascule_emulated_call_count(b"cuPointerGetAttributes")
    call()
    return driver.bascule_emulated_call_count(b"cuPointerGetAttributes") - before

kernel = bascule.compile("__global__ void k(float* p) { p[threadIdx.x] = 1; }").k
launch = kernel[1, 32]
"""

ONE = {"BASCULE_EMULATED_DEVICES": "1"}


@pytest.mark.parametrize(
    "kind", ["driver.cuMemAlloc_v2, 0", "driver.cuMemHostAlloc, 0, 2", "driver.cuMemAllocManaged, 0, 1"]
)
def test_memory_is_asked_about_once_on_a_machine_with_one_device(kind):
    program = f"""
x = Foreign(allocate({kind}))
print(queries(lambda: launch(x)), [queries(lambda: launch(x)) for _ in range(3)])
"""
    assert prints(OTHER + program, **ONE) == "1 [0, 0, 0]\n"


def test_other_memory_of_a_proven_block_is_not_asked_about():
    program = """
    x, y = Foreign(allocate(driver.cuMemAlloc_v2, 0)), Foreign(allocate(driver.cuMemAlloc_v2, 0))
    print(queries(lambda: launch(x)), queries(lambda: launch(y)))
    """
    assert prints(OTHER + "if True:" + program, **ONE) == "1 0\n"


def test_many_blocks_at_a_regular_distance_do_not_drive_each_other_out():
    """Blocks at a distance of a multiple of 1,024 blocks would share one entry if it were chosen by a plain modulus."""
    program = """
    from ctypes import c_uint64
    bases = [allocate(driver.cuMemAlloc_v2, 0, bytes=64 << 20) for _ in range(24)]
    arrays = [Foreign(base) for base in bases]
    for each in arrays:
        launch(each)
    print(sum(queries(lambda: launch(each)) for each in arrays) < 6)
    """
    assert prints(OTHER + "if True:" + program, BASCULE_EMULATED_MEMORY="4GB", **ONE) == "True\n"


def test_with_several_devices_an_array_that_names_none_is_asked_about_each_time():
    program = """
    x = Foreign(allocate(driver.cuMemAlloc_v2, 0))
    print([queries(lambda: launch(x)) for _ in range(3)])
    """
    assert prints(OTHER + "if True:" + program, BASCULE_EMULATED_DEVICES="2") == "[1, 1, 1]\n"


def test_memory_that_is_another_devices_now_is_not_taken_for_the_first_ones():
    """Both devices use the same address: a driver may reuse free addresses."""
    program = """
    near, far = allocate(driver.cuMemAlloc_v2, 0), allocate(driver.cuMemAlloc_v2, 1)
    launch(Foreign(near))
    free(near)
    launch(Foreign(far))
    array = bascule.as_cuda_array(Foreign(far))
    print(array.device.ordinal, array.copy_to_host().sum())
    print(refusal(lambda: launch(Foreign(near))).count("memory that no CUDA device knows"))
    """
    assert prints(OTHER + "if True:" + program, uses=(0, 1)) == "1 32.0\n1\n"


def test_a_tensor_that_names_its_device_is_taken_at_its_word_only_where_the_block_is_of_that_device():
    program = """
    x = bascule.as_cuda_array(Foreign(allocate(driver.cuMemAlloc_v2, 0)))
    with bascule.device(1):
        y = bascule.device_array(32, "f4")
    launch(x), launch(y)
    print(x.copy_to_host().sum(), y.copy_to_host().sum())
    """
    assert prints(OTHER + "if True:" + program, uses=(0, 1)) == "32.0 32.0\n"


def test_frees_of_bascule_are_noticed():
    program = """
    for make in bascule.device_array, bascule.pinned_array, bascule.managed_array:
        array = make(32)
        address = array.__cuda_array_interface__["data"][0]
        launch(Foreign(address))
        bascule.synchronize()
        del array
        gc.collect()
        bascule.synchronize()  # an address that was given out is freed then
        print(refusal(lambda: launch(Foreign(address))).count("memory that no CUDA device knows"))
    """
    assert prints(OTHER + "if True:" + program, **ONE) == "1\n1\n1\n"
