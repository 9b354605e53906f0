"""A kernel's output appears in the cell that launches it, in order with the cell's own output."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from .sessions import Session, environment, session

SAY = """%%cuda
__global__ void say(int n) { printf("kernel %d\\n", n); }
__global__ void say_in_order(int n) { for (int i = 0; i < n; ++i) printf("%d ", i); }
"""


def test_a_kernel_prints_between_two_prints_of_its_cell(notebook: Session) -> None:
    notebook.run(SAY)
    cell = notebook.run("print('before')\nsay[1, 1](1)\nprint('between')\nsay[1, 1](2)\nprint('after')")
    assert cell.text == "before\nkernel 1\nbetween\nkernel 2\nafter\n"


def test_every_form_of_a_launch_prints_in_order(notebook: Session) -> None:
    notebook.run(SAY)
    forms = ["say[1, 1](3)", "say.launch(1, 1, (3,))", "say[1, 1](*(3,))", "bound = say[1, 1].bind(3); bound()"]
    for form in forms:
        assert notebook.run(f"print('a'); {form}; print('b')").text == "a\nkernel 3\nb\n", form


def test_what_many_threads_print_is_whole_and_once(notebook: Session) -> None:
    notebook.run(SAY)
    lines = notebook.run("say[64, 64](4)\nprint('done')").text.splitlines()
    assert lines.pop() == "done"
    assert lines == ["kernel 4"] * 4096


def test_nbclient_keeps_it_with_the_cell(tmp_path: Path) -> None:
    codes = ["%load_ext bascule", SAY, "print('before')\nsay[1, 1](1)\nprint('after')", "say[1, 1](2)", "print('last')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in codes])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute(env=environment(tmp_path))
    texts = ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells[2:]]
    assert texts == ["before\nkernel 1\nafter\n", "kernel 2\n", "last\n"]


@pytest.mark.parametrize("policy", ["lazy", "threads"])
def test_under_other_schedules_the_cell_that_waits_gets_it(tmp_path: Path, policy: str) -> None:
    with session(tmp_path, BASCULE_EMULATED_SCHEDULE=policy) as other:
        other.run(SAY)
        text = other.run("say[1, 1](5)\nbascule.synchronize()\nprint('after')").text
    assert text == "kernel 5\nafter\n"


def test_what_precedes_a_fault_is_printed(tmp_path: Path) -> None:
    with session(tmp_path) as alone:
        alone.run('%%cuda\n__global__ void fail(int* p) { printf("so far\\n"); *p = 1; }')
        cell = alone.run("print('before')\nfail[1, 1](bascule.raw_pointer(64))\nbascule.synchronize()")
    assert cell.text == "before\nso far\n"
    assert "illegal address" in cell.error


def test_a_thread_of_the_notebook_prints_too(notebook: Session) -> None:
    notebook.run(SAY)
    cell = notebook.run(
        "import threading\nthread = threading.Thread(target=lambda: say[1, 1](6))\nthread.start()\nthread.join()\n"
        "print('after')"
    )
    assert cell.text == "kernel 6\nafter\n"


def test_redirected_output_is_redirected(notebook: Session) -> None:
    notebook.run(SAY)
    cell = notebook.run(
        "import contextlib, io\n"
        "with contextlib.redirect_stdout(io.StringIO()) as text:\n    say[1, 1](7)\ntext.getvalue()"
    )
    assert (cell.text, cell.value) == ("", "'kernel 7\\n'")


def test_outside_of_notebooks_printf_is_the_process_s_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    import bascule

    print("before", flush=True)
    bascule.compile('__global__ void said(int n) { printf("kernel %d\\n", n); }').said[1, 1](8)
    bascule.synchronize()
    assert capfd.readouterr().out == "before\nkernel 8\n"
