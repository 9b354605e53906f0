"""CUDA_LAUNCH_BLOCKING, and the arguments that Bascule passes to the driver for a launch and a load."""

from __future__ import annotations

import json

from child_process import printed_by

from .place import prints
from .wrapped import prints_wrapped

BLOCKING = {"CUDA_LAUNCH_BLOCKING": "1", "BASCULE_EMULATED_SCHEDULE": "lazy"}


def test_a_launch_without_attributes_gives_no_pointer_to_them():
    program = """
    kernel = bascule.compile("__global__ void k(float* p) { p[threadIdx.x] += 1; }").k
    x = bascule.to_device(np.zeros(32, "f4"))
    kernel[1, 32](x)
    kernel[bascule.LaunchConfig(1, 32, cooperative=True)](x)
    print(x.copy_to_host().tolist() == [2.0] * 32, driver.wrapped_wrong_attributes())
    """
    assert prints_wrapped(program) == "True 0\n"


def test_the_options_of_a_load_live_as_long_as_the_library():
    program = """
    kernel = bascule.compile("__global__ void k(float* p) { p[threadIdx.x] += 1; }").k
    x = bascule.to_device(np.zeros(32, "f4"))
    for _ in range(3):
        kernel[1, 32](x)
    bascule.synchronize()
    print(driver.wrapped_options_live())
    """
    assert prints_wrapped(program) == "1\n"


def test_a_launch_raises_its_own_kernels_fault_and_names_itself():
    program = """
    text = "__global__ void good(float* p) { p[0] = 1; }  __global__ void bad(float* p) { *(float*)8 = 1; }"
    module = bascule.compile(text)
    x = bascule.to_device(np.zeros(32, "f4"))
    module.good[1, 1](x)
    try:
        module.bad[1, 1](x)
        print("nothing")
    except bascule.CudaError as error:
        print(error.code, error.launch.startswith("It was kernel 'bad' on"), "with the arguments" in error.launch)
        print("launching kernel 'bad'" in str(error))
    """
    assert prints(program, **BLOCKING) == "700 True True\nTrue\n"
    # Without the setting nothing has run when the launch returns, and the process ends before anything waits.
    assert prints(program, **{**BLOCKING, "CUDA_LAUNCH_BLOCKING": "0"}) == "nothing\n"


def test_orders_between_streams_are_the_same_and_nothing_deadlocks():
    program = """
    text = "__global__ void k(float* p, int n) { for (int i = 0; i < n; ++i) p[threadIdx.x] += 1; }"
    kernel = bascule.compile(text).k
    streams = [bascule.stream() for _ in range(4)]
    x = bascule.to_device(np.zeros(32, "f4"), stream=streams[0])
    def work():
        for round in range(20):
            kernel[1, 32, streams[round % 4]](x, 10)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads: each.start()
    for each in threads: each.join()
    print(x.copy_to_host(stream=streams[1]).max() <= 600)
    y = bascule.to_device(np.zeros(32, "f4"))
    kernel.prepare(y, 1)
    with bascule.Graph() as graph:
        kernel[1, 32](y, 1)
    for _ in range(5):
        graph.launch()
    print(y.copy_to_host().tolist() == [5.0] * 32)
    """
    assert prints(program, BASCULE_EMULATED_SCHEDULE="threads", CUDA_LAUNCH_BLOCKING="1") == "True\nTrue\n"


def test_a_launch_that_waits_for_a_python_host_function_does_not_hold_the_gil():
    program = """
    kernel = bascule.compile("__global__ void k(float* p) { p[threadIdx.x] += 1; }").k
    stream = bascule.stream()
    x = bascule.to_device(np.zeros(32, "f4"), stream=stream)
    kernel.prepare(x)
    ran = []
    host = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: ran.append("host function"))
    driver.cuLaunchHostFunc(ctypes.c_void_p(stream.handle), host, None)
    kernel[1, 32, stream](x)
    print(ran)
    """
    expected = "['host function']\n"
    assert prints(program, BASCULE_EMULATED_SCHEDULE="threads", CUDA_LAUNCH_BLOCKING="1") == expected


def test_info_says_that_launches_wait():
    def info(*arguments: str, **changes: str) -> str:
        return printed_by("-m", "bascule", "info", *arguments, BASCULE_DEVICE="emulated", **changes)

    assert "each launch waits for its kernel (CUDA_LAUNCH_BLOCKING)" in info(CUDA_LAUNCH_BLOCKING="1")
    assert "CUDA_LAUNCH_BLOCKING" not in info(CUDA_LAUNCH_BLOCKING="0")
    assert json.loads(info("--json", CUDA_LAUNCH_BLOCKING="1"))["driver"]["launches_wait"] is True
