"""Checks the rules of the repository that a compiler does not check. Prints violations, and exits with 1.

    python tests/check_tree.py [--table]

`--table` prints a Markdown table of the files instead, with the first sentence of each.

Each check is a function that yields sentences; tests/python/test_tree.py runs every one as a test.
"""

import ast
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPP = {".cpp", ".hpp", ".h", ".c", ".cuh"}
SOURCES = CPP | {".py", ".pyi"}

TOP_LEVEL = {
    *(".ci", ".clang-format", ".clang-tidy", ".gitignore", "CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json"),
    *("DESIGN.md", "LICENSE", "README.md", "interface", "jit", "pyproject.toml", "python", "runtime"),
    *("samples", "tests"),
}
# The layers, lowest first: each may include itself and the layers before it.
LAYERS = ["interface", "jit", "runtime", "python/bindings"]
EMULATOR = "runtime/emulator"
BUILDING = f"{EMULATOR}/building.cmake"
BUILT_BY_SCRIPTS = {"python/wheels/older_glibc.c": "python/wheels/older_libraries.py"}
MOST_FILES = 25  # in one folder of a layer
MOST_LINES_OF_DESIGN = 300
# A commit that raises one of these gives the reason. The emulated device may grow by 4,000 lines for instructions of
# Hopper GPUs, by 3,500 for checks of kernels and by 200 for their speed, and the Python package by 300 for profiles of
# kernels.
MOST_LINES = {
    "interface": 5_700,
    "jit": 16_240,
    "runtime": 14_640,
    "python/bindings": 15_050,
    EMULATOR: 38_700,
    "python/bascule": 8_275,
}

# Commit subjects are checked since the last release; before the first one, since this commit.
FIRST_CHECKED_COMMIT = "021a8dba"
LONGEST_SUBJECT = 72
# A comment that begins with one of these words has lost its subject or its verb.
FRAGMENT = re.compile(
    r"(Of|By|To|Behind|Beside|Among|That|Who|Whose|Which|Into|Onto|Is|Are|Has|Have|May|Can|From (?:where|what|which)"
    r"|In (?:which|whose|what)|For (?:which|what|whom))\b"
)
# Phrases that readers of CUDA's and NumPy's pages do not know, with what to write.
PHRASES = {
    r"\b(?:behind|beside|besides)\b(?! each other)": "say before, after, next to or in addition to",
    r"\b(?:anew|thereby|therein|thereof|whereupon|lest|ere|save for|but for)\b": "say again, by this or unless",
    r"\bas [A-Za-z' ]{1,30} (?:has|have|had) it\b": "name what is the same",
    r"\bof (?:ours|theirs|its own kind|one's)\b": "name the owner",
    r"\b(?:mend(?:s|ed|ing)?|settle[sd]?|hold(?:s|ing)? back|held back)\b": "say correct, resolve or wait",
    r"\bso (?:many|much) (?!that|as)\w*": "say how many",
    r"\blies? (?:with|beside|behind|elsewhere|there)\b": "say is",
}


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in listed.stdout.split("\0") if path and (ROOT / path).is_file()]


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def lines_of(path: str) -> Iterator[tuple[int, str]]:
    return enumerate(text_of(path).splitlines(), 1)


def includes_of(path: str) -> Iterator[tuple[int, str]]:
    for number, line in lines_of(path):
        if found := re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line):
            yield number, found[1]


def layer_of(path: str) -> str | None:
    """Returns the layer of a file, or None for tests and samples, which may include everything."""
    if path.startswith(EMULATOR + "/"):
        return EMULATOR
    return next((layer for layer in LAYERS if path.startswith(layer + "/")), None)


def source_files() -> list[str]:
    return [path for path in tracked() if Path(path).suffix in SOURCES]


def layer_files() -> list[tuple[str, str]]:
    """(path, layer) of every C++ file of the layers."""
    return [(path, layer) for path in source_files() if Path(path).suffix in CPP and (layer := layer_of(path))]


