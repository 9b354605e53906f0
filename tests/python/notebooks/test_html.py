"""Notebook displays: HTML without scripts, equivalent plain text, and no compile and no exception on the way."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np
import pytest
from child_process import printed_by, run_python
from conftest import traced
from IPython.core.formatters import DisplayFormatter
from IPython.lib.pretty import pretty

import bascule
from bascule import _display

from .test_html_page import SOURCE, failed, shown

HOSTILE = "<script>alert('1' & \"2\")</script>"
SAFE = "&lt;script&gt;alert(&#x27;1&#x27; &amp; &quot;2&quot;)&lt;/script&gt;"

TAGS = {
    *("div", "b", "code", "pre", "span", "table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "g", "rect", "path", "polygon", "text", "title"),
}


class Reader(HTMLParser):
    """Checks that every tag is closed in order; collects the tags, the attributes, and the text of each cell."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes += attributes
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.cells[-1] += data


def html_of(thing: object) -> str:
    text = thing._repr_html_()
    reader = Reader(text)
    assert set(reader.tags) <= TAGS
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name in ("src", "href", "xlink:href")]
    assert not [value for _, value in reader.attributes if value and ("url(" in value or "@import" in value)]
    return text


def words(text: str) -> str:
    return " ".join(text.split())


# --- Every display


@pytest.fixture(scope="module")
def objects():
    return shown()


def test_each_display_is_small_and_loads_nothing(objects):
    for title, thing in objects.items():
        most = 25_000 if title == "programs on disk" else 11_000
        assert 100 < len(html_of(thing)) < most, title


def test_the_plain_text_says_what_the_html_says(objects):
    for title, thing in objects.items():
        plain = words(_display.text(thing))
        for cell in Reader(thing._repr_html_()).cells:
            assert words(cell) in plain, title


def test_ipython_takes_both(objects):
    formatter = DisplayFormatter()
    for title, thing in objects.items():
        formats, _ = formatter.format(thing)
        assert formats["text/html"] == thing._repr_html_() or title == "programs on disk"
        assert "<div" not in formats["text/plain"]


def test_inside_a_list_the_repr_is_printed(objects):
    kernel = objects["a kernel that was launched"]
    assert pretty([kernel]) == f"[{kernel!r}]"
    assert pretty(kernel).count("\n") > 5


# --- Hostile names


def test_a_hostile_file_name_is_escaped(tmp_path):
    file = tmp_path / "<img src=x onerror=alert(1)>&'\".cu"
    file.write_text("__global__ void k(float* p) {}")
    module = bascule.compile(file=file)
    for thing in (module, module.k, module.k[1, 1]):
        assert "<img" not in html_of(thing)
    assert "&lt;img src=x onerror=alert(1)&gt;" in html_of(module)


def test_template_arguments_are_escaped():
    module = bascule.compile(
        "template <class T> struct Box { T value; };\ntemplate <class T> __global__ void fill(T* p) { p[0] = T{}; }"
    )
    instance = module.fill.instantiate("Box<Box<int>>").prepare()
    assert "fill&lt;Box&lt;Box&lt;int&gt;" in html_of(instance)
    assert "fill&lt;Box&lt;Box&lt;int&gt;" in html_of(module.fill)


def test_a_hostile_dtype_is_escaped():
    x = bascule.to_device(np.zeros(3, [(HOSTILE, "f4")]))
    assert "&lt;script&gt;" in html_of(x)


def test_hostile_values_of_a_bound_launch_are_escaped():
    module = bascule.compile("__global__ void k(float* p, int n) {}")
    x = bascule.zeros(4, "f4")
    foreign = type(HOSTILE, (), {"__cuda_array_interface__": x.__cuda_array_interface__})()
    assert SAFE in html_of(module.k[1, 1].bind(foreign, 1))


