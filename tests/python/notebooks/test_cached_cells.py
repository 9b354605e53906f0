"""An unchanged cell compiles nothing, even after it was moved, and never uses an old header."""

from __future__ import annotations

from pathlib import Path

from .sessions import Cell, Session, session

TEXT = "%%cuda\n__global__ void answer(int* p) { *p = 42; }"
INCLUDING = '%%cuda\n#include "constants.cuh"\n__global__ void constant(int* p) { *p = CONSTANT; }'


def calls(notebook: Session) -> int:
    return int(notebook.evaluate("bascule.cache.stats().nvrtc_calls"))


def constant(notebook: Session) -> str:
    return notebook.evaluate("x = bascule.to_device(np.zeros(1, 'i4')); constant[1, 1](x); int(x[0])")


def header(notebook: Session, value: int, name: str = "constants.cuh") -> Cell:
    cell = notebook.run(f"%%cuda --header {name}\n#define CONSTANT {value}")
    assert cell.status == "ok", cell.error
    return cell


def test_the_same_text_in_another_cell_is_cached(notebook: Session) -> None:
    notebook.run(TEXT)
    before = calls(notebook)
    assert notebook.run(TEXT).text == "answer: cached\n"
    notebook.run("print('another cell between')")
    assert notebook.run(TEXT).text == "answer: cached\n"
    assert calls(notebook) == before


def test_the_same_text_is_cached_after_a_restart_and_in_another_notebook(tmp_path: Path) -> None:
    with session(tmp_path) as first:
        assert "compiled in" in first.run(TEXT).text
    with session(tmp_path) as second:
        second.run("'this notebook begins with another cell'")
        assert second.run(TEXT).text == "answer: cached\n"
        assert second.run(TEXT.replace("%%cuda", "%%cuda --name m")).text == "answer: cached\n"
        assert calls(second) == 0


def test_a_header_is_compiled_by_nobody(notebook: Session) -> None:
    before = calls(notebook)
    assert header(notebook, 1).text == 'constants.cuh: cells find it by #include "constants.cuh"\n'
    assert calls(notebook) == before


def test_a_changed_header_compiles_again_the_cells_that_include_it_and_no_others(notebook: Session) -> None:
    header(notebook, 1)
    notebook.run(INCLUDING)
    notebook.run(TEXT)
    assert constant(notebook) == "1"
    header(notebook, 2)
    assert notebook.run(TEXT).text == "answer: cached\n"
    assert "compiled in" in notebook.run(INCLUDING).text
    assert constant(notebook) == "2"
    header(notebook, 1)
    assert notebook.run(INCLUDING).text == "constant: cached\n"
    assert constant(notebook) == "1"


def test_headers_that_headers_include_count_too(notebook: Session) -> None:
    header(notebook, 3, "inner.cuh")
    notebook.run('%%cuda --header constants.cuh\n#include "inner.cuh"')
    notebook.run(INCLUDING)
    assert constant(notebook) == "3"
    header(notebook, 4, "inner.cuh")
    assert "compiled in" in notebook.run(INCLUDING).text
    assert constant(notebook) == "4"


def test_a_header_that_a_macro_names_counts_too(notebook: Session) -> None:
    by_macro = INCLUDING.replace('"constants.cuh"', "HEADER").replace("%%cuda", "%%cuda -D 'HEADER=<constants.cuh>'")
    for value in (5, 6):
        header(notebook, value)
        assert notebook.run(by_macro).status == "ok"
        assert constant(notebook) == str(value)


def test_a_file_that_a_cell_includes_is_never_stale(notebook: Session, tmp_path: Path) -> None:
    from_file = INCLUDING.replace("constants.cuh", "disk.cuh").replace("%%cuda", f"%%cuda -I {tmp_path}")
    for value in (7, 8):
        (tmp_path / "disk.cuh").write_text(f"#define CONSTANT {value} // {'x' * value}\n")
        assert "compiled in" in notebook.run(from_file).text
        assert constant(notebook) == str(value)
    assert notebook.run(from_file).text == "constant: cached\n"


def test_an_error_in_a_header_has_the_line_of_its_cell(notebook: Session) -> None:
    notebook.run("%%cuda --header constants.cuh\n#define CONSTANT 1\nint f() { return missing; }")
    error = notebook.run(INCLUDING).error
    assert 'constants.cuh:3: error: identifier "missing" is undefined\n  int f() { return missing; }' in error