def includes_run_one_way() -> Iterator[str]:
    for path, layer in layer_files():
        for number, name in includes_of(path):
            private_header = name == "bascule/runtime/emulator/emulated_abi.h" or name == "emulator/emulated_abi.h"
            target = layer_of(name.removeprefix("bascule/")) if name.startswith("bascule/") else None
            if layer == EMULATOR:
                wrong = name.startswith("bascule/") and not private_header
            else:
                above = LAYERS[LAYERS.index(layer) + 1 :]
                wrong = target in above or (("emulator/" in name or target == EMULATOR) and not private_header)
            if wrong:
                yield f"{path}:{number}: {layer} must not include {name}"


def quoted_includes_stay_in_their_directory() -> Iterator[str]:
    for path, layer in layer_files():
        if layer != EMULATOR and re.search(r'#\s*include\s*"(\.\.|bascule/)', text_of(path)):
            yield f'{path}: other layers are included as <bascule/LAYER/file.hpp>, not as "../file.hpp"'


def one_file_opens_the_driver() -> Iterator[str]:
    for path, layer in layer_files():
        if (
            layer != EMULATOR
            and not re.fullmatch(r"runtime/driver/driver\.[ch]pp", path)
            and "libcuda" in code_of(path)
        ):
            yield f"{path}: only runtime/driver/driver.* names libcuda"


def nvrtc_is_known_to_jit_only() -> Iterator[str]:
    for path, layer in layer_files():
        for number, name in includes_of(path):
            if name == "nvrtc.h" and not (
                path == "jit/compile/nvrtc.cpp" or (layer == "jit" and path.endswith(".hpp"))
            ):
                yield f"{path}:{number}: only jit/compile/nvrtc.cpp and headers of jit/ include nvrtc.h"


def python_is_known_to_the_bindings_only() -> Iterator[str]:
    for path, layer in layer_files():
        for number, name in includes_of(path):
            if layer != "python/bindings" and (name == "Python.h" or name.startswith("pybind11/")):
                yield f"{path}:{number}: only python/bindings/ includes {name}"


def pybind11_is_included_in_one_place() -> Iterator[str]:
    """support/pybind.hpp changes how pybind11 converts text; a file that includes pybind11 alone would not."""
    for path, layer in layer_files():
        if layer != "python/bindings" or path.endswith("support/pybind.hpp"):
            continue
        for number, name in includes_of(path):
            if name.startswith("pybind11/"):
                yield f'{path}:{number}: include "support/pybind.hpp", not {name}'


def cmake_lists_its_files() -> Iterator[str]:
    for path in tracked():
        if Path(path).name == "CMakeLists.txt" or path.endswith(".cmake"):
            for number, line in lines_of(path):
                if re.match(r"\s*(file\s*\(\s*GLOB|aux_source_directory)", line, re.IGNORECASE):
                    yield f"{path}:{number}: name the files; a glob does not notice new ones"


def every_source_is_built() -> Iterator[str]:
    """A .cpp that no CMakeLists.txt of its directory or above names is dead code, or a test that never runs."""
    shared = text_of(BUILDING) if (ROOT / BUILDING).is_file() else ""
    by_script = {path: text_of(script) for path, script in BUILT_BY_SCRIPTS.items() if (ROOT / script).is_file()}
    for path in tracked():
        file = Path(path)
        if file.suffix not in {".cpp", ".c"} or f'"${{bascule_root}}/{path}"' in shared:
            continue
        if file.name in by_script.get(path, ""):
            continue
        homes = [parent for parent in file.parents if (ROOT / parent / "CMakeLists.txt").is_file()]
        if not any(
            re.search(
                rf"^[^#\n]*(?<![\w./-]){re.escape(spelling)}(?!\w)", text_of(str(home / "CMakeLists.txt")), re.MULTILINE
            )
            for home in homes
            for spelling in (str(file.relative_to(home)), file.name, file.stem)
        ):
            yield f"{path}: named in no CMakeLists.txt"


