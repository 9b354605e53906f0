"""Sphinx builds the pages without a warning, and the reference describes everything public."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from child_process import run_python

import bascule
from docs.pages import DOCS, PAGES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = run_python("-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "html", DOCS, out, timeout=300)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return out


def test_the_pages_build_without_a_warning_and_the_references_are_complete(site: Path) -> None:
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


@pytest.mark.parametrize(
    ("words", "page"),
    [("two GPUs", "devices"), ("multiple devices", "devices"), ("capfd", "emulated"), ("package cache", "shipping")],
)
def test_the_search_finds_the_page(words: str, page: str, site: Path) -> None:
    from sphinx.search.en import SearchEnglish

    index = json.loads((site / "searchindex.js").read_text().removeprefix("Search.setIndex(").removesuffix(")"))
    for word in words.lower().split():
        stem = SearchEnglish({}).stem(word)
        found = [index[table].get(stem, []) for table in ("terms", "titleterms")]
        numbers = [number for each in found for number in (each if isinstance(each, list) else [each])]
        assert page in [index["docnames"][number] for number in numbers], word


WIDTHS = """<pre></pre><script>
onload = async () => {
    for (const page of PAGES) {
        const frame = document.createElement("iframe");
        frame.style = "width:1366px;height:768px;border:0";
        frame.src = page;
        document.body.append(frame);
        await new Promise((loaded) => (frame.onload = loaded));
        document.querySelector("pre").textContent +=
            frame.contentDocument.scrollingElement.scrollWidth + " " + page + "\\n";
        frame.remove();
    }
};
</script>"""


def test_no_page_scrolls_sideways_on_a_laptop_and_cpp_in_strings_has_colours(site: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs chromium")
    for page in ("tutorial", "reference"):  # programs, and examples with prompts
        assert re.search(r'<span class="k\w*">__global__</span>', (site / f"{page}.html").read_text())
    pages = sorted(page.as_uri() for page in site.rglob("*.html"))
    (tmp_path / "widths.html").write_text(WIDTHS.replace("PAGES", json.dumps(pages)))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--window-size=1500,900"]
    flags += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=60000", "--dump-dom"]
    done = subprocess.run(
        [browser, *flags, (tmp_path / "widths.html").as_uri()], capture_output=True, text=True, timeout=240
    )
    widths = re.findall(r"(\d+) (file:\S+)", done.stdout.partition("</pre>")[0])
    assert len(widths) == len(pages), done.stderr
    assert not [(page, width) for width, page in widths if int(width) > 1366]


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
    assert "```{compile-options}" in (DOCS / "compiling.md").read_text()  # it lists what the docstring lists
    assert options == set(re.findall(r"^(\w+) : ", bascule.CompileOptions.__doc__, re.MULTILINE))
    variables = set(re.findall(r"^\| `(BASCULE_\w+)` \|", (DOCS / "environment.md").read_text(), re.MULTILINE))
    assert variables == set(bascule._environment._VARIABLES)
