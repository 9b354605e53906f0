"""`bascule run`: one launch, its arguments, its output and the files that it saves."""

import re

import numpy as np
import pytest

import bascule

from .files import BLOCK_SUM, ROOT, SAXPY

LAUNCH = ("--grid", 4, "--block", 256)
ARGUMENTS = (2.0, "arange:1000:f4", "zeros:1000:f4", 1000)


def succeeded(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_launch_prints_the_kernel_the_device_and_the_array_that_it_wrote(bascule_command):
    printed = succeeded(bascule_command("run", SAXPY, "-k", "saxpy", *LAUNCH, *ARGUMENTS))
    assert "void saxpy(float a, const float* x, float* y, int n)" in printed
    assert "4 blocks of 256 threads" in printed
    assert "float32 (1000,), 999 of 1,000 elements changed, min 0, max 1998" in printed
    assert "0.  2.  4.  6." in printed
    assert not re.search("^x ", printed, re.MULTILINE)  # const, therefore not printed


def test_an_array_of_pointers_to_const_is_printed_because_the_kernel_may_write_it(bascule_command, tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void point(const float** table, const float* x) { table[0] = x; }")
    printed = succeeded(bascule_command("run", "k.cu", "--grid", 1, "--block", 1, "zeros:1:u8", "ones:4"))
    assert "table      uint64 (1,), 1 of 1 elements changed" in printed
    assert not re.search("^x ", printed, re.MULTILINE)


def test_options_may_stand_between_and_behind_the_arguments(bascule_command):
    mixed = bascule_command("run", "--grid", 4, SAXPY, -1, "arange:8", "--block", 256, "y=zeros:8", "n=8", "-D", "N=1")
    assert "min -7, max 0" in succeeded(mixed)


@pytest.mark.parametrize("number", ["-1e-3", "-.5", "-inf", "0x10", "1_0", "-7"])
def test_negative_and_written_out_numbers_are_no_options(bascule_command, number):
    printed = succeeded(bascule_command("run", SAXPY, "--work", 4, number, "ones:4", "zeros:4", 4))
    expected = {"0x10": "16", "1_0": "10"}.get(number, f"{float(number):g}" if number[0] == "-" else number)
    assert f"min {expected}, max {expected}" in printed


def test_arrays_come_from_files_and_go_to_files(bascule_command, tmp_path, rng):
    x, y = rng.random(1000, np.float32), rng.random(1000, np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    done = bascule_command("run", SAXPY, *LAUNCH, 3, "x.npy", "y.npy", 1000, "--out", "y=out.npy", "--out", "x=same")
    assert "saved in out.npy" in succeeded(done)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), 3 * x + y, rtol=1e-6)
    assert (np.load(tmp_path / "same.npy") == x).all()
    assert (np.load(tmp_path / "y.npy") == y).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.npy", "same.npy", "x.npy", "y.npy"]


def test_a_kernel_runs_as_often_as_asked(bascule_command):
    printed = succeeded(bascule_command("run", SAXPY, *LAUNCH, *ARGUMENTS, "--repeat", 3))
    assert "threads, 3 times" in printed
    assert f"max {3 * 1998}" in printed


def test_times_come_after_the_result_and_say_what_they_mean(bascule_command):
    printed = succeeded(bascule_command("run", SAXPY, *LAUNCH, *ARGUMENTS, "--time", "--repeat", 3))
    assert "max 1998" in printed  # for one launch
    assert re.search(r"^time .* median, .* 3 launches", printed, re.MULTILINE)
    if bascule.current_device().emulated:
        assert "these times say nothing about a GPU" in printed


def test_explain_launches_nothing(bascule_command):
    printed = succeeded(bascule_command("run", SAXPY, *LAUNCH, *ARGUMENTS, "--explain"))
    assert "4 'n', declared int: 1000" in printed
    assert "changed" not in printed


def test_template_arguments_are_named_or_chosen_from_the_arrays(bascule_command):
    given = succeeded(
        bascule_command("run", BLOCK_SUM, "-t", "float,128", "--grid", 2, "--block", 128, "ones:200", "zeros:2")
    )
    assert "block_sum<float, 128>" in given
    assert "128.  72." in given
    chosen = succeeded(bascule_command("run", BLOCK_SUM, "--grid", 1, "--block", 256, "ones:200:i4", "zeros:1:i4"))
    assert "block_sum<int" in chosen
    assert "min 200, max 200" in chosen


def test_grids_and_work_have_up_to_three_extents(bascule_command):
    blur = ROOT / "samples" / "kernels" / "box_blur.cu"
    for geometry in (("--work", "64x48"), ("--grid", "4,3", "--block", "16,16")):
        printed = succeeded(bascule_command("run", blur, *geometry, "full:48x64:f4:7", "zeros:48x64"))
        assert "3,072 of 3,072 elements changed, min 7, max 7" in printed


def test_whole_numbers_are_printed_whole(bascule_command, tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void k(int* p) { *p = -2147483648 + threadIdx.x; }\n")
    printed = succeeded(bascule_command("run", "k.cu", "--grid", 1, "--block", 1, "full:2:i4:2147483647"))
    assert "launched   1 block of 1 thread\n" in printed
    assert "1 of 2 elements changed, min -2147483648, max 2147483647" in printed


def test_launch_attributes_reach_the_launch(bascule_command, tmp_path):
    (tmp_path / "k.cu").write_text(
        "#include <cooperative_groups.h>\n"
        "__global__ void k(int* out) { extern __shared__ int s[]; s[threadIdx.x] = 5;\n"
        "  cooperative_groups::this_grid().sync(); out[threadIdx.x] = s[threadIdx.x]; }\n"
    )
    command = ("run", "k.cu", "--grid", 1, "--block", 4, "zeros:4:i4")
    assert "4 of 4 elements changed, min 5" in succeeded(bascule_command(*command, "--shared", 16, "--cooperative"))
    if bascule.current_device().emulated:  # a GPU may have shared memory to spare
        without = bascule_command(*command, "--cooperative")
        assert without.returncode == 1
        assert "shared memory" in without.stderr


def test_what_a_kernel_prints_stands_between_the_kernel_and_its_arrays(bascule_command, tmp_path):
    (tmp_path / "k.cu").write_text('__global__ void k(int* p) { printf("hello %d\\n", N); *p = N; }\n')
    lines = succeeded(bascule_command("run", "k.cu", "-DN=42", "--grid", 1, "--block", 1, "zeros:1:i4")).splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["kernel", "device", "hello", "launched", "p"]
    assert "hello 42" in lines


def test_structures_tuples_and_null_pointers(bascule_command, tmp_path):
    (tmp_path / "k.cu").write_text(
        "struct P { float x; int n; };\n"
        "__global__ void k(P* p, float2 v, const int* none) { p[1].x = v.y; p[1].n = none == nullptr; }\n"
    )
    np.save(tmp_path / "p.npy", np.zeros(2, [("x", "f4"), ("n", "i4")]))
    done = bascule_command("run", "k.cu", "--grid", 1, "--block", 1, "p.npy", "1.5,2.5", "null", "--out", "p=q.npy")
    assert "1 of 2 elements changed" in succeeded(done)
    assert np.load(tmp_path / "q.npy").tolist() == [(0.0, 0), (2.5, 1)]


def test_checks_run_on_the_emulated_device_and_find_an_index_out_of_a_view(bascule_command, tmp_path):
    (tmp_path / "k.cu").write_text(
        "__global__ void k(bascule::array_view<float> x, int i) { if (i < 4) x[i] = 1; else x(i) = 2; }\n"
    )
    command = ("run", "k.cu", "--grid", 1, "--block", 1, "--check", "memory,races", "zeros:8")
    inside = bascule_command(*command, 7, BASCULE_DEVICE=None)
    assert "checked    memory,races: nothing was found" in succeeded(inside)
    outside = bascule_command(*command, 8, BASCULE_DEVICE=None)
    assert outside.returncode == 1
    assert "index" in outside.stderr
    on_gpu = bascule_command(*command, 7, BASCULE_DEVICE="cuda")
    assert on_gpu.returncode == 2
    assert "emulated" in on_gpu.stderr


def test_a_check_of_kernels_names_the_line_and_the_launch_fails(bascule_command, tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void k(int* x, int n) { x[threadIdx.x] = 7 / n; }\n")
    command = ("run", "k.cu", "--grid", 1, "--block", 4, "zeros:4:i4")
    for checks in ("all", "division"):
        right = bascule_command(*command, 1, "--checks", checks, BASCULE_DEVICE=None)
        assert f"checked    {checks}: nothing was found" in succeeded(right)
        wrong = bascule_command(*command, 0, f"--checks={checks}", BASCULE_DEVICE=None)
        assert wrong.returncode == 1
        assert "division: kernel 'k' divided an integer by zero at k.cu:1: __global__ void k" in wrong.stderr
        assert "3 other threads did the same" in wrong.stderr
        assert "Traceback" not in wrong.stderr


def test_a_fault_names_the_line_and_the_argument(bascule_command, emulated):
    done = bascule_command("run", SAXPY, "--work", 1000, 2, "arange:10", "zeros:1000", 1000)
    assert done.returncode == 1
    assert "saxpy.cu:8: if (i < n) y[i] += a * x[i];" in done.stderr
    assert "directly past the 40-byte allocation made at argument arange:10" in done.stderr
    assert "__main__" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_warning_has_file_line_and_caret_and_no_line_of_the_package(bascule_command, tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void k(int* p) {\n\tint unused;\n\t*p = 1;\n}\n")
    command = ("run", "k.cu", "--grid", 1, "--block", 1, "zeros:1:i4")
    done = bascule_command(*command, BASCULE_DEVICE="emulated", BASCULE_CACHE_DIR="")
    succeeded(done)
    assert done.stderr.splitlines() == [
        'k.cu:2: warning: variable "unused" was declared but never referenced [177-D]',
        "  \tint unused;",
        "  \t    ^",
    ]
    assert "\033[" in bascule_command(*command, FORCE_COLOR="1", BASCULE_CACHE_DIR="").stderr


def test_the_kernel_must_be_named_where_there_are_several(bascule_command, tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void one() {}\n__global__ void two() {}\n")
    several = bascule_command("run", "k.cu", "--grid", 1, "--block", 1)
    assert several.returncode == 2
    assert "name one with -k: one, two" in several.stderr
    wrong = bascule_command("run", "k.cu", "-k", "tow", "--grid", 1, "--block", 1)
    assert wrong.returncode == 1
    assert "no kernel 'tow'" in wrong.stderr
    assert "one, two" in wrong.stderr
    assert "kernel     void two()" in succeeded(bascule_command("run", "k.cu", "-k", "two", "--grid", 1, "--block", 1))


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ((), 2, "--grid is missing: write --grid 4 --block 256, or --work 1000"),
        (("--grid", 4), 2, "--block is missing"),
        (("--grid", "a", "--block", 1), 2, "argument --grid: 'a' is not one to three numbers"),
        (("--work", 4, "--grid", 1, "--block", 4), 2, "--work chooses grid and block; leave out --grid"),
        (("--work", 4, "--cooperative"), 2, "--cooperative needs --grid and --block"),
        (("--work", 0, *ARGUMENTS), 2, "nothing to launch"),
        (("--work", 4, *ARGUMENTS, "--bogus"), 2, "there is no option --bogus; bascule run --help"),
        (("--work", 4, *ARGUMENTS, "--repeat", 0), 2, "argument --repeat: '0' is not a number of launches"),
        (("--work", 4, *ARGUMENTS, "--check", "races,speed"), 2, "'speed' is not a check"),
        (("--work", 4, *ARGUMENTS, "--out", "z=z.npy"), 2, "arrays: x, y"),
        (("--work", 4, *ARGUMENTS, "--out", "y"), 2, "write --out NAME=FILE.npy"),
        (("--work", 4, *ARGUMENTS, "--out", "y=no/such/y.npy"), 2, "no/such"),
        (("--work", 4, *ARGUMENTS[:3]), 1, "takes 4 arguments, got 3"),
        (("--work", 4, *ARGUMENTS[:3], "z=1"), 1, "no parameter 'z'"),
        (("--work", 4, *ARGUMENTS[:3], 1.5), 1, "argument 4 'n': the kernel declares `int`, got the float 1.5"),
        (("--work", 4, 2, "arange:8:i4", "zeros:8", 8), 1, "argument 2 'x': the kernel declares `const float*`"),
        (("--work", 4, 2, "arange:8", "missing.npy", 8), 1, "there is no file missing.npy"),
        (("--grid", 4, "--block", 2000, *ARGUMENTS), 1, "`block` is (2000,)"),
        (("--work", 4, *ARGUMENTS, "--shared", 10**9), 1, "shared"),
        (("--work", 4, "-t", "float", *ARGUMENTS), 1, "not a template"),
        (("--work", 4, "-t", "float,,4", *ARGUMENTS), 2, "a template argument is empty"),
        (("--work", 4, *ARGUMENTS, "--arch", "sm_x"), 1, "sm_90"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(bascule_command, arguments, status, said):
    done = bascule_command("run", SAXPY, *arguments)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "changed" not in done.stdout
