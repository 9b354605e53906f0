"""`bascule emulate` and `bascule.emulated.install`: programs whose libcuda.so.1 is the emulated device."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from child_process import run_python

import bascule

# A program that uses only the driver API: prints the name of the first device.
CLIENT = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
name = ctypes.create_string_buffer(100)
assert driver.cuInit(0) == 0
assert driver.cuDeviceGetName(name, 100, 0) == 0
print(name.value.decode())
"""

# Two streams write to one array without any ordering: one through the driver, the other through Bascule.
SHARED = """
import ctypes
import bascule
driver = ctypes.CDLL("libcuda.so.1")
fill = bascule.compile("__global__ void fill(float* p, float v) { p[threadIdx.x] = v; }").fill
x = bascule.zeros(32, "f4")
bascule.synchronize()
stream = ctypes.c_void_p()
assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
address = ctypes.c_uint64(x.__cuda_array_interface__["data"][0])
try:
    with bascule.emulated.checks(races=True):
        assert driver.cuMemsetD8Async(address, ctypes.c_ubyte(1), ctypes.c_size_t(128), stream) == 0
        fill[1, 32, bascule.stream()].options(sync=False)(x, 2)
except bascule.RaceError as error:
    print("race:", str(error).splitlines()[0])
print(bascule.current_device().emulated)
"""


def run(program: str, **variables: str | None) -> subprocess.CompletedProcess[str]:
    return run_python("-c", textwrap.dedent(program), **variables)


def emulate(program: str, *options: str, **variables: str | None) -> subprocess.CompletedProcess[str]:
    command = ["-m", "bascule", "emulate", *options, "--", sys.executable, "-c", textwrap.dedent(program)]
    return run_python(*command, **variables)


def test_a_program_that_opens_the_driver_gets_the_emulated_device():
    done = emulate(CLIENT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "emulated" in done.stdout


def test_the_exit_status_and_the_output_are_the_programs():
    done = emulate("import sys; print(sys.argv); sys.exit(7)")
    assert (done.returncode, done.stdout) == (7, "['-c']\n")


@pytest.mark.parametrize("device", [None, "emulated", "auto"])
def test_bascule_shares_the_device_with_the_rest_of_the_process(device):
    done = emulate(SHARED, BASCULE_DEVICE=device)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "race: stream race: two operations touch the same bytes, and nothing orders them",
        "True",
    ]


def test_with_bascule_device_cuda_it_is_treated_as_a_gpu():
    done = emulate("import bascule; print(bascule.current_device().emulated)", BASCULE_DEVICE="cuda")
    assert (done.returncode, done.stdout) == (0, "False\n")


def test_enqueued_work_runs_in_threads_unless_a_schedule_is_named():
    program = "import os; print(os.environ['BASCULE_EMULATED_SCHEDULE'], os.environ.get('BASCULE_EMULATED_CHECKS'))"
    without = {"BASCULE_EMULATED_SCHEDULE": None, "BASCULE_EMULATED_CHECKS": None}
    assert emulate(program, **without).stdout == "threads None\n"
    assert emulate(program, **{**without, "BASCULE_EMULATED_SCHEDULE": "eager"}).stdout == "eager None\n"
    assert emulate(program, "--schedule", "lazy", "--check", "races", **without).stdout == "lazy races\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "there is no program to run"),
        (["--"], "there is no program to run"),
        (["--", "no-such-program"], "there is no program no-such-program"),
        (["--check", "time", "--", "true"], "'time' is not a check. There are: memory,races,leaks,"),
    ],
)
def test_a_command_line_without_a_program_is_wrong_usage(bascule_command, words, said):
    done = bascule_command("emulate", *words)
    assert done.returncode == 2
    assert said in done.stderr


