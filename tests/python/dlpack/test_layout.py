"""Bascule's definitions of DLPack's layout, in C and in ctypes, compared with the dlpack.h of apache-tvm-ffi."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from dlpack import capsules

ROOT = Path(__file__).resolve().parents[3]

# Bascule's name -> the name in dlpack.h, and the same for the members of each.
STRUCTURES = {
    ("BasculeDLVersion", "DLPackVersion"): {"major": "major", "minor": "minor"},
    ("BasculeDLDevice", "DLDevice"): {"type": "device_type", "id": "device_id"},
    ("BasculeDLDataType", "DLDataType"): {"code": "code", "bits": "bits", "lanes": "lanes"},
    ("BasculeDLTensor", "DLTensor"): {
        name: name for name in ("data", "device", "ndim", "dtype", "shape", "strides", "byte_offset")
    },
    ("BasculeDLManaged", "DLManagedTensor"): {"tensor": "dl_tensor", "context": "manager_ctx", "deleter": "deleter"},
    ("BasculeDLManagedVersioned", "DLManagedTensorVersioned"): {
        "version": "version", "context": "manager_ctx", "deleter": "deleter", "flags": "flags", "tensor": "dl_tensor",
    },
    ("BasculeDLExchangeHeader", "DLPackExchangeAPIHeader"): {"version": "version", "previous": "prev_api"},
    ("BasculeDLExchange", "DLPackExchangeAPI"): {
        "header": "header",
        "allocate": "managed_tensor_allocator",
        "managed_from_object": "managed_tensor_from_py_object_no_sync",
        "managed_to_object": "managed_tensor_to_py_object_no_sync",
        "tensor_from_object": "dltensor_from_py_object_no_sync",
        "current_work_stream": "current_work_stream",
    },
}  # fmt: skip

CONSTANTS = {
    "BASCULE_DL_MAJOR": "DLPACK_MAJOR_VERSION",
    "BASCULE_DL_MINOR": "DLPACK_MINOR_VERSION",
    "BASCULE_DL_CPU": "kDLCPU",
    "BASCULE_DL_CUDA": "kDLCUDA",
    "BASCULE_DL_CUDA_HOST": "kDLCUDAHost",
    "BASCULE_DL_CUDA_MANAGED": "kDLCUDAManaged",
    "BASCULE_DL_READ_ONLY": "DLPACK_FLAG_BITMASK_READ_ONLY",
    "BASCULE_DL_COPIED": "DLPACK_FLAG_BITMASK_IS_COPIED",
    "BASCULE_DL_PADDED": "DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED",
}


@pytest.fixture(scope="module")
def compile_with_theirs(tmp_path_factory):
    """Compiles C statements that may use both headers; returns the errors, or an empty string."""
    libinfo = pytest.importorskip("tvm_ffi.libinfo")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")

    def compile_text(statements: list[str]) -> str:
        source = tmp_path_factory.mktemp("layout") / "layout.c"
        headers = [
            "#include <stddef.h>",
            "#include <dlpack/dlpack.h>",
            f'#include "{ROOT}/interface/arrays/dlpack_abi.h"',
        ]
        source.write_text("\n".join([*headers, *statements]) + "\n")
        command = [compiler, "-std=c11", "-fsyntax-only", f"-I{libinfo.find_dlpack_include_path()}", str(source)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr

    return compile_text


def same(ours: str, theirs: str) -> str:
    return f'_Static_assert(({ours}) == ({theirs}), "{ours}");'


def test_the_layouts_and_the_numbers_are_those_of_dlpack(compile_with_theirs):
    statements = [same(ours, theirs) for ours, theirs in CONSTANTS.items()]
    for (ours, theirs), members in STRUCTURES.items():
        statements.append(same(f"sizeof({ours})", f"sizeof({theirs})"))
        for our_member, their_member in members.items():
            statements.append(same(f"offsetof({ours}, {our_member})", f"offsetof({theirs}, {their_member})"))
            sizes = (f"sizeof((({name}*)0)->{member})" for name, member in ((ours, our_member), (theirs, their_member)))
            statements.append(same(*sizes))
    assert compile_with_theirs(statements) == ""


def test_a_difference_would_be_noticed(compile_with_theirs):
    assert "static assertion" in compile_with_theirs([same("sizeof(BasculeDLTensor)", "sizeof(DLDevice)")])


@pytest.mark.parametrize(
    ("structure", "name"),
    [
        (capsules.Device, "DLDevice"),
        (capsules.DataType, "DLDataType"),
        (capsules.Tensor, "DLTensor"),
        (capsules.Managed, "DLManagedTensor"),
        (capsules.ManagedVersioned, "DLManagedTensorVersioned"),
    ],
)
def test_what_the_tests_use_is_as_large(compile_with_theirs, structure, name):
    assert compile_with_theirs([same(str(ctypes.sizeof(structure)), f"sizeof({name})")]) == ""
