"""The main sample, run as a user runs it: the picture, the comparisons, the table, the last line."""

import re
from pathlib import Path

import numpy as np
import pytest
from child_process import run_python
from PIL import Image

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "samples" / "edges.py"
KERNELS = ["luminance", "blur_rows", "blur_columns", "sobel", "colour"]


def edges(directory, *arguments):
    """Runs the sample in `directory`."""
    return run_python(SAMPLE, *arguments, timeout=300, cwd=directory)


@pytest.fixture(scope="module")
def portrait(tmp_path_factory):
    run = edges(tmp_path_factory.mktemp("edges"))
    assert run.returncode == 0, run.stdout + run.stderr
    return run


def test_the_printed_png_has_the_photographs_size_and_shows_edges(portrait):
    path = re.search(r"^edges: (.+\.png)$", portrait.stdout, re.MULTILINE)[1]
    picture = np.asarray(Image.open(path))
    assert picture.shape == (600, 512, 3)
    assert picture.max() == 255  # the strongest edge has full brightness
    bright = picture.max(axis=-1) > 128
    assert 0.005 < bright.mean() < 0.5  # lines, not a grey fog
    assert len(np.unique(picture[bright].reshape(-1, 3).argmax(axis=-1))) == 3  # in several colours


@pytest.mark.parametrize("what", ["luminance", "blur", "magnitude", "direction", "PNG"])
def test_every_comparison_is_made_and_holds(portrait, what):
    assert re.search(rf"^ok +{what} ", portrait.stdout, re.MULTILINE)


def test_the_device_is_named(portrait):
    assert re.search(r"^device: <bascule.Device .+>$", portrait.stdout, re.MULTILINE)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_table_has_a_row_with_signature_origin_and_times(portrait, kernel):
    row = re.search(rf"^(\w+) +([\d.]+) +([\d.]+) +([\d.]+)  (void {kernel}\(.+\))$", portrait.stdout, re.MULTILINE)
    assert row, portrait.stdout
    assert row[1] == ("memory" if kernel == "blur_columns" else "compiled")  # its text was compiled before
    assert float(row[4]) > 0


def test_the_last_line_counts_where_code_came_from(portrait):
    assert portrait.stdout.splitlines()[-1] == "3 compiled, 0 from disk, 1 from memory"


@pytest.mark.parametrize("size", [(1, 1), (33, 7), (100, 3)], ids=str)
def test_pictures_smaller_than_a_tile_are_right_too(tmp_path, size):
    columns, rows = size
    noise = np.random.default_rng(columns).integers(0, 256, (rows, columns, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    run = edges(tmp_path, "noise.png")
    assert run.returncode == 0, run.stdout + run.stderr
    assert Image.open(tmp_path / "out" / "noise-edges.png").size == size


def test_a_file_that_is_no_picture_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("no picture")
    run = edges(tmp_path, "notes.txt")
    assert run.returncode != 0
    assert "cannot read notes.txt as a picture" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_kernel_that_computes_something_else_is_noticed(tmp_path):
    """The comparisons fail if a weight of the luminance is slightly wrong."""
    text = SAMPLE.read_text()
    assert "0.7152f" in text
    sample = tmp_path / "wrong.py"
    sample.write_text(text.replace("0.7152f", "0.7153f"))
    run = run_python(sample, timeout=300, cwd=tmp_path)
    assert run.returncode != 0
    assert re.search(r"^WRONG luminance", run.stdout, re.MULTILINE)
    assert "luminance" in run.stderr
