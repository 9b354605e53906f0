"""The corpus itself: a test launches every kernel in tests/kernels."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

import bascule

from .conftest import CORPUS, kernels_of

FILES = sorted(CORPUS.glob("*.cu"))


@functools.cache
def named_in_tests() -> set[str]:
    """The strings "file.kernel" in every module of this directory but this one, without namespaces. When find_kernel
    compiles a file, it checks that kernels_of returns all of its kernels."""
    names = set()
    for module in Path(__file__).parent.glob("test_*.py"):
        if module.name != Path(__file__).name:
            for node in ast.walk(ast.parse(module.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    names.add(re.sub(r"\w+::", "", node.value))
    return names


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_kernel_of_the_file_is_launched_by_a_test(file):
    assert {f"{file.stem}.{kernel}" for kernel in kernels_of(file)} <= named_in_tests()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bascule.CompileWarning")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_becomes_machine_code(file):
    """A GPU runs no PTX that ptxas refuses, and ptxas may refuse what the emulated device accepts."""
    for arch in ["sm_90"] if file.stem.endswith("_newer") else ["sm_80", "sm_90"]:
        module = bascule.compile(file=file, options={"arch": arch})
        assert module[module.kernels[0]].cubin.startswith(b"\x7fELF")


def test_a_kernel_that_no_test_names_is_noticed(tmp_path):
    (tmp_path / "new.cu").write_text("// __global__ void old() {}\n__global__ void fresh(int n) {}\n")
    assert kernels_of(tmp_path / "new.cu") == {"fresh": 0}
    assert "new.fresh" not in named_in_tests()


def test_the_architecture_of_a_kernel_is_that_of_the_if_around_it(tmp_path):
    text = """
#ifdef NAMES
#endif
__global__ void first() {}
#if __CUDA_ARCH__ >= 800
#if 1
__global__ void second() {}
#endif
__global__ void third() {}
#endif
__global__ void fourth() {}
"""
    (tmp_path / "some.cu").write_text(text)
    assert kernels_of(tmp_path / "some.cu") == {"first": 0, "second": 800, "third": 800, "fourth": 0}


def test_the_corpus_has_two_hundred_kernels_or_more():
    assert sum(len(kernels_of(file)) for file in FILES) >= 200
