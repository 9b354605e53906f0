"""Reads the reports of ctest and pytest: no test may be missing, and none may be skipped without a reason.

    python tests/check_results.py BUILD_DIRECTORY                    ctest.xml, pytest.xml and pytest-slow.xml in it
    python tests/check_results.py BUILD_DIRECTORY --only LABEL...    only these labels of ctest.xml
    python tests/check_results.py BUILD_DIRECTORY --slowest COUNT    prints the slowest tests with their seconds
    python tests/check_results.py BUILD_DIRECTORY --as-cuda          compares pytest-as-cuda.xml with pytest.xml
    python tests/check_results.py --gpu RESULTS                      results.json of a run on a GPU or a rehearsal

Prints what is wrong, and exits with 1.
"""

import argparse
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A label is a directory of tests (and `samples`); a doctest program reports how many cases it ran.
LABELS = ["interface", "jit", "runtime", "emulator"]
# Libraries that need a GPU or are too large to install everywhere. Numba and mpi4py are installed: their tests run.
MAY_BE_ABSENT = ["cudf", "cuml", "cupy", "jax", "pyarrow", "pycuda", "rmm", "torch", "warp"]
# Groups of Python tests that must have run when the emulated device is in the driver's place.
TELLING = ["ordering", "graphs", "lifetime", "launches", "dlpack", "arrays", "test_end_to_end", "test_errors"]
# How many tests of a directory a GPU run skipped while they needed the emulated device's own trace (version 0.1).
SKIPPED_BEFORE = {"ordering": 741, "conformance": 1122, "graphs": 34}
DOCTEST_SUMMARY = re.compile(r"test cases:\s*(\d+)\s*\|")


def cpp_cases(report: Path) -> dict[str, ElementTree.Element]:
    return {case.get("name", ""): case for case in ElementTree.parse(report).iter("testcase")}


def missing_labels(cases: dict[str, ElementTree.Element], labels: list[str]) -> Iterator[str]:
    for label in labels:
        if label not in cases:
            yield f"ctest: no test is called {label}; is tests/{label}/CMakeLists.txt still included?"
            continue
        output = "".join(cases[label].itertext())
        summary = DOCTEST_SUMMARY.search(output)
        if not summary or int(summary[1]) == 0:
            yield f"ctest: {label} ran no test case"
    for name, case in cases.items():
        if case.get("status") in {"notrun", "disabled"} or case.find("skipped") is not None:
            yield f"ctest: {name} did not run"


def missing_cpp_tests(cases: dict[str, ElementTree.Element]) -> Iterator[str]:
    yield from missing_labels(cases, LABELS)
    if "install" not in cases:
        yield "ctest: the installation was not tried; is tests/install still included?"
    if not any(name.startswith("sample_") for name in cases):
        yield "ctest: no C++ sample was run"


def doubtful_skip(case: ElementTree.Element) -> str | None:
    """Returns why skipping this test is wrong; None if it was not skipped or its reason is accepted."""
    skipped = case.find("skipped")
    if skipped is None:
        return None
    reason = (skipped.get("message") or "").strip()
    if reason in {"", "unconditional skip"}:
        return "is skipped without a reason"
    of_producers = "producers" in (case.get("classname") or "").split(".")
    if of_producers and reason not in {f"{library} is not installed" for library in MAY_BE_ABSENT}:
        return f"must run here, but: {reason}"
    return None


def python_cases(build: Path) -> Iterator[ElementTree.Element]:
    for report in ("pytest.xml", "pytest-slow.xml"):
        yield from ElementTree.parse(build / report).iter("testcase")


def missing_python_tests(build: Path) -> Iterator[str]:
    ran = set()
    for case in python_cases(build):
        ran.update((case.get("classname") or "").split("."))
        if doubt := doubtful_skip(case):
            yield f"pytest: {case.get('classname')}.{case.get('name')} {doubt}"
    for file in sorted((ROOT / "tests" / "python").rglob("test_*.py")):
        if file.stem not in ran:
            yield f"pytest: nothing of {file.relative_to(ROOT)} ran"


def group_of(case: ElementTree.Element) -> str:
    """The directory within tests/python, or the file."""
    words = (case.get("classname") or "").removeprefix("tests.python.").split(".")
    return words[0]


