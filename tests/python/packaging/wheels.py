"""Checks wheels of python/wheels.sh: audits, installs and runs each, and builds one again to compare the bytes.

    python tests/python/packaging/wheels.py [--once] [WHEEL...]     default: all in dist/

A wheel for x86-64 is installed in an environment of its Python, and its tests run without a compiler, a toolkit or a
build of Bascule. One for aarch64 runs a part of them under qemu-user: with Debian 12's Python, which is 3.11; those for
other Pythons are only audited. `--once` leaves out the second build.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from installing import ROOT, copy_of_clone, run, without_compiler, without_toolkit

WORK = ROOT / "build" / "wheels" / "tests"
MOST_BYTES = 4_000_000
PIP = ("-m", "pip", "--disable-pip-version-check", "-q")
# The packages that the tests import, and the dependencies of xdist and Hypothesis: all are pinned.
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "ml_dtypes", "numpy", "execnet", "iniconfig", "packaging", "pluggy")
TOOLS += ("Pygments", "sortedcontainers", "attrs")
OF_NVIDIA = ("cuda-pathfinder", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cccl")
# The tests of a wheel: they need no compiler, and nothing of a build.
WHOLE = ("arrays", "cache", "conformance", "dlpack", "dtypes", "graphs", "jit", "launches", "lifetime", "linking")
WHOLE += ("ordering", "pickling", "textures", "trace", "variables", "views", "test_end_to_end.py", "test_errors.py")
# Tests among these that need the sources, a library of the build, or a package that is not installed.
LEFT_OUT = ("conformance/test_conformance.py::test_the_page_and_the_table_say_the_same",)
LEFT_OUT += ("conformance/test_allocations.py::test_a_parse_of_up_to_eight_dimensions_allocates_nothing",)
LEFT_OUT += ("dlpack/test_export.py::test_a_tensor_may_outlive_the_interpreter",)
LEFT_OUT += ("lifetime/test_reset.py::test_a_test_that_faults_leaves_a_device_for_the_next_one",)
# Under qemu, which takes some twenty times as long: arguments, the cache, ordering, and the first of the kernel corpus.
TELLING = ("launches/test_known_launchers.py", "cache/test_tools.py", "ordering/test_choice.py")
TELLING += ("ordering/test_transfers.py", "test_end_to_end.py")
MOST_KERNEL_TESTS = 100
# These start processes of sys.executable, which only qemu can run.
LEFT_OUT_ON_ARM = (
    "launches/test_known_launchers.py::test_without_a_stream_the_current_context_chooses_the_device_each_time",
    "ordering/test_choice.py::test_an_event_that_has_not_happened_yet_has_no_time",
    "test_end_to_end.py::test_an_import_loads_neither_numpy_nor_modules_that_cost_as_much_as_bascule_itself",
)
LICENCES = {"LICENSE", *(f"linked/{name}.txt" for name in ("fmt", "xxHash", "nlohmann_json", "pybind11", "libstdc++"))}


class WheelError(Exception):
    """A wheel does not hold what is expected of it."""


def expect(holds: bool, message: str) -> None:
    if not holds:
        raise WheelError(message)


def pinned(*names: str) -> list[str]:
    """The lines of the requirements of the tests for these packages."""
    files = (ROOT / folder / "requirements.txt" for folder in ("tests", "samples"))
    lines = [line for file in files for line in file.read_text().splitlines()]
    found = [line for line in lines if line.partition("==")[0] in names]
    expect(len(found) == len(names), f"requirements.txt pins {found}, not {names}")
    return found


def audit(wheel: Path) -> None:
    """Size, platform, licences, metadata and record."""
    expect(wheel.stat().st_size < MOST_BYTES, f"{wheel.name} has {wheel.stat().st_size} bytes")
    shown = " ".join(run(sys.executable, "-m", "auditwheel", "show", wheel).split())
    glibc = re.search(r'following platform tag: "manylinux_2_(\d+)_', shown)
    expect(glibc is not None and int(glibc[1]) <= 28, f"{wheel.name} is not a manylinux_2_28 wheel: {shown}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        texts = {name: archive.read(name) for name in names}
    (licences,) = {name.partition("/licenses/")[0] for name in names if "/licenses/" in name}
    linked = {name.removeprefix(f"{licences}/licenses/") for name in names if "/licenses/" in name}
    wanted = LICENCES if wheel.name.startswith("bascule-") else LICENCES - {"linked/pybind11.txt"}
    expect(linked == wanted, f"{wheel.name} has the licences {sorted(linked)}")
    tag = wheel.stem.split("-", 2)[2]
    expect(f"Tag: {tag}\n" in texts[f"{licences}/WHEEL"].decode(), f"{wheel.name} has another tag in its WHEEL")
    paths = [name for name, text in texts.items() if name.endswith((".so", ".cmake", ".a")) and bytes(ROOT) in text]
    expect(not paths, f"{wheel.name} has paths of this machine in {paths}")


def interpreter_of(wheel: Path) -> str | None:
    """A Python for the wheel's tag, of the PATH or of pyenv."""
    minor = re.search(r"-cp3(\d+)-", wheel.name)
    assert minor is not None
    places = [*os.get_exec_path(), *map(str, Path.home().glob(f".pyenv/versions/3.{minor[1]}*/bin"))]
    for place in places:
        python = f"{place}/python3.{minor[1]}"
        if os.access(python, os.X_OK) and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
            return python
    return None


