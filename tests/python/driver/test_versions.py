"""Drivers and NVRTCs of different versions: the choice of the compiler, the loaded code, and error messages.

The emulated driver behaves like the version in BASCULE_EMULATED_DRIVER. It runs no machine code: where a GPU
would, a wrapped driver loads PTX of the same kernel instead.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from child_process import PYTEST, printed_by, run_python

import bascule

from .place import environment_of, prints
from .wrapped import prints_wrapped

ROOT = Path(__file__).resolve().parents[3]
NEWEST = bascule._bascule._nvrtc_info()["version"]
NVRTC_12 = sorted(Path(sys.prefix).glob("lib/python*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"))

needs_nvrtc_12 = pytest.mark.skipif(not NVRTC_12, reason="needs the NVRTC of CUDA 12 that tests/requirements.txt names")

KERNEL = 'extern "C" __global__ void k(float* p) { p[threadIdx.x] += 1; }'
RUN = f"""
kernel = bascule.compile('{KERNEL}', options=OPTIONS).k
x = bascule.to_device(np.zeros(32, "f4"))
kernel[1, 32](x)
print(x.copy_to_host().tolist() == [1.0] * 32)
"""
FAIL = RUN.replace(
    "kernel[1, 32](x)",
    """
try:
    kernel[1, 32](x)
except bascule.CudaError as error:
    print(error.code)
    print(error)
""",
)


def run(options: str = "None", text: str = RUN) -> str:
    return text.replace("OPTIONS", options)


@pytest.fixture
def ptx_of_80(tmp_path: Path) -> str:
    """A file with KERNEL for sm_80, as PTX of the version that a driver of CUDA 12.0 reads."""
    path = tmp_path / "k.ptx"
    program = f"""
    import bascule
    print(bascule.compile('{KERNEL}', options={{"arch": "compute_80"}}).k.ptx, end="")
    """
    asks = ["-c", textwrap.dedent(program)]
    ptx = printed_by(*asks, BASCULE_DEVICE="emulated", BASCULE_EMULATED_DRIVER="12.0")
    path.write_text(re.sub(r"\.version \d+\.\d+", ".version 8.0", ptx))
    return str(path)


# --- An emulated driver of a given version

DRIVER = """
def find(name, version):
    function, status = ctypes.c_void_p(), ctypes.c_int(-1)
    code = driver.cuGetProcAddress_v2(name, ctypes.byref(function), version, ctypes.c_uint64(0), ctypes.byref(status))
    return code, bool(function.value), status.value
def load(code):
    library = ctypes.c_void_p()
    return driver.cuLibraryLoadData(ctypes.byref(library), code, None, None, 0, None, None, 0)