def missing_as_cuda(build: Path) -> Iterator[str]:
    """Yields tests that did not run with the emulated device in the driver's place, and skips without a reason."""
    cases = list(ElementTree.parse(build / "pytest-as-cuda.xml").iter("testcase"))
    ran = {(case.get("classname"), case.get("name")) for case in cases}
    groups = {group_of(case) for case in cases}
    for name in TELLING:
        if name not in groups:
            yield f"as CUDA: nothing of {name} ran"
    for case in ElementTree.parse(build / "pytest.xml").iter("testcase"):
        if group_of(case) in groups and (case.get("classname"), case.get("name")) not in ran:
            yield f"as CUDA: {case.get('classname')}.{case.get('name')} did not run"
    for case in cases:
        skipped = case.find("skipped")
        if skipped is not None and (skipped.get("message") or "") in {"", "unconditional skip"}:
            yield f"as CUDA: {case.get('classname')}.{case.get('name')} is skipped without a reason"


def wrong_on_a_gpu(results: Path) -> Iterator[str]:
    """Yields failures of a run on a GPU, skips without a reason, and groups that still skip many tests."""
    summary = json.loads(results.read_text(encoding="utf-8"))
    skipped_now: dict[str, int] = {}
    for name, piece in summary["pieces"].items():
        failed = piece.get("failed")
        if failed:
            yield from (f"{name}: {test} failed" for test in failed) if isinstance(failed, dict) else [f"{name} failed"]
        elif piece["exit"] not in (0, 5):  # 5: all tests of the file are slow ones
            yield f"{name} did not end" if piece["exit"] is None else f"{name} ended with {piece['exit']}"
        if "" in piece.get("skipped", {}):
            yield f"{name} skips without a reason"
        group = name.partition("-")[0]
        skipped_now[group] = skipped_now.get(group, 0) + sum(piece.get("skipped", {}).values())
    for group, before in SKIPPED_BEFORE.items():
        if group in skipped_now:
            print(f"{group}: {skipped_now[group]} tests are skipped, {before} were")
            if skipped_now[group] > before / 3:
                yield f"{group}: {skipped_now[group]} tests are skipped, more than a third of {before}"
    if not set(skipped_now) & set(SKIPPED_BEFORE):
        yield "none of " + ", ".join(SKIPPED_BEFORE) + " ran"


def slowest(build: Path, count: int) -> Iterator[str]:
    """Yields the slowest tests. A program of C++ tests counts as one test: its cases are not timed by ctest."""
    times = [(float(case.get("time") or 0), f"ctest {name}") for name, case in cpp_cases(build / "ctest.xml").items()]
    for case in python_cases(build):
        times.append((float(case.get("time") or 0), f"{case.get('classname')}.{case.get('name')}"))
    for seconds, name in sorted(times, reverse=True)[:count]:
        yield f"{seconds:7.1f} s  {name[:120]}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Reads the reports of ctest and pytest.")
    parser.add_argument("build", type=Path, nargs="?", metavar="BUILD_DIRECTORY")
    parser.add_argument("--only", nargs="+", choices=LABELS, metavar="LABEL")
    parser.add_argument("--slowest", type=int, metavar="COUNT")
    parser.add_argument("--as-cuda", action="store_true")
    parser.add_argument("--gpu", type=Path, metavar="RESULTS")
    options = parser.parse_args()
    if options.gpu is not None:
        return tell(list(wrong_on_a_gpu(options.gpu)), options.gpu.parent.name)
    if options.build is None:
        parser.error("which BUILD_DIRECTORY?")
    if options.as_cuda:
        return tell(list(missing_as_cuda(options.build)), "with the emulated device in the driver's place")
    if options.slowest is not None:
        print(*slowest(options.build, options.slowest), sep="\n")
        return 0
    cases = cpp_cases(options.build / "ctest.xml")
    if options.only:
        findings = list(missing_labels(cases, options.only))
    else:
        findings = [*missing_cpp_tests(cases), *missing_python_tests(options.build)]
    return tell(findings, options.build.name)


def tell(findings: list[str], where: str) -> int:
    print("\n".join(findings) if findings else f"{where}: every test ran, or says why not")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
