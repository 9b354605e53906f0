"""With `keep_sources` the text is written to a file, and the line table of the image names that file."""

from __future__ import annotations

import os
import re

import pytest
from child_process import run_python

import bascule

TEXT = "// kept\n__global__ void k(int* p) {\n    *p = 1;\n}\n"


def files_of(kernel):
    """The files that the PTX's line table names."""
    return re.findall(r'^\s*\.file\s+\d+\s+"([^"]+)"', kernel.ptx, re.MULTILINE)


def compiled(directory, text=TEXT, **options):
    return bascule.compile(text, options=bascule.CompileOptions(keep_sources=directory, **options)).k


def test_the_lines_of_the_image_are_those_of_the_file(tmp_path):
    kernel = compiled(tmp_path / "sources")
    (kept,) = (tmp_path / "sources").iterdir()
    assert kept.read_text() == TEXT
    assert str(kept) in files_of(kernel)
    number = re.search(rf'\.file\s+(\d+)\s+"{re.escape(str(kept))}"', kernel.ptx)[1]
    lines = {int(line) for line in re.findall(rf"^\s*\.loc\s+{number}\s+(\d+)", kernel.ptx, re.MULTILINE)}
    assert 3 in lines
    assert lines <= {1, 2, 3, 4}


def test_a_cubin_names_the_file_too(tmp_path):
    kernel = compiled(tmp_path, arch="sm_80")
    (kept,) = tmp_path.iterdir()
    assert os.fsencode(kept) in kernel.cubin or kept.name.encode() in kernel.cubin


def test_another_directory_is_another_image_and_the_same_one_a_hit(tmp_path):
    compiled(tmp_path / "a")
    before = bascule.cache.stats().nvrtc_calls
    compiled(tmp_path / "a")
    assert bascule.cache.stats().nvrtc_calls == before
    assert str(tmp_path / "b") in str(files_of(compiled(tmp_path / "b")))
    assert not files_of(bascule.compile(TEXT).k) or str(tmp_path) not in str(files_of(bascule.compile(TEXT).k))


def test_a_file_that_was_removed_is_written_again_on_a_hit(tmp_path):
    compiled(tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.unlink()
    compiled(tmp_path)
    assert kept.read_text() == TEXT


def test_errors_and_faults_are_at_the_users_own_place(tmp_path):
    with pytest.raises(bascule.CompileError, match=re.escape(f"{__file__}:")) as caught:
        compiled(tmp_path, "__global__ void k(int* p) {\n    *p = missing;\n}\n")
    assert str(tmp_path) not in str(caught.value)


def test_a_fault_names_the_users_own_place(tmp_path):
    program = f"""
import bascule
text = "__global__ void k() {{ *(int*)16 = 1; }}"  # never mapped: a GPU notices no write a little past an array
kernel = bascule.compile(text, options=bascule.CompileOptions(keep_sources={str(tmp_path)!r})).k
kernel[1, 1]()
try:
    bascule.synchronize()
except bascule.CudaError as error:
    print(error)
"""
    (tmp_path / "program.py").write_text(program)
    run = run_python(tmp_path / "program.py", timeout=300)
    # A GPU does not report the line: the error names the launch.
    expected = "program.py:3: __global__ void k" if bascule.current_device().emulated else "program.py:5: kernel[1, 1]"
    assert expected in run.stdout, run.stdout + run.stderr


def test_a_header_beside_the_file_is_noticed(tmp_path):
    """NVRTC looks first in the directory of the program's name."""
    (tmp_path / "value.h").write_text("#define VALUE 3\n")
    text = '#include "value.h"\n__global__ void k(int* p) { *p = VALUE; }\n'
    x = bascule.zeros(1, "i4")
    compiled(tmp_path, text)[1, 1](x)
    assert x.item() == 3
    (tmp_path / "value.h").write_text("#define VALUE 44\n")
    compiled(tmp_path, text)[1, 1](x)
    assert x.item() == 44


def test_a_directory_that_cannot_be_written_is_an_error_that_names_the_option(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(bascule.FileError, match="`keep_sources`: cannot write"):
        compiled(tmp_path / "file")


def test_the_environment_names_the_directory(tmp_path):
    program = "import bascule, sys\nk = bascule.compile('__global__ void k() {}').k\nprint(sys.argv[1] in k.ptx)"
    run = run_python("-c", program, tmp_path, timeout=300, BASCULE_KEEP_SOURCES=str(tmp_path))
    assert run.stdout == "True\n", run.stderr
    assert len(list(tmp_path.iterdir())) == 1


def test_the_option_is_a_path_and_pickles(tmp_path):
    options = bascule.CompileOptions(keep_sources="relative")
    assert options.keep_sources == os.path.abspath("relative")
    assert "keep_sources=" in repr(options)
    with pytest.raises(bascule.ArgumentError):
        bascule.CompileOptions(keep_sources=3)


def test_no_planted_link_is_followed(tmp_path):
    compiled(tmp_path / "first")
    (kept,) = (tmp_path / "first").iterdir()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    second = tmp_path / "second"
    second.mkdir()
    (second / kept.name).symlink_to(victim)
    (second / f"{kept.name}.{os.getpid()}").symlink_to(victim)
    compiled(second)
    assert victim.read_text() == "precious"
    assert not (second / kept.name).is_symlink()
    assert (second / kept.name).read_text() == TEXT


def test_a_file_with_another_content_of_the_same_size_is_written_again(tmp_path):
    compiled(tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.write_text(TEXT.replace("1", "2"))
    compiled(tmp_path)
    assert kept.read_text() == TEXT