driver.cuInit(0)
"""


def on_driver(program: str) -> str:
    return DRIVER + textwrap.dedent(program)


@pytest.mark.parametrize(("version", "number"), [("12.0", 12000), ("12.4", 12040), ("12.8", 12080), ("13.0", 13000)])
def test_the_emulated_driver_says_its_version_and_lacks_what_is_newer(version: str, number: int):
    program = on_driver(f"""
    value = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(value))
    print(value.value)
    print([find(name, {number}) for name in (b"cuLibraryLoadData", b"cuKernelGetParamInfo", b"cuStreamGetDevice")])
    print(find(b"cuEventElapsedTime", 2000))
    print(find(b"cuLibraryLoadData", 11080), find(b"cuLibraryLoadData", {number} + 10))
    """)
    found, absent = (0, True, 0), (0, False, 1)
    names = [found, found if number >= 12040 else absent, found if number >= 12080 else absent]
    # Below a function's first version: not sufficient (2). Above the driver's version: an invalid value (1).
    last = f"{(0, False, 2)} {(1, False, -1)}"
    said = prints(program, BASCULE_EMULATED_DRIVER=version).splitlines()
    assert said == [str(number), str(names), str(found), last]


def test_the_emulated_driver_refuses_what_is_newer_by_the_codes_of_a_driver():
    ptx = ".version {}\\n.target sm_{}\\n.address_size 64\\n.visible .entry e() {{ ret; }}\\n"
    program = on_driver(f"""
    def ptx(version, arch): return load("{ptx}".format(version, arch).encode())
    def cubin(abi, arch):
        header = bytearray(64)
        header[:8] = b"\\x7fELF\\x02\\x01\\x01" + bytes([abi])
        header[48 + (abi == 0x41)] = arch
        return load(bytes(header))
    print(ptx("8.4", 80), ptx("8.5", 80), ptx("9.0", 80), ptx("8.4", 90))
    print(cubin(0x33, 80), cubin(0x33, 90), cubin(0x41, 80))
    """)
    # 222 UNSUPPORTED_PTX_VERSION, 218 INVALID_PTX, 209 NO_BINARY_FOR_GPU, 200 INVALID_IMAGE
    assert prints(program, BASCULE_EMULATED_DRIVER="12.4") == "0 222 222 218\n209 209 200\n"
    assert prints(program, BASCULE_EMULATED_DRIVER="12.4", BASCULE_EMULATED_ARCH="90") == "0 222 222 0\n209 209 200\n"
    assert prints(program, BASCULE_EMULATED_DRIVER="13.0") == "0 0 0 218\n209 209 209\n"
    disabled = prints(program, BASCULE_EMULATED_DRIVER="13.0", CUDA_DISABLE_PTX_JIT="1")
    assert disabled == "223 223 223 223\n209 209 209\n"
    said = prints(program, only_emulated="an H100 is not of the architecture that the emulated device has")
    assert said == "0 0 0 218\n209 209 209\n"  # no version is given: PTX of every version is accepted


@pytest.mark.parametrize("arch", ["75", "86", "89", "90"])
def test_a_device_of_another_architecture_runs_what_bascule_compiles_for_it(arch: str):
    program = f"print(bascule.current_device().arch)\n{run()}"
    assert prints(program, BASCULE_EMULATED_ARCH=arch) == f"sm_{arch}\nTrue\n"
    emulated = prints(program, BASCULE_EMULATED_ARCH=arch, BASCULE_DEVICE="emulated")
    assert emulated == f"compute_{arch}\nTrue\n"


@pytest.mark.parametrize(
    ("arch", "asks", "target"),
    [
        ("89", "", "sm_89"),
        ("90", "", "sm_90a"),
        ("90", 'options={"arch": "sm_90"}', "sm_90"),
        ("90", 'options={"arch": "compute_90"}', "sm_90"),
        ("90", 'options={"extra": ["-rdc=true"]}', "sm_90"),
    ],
)
def test_code_is_compiled_for_exactly_the_device_unless_an_architecture_is_named(arch: str, asks: str, target: str):
    own = "own" if target.endswith("a") else "shared"
    text = (
        "__global__ void k(int* x) {\\n#ifdef __CUDA_ARCH_FEAT_SM90_ALL\\n*x = OWN;\\n#else\\n*x = SHARED;\\n#endif\\n}"
    )
    text = text.replace("OWN", "1").replace("SHARED", "0")
    program = f"""
    kernel = bascule.compile("{text}"{", " + asks if asks else ""}).k
    out = bascule.zeros(1, "i4")
    kernel[1, 1](out)
    print(next(line for line in kernel.ptx.splitlines() if line.startswith(".target")).split(",")[0])
    print(["shared", "own"][out.item()], bascule.current_device().arch)
    """
    only = "the device at hand is of another architecture"
    said = prints(program, only_emulated=only, BASCULE_EMULATED_ARCH=arch)
    assert said == f".target {target}\n{own} sm_{arch}\n"


# --- The driver selects NVRTC

ASK = """
info = bascule._bascule._nvrtc_info()
print(info["version"], info["conflict"])
"""


@needs_nvrtc_12
@pytest.mark.parametrize("device", ["cuda", "emulated"])
@pytest.mark.parametrize("version", ["12.0", "12.4", "12.8"])
def test_a_driver_of_cuda_12_has_kernels_compiled_by_an_nvrtc_of_cuda_12(version: str, device: str):
    program = ASK + run()
    assert prints(program, BASCULE_EMULATED_DRIVER=version, BASCULE_DEVICE=device) == "12.0 \nTrue\n"


@needs_nvrtc_12
def test_its_headers_are_of_the_same_version():
    text = """
    #include <cuda_fp16.h>
    #include <cuda/std/array>
    #include <cooperative_groups.h>
    template <class T> __global__ void k(T* p, int* version) {
        cuda::std::array<T, 2> two = {T(1), T(2)};
        p[threadIdx.x] += two[1];
        *version = 1000 * __CUDACC_VER_MAJOR__ + 10 * __CUDACC_VER_MINOR__;
    }
    """
    program = f"""
    import re
    kernel = bascule.compile({text!r}).k
    x, version = bascule.to_device(np.zeros(32, "f2")), bascule.to_device(np.zeros(1, "i4"))
    kernel[1, 32](x, version)
    print(x.copy_to_host().tolist() == [2.0] * 32, version.copy_to_host()[0])
    for path in bascule._bascule._nvrtc_info()["include_paths"]:
        if os.path.isfile(path + "/cudaTypedefs.h"):  # not the stand-in for cuda.h
            print(re.search(r"#define CUDA_VERSION (\\d+)", open(path + "/cuda.h").read())[1])
    """
    assert prints(program, BASCULE_EMULATED_DRIVER="12.4") == "True 12000\n12000\n"


@pytest.mark.slow  # runs some 200 tests
@pytest.mark.skipif("LONG_TESTS" not in os.environ, reason="takes 20 seconds: .ci/run --long")
@needs_nvrtc_12
def test_kernels_of_every_kind_compile_and_run_on_a_driver_of_cuda_12():
    """Overloads, templates, structures, variables, which all other tests run with the newest NVRTC."""
    chosen = ["jit/test_instantiation.py", "variables/test_globals.py", "jit/test_structures.py", "test_end_to_end.py"]
    command = [*PYTEST, "-m", "not slow", *(f"tests/python/{name}" for name in chosen)]
    printed_by(*command, cwd=ROOT, timeout=600, BASCULE_DEVICE="emulated", BASCULE_EMULATED_DRIVER="12.4")


def test_without_a_named_driver_the_newest_compiles():
    assert prints(ASK) == f"{NEWEST} {conflict('13.0') if NEWEST > '13.0' else ''}\n"
    assert prints(ASK, BASCULE_DEVICE="emulated") == f"{NEWEST} \n"


def conflict(driver: str) -> str:
    return (
        f"The driver is for CUDA {driver}, and loads machine code of NVRTC {NEWEST} but not its PTX, which "
        "devices need that this NVRTC does not know: update the driver, or install an NVRTC of its version with "
        f'`pip install "nvidia-cuda-nvrtc=={driver}.*" "nvidia-cuda-runtime=={driver}.*" "nvidia-cuda-crt=={driver}.*" '
        f'"nvidia-cuda-cccl=={driver}.*"`.'
    )


def test_info_compares_the_driver_and_nvrtc(tmp_path: Path):
    def info(driver: str) -> subprocess.CompletedProcess[str]:
        return run_python("-m", "bascule", "info", **environment_of(tmp_path, BASCULE_EMULATED_DRIVER=driver))

    newer = info("13.0")
    assert (newer.returncode, conflict("13.0") in newer.stdout) == (0, NEWEST > "13.0")
    assert "loads machine code" not in info("13.9").stdout


# --- What is loaded


def test_machine_code_loads_where_the_ptx_is_too_new(ptx_of_80: str):
    """Minor-version compatibility: an NVRTC of CUDA 13 and a driver of an older CUDA 13."""
    driver = {"BASCULE_EMULATED_DRIVER": "13.0", "WRAPPED_SAYS": "1", "WRAPPED_PTX": "222"}
    assert prints_wrapped(run(), WRAPPED_CUBIN=ptx_of_80, **driver) == "cubin 0\nTrue\n"


@pytest.mark.parametrize("code", [1, 200, 209, 218, 227, 304, 999])
def test_any_refusal_of_machine_code_tries_the_ptx_once(code: int):
    said = prints_wrapped(run(), WRAPPED_CUBIN=str(code), WRAPPED_SAYS="1")
    assert said == f"cubin {code}\nptx 0\nTrue\n"


def test_where_both_are_refused_the_first_error_stays_and_the_versions_are_named():
    refused = {"WRAPPED_CUBIN": "200", "WRAPPED_PTX": "222", "WRAPPED_SAYS": "1"}
    said = prints_wrapped(run(text=FAIL), BASCULE_EMULATED_DRIVER="13.0", **refused).splitlines()
    assert said[:3] == ["cubin 200", "ptx 222", "200"]
    assert "CUDA_ERROR_INVALID_IMAGE (200)" in said[3]
    if NEWEST > "13.0":
        assert said[-2] == conflict("13.0")


@pytest.mark.parametrize(("code", "part"), [("221", "NVIDIA_DRIVER_CAPABILITIES"), ("223", "CUDA_DISABLE_PTX_JIT")])
def test_a_driver_that_cannot_compile_ptx_names_what_it_needs(code: str, part: str):
    said = prints_wrapped(run(text=FAIL), WRAPPED_CUBIN="209", WRAPPED_PTX=code)
    assert said.startswith("209\n")
    assert part in said


def test_a_log_of_warnings_is_no_refusal(ptx_of_80: str):
    """Drivers also write warnings to the error log; other text after a successful load means a lazy refusal."""
    warning = "ptxas warning : Stack size for entry function 'k' cannot be statically determined"
    loads = {"WRAPPED_CUBIN": ptx_of_80}
    assert prints_wrapped(run('{"arch": "sm_80"}'), WRAPPED_LOG=warning, **loads) == "True\n"
    error = f"{warning}\nptxas application ptx input, line 9; error   : Unknown symbol 'x'"
    refused = prints_wrapped(
        run('{"arch": "sm_80"}', FAIL.replace("CudaError", "CompileError")).replace("error.code", "'refused'"),
        WRAPPED_LOG=error,
        **loads,
    )
    assert refused.startswith("refused\n")
    assert "Unknown symbol 'x'" in refused
    busy = prints_wrapped(run(text=FAIL), WRAPPED_LOG=warning, WRAPPED_CUBIN="2", WRAPPED_PTX="2")
    assert busy.startswith("2\n")
    assert "out of memory" in busy


def test_code_of_a_newer_cuda_than_the_driver_says_what_to_install():
    """An NVRTC that the program names itself is used, whatever the driver is."""
    named = f"bascule.config.nvrtc_library = {bascule._bascule._nvrtc_info()['path']!r}\n"
    said = prints(named + run(text=FAIL), BASCULE_EMULATED_DRIVER="12.4")
    assert said.startswith("200\n")
    assert f"The driver is for CUDA 12.4, and loads no code of NVRTC {NEWEST}" in said
    assert "`pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12" in said


def test_parameters_of_more_than_4_kb_name_the_driver_that_takes_them(ptx_of_80: str):
    """NVRTC 12.1 and newer compile them, and a driver of CUDA 12.0 loads the machine code of CUDA 12."""
    program = f"""
    bascule.config.nvrtc_library = {bascule._bascule._nvrtc_info()["path"]!r}
    text = "struct Large {{ float values[1025]; }};"
    text += "extern \\"C\\" __global__ void k(Large x, float* p) {{ *p = x.values[0]; }}"
    print(refusal(bascule.compile(text, options={{"arch": "sm_80"}}).k.prepare))
    """
    said = prints_wrapped(textwrap.dedent(program), BASCULE_EMULATED_DRIVER="12.0", WRAPPED_CUBIN=ptx_of_80)
    assert "the parameters of kernel 'k' are 4112 bytes, and this driver, of CUDA 12.0, takes 4096" in said
    assert "Update the driver to CUDA 12.1" in said


@pytest.mark.parametrize(("driver", "questions"), [("13.0", 2), ("13.5", 1)])
def test_no_call_is_refused_where_the_driver_counts_parameters(ptx_of_80: str, driver: str, questions: int):
    """Drivers tell the count from CUDA 13.2 on; older ones refuse the last query, which compute-sanitizer reports."""
    program = f"""
    calls = bascule._bascule._driver_calls
    calls("cuKernelGetParamInfo")  # counts from now on
    bascule.compile('{KERNEL}', options={{"arch": "sm_80"}}).k.prepare()
    print(calls("cuKernelGetParamInfo"))
    """
    said = prints_wrapped(program, BASCULE_EMULATED_DRIVER=driver, WRAPPED_CUBIN=ptx_of_80)
    assert said == f"{questions}\n"


def test_the_architecture_decides_whether_machine_code_is_tried(ptx_of_80: str):
    says = {"WRAPPED_SAYS": "1", "WRAPPED_CUBIN": ptx_of_80}
    older = run('{"arch": "sm_75"}')
    assert prints_wrapped(older, **says) == "ptx 0\nTrue\n"
    assert prints_wrapped(run('{"arch": "sm_80"}'), BASCULE_EMULATED_ARCH="86", **says) == "cubin 0\nTrue\n"


def test_a_device_that_nvrtc_does_not_know_gets_the_newest_ptx(ptx_of_80: str):
    says = {"WRAPPED_SAYS": "1", "WRAPPED_PTX": ptx_of_80, "WRAPPED_ARCHS": "990"}
    program = run() + "print(kernel.ptx.count('.target sm_'), '.target sm_990' in kernel.ptx, kernel.cubin == b'')\n"
    assert prints_wrapped(program, **says) == "ptx 0\nTrue\n1 False True\n"


def test_code_of_a_family_runs_in_that_family_alone(ptx_of_80: str):
    says = {"WRAPPED_SAYS": "1", "WRAPPED_CUBIN": ptx_of_80}
    assert prints_wrapped(run('{"arch": "sm_100f"}'), WRAPPED_ARCHS="103", **says) == "cubin 0\nTrue\n"
    refused = run('{"arch": "sm_100f"}').replace(
        "kernel[1, 32](x)",
        """