# A program that uses only the driver API: divides by zero in a kernel, and ends with status 3.
DIVISION = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
ptx = b'''.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u32 n) {
    .reg .u32 %a<3>;
    ld.param.u32 %a1, [n];
    div.u32 %a2, 7, %a1;
    ret;
}'''
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
zero = ctypes.c_uint(0)
parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(zero), ctypes.c_void_p))
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
assert driver.cuModuleLoadData(ctypes.byref(module), ptx) == 0
assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"k") == 0
assert driver.cuLaunchKernel(function, 1, 1, 1, 8, 1, 1, 0, None, parameters, None) == 0
assert driver.cuCtxSynchronize() == 0
sys.exit(3)
"""


def test_checks_of_a_program_on_the_driver_are_reported_at_its_end():
    done = emulate(DIVISION, "--checks=all")
    assert done.returncode == 3, done.stderr
    assert "division: kernel 'k' divided an integer by zero at PTX line 7" in done.stderr
    assert "7 other threads did the same" in done.stderr
    assert emulate(DIVISION, "--checks", "init").stderr == ""


def test_checks_of_a_program_with_bascule_are_raised():
    program = """
    import bascule
    k = bascule.compile("__global__ void k(int* x, int n) { *x = 7 / n; }").k
    k[1, 1](bascule.zeros(1, "i4"), 0)
    bascule.synchronize()
    """
    done = emulate(program, "--checks", "division", BASCULE_DEVICE="auto")
    assert done.returncode == 1
    assert done.stderr.count("divided an integer by zero") == 1
    assert "bascule.CheckError: division: kernel 'k'" in done.stderr


def test_install_makes_it_the_driver_of_this_process():
    done = run("import bascule; bascule.emulated.install(); bascule.emulated.install()" + CLIENT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "emulated" in done.stdout


def test_install_shares_a_device_that_bascule_uses_already():
    done = run("import bascule; bascule.zeros(3, 'f4'); bascule.emulated.install()" + SHARED, BASCULE_DEVICE="emulated")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("True\n")


def test_nvjitlink_has_no_functions_so_that_clients_link_ptx():
    program = "import ctypes; print(hasattr(ctypes.CDLL('libnvJitLink.so.13'), 'nvJitLinkVersion'))"
    assert emulate(program).stdout == "False\n"
    assert run("import bascule; bascule.emulated.install();" + program).stdout == "False\n"


LATE = {
    "the CUDA driver is loaded already, as libcuda.so.1": "ctypes.CDLL({other!r})",
    "libnvJitLink.so.13 is loaded already": "ctypes.CDLL({linker!r})",
    "numba.cuda is imported already": "sys.modules['numba.cuda'] = sys",
}


@pytest.fixture(scope="module")
def other_libraries(tmp_path_factory) -> dict[str, str]:
    """Paths of libraries with the names of the driver and of nvJitLink; each has one function of both."""
    directory = tmp_path_factory.mktemp("others")
    source = directory / "source.c"
    source.write_text("int cuInit(int flags) { return flags; }\nint nvJitLinkVersion(void) { return 0; }\n")
    paths = {"other": directory / "libcuda.so.1", "linker": directory / "libnvJitLink.so.13"}
    for path in paths.values():
        subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-o", path, source], check=True)
    return {name: str(path) for name, path in paths.items()}


@pytest.mark.parametrize("said", LATE)
def test_install_says_what_came_before_it(other_libraries, said):
    before = LATE[said].format(**other_libraries)
    done = run(f"import ctypes, sys; {before}\nimport bascule; bascule.emulated.install()")
    assert done.returncode == 1
    assert f"LibraryError: {said}" in done.stderr
    assert "before other libraries are imported" in done.stderr


def test_the_schedule_of_a_device_in_use_cannot_be_changed():
    program = "import bascule; bascule.zeros(3, 'f4'); bascule.emulated.install(schedule='lazy')"
    done = run(program, BASCULE_DEVICE="emulated", BASCULE_EMULATED_SCHEDULE="eager")
    assert "LibraryError: the schedule cannot be 'lazy': the emulated device is in use already" in done.stderr


RUNTIME = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
table = ctypes.c_void_p()
for first in {first}:
    assert driver.cuGetExportTable(ctypes.byref(table), first + bytes(12)) == 34  # CUDA_ERROR_STUB_LIBRARY
    assert table.value is None
"""


def test_the_cuda_runtime_is_refused_with_one_line_that_says_what_to_do():
    runtime, other = bytes.fromhex("6bd5fb6c"), bytes.fromhex("da9151d3")
    done = emulate(RUNTIME.format(first=[other, runtime, runtime]))
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert "CUDA runtime" in line
    assert "use a GPU" in line
    quiet = emulate(RUNTIME.format(first=[other]))
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_the_libraries_lie_beside_the_device():
    directory = Path(bascule.__file__).with_name("_stand_ins")
    assert sorted(each.name for each in directory.iterdir()) == [
        "libcuda.so.1",
        "libnvJitLink.so.12",
        "libnvJitLink.so.13",
    ]
