"""The types and docstrings that editors and type checkers see are those of the package."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from child_process import printed_by, run_python
from installing import ROOT

from bascule import _bascule

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
COMMITTED = ROOT / "python" / "bascule" / "_bascule.pyi"

# A user's program; each line is checked.
PROGRAM = """
import numpy as np

import bascule
from bascule import CompileOptions, DeviceArray, Kernel, LaunchConfig, Module


def scaled(values: np.ndarray[tuple[int], np.dtype[np.float32]], factor: float) -> DeviceArray:
    options = CompileOptions(std="c++20", defines={"N": 4})
    module: Module = bascule.compile("__global__ void scale(float* p, float f, int n) {}", options=options)
    kernel: Kernel = module["scale"]
    stream: bascule.Stream = bascule.stream()
    x = bascule.to_device(values, stream=stream)
    kernel[LaunchConfig(4, 256), stream](x, factor, x.size)
    kernel.forall(x.size, stream=stream)(x, factor, x.size)
    bound: bascule.BoundLaunch = kernel[4, 256].bind(x, factor, x.size)
    bound()
    return x.reshape(2, -1)[:, ::2]


@bascule.kernel("__global__ void fill(float* p, float v, int n) {}")
def fill(p: DeviceArray, v: float, n: int) -> int:
    return n


try:
    result = scaled(np.zeros(8, np.float32), 2.0)
    fill(result, 1.0, 4)
    total: float = float(result.copy_to_host().sum())
    shape: tuple[int, ...] = result.shape
except bascule.ArgumentError as error:
    index: int = error.index
    print(index, error.name)
except bascule.CompileError as error:
    lines: list[int | None] = [each.line for each in error.diagnostics]
"""
WRONG = """
import bascule

bascule.compile(4)
bascule.to_device([1], streams=None)
size: str = bascule.zeros(4, "f4").size
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Makes a directory with the package's sources and the stub as it is installed; returns it."""
    made = tmp_path_factory.mktemp("package")
    (made / "bascule").mkdir()
    for each in COMMITTED.parent.iterdir():
        if each != COMMITTED:
            (made / "bascule" / each.name).symlink_to(each)
    script = ROOT / "python" / "bindings" / "stub_docstrings.py"
    command = [sys.executable, "-I", "-S", script, _bascule.__file__, COMMITTED, made / "bascule" / COMMITTED.name]
    subprocess.run(command, check=True)
    return made


@pytest.fixture(scope="module")
def strictly(tmp_path_factory, package):
    """Returns a function that checks a program strictly; mypy's cache of NumPy stays for the next one."""
    directory = tmp_path_factory.mktemp("mypy")

    def check(name, text):
        (directory / name).write_text(text)
        command = ["-m", "mypy", "--cache-dir", "cache", "--strict", name]
        return run_python(*command, timeout=300, cwd=directory, MYPYPATH=str(package))

    return check


def test_the_stub_says_what_the_extension_module_has(tmp_path, package):
    command = ["-m", "mypy.stubtest", "bascule._bascule", "--concise"]
    command += ["--allowlist", HERE / "stub_differences.txt", "--ignore-unused-allowlist"]
    printed_by(*command, timeout=300, cwd=tmp_path, MYPYPATH=str(package))


def test_the_installed_stub_has_the_types_of_the_committed_one_and_the_docstrings_of_the_module(package):
    stub = ast.parse((package / "bascule" / COMMITTED.name).read_text())
    declared = [each for each in ast.walk(stub) if isinstance(each, ast.ClassDef | ast.FunctionDef)]
    documented = [each for each in declared if ast.get_docstring(each)]
    array = next(each for each in documented if each.name == "DeviceArray")
    copy = next(each for each in array.body if getattr(each, "name", "") == "copy")
    assert len(documented) > 150
    assert ast.get_docstring(array) == inspect.cleandoc(_bascule.DeviceArray.__doc__)
    assert _bascule.DeviceArray.copy.__doc__.strip().endswith(ast.get_docstring(copy))
    for each in documented:
        del each.body[0]
        each.body = each.body or [ast.Expr(ast.Constant(...))]
    read_only = r"    @property\n    def (\w+)\(self\) -> (.*):\n        \.\.\.\n(?!    @\1\.setter)"
    attributes = re.sub(read_only, r"    \1: \2\n", without_blank_lines(stub))
    assert attributes == without_blank_lines(ast.parse(COMMITTED.read_text()))


def without_blank_lines(tree):
    return re.sub(r"\n+", "\n", ast.unparse(tree)) + "\n"


def test_a_users_program_passes_the_strict_type_check(strictly):
    done = strictly("program.py", PROGRAM)
    assert done.returncode == 0, done.stdout


def test_a_wrong_program_does_not(strictly):
    done = strictly("wrong.py", WRONG)
    assert {int(line) for line in re.findall(r"wrong\.py:(\d+): error", done.stdout)} == {4, 5, 6}, done.stdout


@pytest.mark.parametrize("name", ["ArgumentError", "CompileError", "CudaError", "LibraryError", "RaceError"])
def test_the_package_is_typed(name):
    import bascule

    assert (Path(bascule.__file__).parent / "py.typed").exists()
    assert getattr(bascule, name).__module__ == "bascule"
