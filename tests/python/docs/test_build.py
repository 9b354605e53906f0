"""Sphinx builds the pages without a warning, and nothing public is absent from the reference."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import bascule
from docs.pages import DOCS, PAGES

pytestmark = pytest.mark.slow


def build(out: Path) -> Path:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html", DOCS, out]
    done = subprocess.run(command, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return out


def test_the_pages_build_without_a_warning_and_the_references_are_complete(tmp_path: Path) -> None:
    site = build(tmp_path / "site")
    for page in PAGES:
        assert "<h1>" in (site / page.relative_to(DOCS)).with_suffix(".html").read_text(), page

    described = set(re.findall(r'id="bascule\.([\w.]+)"', (site / "reference.html").read_text()))
    assert not set(bascule.__all__) - described - {"__version__", "cache", "config", "emulated"}
    for module in (bascule.cache, bascule.emulated):
        names = {f"{module.__name__.partition('.')[2]}.{name}" for name in module.__all__}
        assert not names - described - {"cache.limit_bytes"}

    for cls in (bascule.Module, bascule.Kernel, bascule.Launcher, bascule.DeviceArray, bascule.Stream, bascule.Graph):
        members = {f"{cls.__name__}.{name}" for name, member in vars(cls).items() if name[0] != "_" and member.__doc__}
        assert not members - described

    headers = (site / "headers.html").read_text()
    for name in ("Module", "Kernel", "TypedKernel", "DeviceArray", "DeviceBuffer", "Stream", "Event", "Graph"):
        assert re.search(rf'class</span> <span class="pre">{name}</span>', headers), name


def test_every_error_class_is_explained() -> None:
    text = (DOCS / "errors.md").read_text()
    classes = [
        name for name in bascule.__all__
        if isinstance(kind := getattr(bascule, name), type) and issubclass(kind, BaseException)
    ]  # fmt: skip
    assert len(classes) > 10
    assert not [name for name in classes if name not in text and name not in ("Error", "ArgumentError")]


def test_every_option_of_a_compile_and_every_environment_variable_has_a_row() -> None:
    options = {name for name in vars(bascule.CompileOptions) if name[0] != "_"}
    assert len(options) > 10
    assert not options - set(re.findall(r"^\| `(\w+)` \|", (DOCS / "compiling.md").read_text(), re.MULTILINE))
    variables = set(re.findall(r"^\| `(BASCULE_\w+)` \|", (DOCS / "environment.md").read_text(), re.MULTILINE))
    assert variables == set(bascule._environment._VARIABLES)