def rows_of_folders() -> set[str]:
    """The folders in DESIGN.md's table of folders, and single files of tests and samples."""
    return set(re.findall(r"^\| *`([^`]+)` *\|", text_of("DESIGN.md"), re.MULTILINE))


def every_folder_is_in_the_design() -> Iterator[str]:
    rows = rows_of_folders()
    for path in source_files():
        if path not in rows and not any(row.endswith("/") and path.startswith(row) for row in rows):
            yield f"{path}: neither it nor its folder has a row in DESIGN.md's table of folders"
    for row in sorted(rows):
        if not (ROOT / row).exists():
            yield f"DESIGN.md: its table of folders names {row}, which does not exist"


# Sources without a header of their name. Functions of the bindings' parts.hpp are also defined in files of other names,
# one for each part.
WITHOUT_HEADER = {
    "interface/errors/fmt.cpp": "compiles the functions of another library",
    "jit/diagnostics/diagnostics_names.cpp": "advice about names, which diagnostics_help.hpp declares",
    "jit/diagnostics/diagnostics_text.cpp": "the text of an error, one function of diagnostics.hpp",
    "jit/link/cubin_outline.cpp": "one of two readers that code.hpp declares",
    "jit/link/ptx_outline.cpp": "one of two readers that code.hpp declares",
    "python/bindings/bascule.cpp": "the extension module, which calls its parts",
}
# The layers whose sources are called like their headers. In the emulated device, cuda.h declares the functions of the
# driver, registry.hpp the handlers, and lowering.hpp the lowerings.
NAMED_LIKE_HEADERS = ["interface", "jit", "runtime", "python/bindings"]


def a_source_is_called_like_its_header() -> Iterator[str]:
    """Each .cpp defines what the header of its name in the same folder declares."""
    for path, layer in layer_files():
        if layer not in NAMED_LIKE_HEADERS or not path.endswith(".cpp") or path in WITHOUT_HEADER:
            continue
        header = (ROOT / path).with_suffix(".hpp")
        if not header.is_file() and not any(name == "parts.hpp" for _, name in includes_of(path)):
            yield f"{path}: no {header.name} in its folder declares its functions"
    for layer in NAMED_LIKE_HEADERS:
        for path, homes in headers_of_sources(layer).items():
            for home in sorted(homes - {path}):
                yield f"{path}: defines functions of a class that {home} declares"


def no_folder_is_too_full() -> Iterator[str]:
    counted: dict[str, int] = {}
    for path, _ in layer_files():
        folder = Path(path).parent.as_posix()
        counted[folder] = counted.get(folder, 0) + 1
    for folder, count in counted.items():
        if count > MOST_FILES:
            yield f"{folder}/: {count} files; {MOST_FILES} is the most: split it by topic"


def first_sentence(path: str) -> str:
    """Returns the first sentence of the file's leading comment or docstring, or an empty string."""
    text = text_of(path)
    if path.endswith((".py", ".pyi")):
        found = re.match(r'"""(.*?)"""', text, re.DOTALL)
    else:
        found = re.match(r"((?://.*\n)+)|/\*(.*?)\*/", text, re.DOTALL if text.startswith("/*") else 0)
    if not found:
        return ""
    words = " ".join(re.sub(r"^(// ?| \* ?)", "", next(filter(None, found.groups())), flags=re.MULTILINE).split())
    return re.split(r"(?<=[.!?])\s", words)[0]


def design_rows() -> Iterator[tuple[str, str]]:
    """The purpose of each file: a row for each header with its source, and for each other file."""
    paths = [path for path, _ in layer_files()]
    paths += [path for path in source_files() if path.startswith("python/bascule/")]
    units: dict[str, list[str]] = {}
    for path in sorted(paths):
        units.setdefault(Path(path).with_suffix("").as_posix() if path.endswith(("pp", ".h")) else path, []).append(
            path
        )
    for name, files in sorted(units.items()):
        header = next((file for file in files if file.endswith((".hpp", ".h"))), files[0])
        yield (name if len(files) > 1 else files[0]), first_sentence(header)


