"""Adds one of each kind of fact to a copy of the sources, builds it, and uses what was added.

    python tests/added_rows.py [KIND...]

A fact is a launch attribute, a compile option, ... KINDS has the places that one needs; everything else that Python has
of it (keyword, attribute, repr, hash, pickle, displays, the stub's generated lines) must follow from them. The copy is
build/added_rows. Exits with 1 if something cannot be used. tests/python/test_rows.py counts the places of the facts
that there are.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "added_rows"


@dataclass(frozen=True)
class Place:
    """Where a row is added: `text` is inserted after the text `after`, which occurs once in the file."""

    file: str
    after: str
    text: str


@dataclass(frozen=True)
class Kind:
    places: list[Place]
    most: int
    use: str  # a program that fails if the row is missing anywhere
    user: Place | None = None  # code of the copy that uses the row, for facts that only code can use


STUB = "python/bascule/_bascule.pyi"

KINDS = {
    "launch attribute": Kind(
        [
            Place(
                "interface/arguments/launch_config.hpp",
                "///< lower is more urgent; empty: the stream's\n",
                "    std::optional<int> domain{};  ///< of memory synchronisation\n",
            ),
            Place(
                "runtime/kernels/launch_attributes.cpp",
                "    if (config.priority) add(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority = *config.priority;\n",
                "    if (config.domain)\n"
                "        add(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain =\n"
                "            static_cast<CUlaunchMemSyncDomain>(*config.domain);\n",
            ),
            Place(
                "python/bindings/values/launch_config.cpp",
                '"int, lower is more urgent; None means the stream\'s priority"),\n',
                '    row<&LaunchConfig::domain>("domain", "int, the domain of memory synchronisation"),\n',
            ),
        ],
        3,
        """
config = bascule.LaunchConfig(1, 1, domain=1)
assert config.domain == 1 and "domain=1" in repr(config) and bascule.LaunchConfig(1, 1).domain is None
assert config == pickle.loads(pickle.dumps(config)) != bascule.LaunchConfig(1, 1)
assert hash(config) == hash(bascule.LaunchConfig(1, 1, domain=1))
assert "memory synchronisation" in bascule.LaunchConfig.__doc__
kernel = bascule.compile("__global__ void k(int* p) { *p = 7; }").k
p = bascule.zeros(1, "i4")
try:
    kernel.launch(1, 1, (p,), domain=1)
    assert p.item() == 7
except bascule.CudaError as error:  # the emulated device's driver has no such attribute
    assert error.call == "cuLaunchKernelEx", error
""",
    ),
    "compile option": Kind(
        [
            Place(
                "jit/options/compile_options.hpp",
                "    std::string keep_sources;\n",
                "    bool int128 = false;  ///< allows __int128 in the text\n",
            ),
            Place(
                "jit/options/compile_options.cpp",
                '[](const Options& options) { refuse_nul("keep_sources", options.keep_sources); }, path},\n',
                '    {"int128", &Options::int128,\n'
                '     "-device-int128 --device-int128",\n'
                '     "-device-int128", "", "bool, allows __int128 in the text"},\n',
            ),
            Place(
                STUB,
                "        keep_sources: str | bytes | PathLike[str] | None = None,\n",
                "        int128: bool = False,\n",
            ),
        ],
        3,
        """
options = bascule.CompileOptions(int128=True)
assert options.int128 and "int128=True" in repr(options)
assert options == pickle.loads(pickle.dumps(options)) != bascule.CompileOptions()
assert hash(options) == hash(bascule.CompileOptions(int128=True)) != hash(bascule.CompileOptions())
text = "__global__ void k(int* p) { *p = (__int128)*p * 3 % 2; }"
bascule.compile(text, options=options).k.signature
try:
    bascule.compile(text, options=bascule.CompileOptions(extra=["-device-int128"]))
    raise AssertionError("`extra` takes what an option is for")
except bascule.ArgumentValueError as error:
    assert "int128" in str(error), error
""",
    ),
    "error": Kind(
        [
            Place(
                "interface/errors/error.hpp",
                "  private:\n    std::string path_;\n    int code_;\n};\n",
                "\nclass QueueError : public Error {\n"
                "  public:\n"
                "    using Error::Error;\n"
                '    const char* name() const noexcept override { return "QueueError"; }\n'
                '    std::vector<ErrorAttribute> attributes() const override { return {{"length", 3}}; }\n'
                "};\n",
            ),
            Place(
                "python/bascule/_errors.py",
                '__all__ += ["FileError"]\n',
                '\n\nclass QueueError(Error, RuntimeError):\n    """A queue is full."""\n\n    length: int\n'
                '\n\n__all__ += ["QueueError"]\n',
            ),
            Place("python/docs/errors.md", "## Order: `RaceError`", ", `QueueError`"),
        ],
        3,
        """
try:
    bascule._bascule._fill_queue()
except bascule.QueueError as error:
    assert isinstance(error, bascule.Error) and isinstance(error, RuntimeError)
    assert error.length == 3 and str(error) == "the queue is full"
    assert pickle.loads(pickle.dumps(error)).length == 3
else:
    raise AssertionError("nothing was raised")
