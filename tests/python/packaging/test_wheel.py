"""A wheel is built without a CUDA toolkit, and installed and used without a compiler."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from installing import ROOT, copy_of_clone, run, without_compiler, without_toolkit
from packaging.requirements import Requirement
from packaging.version import Version

pytestmark = pytest.mark.slow
PIP = ("-m", "pip", "--disable-pip-version-check")

# A kernel that needs the headers of several wheels; its output shows where everything came from.
PROGRAM = r"""
import json, re, sys
import numpy as np
import bascule

kernel = bascule.compile('''
#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cuda/std/cstdint>
namespace cg = cooperative_groups;
__global__ void halve(const float* in, float* out, cuda::std::int32_t n) {
    auto i = cg::this_grid().thread_rank();
    if (i < n) out[i] = __half2float(__float2half(in[i])) / 2;
}
''').halve
x = np.arange(1000, dtype="f4")
out = bascule.device_array(1000, np.float32)
kernel[4, 256](bascule.to_device(x), out, 1000)
bascule.compile("#include <mma.h>\n__global__ void k() {}").k.prepare()
mapped = {line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if len(line.split(maxsplit=5)) == 6}
print(json.dumps({
    "package": bascule.__file__,
    "version": bascule.__version__,
    "right": bool((out.copy_to_host() == x / 2).all()),
    "signature": kernel.signature,
    "nvrtc": sorted(path for path in mapped if "libnvrtc.so" in path),
    "emulator": sorted(path for path in mapped if "libbascule_emulator" in path),
}))
"""


LONG = "LONG_TESTS" in os.environ


def hidden_toolkits():
    """A CMake option that hides toolkits on this machine, so that the headers must come from a wheel."""
    toolkits = ["/usr/local/include", *(str(path / "include") for path in Path("/usr/local").glob("cuda*"))]
    return f"-DCMAKE_IGNORE_PATH={';'.join(toolkits)}"


def as_build_dev():
    """pip's options for a wheel that is compiled like build/dev, so that the compiler's cache has nearly everything."""
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (ROOT / "build" / "dev" / "CMakeCache.txt").read_text(), re.MULTILINE))
    same = {name: cache[name] for name in ("BASCULE_CUDA_INCLUDE_DIR", "CMAKE_CXX_COMPILER", "BASCULE_WERROR")}
    same["CMAKE_CXX_FLAGS_RELWITHDEBINFO"] = cache["CMAKE_CXX_FLAGS_RELWITHDEBINFO"]
    settings = [f"cmake.define.{name}={value}" for name, value in same.items()]
    settings += ["cmake.build-type=RelWithDebInfo", "install.strip=true"]
    return ["--no-build-isolation", *(word for each in settings for word in ("--config-settings", each))]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Builds a wheel in a directory with the sources in source/build/dev, and returns its path. With LONG_TESTS it is
    built as by users, with the packages of build-system.requires, but unoptimised, which halves the compile time."""
    directory = tmp_path_factory.mktemp("a place for packaging")
    copy_of_clone(directory / "source")
    run(
        *(sys.executable, *PIP, "wheel", "--no-deps", *([] if LONG else as_build_dev())),
        *(
            "--config-settings",
            f"build-dir={directory / 'source' / 'build' / 'dev'}",
            "-w",
            directory,
            directory / "source",
        ),
        cwd=directory,
        env=without_toolkit(CMAKE_ARGS=f"{hidden_toolkits()} -DCMAKE_CXX_FLAGS_RELEASE=-O0" if LONG else ""),
    )
    (built,) = directory.glob("bascule-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel):
    """The Python of a virtual environment in which the wheel was installed."""
    directory = wheel.parent
    run(sys.executable, "-m", "venv", directory / "venv")
    python = directory / "venv" / "bin" / "python"
    run(python, *PIP, "install", wheel, cwd=directory, env=without_compiler(directory))
    return python


def package_of(python):
    found = "import importlib.util as u; print(u.find_spec('bascule').submodule_search_locations[0])"
    return Path(run(python, "-c", found, env=without_toolkit()).strip())


@pytest.fixture(scope="module")
def report(installed, tmp_path_factory):
    directory = tmp_path_factory.mktemp("elsewhere")
    printed = run(installed, "-c", PROGRAM, cwd=directory, env=without_compiler(directory, BASCULE_DEVICE="emulated"))
    return json.loads(printed.splitlines()[-1])


def test_the_headers_to_build_with_come_from_a_wheel(tmp_path):
    """The sources that use the driver's types most also compile with these headers."""
    options = ("-G", "Ninja", "-DBASCULE_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Release", "-DBASCULE_COMPILER_CACHE=")
    options += ("-DCMAKE_CXX_FLAGS_RELEASE=-fsyntax-only", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON")
    python = f"-DPython3_EXECUTABLE={sys.executable}"
    run("cmake", "-S", ROOT, "-B", tmp_path, python, hidden_toolkits(), *options, env=without_toolkit())
    cache = (tmp_path / "CMakeCache.txt").read_text()
    assert "nvidia/cu13/include" in re.search(r"^BASCULE_CUDA_INCLUDE_DIR:PATH=(.*)$", cache, re.MULTILINE)[1]
    targets = run("ninja", "-C", tmp_path, "-t", "targets", "all")
    uses = re.findall(r"^(runtime/\S*/unity_driver(?:\+\S+)?_cxx\.cxx\.o):", targets, re.MULTILINE)
    assert len(uses) == 2  # the runtime's and the emulated device's
    run("ninja", "-C", tmp_path, *uses)


def test_the_installed_package_compiles_and_runs_a_kernel(installed, report):
    site_packages = str(installed.parent.parent / "lib")
    assert report["package"].startswith(site_packages)
    assert report["right"]
    assert re.fullmatch(r"void halve\(const float\*( in)?, float\*( out)?, int( n)?\)", report["signature"])


def test_nvrtc_and_the_emulated_device_come_from_site_packages(installed, report):
    site_packages = str(installed.parent.parent / "lib")
    for library in ("nvrtc", "emulator"):
        assert len(report[library]) == 1
        assert report[library][0].startswith(site_packages)
        assert "site-packages" in report[library][0]


def test_the_version_is_the_projects(installed, report):
    project = re.search(r"project\(bascule VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    shown = run(installed, "-c", "from importlib.metadata import version; print(version('bascule'))")
    assert report["version"] == shown.strip() == project


def test_info_finds_nothing_missing(installed, tmp_path):
    command = installed.parent / "bascule"
    printed = run(command, "info", cwd=tmp_path, env=without_toolkit(BASCULE_DEVICE="emulated"))
    assert re.search(r"missing +nothing", printed), printed
    assert printed.count("site-packages") >= 3  # libraries and headers


@pytest.mark.skipif(
    not {"avx2", "fma"} <= set(Path("/proc/cpuinfo").read_text().split()), reason="this processor has no AVX2"
)
def test_what_was_built_for_this_processor_alone_says_how_others_are_served(installed, tmp_path):
    environment = without_toolkit(BASCULE_DEVICE="emulated", BASCULE_EMULATED_ISA="baseline")
    program = "import bascule; bascule.device_array(1, 'f4')"
    ended = subprocess.run([installed, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode != 0
    assert "BASCULE_EMULATED_ISA is 'baseline', which this build of Bascule leaves out" in ended.stderr
    assert "pip install . -C cmake.define.BASCULE_BASELINE=ON" in ended.stderr


def test_the_package_has_its_types_and_nothing_of_the_build(installed):
    files = run(installed, "-m", "pip", "show", "-f", "bascule").split("Files:")[1].split()
    package = [file for file in files if file.startswith("bascule/") and "__pycache__" not in file]
    assert {"bascule/__init__.py", "bascule/py.typed", "bascule/libbascule_emulator.so"} <= set(package)
    assert any(re.fullmatch(r"bascule/_bascule\..*so", file) for file in package)
    others = [file for file in files if not file.startswith(("bascule/", "bascule-"))]
    assert [Path(file).parts[-2:] for file in others] == [("bin", "bascule")]


def test_the_installed_stub_has_docstrings_for_editors(installed):
    stub = ast.parse((package_of(installed) / "_bascule.pyi").read_text())
    array = next(each for each in stub.body if isinstance(each, ast.ClassDef) and each.name == "DeviceArray")
    copy = next(each for each in array.body if isinstance(each, ast.FunctionDef) and each.name == "copy")
    assert ast.get_docstring(array).startswith("An array in device, pinned or managed memory.")
    assert ast.get_docstring(copy).startswith("Copy the elements to a new array")


def test_what_tests_switch_off_cannot_be_switched_off_in_what_is_installed(installed):
    package = package_of(installed)
    for file in [*package.glob("*.so"), *package.glob("*.pyi")]:
        content = file.read_bytes()
        for hook in (b"_switch_check", b"_drop_operation"):
            assert hook not in content, f"{file.name} has {hook.decode()}"


def test_the_package_is_built_with_the_minor_version_of_pybind11_that_the_tests_use():
    """`import bascule` checks the layout of pybind11's objects, which may change: new versions must be tested first."""
    used = Version(re.search(r"^pybind11==(.+)$", (ROOT / "samples" / "requirements.txt").read_text(), re.MULTILINE)[1])
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    admitted = next(each.specifier for each in map(Requirement, requires) if each.name == "pybind11")
    assert used in admitted
    assert Version(f"{used.major}.{used.minor + 1}.0") not in admitted


def test_nothing_but_libc_and_libstdcxx_is_linked(installed):
    allowed = {"libc.so.6", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0"}
    for library in package_of(installed).glob("*.so"):
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", library)))
        assert needed - allowed <= {name for name in needed if name.startswith("ld-linux")}, library


def test_the_wheel_runs_on_any_linux_of_the_last_years(wheel):
    """auditwheel reports which libraries of the platform the wheel needs, and how new they must be."""
    shown = " ".join(run(sys.executable, "-m", "auditwheel", "show", wheel).split())
    tag = re.search(r'consistent with the following platform tag: "manylinux_2_(\d+)_x86_64"', shown)
    assert tag, shown
    assert int(tag[1]) <= 36
    of_the_system = set(re.findall(r"(lib[^ ]+\.so[.\d]*) with versions", shown))
    assert of_the_system <= {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6"}, shown
    assert "external shared libraries are required" not in shown, shown


# Directories of compilers, headers and optional software. The test also hides /usr/local/cuda*.
HIDDEN = ("/usr/lib/gcc", "/usr/include", "/usr/local/include", "/usr/libexec/gcc", "/opt")


def test_the_wheel_runs_a_kernel_where_there_is_no_compiler_and_no_toolkit(installed, tmp_path):
    toolkits = [str(path.resolve()) for path in Path("/usr/local").glob("cuda*")]
    hide = "; ".join(f"mount -t tmpfs none {path}" for path in {*HIDDEN, *toolkits} if Path(path).is_dir())
    namespace = ["unshare", "--mount", "--map-root-user", "sh", "-ec"]
    if shutil.which("unshare") is None or subprocess.run([*namespace, "mount -t tmpfs none /mnt"]).returncode != 0:
        pytest.skip("this machine does not let a test make a mount namespace")
    (tmp_path / "program.py").write_text(PROGRAM)
    compile_c = "echo 'int main() {}' >empty.c; ! cc empty.c 2>/dev/null"  # shows first that nothing compiles
    printed = run(
        *(*namespace, f"{hide}; {compile_c}; '{installed}' program.py"),
        cwd=tmp_path,
        env=without_toolkit(BASCULE_DEVICE="emulated", BASCULE_CACHE_DIR=str(tmp_path / "cache")),
    )
    report = json.loads(printed.splitlines()[-1])
    assert report["right"]
    assert all("site-packages" in path for path in (*report["nvrtc"], *report["emulator"]))


def test_all_libraries_that_a_build_lacks_are_named_in_one_command(tmp_path):
    lacking = ["-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON"]
    configured = subprocess.run(
        ["cmake", "-S", ROOT, "-B", tmp_path, *lacking, "-DBASCULE_XXHASH_INCLUDE_DIR=NO"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert configured.returncode != 0
    assert "apt-get install libfmt-dev nlohmann-json3-dev libxxhash-dev" in " ".join(configured.stderr.split())


def test_a_missing_compiler_is_named_in_one_sentence(tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("cmake", "ninja", "uname"):
        (programs / name).symlink_to(shutil.which(name))
    environment = {name: value for name, value in without_compiler(programs).items() if name not in ("CC", "CXX")}
    command = ["cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path / "build"]
    configured = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert configured.returncode != 0
    assert "was not found. On Debian or Ubuntu: apt-get install g++" in " ".join(configured.stderr.split())


def test_a_folder_with_the_headers_serves_instead_of_packages(tmp_path):
    for header in ("fmt", "nlohmann", "xxhash.h"):
        (tmp_path / header).symlink_to(Path("/usr/include") / header)
    hidden = ["-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON"]
    options = [f"-DBASCULE_HEADERS={tmp_path}", "-DBASCULE_TESTS=OFF", f"-DPython3_EXECUTABLE={sys.executable}"]
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path / "build", *hidden, *options, env=without_toolkit())
    commands = run("ninja", "-C", tmp_path / "build", "-t", "commands", "bascule_fmt", "bascule_jit")
    assert str(tmp_path) in commands
    (tmp_path / "xxhash.h").unlink()
    refused = subprocess.run(
        ["cmake", "-S", ROOT, "-B", tmp_path / "other", *options], capture_output=True, text=True, env=without_toolkit()
    )
    assert "which has no xxhash.h" in " ".join(refused.stderr.split())