def every_source_is_described() -> Iterator[str]:
    for name, sentence in design_rows():
        if not sentence:
            yield f"{name}: begins with no comment that says what it is for"


def the_design_can_be_read_at_once() -> Iterator[str]:
    lines = text_of("DESIGN.md").count("\n")
    if lines > MOST_LINES_OF_DESIGN:
        yield f"DESIGN.md: {lines} lines; {MOST_LINES_OF_DESIGN} is the most: what is about one folder has a page there"


OPERATIONS = f"{EMULATOR}/program/table/rows.hpp"
# Operations that the lowering of other instructions uses too, and those of which addresses are made (program/origins).
USED_BY_OTHERS = {"add", "sub", "mad", "and_", "or_", "xor_", "not_", "selp", "exit"}


def an_instruction_is_a_row_and_a_handler() -> Iterator[str]:
    """What an operation does is a column of its row, so only its handler, its own lowering and checks name it."""
    if not (ROOT / OPERATIONS).is_file():
        return
    rows = re.findall(r"^OPERATION\((\w+), [^,]+, (\w+)\)", text_of(OPERATIONS), re.MULTILINE)
    plain = {name for name, lowering in rows if lowering == "letters"} - USED_BY_OTHERS
    for path, layer in layer_files():
        if layer != EMULATOR or path.startswith(
            tuple(f"{EMULATOR}/{each}/" for each in ("handlers", "machine", "checks"))
        ):
            continue
        for number, line in lines_of(path):
            for name in plain.intersection(re.findall(r"\b(?:O|Operation)::(\w+)", line)):
                yield f"{path}:{number}: names {name}; what it does belongs into its row in {OPERATIONS}"
            if re.search(r" [<>]=? (?:program::)?(?:O|Operation)::", line):
                yield f"{path}:{number}: compares operations by their order; add a column to {OPERATIONS}"


def emulator_files_have_names_of_their_own() -> Iterator[str]:
    """An include or a report that names a file of the emulated device means one file."""
    first: dict[str, str] = {}
    for path in tracked():
        if path.startswith(f"{EMULATOR}/") and path.endswith((".cpp", ".hpp")):
            other = first.setdefault(Path(path).name, path)
            if other != path:
                yield f"{path}: {other} has this name too; say in it what the file is for"


Graph = dict[str, dict[str, str]]  # from a node to its successors, with the place of each edge


def rings_of(graph: Graph) -> Iterator[str]:
    """Yields a cycle for each node that reaches itself."""
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> Iterator[str]:
        if name in trail:
            ring = [*trail[trail.index(name) :], name]
            yield f"{' -> '.join(ring)}: a ring ({', '.join(graph[a][b] for a, b in itertools.pairwise(ring))})"
        elif name not in done:
            for target in sorted(graph.get(name, {})):
                yield from visit(target, [*trail, name])
            done.add(name)

    for start in sorted(graph):
        yield from visit(start, [])


def includes_within(layer: str) -> Iterator[tuple[str, int, str]]:
    """(file, line, the file of the same layer that it includes)."""
    prefix = "" if layer in (EMULATOR, "python/bindings") else f"bascule/{layer}/"
    files = {path.removeprefix(layer + "/"): path for path, its in layer_files() if its == layer}
    for path in files.values():
        for number, name in includes_of(path):
            if name.startswith(prefix) and name.removeprefix(prefix) in files:
                yield path, number, files[name.removeprefix(prefix)]


# Sources that include headers which include the source's own header, and why.
ABOVE_THEIR_HEADER = {
    "runtime/kernels/module.cpp": "a Module makes Kernels, each of which holds its Module",
    "runtime/streams/stream_ref.cpp": "its waits use captures, events and observers, which refer to streams",
}


def no_ring_of_includes() -> Iterator[str]:
    """A header and its source are one unit: none may reach itself through others."""
    for layer in [*LAYERS, EMULATOR]:
        graph: Graph = {}
        for path, number, target in includes_within(layer):
            here, there = (Path(each).with_suffix("").as_posix() for each in (path, target))
            if here != there and path not in ABOVE_THEIR_HEADER:
                graph.setdefault(here, {}).setdefault(there, f"{path}:{number}")
        yield from rings_of(graph)


