"""The errors that destroy a context: all later calls return them, and the process must be restarted."""

from __future__ import annotations

import re
from pathlib import Path

import bascule

from .wrapped import prints_wrapped

# From cuda.h: "the process must be terminated and relaunched", or "the context cannot be used anymore".
OF_KERNELS = (700, 702, 710, 714, 715, 716, 717, 718, 719, 721)
OF_CUDA_H = (*OF_KERNELS, 226, 810, 911)
IN_PRACTICE = (214, 220, 999)  # not documented in cuda.h

PROGRAM = """
driver.wrapped_lose.argtypes = [ctypes.c_int]
kernel = bascule.compile("__global__ void k(float* p) { p[threadIdx.x] += 1; }").k
stream = bascule.stream()
x = bascule.to_device(np.zeros(32, "f4"), stream=stream)
kernel[1, 32, stream](x)
stream.synchronize()
for code in CODES:
    driver.wrapped_lose(code)
    try:
        stream.synchronize()
        print(code, "no error")
    except bascule.CudaError as error:
        text = str(error)
        parts = ("The context is lost", "Restart the process", "kernel failed")
        print(code, error.code == code, *(part in text for part in parts))
    driver.wrapped_lose(0)
"""


def test_every_code_of_this_list_loses_the_context_and_the_message_says_so():
    codes = (*OF_CUDA_H, *IN_PRACTICE)
    expected = [f"{code} True True True {code in OF_KERNELS}" for code in codes]
    assert prints_wrapped(PROGRAM.replace("CODES", str(codes))).splitlines() == expected


def test_other_codes_do_not():
    assert prints_wrapped(PROGRAM.replace("CODES", "(1, 2, 304, 800)")).splitlines() == [
        "1 True False False False",
        "2 True False False False",
        "304 True False False False",
        "800 True False False False",
    ]


def test_errors_of_mps_say_what_to_do():
    program = """
    driver.wrapped_lose.argtypes = [ctypes.c_int]
    stream = bascule.stream()
    for code in range(805, 811):
        driver.wrapped_lose(code)
        try:
            stream.synchronize()
        except bascule.CudaError as error:
            print(str(error).replace("\\n", " "))
        driver.wrapped_lose(0)
    """
    said = prints_wrapped(program).splitlines()
    advice = ["nvidia-cuda-mps-control -d", "restart MPS", "Try again", "End other processes"]
    advice += ["CUDA_DEVICE_MAX_CONNECTIONS", "log names the cause"]
    assert len(said) == len(advice)
    assert [part for part, line in zip(advice, said, strict=True) if part not in line] == []
    assert "Restart the process" in said[-1]


def test_a_cooperative_grid_for_which_its_clusters_leave_no_room_says_so():
    program = """
    driver.wrapped_lose.argtypes = [ctypes.c_int]
    kernel = bascule.compile("__global__ void k() {}").k
    kernel.prepare()
    for cluster in (None, 2):
        driver.wrapped_lose(720)
        print(refusal(lambda: kernel.launch(4, 32, (), cooperative=True, cluster=cluster)))
        driver.wrapped_lose(0)
    """
    plain, clusters = prints_wrapped(program, BASCULE_EMULATED_ARCH="90").splitlines()
    assert "`grid` is (4,)" in plain
    assert "make the blocks smaller" in plain
    assert "clusters of 2 blocks" in clusters
    assert "make the clusters smaller" in clusters


def test_the_list_has_every_code_of_which_cuda_h_says_it():
    header = next(
        path
        for path in (Path(each, "cuda.h") for each in bascule._bascule._nvrtc_info()["include_paths"])
        if path.with_name("cudaTypedefs.h").is_file()  # not the stand-in for cuda.h
    )
    comments = re.findall(r"/\*\*((?:(?!\*/).)*)\*/\s*CUDA_ERROR_\w+\s*=\s*(\d+)", header.read_text(), re.DOTALL)
    words = {int(code): " ".join(comment.replace("*", " ").split()) for comment, code in comments}
    lost = {
        code
        for code, text in words.items()
        if "must be terminated and relaunched" in text or "context cannot be used" in text
    }
    assert len(lost) >= 10
    assert lost <= set(OF_CUDA_H)


def test_owners_of_launches_are_released_after_a_loss_that_no_kernel_caused():
    program = """
    import weakref
    driver.wrapped_lose.argtypes = [ctypes.c_int]
    kernel = bascule.compile("__global__ void k(float* p) { p[threadIdx.x] += 1; }").k
    stream = bascule.stream()
    x = bascule.to_device(np.zeros(32, "f4"), stream=stream)
    stream.synchronize()
    kernel[1, 32, stream](x)
    driver.wrapped_lose(214)
    try:
        stream.synchronize()
    except bascule.CudaError as error:
        print(error.code_name, error.launch == "")
    print(bascule._bascule._owners_held())
    """
    assert prints_wrapped(program) == "CUDA_ERROR_ECC_UNCORRECTABLE True\n0\n"
