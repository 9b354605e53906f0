"""A wheel is built without a CUDA toolkit, and installed and used without a compiler."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow

# A kernel that needs the headers of several wheels; what it prints shows where everything came from.
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


def without_toolkit(**more):
    """The environment, less everything that points at a toolkit or at this build."""
    hidden = {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "LD_LIBRARY_PATH", "PYTHONPATH", "CPATH", "CPLUS_INCLUDE_PATH"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    directories = environment["PATH"].split(os.pathsep)
    environment["PATH"] = os.pathsep.join(d for d in directories if not (Path(d) / "nvcc").exists())
    return environment | more


def without_compiler(directory, **more):
    """The same, and nothing on the PATH: no compiler, no CMake, no toolkit."""
    return without_toolkit(PATH=str(directory), **more)


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The Python of a virtual environment in which the wheel was installed, and the directory it was built in."""
    directory = tmp_path_factory.mktemp("a place for packaging")
    source = directory / "source"
    # What a clone has: tracked files, in their present state.
    listed = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    for path in filter(None, listed):
        if (ROOT / path).is_file():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, source / path)
    build = directory / "build"
    # A toolkit on this machine is out of CMake's sight, so that the headers must come from build-system.requires.
    toolkits = ["/usr/local/include", *(str(path / "include") for path in Path("/usr/local").glob("cuda*"))]
    pip = ["-m", "pip", "--disable-pip-version-check"]
    run(
        *(sys.executable, *pip, "wheel", "--no-deps", f"--config-settings=build-dir={build}", "-w", directory, source),
        cwd=directory,
        # Where everything ends up is tested here, not how fast it is: unoptimised it compiles in half the time.
        env=without_toolkit(CMAKE_ARGS=f"-DCMAKE_IGNORE_PATH={';'.join(toolkits)} -DCMAKE_CXX_FLAGS_RELEASE=-O0"),
    )
    (wheel,) = directory.glob("bascule-*.whl")
    run(sys.executable, "-m", "venv", directory / "venv")
    python = directory / "venv" / "bin" / "python"
    run(python, *pip, "install", wheel, cwd=directory, env=without_compiler(directory))
    return python, build


def package_of(python):
    found = "import importlib.util as u; print(u.find_spec('bascule').submodule_search_locations[0])"
    return Path(run(python, "-c", found).strip())


@pytest.fixture(scope="module")
def report(installed, tmp_path_factory):
    python, _ = installed
    directory = tmp_path_factory.mktemp("elsewhere")
    printed = run(python, "-c", PROGRAM, cwd=directory, env=without_compiler(directory, BASCULE_DEVICE="emulated"))
    return json.loads(printed.splitlines()[-1])


def test_the_headers_to_build_with_came_from_a_wheel(installed):
    _, build = installed
    cache = (build / "CMakeCache.txt").read_text()
    assert "nvidia/cu13/include" in re.search(r"^BASCULE_CUDA_INCLUDE_DIR:PATH=(.*)$", cache, re.MULTILINE)[1]


def test_the_installed_package_compiles_and_runs_a_kernel(installed, report):
    site_packages = str(installed[0].parent.parent / "lib")
    assert report["package"].startswith(site_packages)
    assert report["right"]
    assert re.fullmatch(r"void halve\(const float\*( in)?, float\*( out)?, int( n)?\)", report["signature"])


def test_nvrtc_and_the_emulated_device_come_from_site_packages(installed, report):
    site_packages = str(installed[0].parent.parent / "lib")
    for library in ("nvrtc", "emulator"):
        assert len(report[library]) == 1
        assert report[library][0].startswith(site_packages)
        assert "site-packages" in report[library][0]


def test_the_version_is_the_projects(installed, report):
    project = re.search(r"project\(bascule VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    shown = run(installed[0], "-c", "from importlib.metadata import version; print(version('bascule'))")
    assert report["version"] == shown.strip() == project


def test_info_finds_nothing_missing(installed, tmp_path):
    command = installed[0].parent / "bascule"
    printed = run(command, "info", cwd=tmp_path, env=without_toolkit(BASCULE_DEVICE="emulated"))
    assert re.search(r"missing +nothing", printed), printed
    assert printed.count("site-packages") >= 3  # the library, and headers


def test_the_package_has_its_types_and_nothing_of_the_build(installed):
    python, _ = installed
    files = run(python, "-m", "pip", "show", "-f", "bascule").split("Files:")[1].split()
    package = [file for file in files if file.startswith("bascule/") and "__pycache__" not in file]
    assert {"bascule/__init__.py", "bascule/py.typed", "bascule/libbascule_emulator.so"} <= set(package)
    assert any(re.fullmatch(r"bascule/_bascule\..*so", file) for file in package)
    others = [file for file in files if not file.startswith(("bascule/", "bascule-"))]
    assert [Path(file).parts[-2:] for file in others] == [("bin", "bascule")]


def test_what_tests_switch_off_cannot_be_switched_off_in_what_is_installed(installed):
    python, _ = installed
    package = package_of(python)
    for file in [*package.glob("*.so"), *package.glob("*.pyi")]:
        content = file.read_bytes()
        for hook in (b"_switch_check", b"_drop_operation"):
            assert hook not in content, f"{file.name} has {hook.decode()}"


def test_the_package_is_built_with_the_minor_version_of_pybind11_that_the_tests_use():
    """The bindings read the layout of its objects, which `import bascule` checks: a new one is to be tried first."""
    used = Version(re.search(r"^pybind11==(.+)$", (ROOT / "samples" / "requirements.txt").read_text(), re.MULTILINE)[1])
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    admitted = next(each.specifier for each in map(Requirement, requires) if each.name == "pybind11")
    assert used in admitted
    assert Version(f"{used.major}.{used.minor + 1}.0") not in admitted


def test_nothing_but_libc_and_libstdcxx_is_linked(installed):
    python, _ = installed
    allowed = {"libc.so.6", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0"}
    for library in package_of(python).glob("*.so"):
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", library)))
        assert needed - allowed <= {name for name in needed if name.startswith("ld-linux")}, library
