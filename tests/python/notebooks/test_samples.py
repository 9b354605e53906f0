"""The notebooks of `samples/notebooks`: they run, compile nothing the second time, and show pictures."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from PIL import Image

from .sessions import environment

pytestmark = pytest.mark.slow

DIRECTORY = Path(__file__).parents[3] / "samples/notebooks"
NOTEBOOKS = sorted(DIRECTORY.glob("*.ipynb"))
COUNT = "print(bascule.cache.stats().nvrtc_calls)"
# The number of cells that demonstrate a compile error: they call NVRTC again, because failures are not cached.
FAILING_COMPILES = {"first_steps": 1}


def execute(path: Path, cache: Path) -> tuple[nbformat.NotebookNode, int]:
    """The executed notebook, and how often it called NVRTC."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(COUNT))
    client = NotebookClient(notebook, timeout=120, kernel_name="python3")
    client.execute(env=environment(cache), cwd=str(path.parent))
    last = notebook.cells.pop()
    return notebook, int(last.outputs[0].text)


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def sample(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def cache(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(sample.stem)


@pytest.fixture(scope="module")
def executed(sample: Path, cache: Path) -> nbformat.NotebookNode:
    """The notebook executed with an empty cache."""
    notebook, calls = execute(sample, cache)
    assert calls > 2
    return notebook


def texts(notebook: nbformat.NotebookNode) -> str:
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "\n".join(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs)


def test_there_are_two_notebooks_and_both_are_stored_without_outputs() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first_steps", "image_pipeline"]
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, as_version=4).cells:
            assert not cell.get("outputs"), f"{path.name}: clear all outputs before it is committed"
            assert cell.get("execution_count") is None


def test_a_notebook_runs_from_an_empty_cache(sample: Path, executed: nbformat.NotebookNode) -> None:
    text = texts(executed)
    assert "compiled in" in text
    if sample.stem == "first_steps":
        assert "before\nthread 0 of block 0 got 42" in text
        errors = [output.ename for cell in executed.cells for output in cell.get("outputs", []) if "ename" in output]
        assert errors == ["ArgumentTypeError", "CompileError"]
    else:
        assert text.count("differs by at most") == 5  # and the cell has asserted each


def test_a_second_run_compiles_nothing(sample: Path, executed: nbformat.NotebookNode, cache: Path) -> None:
    again, calls = execute(sample, cache)
    assert calls == FAILING_COMPILES.get(sample.stem, 0)
    assert ": compiled in" not in texts(again)
    assert ": cached" in texts(again)


def test_a_notebook_looks_like_something(sample: Path, executed: nbformat.NotebookNode, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs chromium: apt-get install chromium")
    exporter = HTMLExporter(mathjax_url="", require_js_url="", jquery_url="")
    page, picture = tmp_path / "page.html", tmp_path / f"{sample.stem}.png"
    page.write_text(exporter.from_notebook_node(executed)[0], encoding="utf-8")
    subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=1000,4800",
            f"--screenshot={picture}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    pixels = np.asarray(Image.open(picture).convert("L"))
    assert pixels.shape == (4800, 1000)
    written = (pixels < 128).mean(axis=1) > 0.002  # lines of the picture with dark pixels
    assert written.sum() > 600
    assert picture.stat().st_size > 50_000
