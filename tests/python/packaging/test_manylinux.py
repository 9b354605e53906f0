"""python/wheels.sh: one wheel for x86-64, built, audited, installed and used where there is nothing but Python."""

import os
import re
import subprocess
import sys

import pytest
from installing import ROOT, run, without_compiler, without_toolkit

import wheels

pytestmark = pytest.mark.slow

# These take half a minute. With LONG_TESTS, WHOLE of wheels.py runs.
QUICK = ("arrays", "launches", "dlpack", "lifetime", "ordering/test_choice.py", "test_end_to_end.py")
DAEMONS = """
import threading, time
import numpy as np
import bascule

kernel = bascule.compile("__global__ void f(float* p) { p[threadIdx.x] += 1; }").f
x = bascule.to_device(np.zeros(32, "f4"))

def launch_for_ever():
    while True:
        kernel[1, 32](x)
        x.copy_to_host()

for _ in range(4):
    threading.Thread(target=launch_for_ever, daemon=True).start()
time.sleep(0.5)
print("ends")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheels")
    python = os.path.realpath(sys.executable)
    run("bash", ROOT / "python" / "wheels.sh", "--arch", "x86_64", "--out", out, python, env=without_toolkit())
    (built,) = out.glob("bascule-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel):
    return wheels.install(wheel, os.path.realpath(sys.executable))


def test_the_wheel_is_small_and_needs_nothing_newer_than_glibc_2_28(wheel):
    wheels.audit(wheel)


def test_the_wheel_with_the_cmake_package_is_one_too(wheel):
    (cpp,) = wheel.parent.glob("bascule_cpp-*.whl")
    wheels.audit(cpp)


def test_the_tests_pass_where_the_wheel_is_installed_and_no_compiler_is(installed, tmp_path):
    tests = wheels.copy_tests(tmp_path / "source")
    assert wheels.run_tests(installed, tests, *(wheels.WHOLE if "LONG_TESTS" in os.environ else QUICK)) > 500


@pytest.mark.parametrize("instructions", ["", "avx2", "baseline"])
def test_the_emulated_device_has_every_set_of_instructions(installed, tmp_path, instructions):
    program = "import bascule; print(bascule.ones(1000, 'f4').copy_to_host().sum())"
    variables = {"BASCULE_DEVICE": "emulated", "BASCULE_EMULATED_ISA": instructions}
    if not instructions:
        del variables["BASCULE_EMULATED_ISA"]
    assert run(installed, "-c", program, env=without_compiler(tmp_path, **variables), cwd=tmp_path) == "1000.0\n"


def test_daemon_threads_that_python_ends_do_not_end_the_program(installed, tmp_path):
    """Python ends them by pthread_exit, which unwinds through functions of the wheel by libstdc++'s __forced_unwind."""
    environment = without_compiler(tmp_path, BASCULE_DEVICE="emulated")
    for _ in range(3):
        assert run(installed, "-c", DAEMONS, env=environment, cwd=tmp_path) == "ends\n"


def test_a_cpp_program_is_built_with_the_wheels_cmake_package(wheel, installed, tmp_path):
    (cpp,) = wheel.parent.glob("bascule_cpp-*.whl")
    without = subprocess.run([installed, "-m", "bascule.cmake_dir"], capture_output=True, text=True)
    assert "pip install bascule-cpp" in without.stderr
    run(installed, "-m", "pip", "install", "-q", "--no-deps", cpp)
    directory = run(installed, "-m", "bascule.cmake_dir").strip()
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(program LANGUAGES CXX)\nfind_package(bascule REQUIRED)\n"
        "add_executable(program program.cpp)\ntarget_link_libraries(program PRIVATE bascule::bascule)\n"
    )
    (tmp_path / "program.cpp").write_text(
        "#include <cstdio>\n#include <bascule/bascule.hpp>\n"
        'int main() { std::printf("%s", bascule::describe_installation().c_str()); }\n'
    )
    run("cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build", f"-Dbascule_DIR={directory}")
    run("cmake", "--build", tmp_path / "build")
    printed = run(tmp_path / "build" / "program", env=without_toolkit(BASCULE_DEVICE="emulated"))
    assert re.search(r"driver +emulated device", printed), printed
    assert "bascule_cpp" in printed
