"""Kernels that can access all host memory (HMM, Grace), and copies that read it when they run."""

from __future__ import annotations

import pytest

from .place import prints

PAGEABLE = {"BASCULE_EMULATED_PAGEABLE": "1"}

HOST = """
def claims(address, count=1024):
    'Memory that an object says is for CUDA.'
    return Foreign(address, count)

kernel = bascule.compile("__global__ void k(float* p) { p[blockIdx.x * blockDim.x + threadIdx.x] += 1; }").k
import mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
def mapped(protection, bytes=8192):
    return libc.mmap(None, bytes, protection, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
"""


def test_kernels_read_and_write_what_the_host_has_mapped():
    program = """
    x = np.arange(1024, dtype="f4")
    kernel[4, 256](claims(x.ctypes.data))
    bascule.synchronize()
    print((x == np.arange(1024) + 1).all())
    """
    assert prints(HOST + "if True:" + program, **PAGEABLE) == "True\n"


@pytest.mark.parametrize(
    "memory",
    [
        "address = mapped(3); libc.munmap(address, 8192)",
        "address = mapped(0)",  # reserved, as a driver reserves addresses
        "address = 0x4",
        "address = mapped(3); libc.munmap(address + 4096, 4096); address += 4096 - 64",  # its end is unmapped
        "address = (lambda a: driver.cuMemAlloc_v2(ctypes.byref(a), ctypes.c_size_t(8192)) or "
        "driver.cuMemFree_v2(a) or a.value)(ctypes.c_uint64())",  # a freed device pointer
    ],
    ids=["unmapped", "reserved", "small", "partly", "freed"],
)
def test_an_address_that_nobody_has_mapped_is_refused(memory):
    program = f"""
bascule.device_array(3, "f4")
{memory}
print(refusal(lambda: kernel[4, 256](claims(address))))
"""
    told = prints(HOST + program, **PAGEABLE)
    assert "memory that no CUDA device knows" in told
    assert "it was freed, or this process never had it" in told


def test_without_pageable_access_host_memory_is_refused_as_ever():
    program = """
    x = np.arange(1024, dtype="f4")
    print(refusal(lambda: kernel[4, 256](claims(x.ctypes.data))))
    """
    assert "it is host memory, or was freed" in prints(HOST + "if True:" + program)


def test_an_array_that_says_it_is_the_hosts_is_still_refused():
    """A NumPy array is not meant for kernels: the error names to_device, as on every other machine."""
    program = """
    print(refusal(lambda: kernel[4, 256](np.zeros(1024, "f4"))))
    print(refusal(lambda: bascule.from_dlpack(np.zeros(1024, "f4"))))
    """
    told = prints(HOST + "if True:" + program, **PAGEABLE).splitlines()
    assert all("to_device" in each for each in told)
    assert len(told) == 2


@pytest.mark.parametrize("schedule", ["lazy", "threads"])
@pytest.mark.parametrize("count", [8, 5000, 1 << 20], ids=["small", "middle", "large"])
def test_a_source_may_be_changed_as_soon_as_to_device_returns(schedule, count):
    program = f"""
    stream = bascule.stream()
    source = np.ones({count}, "f4")
    x = bascule.to_device(source, stream=stream)
    source[:] = 7
    y = bascule.device_array({count}, "f4", stream=stream)
    source[:] = 2
    y.copy_from_host(source)
    source[:] = 7
    print(x.copy_to_host().max(), y.copy_to_host().max())
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE=schedule, **PAGEABLE) == "1.0 2.0\n"


def test_elements_scalars_and_variables_are_read_before_the_call_returns():
    program = """
    module = bascule.compile('''
    __constant__ float table[4];
    struct Pair { float a; float b; };
    __global__ void k(float* p, Pair pair, float f) { p[threadIdx.x] = table[threadIdx.x] * f + pair.a; }
    ''')
    table = module.get_global("table")
    values = np.arange(4, dtype="f4")
    table.copy_from_host(values)
    values[:] = 9
    x = bascule.device_array(4, "f4")
    x[1:3] = np.array([5, 6], "f4")
    pair = np.array((1, 2), dtype=[("a", "f4"), ("b", "f4")])
    x.fill(3)
    module.k[1, 4](x, pair[()], 2.0)
    pair["a"] = 9
    print(x.copy_to_host())
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE="lazy", **PAGEABLE) == "[1. 3. 5. 7.]\n"


def test_small_copies_wait_for_nothing():
    program = """
    driver.bascule_emulated_call_count.restype = ctypes.c_uint64
    def waits():
        names = b"cuCtxSynchronize", b"cuStreamSynchronize", b"cuEventSynchronize"
        return sum(driver.bascule_emulated_call_count(name) for name in names)
    stream = bascule.stream()
    before = waits()
    arrays = [bascule.to_device(np.full(8, i, "f4"), stream=stream) for i in range(50)]
    print(waits() - before)
    print(sum(float(each.copy_to_host()[0]) for each in arrays))
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE="lazy", **PAGEABLE) == "0\n1225.0\n"


def test_what_a_graph_copies_it_reads_when_it_is_launched():
    program = """
    stream = bascule.stream()
    x = bascule.to_device(np.zeros(4, "f4"), stream=stream)
    source = np.ones(4, "f4")
    with bascule.Graph() as graph:
        x.copy_from_host(source)
    source[:] = 2
    graph.launch()
    print(x.copy_to_host())
    """
    assert prints(program, **PAGEABLE) == "[2. 2. 2. 2.]\n"
