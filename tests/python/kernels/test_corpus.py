"""The corpus itself: no kernel lies in tests/kernels that no test launches."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import bascule

from .conftest import CORPUS

FILES = sorted(CORPUS.glob("*.cu"))


def kernels_of(file: Path) -> list[str]:
    text = re.sub(r"//.*", "", file.read_text())
    return re.findall(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(", text)


def named_in_tests() -> set[str]:
    """The strings "file.kernel" in every module of this directory but this one."""
    names = set()
    for module in Path(__file__).parent.glob("test_*.py"):
        if module.name != Path(__file__).name:
            for node in ast.walk(ast.parse(module.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    names.add(node.value)
    return names


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_kernel_of_the_file_is_launched_by_a_test(file):
    kernels = kernels_of(file)
    assert kernels
    qualified = bascule.compile(file=file).kernels
    assert [name.rpartition("::")[2] for name in qualified] == kernels
    assert {f"{file.stem}.{name}" for name in qualified} <= named_in_tests()


def test_a_kernel_that_no_test_names_is_noticed(tmp_path):
    (tmp_path / "new.cu").write_text("// __global__ void old() {}\n__global__ void fresh(int n) {}\n")
    assert kernels_of(tmp_path / "new.cu") == ["fresh"]
    assert "new.fresh" not in named_in_tests()


def test_the_corpus_has_two_hundred_kernels_or_more():
    assert sum(len(kernels_of(file)) for file in FILES) >= 200
