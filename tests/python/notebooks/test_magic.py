"""`%%cuda`: the names that it binds, its options, and its messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .sessions import Session, session

FILL = "__global__ void fill(int* p) { p[threadIdx.x] = VALUE; }"


def value_of(notebook: Session, kernel: str) -> str:
    """Launches the kernel, and returns the int that it writes, as text."""
    return notebook.evaluate(f"x = bascule.to_device(np.zeros(1, 'i4')); {kernel}[1, 1](x); int(x[0])")


def test_a_cell_binds_its_kernels_and_its_value_is_the_module(notebook: Session) -> None:
    cell = notebook.run("%%cuda\n__global__ void one(int* p) { *p = 1; }\n__global__ void two(int* p) { *p = 2; }")
    assert cell.text.startswith("one, two: compiled in ")
    assert re.match(r"bascule.Module In\[\d+\]\n", cell.value)
    assert [line.split()[0] for line in cell.value.splitlines()[2:]] == ["one", "two"]
    assert (value_of(notebook, "one"), value_of(notebook, "two")) == ("1", "2")


def test_a_name_binds_the_module_too_and_leaves_the_cell_without_a_value(notebook: Session) -> None:
    cell = notebook.run("%%cuda --name numbers\n__global__ void three(int* p) { *p = 3; }")
    assert cell.value == ""
    assert (value_of(notebook, "numbers.three"), value_of(notebook, "three")) == ("3", "3")


def test_options_reach_the_compiler(notebook: Session, tmp_path: Path) -> None:
    (tmp_path / "size.cuh").write_text("#define SIZE 5\n")
    options = f"--std c++20 -D VALUE=SIZE -D UNUSED -I {tmp_path} --debug --option=-use_fast_math --name m"
    notebook.run(f"%%cuda {options}\n#include <size.cuh>\nstatic_assert(__cplusplus == 202002L);\n{FILL}")
    assert value_of(notebook, "m.fill") == "5"


def test_an_architecture_is_compiled_for(notebook: Session) -> None:
    notebook.run("%%cuda --arch sm_90 --name hopper\n__global__ void nothing() {}")
    assert notebook.evaluate("'.target sm_90' in hopper.nothing.ptx") == "True"


def test_a_value_with_blanks_is_quoted(notebook: Session) -> None:
    notebook.run(f"%%cuda -D 'VALUE=(4 + 5)'\n{FILL}")
    assert value_of(notebook, "fill") == "9"


def test_a_variable_of_python_is_a_value_too(notebook: Session) -> None:
    notebook.run("size = 12")
    notebook.run(f"%%cuda -D VALUE=$size\n{FILL}")
    assert value_of(notebook, "fill") == "12"


def test_a_template_waits_for_its_arguments(notebook: Session) -> None:
    cell = notebook.run("%%cuda\ntemplate <class T> __global__ void put(T* p) { *p = T(6); }")
    assert cell.text == "put: compiled when a launch or instantiate() gives the template arguments\n"
    assert value_of(notebook, "put") == "6"


def test_a_changed_cell_makes_new_kernels_and_the_old_ones_stay_valid(notebook: Session) -> None:
    notebook.run(f"%%cuda -D VALUE=10\n{FILL}")
    notebook.run("old = fill")
    notebook.run(f"%%cuda -D VALUE=11\n{FILL}")
    assert (value_of(notebook, "old"), value_of(notebook, "fill")) == ("10", "11")


# --- Errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--name", "argument --name: expected one argument"),
        ("--nonsense", "unrecognized arguments: --nonsense"),
        ("--name 3d", "--name takes a name that Python can bind, like blur; got '3d'."),
        ("--name class", "--name takes a name that Python can bind"),
        ("-D 1=2", "-D takes NAME or NAME=VALUE, got '1=2'."),
        ("--std c++99", 'the option `std` is "c++99": it must be c++17, c++20'),
        ("--arch hopper", 'the option `arch` is "hopper": it must be like sm_90'),
        ("--header shapes.cuh -D N=1", "--header shapes.cuh takes no other options: it compiles nothing."),
        ("--header /shapes.cuh", "--header takes a relative name without quotes"),
        ("-D 'N", "No closing quotation"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it(notebook: Session, line: str, words: str) -> None:
    cell = notebook.run(f"%%cuda {line}\n__global__ void k() {{}}")
    assert cell.status == "error"
    assert cell.text.startswith("UsageError: ")
    assert words in cell.text


def test_the_help_lists_every_option(notebook: Session) -> None:
    assert notebook.run("%%cuda?").status == "ok"
    notebook.run("text = get_ipython().find_cell_magic('cuda').__doc__")
    text = notebook.run("print(text)").text
    for option in ("--std", "-D", "-I", "--arch", "--debug", "--option", "--checks", "--name", "--header"):
        assert f"{option} " in text or f"{option}\n" in text
    assert "Compile the cell as CUDA C++ and put its kernels into the namespace." in text


@pytest.mark.parametrize("above", ["", "\n\n"])
def test_an_error_names_the_cell_and_its_line(notebook: Session, above: str) -> None:
    cell = notebook.run(f"{above}%%cuda\n__global__ void k(int* p) {{\n    *p = missing;\n}}")
    line = 3 + len(above)
    place, source, caret = cell.error.splitlines()[1:4]
    assert cell.error_name == "CompileError"
    assert f']:{line}: error: identifier "missing" is undefined' in place
    assert place.startswith("In[")
    assert source == "      *p = missing;"
    assert caret.index("^") == source.index("missing")
    assert "\x1b[31merror:" in cell.coloured_error
    assert "_notebook.py" not in cell.error


def test_a_cell_without_kernels_is_an_error(notebook: Session) -> None:
    assert "has no __global__ function" in notebook.run("%%cuda\nint x;").error


def test_a_fault_names_the_cells_of_the_kernel_and_the_launch(tmp_path: Path) -> None:
    with session(tmp_path) as alone:  # its cells have known numbers: cell 1 has loaded the extension
        alone.run("%%cuda\n__global__ void far(int* p) {\n    p[1 << 20] = 1;\n}")
        alone.run("x = bascule.to_device(np.zeros(1, 'i4'))")
        error = alone.run("far[1, 1](x)\nbascule.synchronize()").error
    assert "at In[2]:3: p[1 << 20] = 1;" in error
    assert "launched at In[4]:1: far[1, 1](x)." in error


def test_the_extension_is_unloaded(tmp_path: Path) -> None:
    with session(tmp_path) as alone:
        alone.run("%%cuda\n__global__ void seven(int* p) { *p = 7; }")
        assert alone.run("%unload_ext bascule").status == "ok"
        assert "`%%cuda` not found" in alone.run("%%cuda\n__global__ void k() {}").text
        assert value_of(alone, "seven") == "7"


def test_the_warning_of_the_device_is_at_the_cell(tmp_path: Path) -> None:
    with session(tmp_path, BASCULE_DEVICE="") as notebook:
        printed = notebook.run("%%cuda\n__global__ void first(int* p) {}").text
    assert "EmulatedDeviceWarning" in printed
    assert "ipykernel_" in printed.partition(": EmulatedDeviceWarning")[0]  # the cell's file


def test_compiling_ahead_shows_a_bar_to_its_end_and_the_module_knows_the_instances(notebook: Session) -> None:
    notebook.run("%%cuda --name made\ntemplate <class T> __global__ void scan(T* x) {}")
    cell = notebook.run("made.precompile({'scan': ['float', 'double']});")
    assert cell.status == "ok", cell.error
    assert ["0 of 2" in cell.displays[0], "2 of 2" in cell.displays[-1]] == [True, True], cell.displays
    assert cell.text == ""
    shown = notebook.evaluate("made.scan")
    assert shown.count("compiled, not loaded yet") == 2
    assert "registers" not in shown


def test_checks_are_on_from_that_cell_on_until_another_turns_them_off(notebook: Session) -> None:
    cell = "\n__global__ void divide(int* p, int n) { *p = 7 / n; }"
    launch = "divide[1, 1](bascule.zeros(1, 'i4'), 0); bascule.synchronize()"
    notebook.run(f"%%cuda --checks division{cell}")
    error = notebook.run(launch).error
    assert re.search(
        r"CheckError: division: kernel 'divide' divided an integer by zero at In\[\d+\]:2: __global__", error
    )
    notebook.run(f"%%cuda --checks memory{cell}")
    assert notebook.run(launch).error == ""
