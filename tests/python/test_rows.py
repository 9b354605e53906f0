"""A fact of which there are several (launch attributes, errors, ...) has a row in few places of the sources.

    python tests/python/test_rows.py

updates the stub: the lines of value classes and launch attributes are made from the extension module.
"""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from child_process import printed_by

import bascule
from bascule import _bascule

ROOT = Path(__file__).resolve().parents[2]
STUB = ROOT / "python" / "bascule" / "_bascule.pyi"
VALUE_CLASSES = ("CacheStatistics", "KernelAttributes", "LaunchConfig", "Occupancy")
# Documentation is not counted, because it belongs to the row next to it.
DOCUMENTATION = re.compile(r'"""(?:[^"]|"(?!""))*"""|//[^\n]*|^\s*#(?!include|if|endif|define)[^\n]*', re.MULTILINE)


def properties_of(kind: type) -> list[str]:
    return [name for name, value in vars(kind).items() if isinstance(value, property)]


# The number of places that a new row takes, without the stub, which another test compares.
FACTS = {
    "launch attributes": (properties_of(bascule.LaunchConfig)[3:], 3),
    "attributes of kernels": (properties_of(_bascule.KernelAttributes), 3),
    "compile options": (properties_of(bascule.CompileOptions), 3),
    "errors": (["CompileError", "CudaError", "FileError", "LibraryError", "RaceError"], 3),
    "columns of the list of cached programs": (list(bascule.cache.Entry._fields[1:]), 2),
    "counts of the cache": (properties_of(bascule.cache.CacheStatistics), 2),
}


# Constants, and sentences of pages, docstrings and messages that have their number.
NUMBERS = {
    r"kept_header_states = (\d+);": [r"How many images has a key\? \| Up to (\d+), one"],
    r"array<py::object, (\d+)> objects_;": [r"remembers up to (\d+) launchers"],
    r"launches_per_transfer = (\d+);": [r"transferred every (\d+) launches"],
    r"operations_a_marker = (\d+);": [r"every (\d+) operations or"],
    r"uint64_t most_places = (\d+);": [r"take (\d+) places, the host waits"],
    r"most_tuple_elements = (\d+);": [
        *(r"at most ([\d,]+) bytes; with drivers of", r"parameters up to ([\d,]+) bytes", r"which takes (\d+), or put"),
    ],
    r"size_t most_before = (\d+);": [r"drivers of CUDA 12\.0 ([\d,]+) bytes"],
    r"portable_cluster_blocks = (\d+);": [r"or has more than (\d+) blocks", r"clusters of more than (\d+) blocks"],
    r"_LEAST_KEY_BYTES = (\d+)": [r"At least (\d+) bytes, such as", r"are the key, at least (\d+)"],
    r"usual_limit = ([\d']+);": [r"limit: int = ([\d_]+)\) -> Trace"],
}


def sources() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "interface", "jit", "runtime", "python"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [ROOT / path for path in listed.stdout.splitlines() if not path.startswith("runtime/emulator/")]
    return [path for path in files if path.suffix in {".cpp", ".hpp", ".py", ".md"} and path.is_file()]


def text_of(path: Path) -> str:
    return path.read_text() if path.suffix == ".md" else DOCUMENTATION.sub("", path.read_text())


def tables_in(text: str, names: list[str]) -> int:
    """Returns how many tables the text has with a row for each of the names: how often the rarest name occurs, because
    the others also occur elsewhere. A name that follows itself counts once."""
    found = re.findall(rf"\b(?:{'|'.join(names)})\b", text)
    rows = Counter(name for name, _ in itertools.groupby(found))
    return min(rows[name] for name in names)


@pytest.mark.parametrize("fact", FACTS)
def test_a_row_is_added_in_few_places(fact):
    names, most = FACTS[fact]
    assert len(names) > 3
    places = {str(path.relative_to(ROOT)): tables_in(text_of(path), names) for path in sources()}
    places = {path: count for path, count in places.items() if count}
    assert sum(places.values()) <= most, places


def test_a_table_is_found_beside_other_mentions():
    table = 'Row rows[] = {{"a", &T::a}, {"b", &T::b}};\n'
    assert tables_in(table, ["a", "b"]) == 1
    assert tables_in(f"check(a);\n{table}\nlist(a, b);", ["a", "b"]) == 2
    assert tables_in("check(a);", ["a", "b"]) == 0