def copy_tests(destination: Path) -> Path:
    """The tests and what they read, without the sources of Bascule. Returns the folder of the Python tests."""
    copy_of_clone(destination)
    for source in ("interface", "jit", "runtime", "python/bascule", "python/bindings"):
        shutil.rmtree(destination / source)
    return destination / "tests" / "python"


def passed_in(output: str) -> int:
    found = re.search(r"(\d+) passed", output)
    expect(found is not None and " failed" not in output.splitlines()[-1], f"tests failed:\n{output[-6000:]}")
    assert found is not None
    return int(found[1])


def install(wheel: Path, python: str) -> Path:
    """The Python of a fresh environment with the wheel and the tools of the tests. Nothing in it is compiled."""
    environment = WORK / wheel.stem
    run(python, "-m", "venv", "--clear", environment)
    installed = environment / "bin" / "python"
    nowhere = WORK / "no programs"
    nowhere.mkdir(parents=True, exist_ok=True)
    command = (installed, *PIP, "install", "--only-binary", ":all:")
    run(*command, wheel, *pinned(*TOOLS), env=without_compiler(nowhere), cwd=WORK)
    return installed


def run_tests(installed: Path, tests: Path, *which: str) -> int:
    """Runs tests where there is no compiler, no toolkit and no build. Returns the number of those that passed."""
    command = [installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "-n", "2"]
    command += [word for each in LEFT_OUT for word in ("--deselect", f"tests/python/{each}")]
    command += ["--dist", "loadfile", *(tests / each for each in which)]
    environment = without_compiler(WORK / "no programs", BASCULE_DEVICE="emulated")
    done = subprocess.run(command, cwd=tests.parents[1], env=environment, capture_output=True, text=True, timeout=3000)
    return passed_in(done.stdout + done.stderr)


def build_again(wheel: Path) -> None:
    """Builds the wheel in another folder, without the compiler's cache: the bytes must be the same."""
    folder = WORK / "another folder"
    shutil.rmtree(folder, ignore_errors=True)
    copy_of_clone(folder)
    (folder / ".venv").symlink_to((ROOT / ".venv").resolve())
    python = interpreter_of(wheel)
    expect(python is not None, f"no Python for {wheel.name} was found")
    environment = without_toolkit(CCACHE_RECACHE="1")
    run("bash", folder / "python" / "wheels.sh", "--arch", "x86_64", "--out", folder / "dist", python, env=environment)
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, folder / "dist" / wheel.name)]
    expect(len(set(digests)) == 1, f"{wheel.name} has other bytes when it is built in another folder")


# --- aarch64, under qemu-user

ARM_PACKAGES = ("libc6", "libbz2-1.0", "libcrypt1", "libexpat1", "libffi8", "libgcc-s1", "liblzma5", "libsqlite3-0")
ARM_PACKAGES += ("libssl3", "libstdc++6", "libuuid1", "zlib1g", "libpython3.11-minimal", "libpython3.11-stdlib")
ARM_PACKAGES += ("python3.11-minimal",)


