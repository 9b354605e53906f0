"""Only a kernel's own text must be UTF-8: lines of headers, names of files, and variables may have any bytes."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import bascule

TEXT = '#include "latin.h"\n__global__ void get(int* out) { *out = VALUE; }'
LATIN = b"// caf\xe9 \xff\n#define VALUE 7\n"


@pytest.fixture
def directory(tmp_path):
    made = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(made)
    Path(os.fsdecode(made), "latin.h").write_bytes(LATIN)
    Path(os.fsdecode(made), "get.cu").write_text(TEXT)
    return made


def value(**arguments):
    out = bascule.zeros(1, "i4")
    bascule.compile(**arguments)["get"][1, 1](out)
    return int(out.copy_to_host()[0])


@pytest.mark.parametrize("convert", [os.fsdecode, bytes, lambda path: Path(os.fsdecode(path))])
def test_paths_may_have_any_bytes(directory, convert):
    for _ in range(2):  # compiled, and from the cache
        assert value(source=TEXT, options={"include_paths": [convert(directory)]}) == 7
        assert value(file=convert(directory + b"/get.cu")) == 7
        assert value(file=convert(directory + b"/get.cu"), options={"keep_sources": convert(directory + b"/kept")}) == 7
    assert os.listdir(directory + b"/kept")


def test_messages_have_the_lines_and_the_places_as_they_are(directory):
    Path(os.fsdecode(directory), "wrong.h").write_bytes(b"__device__ int caf\xe9 = nothing;\n")
    options = bascule.CompileOptions(include_paths=[directory])
    with pytest.raises(bascule.CompileError) as caught:
        bascule.compile('#include "wrong.h"\n' + TEXT, options=options)["get"].prepare(bascule.zeros(1, "i4"))
    assert os.fsdecode(directory + b"/wrong.h") in str(caught.value)
    assert os.fsdecode(b"int caf\xe9 = nothing;") in str(caught.value)
    assert any(each.file == os.fsdecode(directory + b"/wrong.h") for each in caught.value.diagnostics)
    assert os.fsdecode(directory) in options.include_paths
    assert eval(repr(options), {"bascule": bascule}) == options


def test_a_warning_about_such_a_line_is_a_warning(directory):
    Path(os.fsdecode(directory), "warned.h").write_bytes(b"#warning caf\xe9\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert value(source='#include "warned.h"\n' + TEXT, options={"include_paths": [directory]}) == 7
    assert [each.category for each in caught] == [bascule.CompileWarning]


PROGRAM = """
import bascule
module = bascule.compile(file="get.cu")
out = bascule.zeros(1, "i4")
module["get"][1, 1](out)
print(int(out.copy_to_host()[0]), ascii(bascule.cache.directory()))
bascule.compile("__global__ void nowhere() { *(int*)16 = 1; }").nowhere[1, 1]()
bascule.synchronize()
"""


def test_programs_caches_and_faults_live_in_such_directories(directory):
    Path(os.fsdecode(directory), "program.py").write_text(PROGRAM)
    environment = {**os.environb, b"BASCULE_CACHE_DIR": directory + b"/cache", b"CUDA_HOME": directory}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, directory + b"/program.py"],
            cwd=directory,
            env=environment,
            capture_output=True,
            check=False,
        )
        assert done.stdout.startswith(b"7 "), done.stderr
        assert b"caf\\udce9/cache" in done.stdout
        said = b"kernel 'nowhere' wrote" if bascule.current_device().emulated else b"most likely kernel 'nowhere'"
        assert said in done.stderr
        assert b"caf\\udce9/program.py:" in done.stderr
    assert os.listdir(directory + b"/cache")


@pytest.mark.parametrize("name", [b"BASCULE_DEVICE", b"BASCULE_EMULATED_SCHEDULE", b"BASCULE_LOG", b"BASCULE_NVTX"])
def test_a_variable_with_such_a_value_is_refused_in_a_sentence(name):
    if b"EMULATED" in name and not bascule.current_device().emulated:
        pytest.skip("only the emulated device reads it")
    done = subprocess.run(
        [sys.executable, "-c", "import bascule; bascule.zeros(1, 'f4')"],
        env={**os.environb, name: b"caf\xe9"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert name + b" is 'caf\\udce9'" in done.stderr


def test_the_text_of_a_kernel_is_refused_with_the_byte_that_is_not_utf_8(directory):
    Path(os.fsdecode(directory), "latin.cu").write_bytes(b"// caf\xe9\n__global__ void get(int* out) {}\n")
    with pytest.raises(ValueError, match="is not UTF-8 text: byte 6 is 0xe9"):
        bascule.compile(file=directory + b"/latin.cu")


def test_a_header_that_is_a_text_may_have_any_bytes():
    assert value(source=TEXT, options={"headers": {"latin.h": os.fsdecode(b"// caf\xe9\n#define VALUE 7\n")}}) == 7