# Types of attributes, by their value in a LaunchConfig that sets nothing, and those of the keywords.
ATTRIBUTE_TYPES = {bool: "bool", int: "int", tuple: "tuple[int, int, int]", type(None): "int | None"}
KEYWORD_TYPES = {tuple: "int | Sequence[int]"}


def keywords_of_launches() -> list[str]:
    plain = bascule.LaunchConfig(1, 1)
    rows = []
    for name in properties_of(bascule.LaunchConfig)[2:]:
        value = getattr(plain, name)
        kind = KEYWORD_TYPES.get(type(value), ATTRIBUTE_TYPES[type(value)])
        rows.append(
            f"        {name}: {kind} | None = None," if value == (1, 1, 1) else f"        {name}: {kind} = {value},"
        )
    return rows


def rows_of(kind: type) -> list[str]:
    """Returns the lines of a value class in the stub."""
    rows = []
    if kind is bascule.LaunchConfig:
        geometry = [f"        {name}: int | Sequence[int]," for name in ("grid", "block")]
        rows = [
            "    def __init__(",
            "        self,",
            *geometry,
            "        *,",
            *keywords_of_launches(),
            "    ) -> None: ...",
        ]
    for name in properties_of(kind):
        if kind is bascule.LaunchConfig:
            result = ATTRIBUTE_TYPES[type(getattr(bascule.LaunchConfig(1, 1), name))]
        else:
            result = vars(kind)[name].fget.__doc__.strip().partition("-> ")[2]  # as pybind11 writes it
        rows.append(f"    {name}: {result}")
    return rows


def rows_of_options(options: ast.ClassDef) -> list[str]:
    """Returns the attributes of CompileOptions, whose types are those of the keywords after their conversion."""
    rows = []
    for keyword in options.body[0].args.kwonlyargs:
        kind = ast.unparse(keyword.annotation).replace(" | int | bool | None", " | None")
        kind = kind.replace(" | bytes | PathLike[str]", "").replace("Sequence[str]", "tuple[str, ...]")
        rows.append(f"    {keyword.arg}: {kind}")
    return rows


def with_rows(stub: str) -> str:
    lines = stub.split("\n")
    for node in reversed(ast.parse(stub).body):
        if isinstance(node, ast.ClassDef) and node.name == "CompileOptions":
            line_of = {getattr(each, "name", ""): each.lineno for each in node.body}
            lines[node.body[0].end_lineno : line_of["__hash__"] - 1] = rows_of_options(node)
        if isinstance(node, ast.ClassDef) and node.name in VALUE_CLASSES:
            lines[node.lineno : node.end_lineno] = rows_of(getattr(_bascule, node.name))
        elif isinstance(node, ast.ClassDef) and node.name == "Kernel":
            launch = next(each for each in node.body if getattr(each, "name", "") == "launch")
            line_of = {each.arg: each.lineno for each in launch.args.kwonlyargs}
            lines[line_of["stream"] : line_of["peer"] - 1] = keywords_of_launches()
    return "\n".join(lines)


def test_the_stub_has_the_rows_of_the_module():
    stub = STUB.read_text()
    assert with_rows(stub) == stub, "run: python tests/python/test_rows.py"
    without = re.sub(r"    registers: .*\n|        priority: int \| None = None,\n", "", stub)
    assert without != stub
    assert with_rows(without) == stub


@pytest.mark.parametrize("constant", NUMBERS)
def test_sentences_say_the_number_of_the_constant(constant):
    texts = [" ".join(path.read_text().split()) for path in (*sources(), ROOT / "DESIGN.md")]
    (number,) = {digits(found) for text in texts for found in re.findall(constant, text)}
    for sentence in NUMBERS[constant]:
        said = {digits(found) for text in texts for found in re.findall(sentence, text)}
        assert said == {number}, sentence


def digits(number: str) -> int:
    return int(re.sub(r"\D", "", number))


def test_pages_say_the_default_limit_of_the_cache():
    limit = int(printed_by("-c", "import bascule; print(bascule.cache.limit_bytes)", BASCULE_CACHE_LIMIT=None))
    docs = ROOT / "python" / "docs"
    size = f"{limit >> 30} ?GiB"
    assert re.search(f"default is {size}", bascule.cache.__doc__)
    assert re.search(f"^{size}, or what `BASCULE_CACHE_LIMIT`", (docs / "cache.md").read_text(), re.MULTILINE)
    assert re.search(rf"`BASCULE_CACHE_LIMIT` .*\(default `{size}`\)", (docs / "environment.md").read_text())


if __name__ == "__main__":
    STUB.write_text(with_rows(STUB.read_text()))