try:
    kernel[1, 32](x)
except ValueError as error:
    print(error)
""",
    )
    for other in ("90", "110", "120"):
        said = prints_wrapped(refused, WRAPPED_ARCHS=other, **says)
        assert f"code for sm_100f does not run on device 0 (Bascule emulated device), which is sm_{other}" in said


@pytest.mark.parametrize(("archs", "loads"), [("80,86", ["cubin 0"]), ("80,90", ["cubin 0", "ptx 0"])])
def test_devices_share_a_library_where_its_code_fits(ptx_of_80: str, archs: str, loads: list[str]):
    program = f"""
kernel = bascule.compile('{KERNEL}', options={{"arch": "sm_80"}}).k
for number in range(2):
    with bascule.device(number):
        x = bascule.to_device(np.zeros(32, "f4"))
        kernel[1, 32](x)
        assert x.copy_to_host().tolist() == [1.0] * 32
"""
    devices = {"BASCULE_EMULATED_DEVICES": "2", "WRAPPED_ARCHS": archs}
    assert prints_wrapped(program, WRAPPED_SAYS="1", WRAPPED_CUBIN=ptx_of_80, **devices).splitlines() == loads


# --- The suite with other drivers


def nvrtc_versions():
    """Imports tests/nvrtc_versions.py, which installs other NVRTCs once, into build/nvrtc."""
    spec = importlib.util.spec_from_file_location("nvrtc_versions", ROOT / "tests" / "nvrtc_versions.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["nvrtc_versions"] = module
    spec.loader.exec_module(module)
    return module


LONG = "LONG_TESTS" in os.environ
whole = pytest.mark.skipif(not LONG, reason="takes a minute a version: .ci/run --long")
# Messages of older compilers have other words and columns than those that test_diagnostics.py expects.
JIT = ["tests/python/jit", "tests/python/variables", "--ignore=tests/python/jit/test_diagnostics.py"]
# The tests that use NVRTC most: types of parameters, templates, variables and options.
TELLING = [
    f"tests/python/{each}.py"
    for each in (
        *("jit/test_signatures", "jit/test_instantiation", "jit/test_options", "jit/test_structures"),
        *("variables/test_globals", "variables/test_one_set"),
    )
]


@pytest.mark.slow  # downloads NVRTCs of some 25 to 90 MB the first time; runs some 600 tests if LONG, else some 400
@pytest.mark.parametrize("version", ["12.4", *(pytest.param(each, marks=whole) for each in ("12.0", "12.8", "13.0"))])
def test_launches_and_the_jit_work_on_a_driver_of_this_version_with_its_own_nvrtc(version: str, tmp_path: Path):
    versions = nvrtc_versions()
    nvrtc = versions.of_toolkit(version) or versions.of_wheels(version)
    report = tmp_path / "report.xml"
    environment = {
        "BASCULE_DEVICE": "emulated",
        "BASCULE_EMULATED_DRIVER": version,
        # The wheels' directory: Bascule selects by driver among these wheels, the environment's, and the toolkits.
        "PYTHONPATH": os.pathsep.join(filter(None, [str(nvrtc.library.parents[3]), os.environ.get("PYTHONPATH", "")])),
    }
    command = [*PYTEST, "-m", "not slow", f"--junitxml={report}", "tests/python/launches", *(JIT if LONG else TELLING)]
    printed_by(*command, cwd=ROOT, timeout=1200, **environment)
    assert versions.told_version(report) == version