def test_a_hostile_explanation_is_escaped():
    argument = bascule.ArgumentExplanation(0, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    explanation = bascule.Explanation(
        *(HOSTILE, HOSTILE, HOSTILE, HOSTILE, "given", (1, 1, 1), (1, 1, 1), 0, ()),
        *((argument,), ((HOSTILE, 0),), bascule.default_stream()),
    )
    assert SAFE in html_of(explanation)


def test_a_hostile_launch_rule_is_escaped():
    def rule(p):
        return 1

    rule.__name__ = HOSTILE
    assert SAFE in html_of(bascule.kernel(f'__global__ void k(float* p) {{ auto s = "{HOSTILE[:8]}"; }}')(rule))


def test_a_hostile_message_is_escaped():
    error = failed(lambda: bascule.compile(f"__global__ void k(float* p) {{ {HOSTILE} }}"))
    assert "&lt;script&gt;" in html_of(error)
    assert SAFE in html_of(bascule.CudaError(HOSTILE))
    assert SAFE in html_of(bascule.RaceError(HOSTILE))


def test_findings_of_checks_are_rows_of_a_table_and_escaped():
    finding = bascule.emulated.Finding(
        *("init", HOSTILE, "read a value that nothing has written", "k.cu", 7, HOSTILE, (1, 0, 0), (3, 0, 0)),
        *(1024, 0, 0, "", "", None, "", "", "init: the report"),
    )
    error = bascule.CheckError("init: the report")
    error.kind, error.findings = "init", [finding]
    html = html_of(error)
    assert html.count(SAFE) == 2
    cells = Reader(html).cells
    for cell in ("init", "read a value that nothing has written", "k.cu:7", "(1, 0, 0), (3, 0, 0)", "1,024"):
        assert cell in cells
    assert "init: the report" in html
    assert "k.cu:7" in _display.text(error)
    assert SAFE in html_of(bascule.CheckError(HOSTILE))


def test_hostile_names_of_cached_kernels_are_escaped():
    entry = bascule.cache.Entry("a", 1, datetime.now(UTC), (HOSTILE,), "sm_90", "13.0", HOSTILE)
    assert html_of(bascule.cache.Entries([entry])).count(SAFE) == 2


def test_control_characters_are_replaced():
    assert "\x1b" not in html_of(bascule.CudaError("\x1b[31mred\x00"))


# --- Kernels and modules


def test_showing_a_template_compiles_nothing():
    module = bascule.compile("template <class T> __global__ void never_compiled(T* p) { p[0] = T(42); }")
    before = bascule.cache.stats().nvrtc_calls
    formatter = DisplayFormatter()
    for thing in (module, module.never_compiled, module.never_compiled[1, 1]):
        assert "never_compiled" in formatter.format(thing)[0]["text/html"]
    assert bascule.cache.stats().nvrtc_calls == before
    assert "a template" in html_of(module.never_compiled)


def test_what_is_not_loaded_is_not_loaded_to_be_shown():
    kernel = bascule.compile("__global__ void not_loaded(float* p) { p[0] = 43; }").not_loaded
    text = _display.text(kernel)
    assert "compiled for" in text
    assert "registers" not in text
    assert "(not loaded yet)" in repr(kernel)
    kernel.prepare()
    text = _display.text(kernel)
    assert f"registers: {kernel.attributes.registers} per thread" in text


def test_a_kernel_tells_where_its_code_came_from():
    text = "__global__ void from_somewhere(float* p) { p[0] = 44; }"
    first, second = (bascule.compile(text).from_somewhere.prepare() for _ in range(2))
    bascule.cache.clear()
    third = bascule.compile(text).from_somewhere.prepare()
    assert "compiled by NVRTC" in html_of(first)
    assert "from the cache in memory" in html_of(second)
    assert "from the cache on disk" in html_of(third)


def test_memory_and_limits_are_the_kernels_own():
    kernel = bascule.compile(
        "__constant__ int table[16];\n"
        "__global__ void __launch_bounds__(96) limited(int* p) {\n"
        "    __shared__ int s[512]; s[threadIdx.x] = table[threadIdx.x & 15]; __syncthreads(); p[0] = s[1]; }"
    ).limited.prepare()
    text = _display.text(kernel)
    assert "shared memory: 2,048 bytes per block" in text
    assert f"constant memory: {kernel.attributes.constant_bytes} bytes" in text
    assert "threads per block: at most 96" in text


def test_occupancy_is_drawn_for_each_block_size():
    kernel = bascule.compile(SOURCE).scale.prepare()
    html = html_of(kernel)
    sizes = range(32, kernel.attributes.max_threads_per_block + 1, 32)
    assert html.count("<rect") == len(sizes)
    for size in sizes:
        assert f"<title>{size} threads per block: {100 * kernel.occupancy(size).ratio:.0f} %</title>" in html
    assert f"{kernel.best_block()} threads per block" in html
    assert html.count("fill-opacity='1'") == 1


def test_a_template_lists_its_instances():
    module = bascule.compile("template <class T, int N> __global__ void listed(T* p) { p[0] = T(N); }")
    module.listed.instantiate("float", 3).prepare()
    module.instantiate({"listed": [("double", 4)]})
    text = _display.text(module.listed)
    assert "listed<float, 3>" in text
    assert "listed<double, 4>" in text
    line = test_a_template_lists_its_instances.__code__.co_firstlineno + 1
    assert _display.text(module).split()[-2:] == [str(line), "2"]


def test_overloads_are_shown_with_their_lines():
    module = bascule.compile("__global__ void twice(float* p) {}\n__global__ void twice(int* p, int n) {}")
    text = _display.text(module.twice)
    assert "void twice(float* p)" in text
    assert "void twice(int* p, int n)" in text
    module.twice[1, 1](bascule.zeros(1, "f4"))
    assert "instances so far" in _display.text(module.twice)


WITHOUT_DRIVER = """
import bascule
module = bascule.compile("__global__ void k(float* p) {}", options={"arch": "sm_90"})
print(repr(module.k), module.k.__doc__)
assert "compiled for sm_90" in module.k._repr_html_() and "void k" in module._repr_html_()
"""


def test_without_a_driver_a_kernel_is_shown_all_the_same():
    printed = printed_by("-c", WITHOUT_DRIVER, timeout=300, BASCULE_DEVICE="cuda", CUDA_VISIBLE_DEVICES="")
    assert "void k(float* p)" in printed


# --- Launches


def test_a_launcher_shows_its_configuration(scale):
    stream = bascule.stream()
    config = bascule.LaunchConfig((4, 2), 64, shared_bytes=128, cooperative=True)
    text = _display.text(scale[config, stream].options(sync=False))
    assert "grid: 4 x 2 blocks" in text
    assert "block: 64 threads, 512 in all" in text
    assert "128 bytes per block, dynamic" in text
    assert "cooperative" in text
    assert "streams are ignored" in text
    assert f"stream: {stream.handle:#x}" in text
    assert "work: 1000 threads" in _display.text(scale.forall(1000))
    assert "nothing is launched" in _display.text(scale.forall(0))


def test_a_bound_launch_shows_its_arguments(scale):
    x = bascule.zeros(8, "f4")
    text = words(_display.text(scale[1, 8].bind(x, n=8, f=2.5)))
    assert "p float* float32 array of shape (8,)" in text
    assert "f float 2.5" in text
    assert "n int 8" in text


def test_an_explanation_draws_two_arrows_for_each_stream():
    module = bascule.compile(SOURCE)
    a, b = bascule.stream(), bascule.stream()
    x, y = bascule.zeros(4, "f4", stream=a), bascule.zeros(4, "f4", stream=b)
    waiting = html_of(module.blend[1, 4].explain(bascule.zeros(4, "f4"), x, y, 4))
    assert waiting.count("<polygon") == 4
    assert f"{a.handle:#x}" in waiting
    assert f"{b.handle:#x}" in waiting
    assert html_of(module.blend[1, 4].explain(x, x, x, 4)).count("<polygon") == 0


# --- Arrays


def test_an_array_shows_what_it_is_and_the_values(rng):
    host = rng.standard_normal((6, 5)).astype("f4")
    stream = bascule.stream()
    text = _display.text(bascule.to_device(host, stream=stream)[::2].T)
    assert "shape: (5, 3)" in text
    assert "dtype: float32" in text
    assert "size: 60 bytes" in text
    assert "strides: (4, 40) bytes" in text
    assert f"stream: {stream.handle:#x}" in text
    values = np.array2string(host[::2].T, separator=", ")
    assert words(values) in words(text)
    assert "strides" not in _display.text(bascule.to_device(host))


def test_of_a_long_array_the_ends_alone_are_read():
    x = bascule.to_device(np.arange(1_000_000))
    html_of(x)
    with traced() as operations:
        assert "999999" in html_of(x)
    assert sum(o.bytes for o in operations if o.kind == "copy") < 1000


def test_an_array_is_shown_after_its_streams_work(scale):
    stream = bascule.stream()
    x = bascule.to_device(np.ones(4, "f4"), stream=stream)
    scale[1, 32, stream](x, 3, 4)
    assert "[3., 3., 3., 3.]" in html_of(x)


def test_a_capture_is_left_alone(scale):
    x = bascule.zeros(4, "f4")
    scale.prepare()
    with bascule.Graph() as graph:
        scale[1, 32](x, 3, 4)
        assert "its stream is being captured" in html_of(x)
        html_of(scale), html_of(scale[1, 32])
    assert len(graph) == 1


FAULT = """
import numpy as np, bascule
module = bascule.compile("__global__ void k(float* p) { p[1 << 30] = 1; }")
x = bascule.to_device(np.zeros(4, "f4"))
launcher = module.k[1, 1]
bound = launcher.bind(x)
launcher(x)
try:
    bascule.synchronize()
except bascule.CudaError as error:
    print(error._repr_html_())
for thing in (x, module, module.k, launcher, bound, bascule.cache.stats()):
    print(thing._repr_html_())
    str(bascule._display.text(thing))
"""


def test_after_a_fault_everything_can_still_be_shown(emulated):
    printed = printed_by("-c", FAULT, timeout=300)
    assert "values cannot be read: illegal address: kernel &#x27;k&#x27; wrote 4 bytes" in printed
    assert "CudaError" in printed


# --- The cache and errors


def test_a_long_list_of_programs_is_cut():
    entry = bascule.cache.Entry("a", 1, datetime.now(UTC), ("k",), "sm_90", "13.0", "")
    entries = bascule.cache.Entries([entry] * 50)
    assert len(html_of(entries)) < 20_000
    assert "and 30 more" in html_of(entries)
    assert "and 30 more" in pretty(entries)
    assert "no programs" not in html_of(bascule.cache.Entries())


def test_the_list_of_programs_is_a_list():
    bascule.compile("__global__ void on_disk(float* p) { p[0] = 45; }")
    entries = bascule.cache.list()
    assert isinstance(entries, list)
    assert any("on_disk" in entry.kernels for entry in entries)
    assert "on_disk" in html_of(entries)


def test_a_compile_error_has_its_caret():
    error = failed(lambda: bascule.compile("__global__ void k(float* p) {\n    p[0] = missing;\n}"))
    html = html_of(error)
    assert "error:</span>" in html
    assert any(line.strip().startswith("<b") and "^" in line for line in html.split("\n"))


@pytest.mark.parametrize(("colors", "severity"), [("linux", "\033[31merror:\033[0m"), ("nocolor", " error: ")])
def test_ipythons_traceback_of_a_compile_error_has_colours(colors, severity, tmp_path):
    script = tmp_path / "mistake.ipy"
    script.write_text("import bascule\nbascule.compile('__global__ void k(float* p) { p[0] = missing; }')\n")
    result = run_python(
        "-m", "IPython", f"--colors={colors}", "--no-banner", script, timeout=300, IPYTHONDIR=str(tmp_path)
    )
    printed = result.stdout + result.stderr
    assert severity in printed
    assert "bascule.compile(" in re.sub(r"\033\[[0-9;]*m", "", printed)  # IPython prints the frames
