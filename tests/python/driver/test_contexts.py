"""A device gets a context only when it is used. A context takes 0.5 GB and 0.3 s, if the device allows it."""

from __future__ import annotations

import pytest

from .place import prints, run_on_driver

ON_DEVICE_1 = """
context, address, stream = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
driver.cuInit(0)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1)
driver.cuCtxSetCurrent(context)
driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(128))
driver.cuMemsetD8_v2(address, 0, ctypes.c_size_t(128))
driver.cuStreamCreate(ctypes.byref(stream), 1)
driver.cuCtxSetCurrent(None)
foreign = Foreign(address.value)
"""

KERNEL = 'kernel = bascule.compile("__global__ void k(float* p) { p[threadIdx.x] += 1; }").k\n'


@pytest.mark.parametrize(
    "question",
    [
        "bascule.current_device()",
        "repr(bascule.device(1)), bascule.device(1).name, bascule.device(1).arch, bascule.device(1).multiprocessors",
        "bascule.device(0) == bascule.device(1), hash(bascule.device(1))",
        "bascule.synchronize()",
        "bascule.default_stream(), repr(bascule.legacy_default_stream())",
        "bascule.compile('__global__ void k(float* p) { p[0] = 1; }').k.parameters",
        "bascule._bascule._driver_info()",
        "bascule._bascule._is_context_lost()",
        "bascule.require_gpu()",
    ],
)
def test_a_question_makes_no_context(question):
    assert prints(f"{question}\nprint(contexts())", uses=()) == "[]\n"


def test_what_bascule_info_tells_needs_no_context():
    program = """
    from bascule.__main__ import main
    main(["info", "--json"])
    """
    told = prints(program, uses=(), BASCULE_EMULATED_BUSY="0,1")
    assert '"name": "Bascule emulated device"' in told


def test_entering_a_device_makes_no_context_and_an_array_there_makes_one():
    program = """
    with bascule.device(1):
        print(contexts())
        bascule.device_array(3, "f4")
    print(contexts())
    """
    assert prints(program, uses=(1,)) == "[]\n[1]\n"


def test_a_launch_makes_a_context_where_its_arrays_lie_and_nowhere_else():
    program = """
    kernel[1, 32](foreign)
    print(contexts(), bascule.as_cuda_array(foreign).copy_to_host().sum())
    """
    assert prints(ON_DEVICE_1 + KERNEL + "if True:" + program, uses=(1,)) == "[1] 32.0\n"


@pytest.mark.parametrize(
    "call",
    [
        "kernel.forall(32)(foreign)",
        "kernel[1, 32].bind(foreign)()",
        "kernel.prepare(foreign)",
        "template[1, 32](foreign)",
        "template.forall(32)(foreign)",
        "kernel[1, 32].explain(foreign)",
    ],
)
def test_every_way_to_launch_lets_the_arrays_decide_first(call):
    template = """
template = bascule.compile("template <class T> __global__ void t(T* p) { p[threadIdx.x] += 1; }").t
"""
    assert prints(ON_DEVICE_1 + KERNEL + template + call + "\nprint(contexts())", uses=(1,)) == "[1]\n"


def test_launches_after_one_that_was_undecided_load_nothing():
    program = """
    launcher = kernel[1, 32]
    launcher(foreign)
    calls = bascule._bascule._emulated_call_count if hasattr(bascule._bascule, "_emulated_call_count") else None
    library = ctypes.CDLL("libcuda.so.1")
    library.bascule_emulated_call_count.restype = ctypes.c_uint64
    loads = lambda: library.bascule_emulated_call_count(b"cuLibraryLoadData")
    before = loads()
    for _ in range(3):
        launcher(foreign)
    print(loads() - before, bascule.as_cuda_array(foreign).copy_to_host()[0])
    """
    assert prints(ON_DEVICE_1 + KERNEL + "if True:" + program, uses=(1,)) == "0 4.0\n"


def test_a_launch_without_arrays_goes_to_the_current_device():
    program = """
    kernel = bascule.compile("__global__ void k(int n) {}").k
    kernel[1, 1](3)
    print(contexts())
    """
    assert prints(program) == "[0]\n"


def test_a_streams_device_is_found_without_asking_other_devices_for_a_context():
    program = """
    external = bascule.external_stream(stream.value)
    print(external.device.ordinal, contexts())
    print(repr(external).endswith("on cuda:1 'Bascule emulated device'>"))
    """
    assert prints(ON_DEVICE_1 + "if True:" + program, uses=(1,)) == "1 [1]\nTrue\n"


def test_imports_ask_where_memory_is_without_making_a_context():
    program = """
    array = bascule.as_cuda_array(foreign)
    print(array.device.ordinal, array.__dlpack_device__(), contexts())
    print(bascule.from_dlpack(array).device.ordinal, contexts())
    print(bascule.pointer_attributes(address.value).device, contexts())
    """
    assert prints(ON_DEVICE_1 + "if True:" + program, uses=(1,)) == "1 (2, 1) [1]\n1 [1]\n1 [1]\n"


def test_a_fault_is_reported_without_a_context_elsewhere():
    program = """
    kernel = bascule.compile("__global__ void k(float* p) { p[1ll << 40] = 1; }").k
    x = bascule.device_array(8, "f4")
    try:
        kernel[1, 1](x)
        bascule.synchronize()
    except bascule.CudaError as error:
        print(error.code_name if hasattr(error, "code_name") else "CUDA_ERROR", contexts())
    """
    assert prints(program).endswith("[0]\n")


def test_the_current_device_is_the_one_that_the_driver_names():
    program = """
    context = ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuCtxCreate_v2(ctypes.byref(context), 0, 1)  # makes it current, and is not a primary one
    print(bascule.current_device().ordinal, contexts())
    """
    assert prints(program, uses=()) == "1 []\n"


def test_an_exclusive_device_is_left_alone_by_those_who_use_another():
    program = """
    with bascule.device(1):
        x = bascule.to_device(np.arange(32, dtype="f4"))
        kernel[1, 32](x)
        print(x.copy_to_host()[31])
    """
    assert prints(KERNEL + "if True:" + program, uses=(1,), BASCULE_EMULATED_BUSY="0") == "32.0\n"


def test_an_exclusive_device_that_is_used_is_refused_with_what_to_do():
    ended = run_on_driver("bascule.device_array(3, 'f4')", uses=(), BASCULE_EMULATED_BUSY="0")
    assert ended.returncode == 1
    said = ended.stderr.splitlines()[-1]
    assert "CUDA_ERROR_DEVICE_UNAVAILABLE (46)" in said
    assert "making a context on device 0" in said
    assert "CUDA_VISIBLE_DEVICES" in said