def headers_of_sources(layer: str) -> dict[str, set[str]]:
    """For sources that define functions of classes declared in other headers: those headers."""
    files = {path: text_of(path) for path, its in layer_files() if its == layer}
    declared: dict[str, list[str]] = {}
    for path, text in files.items():
        if not path.endswith(".cpp"):
            for name in re.findall(r"^\s*(?:class|struct)\s+(?:\w+\(.*?\)\s+)?(\w+)[^;{]*\{", text, re.MULTILINE):
                declared.setdefault(name, []).append(path)
    found: dict[str, set[str]] = {}
    for path, text in files.items():
        names = re.findall(r"^[A-Za-z_][^;\n(]*?\b(\w+)::~?(?:operator[^\s(]+|\w+)\(", text, re.MULTILINE)
        homes = {
            declared[name][0]
            for name in set(names)
            if len(declared.get(name, ())) == 1 and not re.search(rf"\b(?:class|struct) {name}\b", text)
        }
        if path.endswith(".cpp") and f"{path[:-4]}.hpp" not in homes:
            found[path] = homes or {path}
    return found


def no_ring_of_folders() -> Iterator[str]:
    """The folders of a layer must be ordered. A class's sources count as files of its header's folder."""
    for layer in [*LAYERS, EMULATOR]:
        homes = headers_of_sources(layer)
        graph: Graph = {}
        for path, number, target in includes_within(layer):
            there = Path(target).parent.as_posix()
            for here in {Path(home).parent.as_posix() for home in homes.get(path, {path})}:
                if here != there and layer not in (here, there):
                    graph.setdefault(here, {}).setdefault(there, f"{path}:{number}")
        yield from rings_of(graph)


def imports_of(text: str) -> Iterator[ast.Import | ast.ImportFrom]:
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            waiting.extend(ast.iter_child_nodes(node))


def no_ring_of_modules() -> Iterator[str]:
    """Imports within functions count too; those for annotations alone, and the lazy ones of `bascule`, do not."""
    modules = {
        path.removeprefix("python/").rpartition(".")[0].replace("/", ".").removesuffix(".__init__"): path
        for path in source_files()
        if path.startswith("python/bascule/")
    }
    graph: Graph = {}
    for name, path in modules.items():
        for node in imports_of(text_of(path)) if path.endswith(".py") and name != "bascule" else ():
            imported = []
            if isinstance(node, ast.Import):
                imported = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                whole = {f"{node.module}.{each.name}" for each in node.names}
                imported = sorted(whole & set(modules)) or [str(node.module)]
            for each in imported:
                if each in modules and each != name:
                    graph.setdefault(name, {}).setdefault(each, f"{path}:{node.lineno}")
    yield from rings_of(graph)


def lines_of_layers() -> dict[str, int]:
    lines = dict.fromkeys(MOST_LINES, 0)
    for path in source_files():
        if layer := layer_of(path) or ("python/bascule" if path.startswith("python/bascule/") else None):
            lines[layer] += text_of(path).count("\n")
    return lines


def no_layer_outgrows_its_budget() -> Iterator[str]:
    for layer, lines in lines_of_layers().items():
        if lines > MOST_LINES[layer]:
            yield f"{layer}: {lines} lines; its budget in check_tree.py is {MOST_LINES[layer]}"


def the_top_level_is_tidy() -> Iterator[str]:
    for entry in sorted({path.split("/")[0] for path in tracked()} - TOP_LEVEL):
        yield f"{entry}: not an entry of the top level; there are {', '.join(sorted(TOP_LEVEL))}"


def no_machine_is_named() -> Iterator[str]:
    homes = "|".join(("/" + "work/", "/" + "root/", "/" + r"home/\w", "/" + r"tmp/\w"))
    for path in tracked():
        for number, line in lines_of(path):
            if re.search(rf"(?<![\w.}}$])({homes})", line):
                yield f"{path}:{number}: a path of one machine: {line.strip()[:100]}"


