"""LTO-IR, which NVRTC writes with -dlto: nvJitLink compiles it, to PTX for the emulated device."""

from __future__ import annotations

import ctypes
import glob
from pathlib import Path

import numpy as np
import pytest
from child_process import printed_by

import bascule

TWICE = "__device__ float twice(float x) { return 2 * x; }"
APPLY = """
__device__ float twice(float);
__global__ void apply(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = twice(x[threadIdx.x]) + 1; }
"""
WHOLE = """
template <class T> __global__ void scale(T* x, T f) { x[threadIdx.x] *= f; }
template __global__ void scale<float>(float*, float);
"""


def libraries() -> tuple[str, str] | None:
    """Returns the paths of an NVRTC and of an nvJitLink in the same directory, or None if there is no such pair."""
    places = [bascule._bascule._nvrtc_info()["path"], *bascule._bascule._toolkit_libraries()]
    for path in places:
        beside = glob.glob(f"{glob.escape(str(Path(path).parent))}/libnvJitLink.so.*")
        if Path(path).exists() and beside:
            return path, beside[0]
    return None


def lto_ir(nvrtc_path: str, text: str) -> bytes:
    nvrtc = ctypes.CDLL(nvrtc_path)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"lto.cu", 0, None, None)
    options = (ctypes.c_char_p * 2)(b"-arch=compute_80", b"-dlto")
    assert nvrtc.nvrtcCompileProgram(program, 2, options) == 0
    assert nvrtc.nvrtcGetLTOIRSize(program, ctypes.byref(size)) == 0
    code = ctypes.create_string_buffer(size.value)
    assert nvrtc.nvrtcGetLTOIR(program, code) == 0
    return code.raw


PROGRAM = """
import sys, numpy as np, bascule
from pathlib import Path
bascule.config.nvrtc_library = sys.argv[1]
directory = Path(sys.argv[2])
x = bascule.to_device(np.arange(8, dtype="f4"))
module = bascule.load_module(directory / "whole.ltoir")
module["scale<float>"][1, 8](x, 3)
print(module.kernels, x.copy_to_host().tolist())
program = bascule.link([directory / "apply.ltoir", directory / "twice.ltoir"])
program.apply[1, 8](x, 8)
print(program.apply.signature, x.copy_to_host().tolist())
for parts in ([directory / "apply.ltoir"], [directory / "twice.ltoir", directory / "twice.ltoir"]):
    try:
        bascule.link(parts)
    except bascule.CompileError as error:
        print("refused:", "twice" in str(error), "nvJitLink" in str(error))
"""


@pytest.mark.usefixtures("machine_code")
def test_lto_ir_is_loaded_and_linked(tmp_path: Path) -> None:
    found = libraries()
    if found is None:
        pytest.skip("needs an nvJitLink beside an NVRTC")
    for name, text in (("whole", WHOLE), ("apply", APPLY), ("twice", TWICE)):
        (tmp_path / f"{name}.ltoir").write_bytes(lto_ir(found[0], text))
    printed = printed_by("-c", PROGRAM, found[0], tmp_path)
    scaled = np.arange(8, dtype="f4") * np.float32(3)
    assert printed.splitlines()[:2] == [
        f"['scale<float>'] {scaled.tolist()}",
        f"void apply(float* arg1, int arg2) {(scaled * 2 + 1).tolist()}",
    ]
    assert printed.splitlines()[2] == "refused: True True"


def test_without_nvjitlink_lto_ir_says_what_to_install() -> None:
    program = """
import sys, bascule
try:
    bascule.load_module(b"\\xed\\x43\\x4e\\x7f" + bytes(64))
except (bascule.LibraryError, bascule.CompileError) as error:
    print(type(error).__name__, error)
"""
    printed = printed_by("-c", program)
    assert "LTO-IR" in printed or "nvJitLink" in printed
    if printed.startswith("LibraryError"):
        assert "pip install nvidia-nvjitlink" in printed


@pytest.mark.parametrize("flag", ["-dlto", "--dlink-time-opt", "-lto"])
def test_texts_are_not_compiled_to_lto_ir(flag: str) -> None:
    with pytest.raises(ValueError, match="LTO-IR that was made elsewhere is loaded and linked"):
        bascule.link([TWICE, APPLY], options=[flag])