assert "QueueError" in dir(bascule)
""",
        Place(
            "python/bindings/context/cache_object.cpp",
            '    module.def("_cache_limit", [] { return disk().limit_bytes(); });\n',
            '    module.def("_fill_queue", [] { throw QueueError("the queue is full"); });\n',
        ),
    ),
    "column of the list of cached programs": Kind(
        [
            Place(
                "python/bindings/context/cache_object.cpp",
                '"nvrtc"_a = image.nvrtc_version, ',
                '"warned"_a = !image.log.empty(), ',
            ),
            Place("python/bascule/cache.py", "    nvrtc: str\n", "    warned: bool\n"),
        ],
        2,
        """
bascule.compile("__global__ void k(int* p) { int unused; *p = 7; }").k.signature
assert {entry.warned for entry in bascule.cache.list() if "k" in entry.kernels} == {True}
assert "warned" in bascule.cache.list()._repr_html_()
""",
    ),
    "attribute of kernels": Kind(
        [
            Place(
                "runtime/kernels/occupancy.hpp",
                "    std::uint32_t constant_bytes = 0;            ///< of the image\n",
                "    int twice = 0;\n",
            ),
            Place(
                "runtime/kernels/occupancy.cpp",
                "    attributes.registers = kernel.registers;\n",
                "    attributes.twice = 2 * kernel.registers;\n",
            ),
            Place(
                "python/bindings/kernels/kernel_object.cpp",
                '        .def_readonly("registers", &KernelAttributes::registers, "Registers per thread.")\n',
                '        .def_readonly("twice", &KernelAttributes::twice, "Twice the registers per thread.")\n',
            ),
        ],
        3,
        """
attributes = bascule.compile("__global__ void k(int* p) { *p = 7; }").k.attributes
assert attributes.twice == 2 * attributes.registers > 0
assert f"twice={attributes.twice}" in repr(attributes)
""",
    ),
    "instruction of the emulated device": Kind(
        [
            Place(
                "runtime/emulator/program/table/rows.hpp",
                'OPERATION(not_, by_lane, letters) FORM("not", not_, "DA", all_bits)\n',
                'OPERATION(turn, by_lane, letters) FORM("turn", turn, "DA", bits)\n',
            ),
            Place(
                "runtime/emulator/handlers/arithmetic.cpp",
                "    r.add(Operation::not_, t, none, {}, unary<Not, T>);\n",
                "    r.add(Operation::turn, t, none, {},\n"
                "          unary<decltype([](auto a) { return decltype(a)(a + 1); }), T>);\n",
            ),
        ],
        2,
        """
ptx = bascule.compile("__global__ void k(unsigned* p) { *p = ~*p; }").k.ptx
assert "not.b32" in ptx
p = bascule.full(1, 41, "u4")
bascule.load_module(ptx.replace("not.b32", "turn.b32")).k[1, 1](p)
assert p.item() == 42
""",
    ),
}


def copy_sources(places: list[Place]) -> None:
    """Writes only files that differ, so that the others are not compiled again."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        source, copy = ROOT / name, COPY / name
        if not source.is_file():
            copy.unlink(missing_ok=True)
            continue
        content = source.read_bytes()
        for place in places:
            if place.file == name:
                content = with_row(content.decode(), place).encode()
        if not copy.is_file() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            copy.chmod(source.stat().st_mode)
    if not (COPY / ".venv").exists():
        (COPY / ".venv").symlink_to(ROOT / ".venv")
    # Tests ask git for the names of the sources.
    subprocess.run(["git", "init", "--quiet"], cwd=COPY, check=True)
    subprocess.run(["git", "add", "--all"], cwd=COPY, check=True)


def with_row(text: str, place: Place) -> str:
    before, found, after = text.partition(place.after)
    if not found or place.after in after:
        sys.exit(f"{place.file}: this must occur once, so that a row can be added after it: {place.after!r}")
    return before + found + place.text + after


def build() -> None:
    # Without -e, because `build` asks how much there is to do, and "nothing" must not count as a failure.
    steps = ". tests/setup.sh && configure dev && build dev bascule_python"
    subprocess.run(["bash", "-uc", steps], cwd=COPY, check=True)


def python(*arguments: str) -> int:
    """Runs Python in the copy, and returns its exit status."""
    package = str(COPY / "build" / "dev" / "python")
    environment = {**os.environ, "PYTHONPATH": package, "BASCULE_DEVICE": "emulated"}
    environment["BASCULE_CACHE_DIR"] = str(COPY / "build" / "cache")
    return subprocess.run([sys.executable, *arguments], cwd=COPY, env=environment, check=False).returncode


def main() -> int:
    kinds = {name: KINDS[name] for name in sys.argv[1:] or KINDS}
    copy_sources([each for kind in kinds.values() for each in [*kind.places, *filter(None, [kind.user])]])
    build()
    failed = python("tests/python/test_rows.py")  # makes the stub's lines
    for name, kind in kinds.items():
        used = python("-c", "import pickle, bascule\nbascule.cache.clear(disk=True)\n" + kind.use) == 0
        verdict = "used" if used and len(kind.places) <= kind.most else "FAILED"
        failed += verdict == "FAILED"
        print(f"{verdict:<7}{name}: {len(kind.places)} places, at most {kind.most}", flush=True)
    tests = ["tests/python/test_rows.py", "tests/python/packaging/test_stubs.py"]
    failed += python("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests) != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
