"""`bascule compile`: code and signatures, without a driver."""

import json
import os
import re

import pytest

from .files import BLOCK_SUM, SAXPY

# On a machine without a GPU, no driver can be loaded: everything that needs a device fails.
NO_DRIVER = {"BASCULE_DEVICE": "cuda", "LD_LIBRARY_PATH": None}


def succeeded(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_signatures_and_resources_are_printed_without_a_driver(bascule_command):
    printed = succeeded(bascule_command("compile", SAXPY, "--arch", "sm_90", **NO_DRIVER))
    assert "saxpy.cu for sm_90: 1 kernel\n" in printed
    assert "void saxpy(float a, const float* x, float* y, int n)" in printed
    assert re.search(r"[1-9]\d* registers, 0 bytes of static shared memory, 0 bytes of stack, nothing spilled", printed)
    assert "in the image: _Z5saxpyfPKfPfi" in printed


def test_json_has_every_kernel_of_every_architecture(bascule_command):
    asked = ("--json", "--instance", "block_sum<float, 256>", "--instance", "block_sum<double, 64>")
    done = bascule_command("compile", BLOCK_SUM, *asked, "--arch", "sm_80", "--arch", "sm_90", **NO_DRIVER)
    report = json.loads(succeeded(done))
    assert [image["arch"] for image in report["images"]] == ["sm_80", "sm_90"]
    for image in report["images"]:
        first, second = image["kernels"]
        assert first["parameters"] == [
            {"name": "in", "type": "bascule::array_view<const float>"},
            {"name": "sums", "type": "bascule::array_view<float>"},
        ]
        assert (first["resources"]["static_shared_bytes"], second["resources"]["static_shared_bytes"]) == (1024, 512)
        assert [template["name"] for template in image["templates"]] == ["block_sum"]


def test_ptx_is_printed_and_has_the_lowered_name(bascule_command):
    printed = succeeded(bascule_command("compile", SAXPY, "--ptx", "--arch", "compute_90", **NO_DRIVER))
    assert ".target sm_90" in printed
    assert ".entry _Z5saxpyfPKfPfi(" in printed


def test_a_directory_gets_a_file_for_each_kind_and_architecture(bascule_command, tmp_path):
    arches = ("--arch", "sm_80", "--arch", "sm_90", "--arch", "compute_100")
    succeeded(bascule_command("compile", SAXPY, *arches, "-o", "code/", **NO_DRIVER))
    files = {path.name: path.read_bytes() for path in (tmp_path / "code").iterdir()}
    assert sorted(files) == [
        *("saxpy.compute_100.ptx", "saxpy.sm_80.cubin", "saxpy.sm_80.ptx", "saxpy.sm_90.cubin", "saxpy.sm_90.ptx"),
    ]
    assert all(code.startswith(b"\x7fELF") for name, code in files.items() if name.endswith(".cubin"))
    assert b".target sm_80" in files["saxpy.sm_80.ptx"]


def test_the_ending_of_a_file_says_what_is_written(bascule_command, tmp_path):
    succeeded(bascule_command("compile", SAXPY, "--arch", "sm_90", "-o", "saxpy.cubin", **NO_DRIVER))
    assert (tmp_path / "saxpy.cubin").read_bytes().startswith(b"\x7fELF")
    succeeded(bascule_command("compile", SAXPY, "--arch", "sm_90", "--ptx", "-o", "code.txt", **NO_DRIVER))
    assert (tmp_path / "code.txt").read_text().rstrip().endswith("}")


def test_sass_comes_from_the_disassembler_on_the_path(bascule_command, tmp_path):
    tool = tmp_path / "nvdisasm"
    tool.write_text('#!/bin/sh\necho "SASS of $(head -c 4 "$2" | tail -c 3)"\n')
    tool.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = bascule_command("compile", SAXPY, "--sass", "--arch", "sm_90", PATH=path, **NO_DRIVER)
    assert succeeded(done) == "SASS of ELF\n"
    tool.write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    failed = bascule_command("compile", SAXPY, "--sass", "--arch", "sm_90", PATH=path, **NO_DRIVER)
    assert failed.returncode == 1
    assert "failed with status 3: broken" in failed.stderr


def test_without_a_disassembler_the_error_has_the_command(bascule_command):
    from bascule._command.disassembly import find_disassembler

    if find_disassembler():
        pytest.skip("a disassembler is installed")
    done = bascule_command("compile", SAXPY, "--sass", "--arch", "sm_90")
    assert done.returncode == 1
    assert "pip install nvidia-cuda-nvdisasm" in done.stderr


def test_a_template_alone_has_a_signature_and_no_code(bascule_command):
    assert '--instance "block_sum<float>"' in succeeded(bascule_command("compile", BLOCK_SUM, **NO_DRIVER))
    code = bascule_command("compile", BLOCK_SUM, "--ptx", **NO_DRIVER)
    assert code.returncode == 2
    assert 'add --instance "block_sum<float>"' in code.stderr


def test_an_error_of_the_compiler_has_file_line_caret_and_colour(bascule_command, tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void k(int* p) {\n  *p = undeclared;\n}\n")
    done = bascule_command("compile", "k.cu", **NO_DRIVER)
    assert done.returncode == 1
    assert 'k.cu:2: error: identifier "undeclared" is undefined\n    *p = undeclared;\n         ^' in done.stderr
    assert "\033[31merror:" in bascule_command("compile", "k.cu", FORCE_COLOR="1").stderr


def test_options_reach_the_compiler(bascule_command, tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "n.cuh").write_text("#define N 3\n")
    (tmp_path / "k.cu").write_text(
        "#include <n.cuh>\n#if __cplusplus < 202002L || M != 4\n#error options\n#endif\n"
        "__global__ void k(float* p) { *p = __fdividef(*p, N) + 1.0f / *p; }\n"
    )
    command = ("compile", "k.cu", "--ptx", "--arch", "compute_90", "-Iinclude", "-DM=4", "--std", "c++20")
    assert succeeded(bascule_command(*command)).count(".approx") == 1
    assert succeeded(bascule_command(*command, "--option=--use_fast_math")).count(".approx") == 2
    missing = bascule_command("compile", "k.cu", "-DM=4", "--std=c++20")
    assert missing.returncode == 1
    assert "On the command line include_paths is -I DIRECTORY." in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("missing.cu",), 1, "cannot read the file missing.cu: No such file"),
        ((".",), 1, "cannot read the file .: Is a directory"),
        (("binary.cu",), 1, "binary.cu is not UTF-8 text"),
        (("compiled.cu",), 1, "'compiled.cu' is a file of compiled code: bascule.load_module('compiled.cu')"),
        (("empty.cu",), 1, "__global__"),
        ((SAXPY, "--cubin"), 2, "--cubin is binary: name a file"),
        ((SAXPY, "--arch", "sm_12"), 1, "it supports"),
        ((SAXPY, "--arch", "volta"), 1, "it must be like sm_90"),
        ((SAXPY, "--arch", "compute_90", "-o", "x.cubin"), 2, "compute_90 is a virtual architecture"),
        ((SAXPY, "--arch", "sm_80", "--arch", "sm_90", "-o", "x.ptx"), 2, "name a directory"),
        ((SAXPY, "--ptx", "-o", "no/x.ptx"), 2, "there is no directory no"),
        ((SAXPY, "--instance", "saxpy<float>"), 1, "saxpy"),
        ((SAXPY, "--instance", "sum<float>"), 1, "sum"),
        ((SAXPY, "other.cu"), 2, "does not take the argument 'other.cu'"),
        ((SAXPY, "--option=--nonsense"), 1, "nonsense"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(bascule_command, tmp_path, arguments, status, said):
    (tmp_path / "binary.cu").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "compiled.cu").write_bytes(b"\x7fELF\xff\xfe\x00")
    (tmp_path / "empty.cu").write_text("")
    done = bascule_command("compile", *arguments, **NO_DRIVER)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