def arm_system() -> Path:
    """A tree with Debian's Python for aarch64. This system's own packages and settings stay as they are."""
    tree, state = WORK / "aarch64", WORK / "apt"
    if (tree / "usr/bin/python3.11").exists():
        return tree
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    settings = ("APT::Architecture=arm64", "APT::Architectures::=arm64", "Dir::State::status=/dev/null")
    settings += (f"Dir::State::lists={state / 'lists'}", f"Dir::Cache={state}")
    options = ["-q", *(word for setting in settings for word in ("-o", setting))]
    run("apt-get", *options, "update")
    run("apt-get", *options, "download", *(f"{name}:arm64" for name in ARM_PACKAGES), cwd=state)
    for package in state.glob("*_arm64.deb"):
        run("dpkg", "-x", package, tree)
    return tree


def first_kernels(tests: Path) -> list[str]:
    """The first tests of the kernel corpus, as pytest collects them."""
    collected = run(
        sys.executable, "-m", "pytest", "-q", "--collect-only", "-m", "not slow", tests / "kernels", cwd=tests
    )
    return [line for line in collected.splitlines() if "::test_" in line][:MOST_KERNEL_TESTS]


def run_on_arm(wheel: Path, tests: Path) -> int:
    """Runs the telling tests with the wheel under qemu-user."""
    tree, site = arm_system(), WORK / "aarch64-packages"
    shutil.rmtree(site, ignore_errors=True)
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 27, 28)]
    command = [sys.executable, *PIP, "install", "--no-deps", "--only-binary", ":all:", "--python-version", "3.11"]
    run(*command, "--implementation", "cp", *platforms, "--target", site, wheel, *pinned(*TOOLS, *OF_NVIDIA), cwd=WORK)
    environment = without_toolkit(
        BASCULE_DEVICE="emulated", PYTHONPATH=str(site), PATH=str(WORK / "no programs"), QEMU_LD_PREFIX=str(tree)
    )
    python = [shutil.which("qemu-aarch64"), tree / "usr/bin/python3.11"]
    command = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
    command += [word for each in LEFT_OUT_ON_ARM for word in ("--deselect", f"tests/python/{each}")]
    command += [*(tests / which for which in TELLING), *first_kernels(tests)]
    done = subprocess.run(command, cwd=tests.parents[1], env=environment, capture_output=True, text=True, timeout=6000)
    return passed_in(done.stdout + done.stderr)


def check(wheel: Path, tests: Path) -> str:
    """Checks one wheel, and says what was done."""
    audit(wheel)
    done = f"{wheel.stat().st_size / 1e6:.2f} MB, audited"
    if wheel.name.startswith("bascule_cpp"):
        return done
    start = time.monotonic()
    if wheel.name.endswith("x86_64.whl"):
        python = interpreter_of(wheel)
        if python is None:
            return f"{done}; no Python for it was found"
        passed = run_tests(install(wheel, python), tests, *WHOLE)
    elif "-cp311-" in wheel.name and shutil.which("qemu-aarch64"):
        passed = run_on_arm(wheel, tests)
    else:
        return f"{done}; not run"
    return f"{done}; {passed} tests passed in {time.monotonic() - start:.0f} s"


def check_all(wheels: list[Path], tests: Path) -> int:
    status = 0
    for wheel in wheels:
        try:
            print(f"{wheel.name}: {check(wheel, tests)}", flush=True)
        except (WheelError, AssertionError) as error:
            print(f"{wheel.name}: {error}", flush=True)
            status = 1
    return status


def main() -> int:
    arguments = sys.argv[1:]
    once = "--once" in arguments
    wheels = [Path(each).resolve() for each in arguments if each != "--once"] or sorted(ROOT.glob("dist/*.whl"))
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bascule-tests-") as directory:
        status = check_all(wheels, copy_tests(Path(directory) / "source"))
    if not once:
        (first,) = [each for each in wheels if each.name.endswith("x86_64.whl") and "-cp311-" in each.name][:1]
        build_again(first)
        print(f"{first.name}: built twice, the same bytes")
    return status


if __name__ == "__main__":
    sys.exit(main())