def every_python_test_is_collected() -> Iterator[str]:
    for path in tracked():
        overlooked = re.fullmatch(r"tests/python/(.+/)?(?!test_)[^/]+\.py", path)
        if overlooked and re.search(r"^def test_", text_of(path), re.MULTILINE):
            yield f"{path}: has tests, but pytest collects only files called test_*.py"


def comments_of(path: str) -> Iterator[tuple[int, str]]:
    """Yields line and text of each comment, docstring (its first line) and, in a page, line outside of code."""
    comment, first, fenced = "", 0, False
    mark = r"\s*#(?!!)\s?(.*)" if path.endswith((".py", ".pyi")) else r"\s*///?(?!/)\s?(.*)"
    for number, line in lines_of(path):
        if path.endswith(".md"):
            fenced ^= line.startswith("```")
            if not fenced:
                yield number, line
        elif found := re.fullmatch(mark, line):
            first, comment = first or number, f"{comment} {found[1]}".strip()
        else:
            if comment:
                yield first, comment
            comment, first = "", 0
            if path.endswith((".py", ".pyi")) and (found := re.match(r'\s*[rf]?"""(.+?)(?:"""|$)', line)):
                yield number, found[1]


def comments_are_sentences() -> Iterator[str]:
    for path in tracked():
        if Path(path).suffix not in SOURCES | {".md"}:
            continue
        for number, text in comments_of(path):
            if not path.endswith(".md") and (found := FRAGMENT.match(text)):
                yield f'{path}:{number}: a comment that begins with "{found[1]}" has no subject: {text[:80]}'
            for phrase, advice in PHRASES.items():
                if found := re.search(phrase, re.sub(r'`[^`]*`|"[^"]*"|\w+::\w+', "", text)):
                    yield f'{path}:{number}: "{found[0]}": {advice}'


def subjects_of_commits_are_short() -> Iterator[str]:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout

    release = git("describe", "--tags", "--abbrev=0", "--match", "v*").strip()
    known = git("cat-file", "-t", FIRST_CHECKED_COMMIT).strip() == "commit"
    since = release or (FIRST_CHECKED_COMMIT if known else "")
    for line in git("log", "--no-merges", "--format=%h %s", *([f"{since}..HEAD"] if since else ["-1"])).splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > LONGEST_SUBJECT:
            yield f"{commit}: its subject has {len(subject)} characters; {LONGEST_SUBJECT} is the most: {subject}"


def code_of(path: str) -> str:
    """A file's text without // comments, which may mention other files."""
    return re.sub(r"//.*", "", text_of(path))


CHECKS = [
    includes_run_one_way,
    quoted_includes_stay_in_their_directory,
    one_file_opens_the_driver,
    nvrtc_is_known_to_jit_only,
    python_is_known_to_the_bindings_only,
    pybind11_is_included_in_one_place,
    cmake_lists_its_files,
    every_source_is_built,
    every_folder_is_in_the_design,
    a_source_is_called_like_its_header,
    no_folder_is_too_full,
    no_ring_of_includes,
    no_ring_of_folders,
    no_ring_of_modules,
    every_source_is_described,
    the_design_can_be_read_at_once,
    no_layer_outgrows_its_budget,
    an_instruction_is_a_row_and_a_handler,
    emulator_files_have_names_of_their_own,
    the_top_level_is_tidy,
    no_machine_is_named,
    every_python_test_is_collected,
    comments_are_sentences,
    subjects_of_commits_are_short,
]


def table() -> str:
    return "| file | responsibility |\n|---|---|\n" + "".join(f"| `{a}` | {b} |\n" for a, b in design_rows())


def main() -> int:
    if "--table" in sys.argv[1:]:
        print(table(), end="")
        return 0
    findings = [finding for check in CHECKS for finding in check()]
    print("\n".join(findings) if findings else f"the tree keeps its {len(CHECKS)} rules")
    for layer, lines in lines_of_layers().items():
        print(f"{lines:6,} lines in {layer}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
